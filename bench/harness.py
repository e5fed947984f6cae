"""Starts a private PostgreSQL and the service for a measurement, and removes both afterwards.

PostgreSQL runs from the installed binaries, with checksums and fsync on. Uses loopback only. `bench/quick` runs all short forms on
one cluster, without fsync.
"""

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import typing
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
# The ports of PostgreSQL, the API, the admin listener, the reference route or receiver, and a second instance with its admin
# listener. BENCH_PORT_BASE changes all six, for parallel runs.
BASE = os.environ.get("BENCH_PORT_BASE")
PORTS = range(int(BASE), int(BASE) + 6) if BASE else (15433, 18080, 19090, 18081, 18082, 19091)
PG_PORT, PORT, ADMIN_PORT, BARE_PORT, SECOND_PORT, SECOND_ADMIN_PORT = PORTS
# Set by `bench/quick`: the folder of its cluster, and the empty database of this run.
SHARED = os.environ.get("BENCH_FOLDER")
DATABASE = f"postgres://postgres@127.0.0.1:{PG_PORT}/{os.environ.get('BENCH_DATABASE', 'postgres')}"
URL = f"http://127.0.0.1:{PORT}"
# What `cargo build` gets for a release: without the features of the tests.
RELEASE = ["--release", "-p", "perennial", "-p", "perennial-bare"]


def run(*command, **kwargs):
    """Runs a command and returns its standard output."""
    result = subprocess.run(command, text=True, capture_output=True, **kwargs)
    if result.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def as_postgres(*command):
    """Returns the command as the user postgres, if this process is root: PostgreSQL does not run as root."""
    return ["runuser", "-u", "postgres", "--", *command] if os.getuid() == 0 else list(command)


def build(profile="release"):
    """Builds all binaries and returns the path of the service."""
    print(f"building the {profile} binaries", flush=True)
    flags = RELEASE if profile == "release" else []
    subprocess.run(["cargo", "build", *flags, "--locked", "--quiet", "--bins"], cwd=ROOT, check=True)
    return ROOT / "target" / profile / "perennial"


class TestUser(typing.NamedTuple):
    """A signed-in user: credentials, the newest access token, and the response of a session check."""

    user: str
    credentials: str
    access_token: str
    session_check: bytes


class Service(typing.NamedTuple):
    """A running service. `folder` is for scripts, `client_id` has all scopes, `command` runs another command of the binary,
    `second` starts another instance, and `worker` a process that runs background tasks only."""

    folder: Path
    client_id: str
    command: typing.Callable
    second: typing.Callable
    worker: typing.Callable
    master_key: str
    pid: int
    url: str

    def post(self, path, body=None, headers=()):
        headers = {"client-id": self.client_id, "content-type": "application/json", **dict(headers)}
        body = json.dumps(body).encode() if body else b""
        return urllib.request.urlopen(urllib.request.Request(self.url + path, body, headers)).read()

    def sign_in(self, sessions):
        """Creates this many sessions, of users in turn, and writes their refresh tokens to the file `tokens`."""
        users = (self.folder / "credentials").read_text().splitlines()
        with open(self.folder / "tokens", "w") as file:
            for number in range(sessions):
                created = json.loads(self.post("/authentication/sign-in", json.loads(users[number % len(users)])))
                print(created["refresh_token"], file=file)

    def sign_up(self):
        """Creates a user with a session."""
        email = "ada@example.com"
        credentials = {"access_token": self.command("sandbox", "token", email).strip(), "email": email}
        created = json.loads(self.post("/authentication/sign-up", credentials))
        session_check = self.post("/authentication/user-logged-in", headers={"authorization": f"Bearer {created['access_token']}"})
        return TestUser(created["auth_id"].removeprefix("usr_"), json.dumps(credentials), created["access_token"], session_check)

    def create_plan(self, slug):
        plan = {
            "name": "Plan", "slug": slug, "price": 19.99, "billing_cycle": "monthly",
            "description": "For teams that ship every day.", "features": "SSO, Audit log, Support", "node_quota": 25,
        }
        self.post("/subscription-plans", plan)


