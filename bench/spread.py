"""Session checks of many users: real traffic asks for each session seldom.

SQL inserts one user with one session each, last used at some time of the past minute. Access tokens are signed by `tokens` of
`bench/bare`, because 100,000 sign-ins over HTTP would take minutes. They are valid for 15 minutes, so they are signed again
before each measurement.
"""

import contextlib
import json
import random
import re
import socket
import subprocess
import time
from pathlib import Path

from cases import psql
from harness import BARE_PORT, PG_PORT, PORT, SECOND_PORT, URL, run
from load import Latency, StolenTime, sign, steady, wrk, write_requests

CHECK_PATH = "/authentication/user-logged-in"
# Numbers of sessions, and for a run that only checks that everything can be measured.
COUNTS, QUICK_COUNTS = (1, 1_000, 100_000), (1, 100, 1_000)
# Checks per second at which statements and WAL are counted, for a minute: the last use is written once a minute.
COUNTED_RATE, COUNTED_SECONDS = 20_000, 60
PRELOAD = ["shared_preload_libraries=pg_stat_statements"]


def insert_sessions(user, count):
    """Adds users with one session each, copies of the user's session."""
    psql(f"""
        INSERT INTO users (tenant_id, id, email, email_key, created_at, updated_at) SELECT tenant_id, md5('member' || n)::uuid, 'member' || n || '@example.com', 'member' || n || '@example.com', now(), now()
        FROM tenants, generate_series(1, {count}) AS n WHERE name <> 'managed';
        INSERT INTO sessions (tenant_id, id, user_id, client_id, issuer, address, user_agent, salt, generation, confirmed_generation,
            refreshed_at, created_at, last_used_at, expires_at, number, refresh_key_id)
        SELECT tenant_id, md5('spread' || n)::uuid, md5('member' || n)::uuid, client_id, issuer, address, user_agent, salt,
            generation, confirmed_generation, now(), now(), now() - random() * interval '1 minute', now() + interval '14 days', number, refresh_key_id
        FROM (SELECT * FROM sessions WHERE user_id = '{user.user}' LIMIT 1) AS one, generate_series(1, {count}) AS n""")
    psql("VACUUM ANALYZE users")
    psql("VACUUM ANALYZE sessions")


def sign_tokens(binary, service, sample, count):
    """Returns access tokens of the inserted sessions, copies of `sample`."""
    ids = psql(f"SELECT 'usr_' || md5('member' || n) || ' ses_' || md5('spread' || n) FROM generate_series(1, {count}) AS n")
    sealed = psql("SELECT encode(private_key, 'hex') FROM signing_keys ORDER BY signs_from DESC LIMIT 1").strip()
    return sign(binary.parent, service, sealed, sample, ["sub", "sid"], ids)


def write_checks(binary, service, user, counts):
    """Writes the files `checks-N` with the requests of N sessions, in random order."""
    sample = json.loads(service.post("/authentication/sign-in", json.loads(user.credentials)))["access_token"]
    tokens = sign_tokens(binary, service, sample, max(counts))
    random.Random(1).shuffle(tokens)
    for count in counts:
        write_requests(checks(service.folder, count), (
            f"POST {CHECK_PATH} HTTP/1.1\r\nhost: localhost\r\nclient-id: {service.client_id}\r\ncontent-length: 0\r\n"
            f"authorization: Bearer {token}\r\n\r\n" for token in tokens[:count]))


def checks(folder, count):
    return folder / f"checks-{count}"


@contextlib.contextmanager
def reference_route(binary, folder, body):
    """Runs a plain axum route that returns these bytes."""
    file = folder / "bare.json"
    file.write_bytes(body)
    server = subprocess.Popen([str(binary.parent / "perennial-bare"), str(BARE_PORT), str(file)])
    try:
        while server.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", BARE_PORT)):
                break
            time.sleep(0.01)
        yield f"http://127.0.0.1:{BARE_PORT}"
    finally:
        server.kill()
        server.wait()


