"""Statements and load by PostgreSQL's own tools, psql and pgbench, and what they cost."""

import contextlib
import os
import subprocess
import time
import typing
from pathlib import Path

from harness import BIN, DATABASE, run

# Counting the events would cost more than what is measured.
UNNUMBERED = "SELECT (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM events_seq) > last_seq FROM event_log_state"


def query(sql):
    """Runs statements and returns the output, with columns separated by `|`."""
    return run(str(BIN / "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", DATABASE, "-c", sql).strip()


def wait_until_numbered():
    """Waits until all committed events have positions in the event log."""
    # The last tick may have seen a sequence number before its event was committed.
    for _ in range(1200):
        time.sleep(0.1)
        if query(UNNUMBERED) == "f":
            return
    raise SystemExit("the sequencer does not catch up")


def wal_position():
    """Returns the number of bytes of WAL that the cluster has written."""
    return int(query("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"))


def cpu_seconds(pid, first=11):
    """Returns the CPU time of a process, or from field 13 that of its children that have ended."""
    values = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(value) for value in values[first:first + 2]) / os.sysconf("SC_CLK_TCK")


def postgres_cpu_seconds(folder):
    """Returns the CPU time of the connections to the cluster that have ended, and of its running processes."""
    postmaster = (folder / "data/postmaster.pid").read_text().splitlines()[0]
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children")
    while True:
        # Fails if a connection ends meanwhile.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            running = [postmaster, *children.read_text().split()]
            return cpu_seconds(postmaster, 13), sum(cpu_seconds(pid) for pid in running)


def percentiles(values, percents=(50, 99)):
    values = sorted(values)
    return [values[min(len(values) - 1, len(values) * percent // 100)] for percent in percents]


class Load(typing.NamedTuple):
    """The transactions of a run: their number and, at a fixed rate, their latencies in ms from the scheduled time."""

    count: int
    latencies: list


def pgbench(folder, script, clients, seconds, rate=None):
    """Runs a script at this rate, or as fast as possible."""
    file, log = folder / "pgbench.sql", folder / "pgbench-log"
    file.write_text(script)
    limit = ["-R", str(rate), "-l", f"--log-prefix={log}"] if rate else []
    command = [str(BIN / "pgbench"), "-n", "-M", "prepared", "-c", str(clients), "-j", "2", "-T", str(seconds), *limit]
    output = subprocess.run([*command, "-f", str(file), DATABASE], text=True, capture_output=True)
    if output.returncode:
        raise SystemExit(output.stdout + output.stderr)
    processed = next(line for line in output.stdout.splitlines() if "actually processed" in line)
    latencies = []
    for part in folder.glob("pgbench-log.*"):
        latencies += [int(line.split()[2]) / 1000 for line in part.read_text().splitlines()]
        part.unlink()
    return Load(int(processed.split(":")[1].split("/")[0]), latencies)