@contextlib.contextmanager
def postgres(settings=()):
    """Starts a new cluster with these settings. Returns a folder for temporary files, which contains the cluster too.

    A cluster that is shared gets them too, but it was started with those that need a restart.
    """
    if SHARED:
        changes = ["RESET ALL", "SET fsync = off", *(f"SET {name} = '{value}'" for name, value in (one.split("=") for one in settings))]
        statements = [*(f"ALTER SYSTEM {change}" for change in changes), "SELECT pg_reload_conf()"]
        run(str(BIN / "psql"), "-qX", "-v", "ON_ERROR_STOP=1", DATABASE, *(part for one in statements for part in ("-c", one)))
        yield Path(SHARED)
        return
    folder = Path(tempfile.mkdtemp(prefix="perennial-bench-", dir="/var/tmp"))
    folder.chmod(0o755)
    data = folder / "data"
    data.mkdir(mode=0o700)
    if os.getuid() == 0:
        shutil.chown(data, "postgres")
    try:
        run(*as_postgres(str(BIN / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "--data-checksums"), cwd="/")
        settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=''", "max_connections=200", "shared_buffers=1GB", *settings]
        options = f"-p {PG_PORT} " + " ".join(f"-c {setting}" for setting in settings)
        run(*as_postgres(str(BIN / "pg_ctl"), "-D", str(data), "-w", "-l", str(data / "log"), "-o", options, "start"), cwd="/")
        yield folder
    finally:
        subprocess.run(as_postgres(str(BIN / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop"), cwd="/", capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def instance(binary, environment, ports, wrapper=()):
    """Starts an instance of the service and waits until it is ready. Returns its id."""
    port, admin_port = ports
    environment = environment | {"PERENNIAL_LISTEN": f"127.0.0.1:{port}", "PERENNIAL_ADMIN_LISTEN": f"127.0.0.1:{admin_port}"}
    return process([*wrapper, str(binary), "serve"], environment, admin_port)


@contextlib.contextmanager
def process(command, environment, admin_port):
    """Starts a process of the service and waits until it is ready. Returns its id."""
    server = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            # Otherwise another process on the same port could respond.
            if server.poll() is not None:
                raise SystemExit(f"{' '.join(command)} exited with status {server.returncode}; is a port such as {admin_port} in use?")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{admin_port}/readyz", timeout=1).read()
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise SystemExit("the service did not become ready")
        yield server.pid
    finally:
        server.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            # A worker waits for endpoints that never respond.
            server.wait(1 if SHARED else 30)
        server.kill()


@contextlib.contextmanager
def serve(binary, folder, variables=None, database=DATABASE, ports=(PORT, ADMIN_PORT), wrapper=(), prepare=lambda: None):
    """Starts the service on an empty database. `variables` are environment variables, `wrapper` is a command that runs it.

    `prepare` fills the database before the service starts: its background tasks would read tables without indexes.
    """
    master_key = base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "DATABASE_URL": database, "PERENNIAL_MODE": "sandbox",
        # The second instance accepts tokens of the first one.
        "PERENNIAL_MASTER_KEY": master_key, "PERENNIAL_PUBLIC_URL": f"http://127.0.0.1:{ports[0]}",
        # Rate limits are enforced as usual, but too high to be reached.
        "PERENNIAL_RATE_PER_CLIENT": "1000000", "PERENNIAL_CONNECTIONS_PER_PEER": "10000",
        "PERENNIAL_SIGN_INS_PER_CLIENT": "1000000", "PERENNIAL_SIGN_INS_PER_IDENTITY": "1000000",
        "PERENNIAL_REFUSED_TOKENS_PER_CLIENT": "1000000",
        **(variables or {}),
    }
    command = lambda *arguments: run(str(binary), *arguments, env=environment)
    client = json.loads(command("client", "create", "--json"))
    prepare()
    second = lambda: instance(binary, environment, (SECOND_PORT, SECOND_ADMIN_PORT))
    admin_address = f"127.0.0.1:{SECOND_ADMIN_PORT}"
    worker = lambda: process([str(binary), "work", "--admin-listen", admin_address], environment, SECOND_ADMIN_PORT)
    with instance(binary, environment, ports, wrapper) as pid:
        yield Service(folder, client["client_id"], command, second, worker, master_key, pid, f"http://127.0.0.1:{ports[0]}")


@contextlib.contextmanager
def start_service(binary, settings=(), variables=None, wrapper=()):
    """Starts the service on a new cluster. `settings` are PostgreSQL's."""
    with postgres(settings) as folder, serve(binary, folder, variables, wrapper=wrapper) as service:
        yield service