def resident_memory(pid):
    """Returns the resident memory of a process in MiB."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024


def segments():
    """Returns the number of packets that clients have sent to PostgreSQL over the connections that are open now."""
    out = run("ss", "-tinH", f"dport = :{PG_PORT}")
    return sum(int(number) for number in re.findall(r"data_segs_out:(\d+)", out))


def track_statements(which):
    """Turns the tracking of statements on (`top`) or off (`none`)."""
    psql(f"ALTER SYSTEM SET pg_stat_statements.track = '{which}'")
    psql("SELECT pg_reload_conf()")


class DatabaseWork:
    """Counts what PostgreSQL does for sessions: statements by text, bytes of WAL, and packets that it receives."""

    def __init__(self):
        psql("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        track_statements("top")
        psql("SELECT pg_stat_statements_reset()")
        self.lsn, self.packets = psql("SELECT pg_current_wal_lsn()").strip(), segments()

    def finish(self):
        self.packets = segments() - self.packets
        self.wal = int(psql(f"SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '{self.lsn}')::bigint"))
        rows = psql("""SELECT calls || ' ' || rows || ' ' || regexp_replace(query, '\\s+', ' ', 'g') FROM pg_stat_statements
            WHERE query ~ '\\msessions\\M' AND query !~ 'pg_stat' ORDER BY calls DESC""")
        self.by_text = [row.split(" ", 2) for row in rows.splitlines()]
        self.statements = sum(int(calls) for calls, _, _ in self.by_text)
        track_statements("none")

    def per(self, checks):
        return f"{self.statements / checks:.4f} statements, {self.packets / checks:.4f} packets to PostgreSQL, {self.wal / checks:.0f} bytes of WAL"

    def list(self):
        for calls, rows, text in self.by_text[:6]:
            print(f"    {int(calls):9,} calls, {int(rows):9,} rows: {text[:100]}")


class Spread:
    """Measures session checks over many sessions. `counts` are the numbers of sessions."""

    def __init__(self, binary, service, user, options):
        self.binary, self.service, self.user, self.options = binary, service, user, options
        self.counts = QUICK_COUNTS if options.quick else COUNTS
        self.connections = max(options.connections)
        self.all = max(self.counts)
        insert_sessions(user, self.all)

    def sign(self):
        """Signs new tokens, and asks for each session once, so that the instance has seen all of them."""
        write_checks(self.binary, self.service, self.user, self.counts)
        self.steady(0, 1)

    def rates(self):
        """Returns the rates of each round by the name of what was asked. Rounds alternate."""
        folder = self.service.folder
        rates = {f"{count:,} session{'s' * (count > 1)}": (URL, count, []) for count in self.counts}
        with reference_route(self.binary, folder, self.user.session_check) as reference:
            for count in (1, self.all):
                rates[f"bare route, {count:,} different requests"] = (reference, count, [])
            for number in range(0 if self.options.quick else -1, self.options.rounds):
                for url, count, found in rates.values():
                    rate = wrk(checks(folder, count).with_suffix(".lua"), self.options.seconds, self.connections, url)
                    if number >= 0:
                        found.append(rate)
        return {name: found for name, (_, _, found) in rates.items()}

    def steady(self, rate, seconds):
        """Sends checks of all sessions at this rate, or one check of each if it is 0."""
        return steady(self.binary.parent, PORT, rate, seconds, self.connections, checks(self.service.folder, self.all))

    def report_costs(self, reached):
        """Prints latency, database work and memory, given the rate reached over all sessions."""
        quick = self.options.quick
        # The debug build of a quick run shares the machine with other steps.
        half = max(1, int(reached / (20 if quick else 2)))
        stolen = StolenTime()
        latency = self.steady(half, 1 if quick else 10)
        print(f"{self.all:,} sessions, {half:,} checks a second (half load): p50, p99, p99.9 {latency}; {latency.rejected} rejected; {stolen}", flush=True)

        rate, seconds = (half, 1) if quick else (min(COUNTED_RATE, int(reached * 0.8)), COUNTED_SECONDS)
        work, stolen = DatabaseWork(), StolenTime()
        latency = self.steady(rate, seconds)
        work.finish()
        print(f"{self.all:,} sessions, {rate:,} checks a second for {seconds} s: {latency}; {latency.rejected} rejected; per check {work.per(latency.count)}; {stolen}")
        work.list()
        print(f"memory of the instance: {resident_memory(self.service.pid):.0f} MiB", flush=True)
        self.expect_answers(latency)

    def report_cold(self):
        """Starts an instance while all sessions are waiting for it, and prints how it copes."""
        command = [str(self.binary.parent / "steady"), str(SECOND_PORT), "0", "30", str(self.connections), str(checks(self.service.folder, self.all))]
        load = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        work, stolen = DatabaseWork(), StolenTime()
        with self.service.second() as pid:
            latency = Latency(*(int(number) for number in load.communicate()[0].split()))
            work.finish()
            memory = resident_memory(pid)
        print(f"cold instance, {self.all:,} sessions once each: {latency.count / latency.took * 1e6:,.0f} checks a second, p50, p99, p99.9 {latency}; "
            f"{latency.rejected} rejected; per check {work.per(latency.count)}; {memory:.0f} MiB; {stolen}")
        work.list()
        self.expect_answers(latency)

    def expect_answers(self, latency):
        """Fails if a quick run, whose load is low, had rejections. Under full load they are a result."""
        if self.options.quick and latency.rejected:
            raise SystemExit(f"the service rejected {latency.rejected} session checks")
