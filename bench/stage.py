"""What every measurement stands on: a private PostgreSQL and the service on it, both gone afterwards.

PostgreSQL comes from the machine's own binaries, with checksums and fsync on. Touches loopback only.
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
# PostgreSQL's, the service's, its supervisor's, the bare route's. BENCH_PORT_BASE moves them all, for a run beside another.
BASE = os.environ.get("BENCH_PORT_BASE")
PG_PORT, PORT, ADMIN_PORT, BARE_PORT = range(int(BASE), int(BASE) + 4) if BASE else (15433, 18080, 19090, 18081)
DATABASE = f"postgres://postgres@127.0.0.1:{PG_PORT}/postgres"
URL = f"http://127.0.0.1:{PORT}"


def run(*command, **kwargs):
    done = subprocess.run(command, text=True, capture_output=True, **kwargs)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def as_postgres(*command):
    """PostgreSQL refuses to run as root."""
    return ["runuser", "-u", "postgres", "--", *command] if os.getuid() == 0 else list(command)


def built(profile="release"):
    """The binary, with those that measure beside it."""
    print(f"building the {profile} binaries", flush=True)
    flags = ["--release"] if profile == "release" else []
    subprocess.run(["cargo", "build", *flags, "--locked", "--quiet", "--workspace", "--bins"], cwd=ROOT, check=True)
    return ROOT / "target" / profile / "perennial"


class People(typing.NamedTuple):
    """Somebody who has signed in many times: what it signs in with, the newest session, what a check of it answers."""

    user: str
    subject: str
    credentials: str
    access_token: str
    checked: bytes


class Stage(typing.NamedTuple):
    """A running service: a folder for scripts, the header value of a client that may do everything, how to run
    the binary beside it, the process, and where it answers."""

    folder: Path
    client_id: str
    command: typing.Callable
    pid: int
    url: str

    def ask(self, path, body=None, headers=()):
        headers = {"client-id": self.client_id, "content-type": "application/json", **dict(headers)}
        body = json.dumps(body).encode() if body else b""
        return urllib.request.urlopen(urllib.request.Request(self.url + path, body, headers)).read()

    def sign_in(self, credentials, sessions):
        """Begins so many sessions, whose refresh tokens go to the file `tokens`; answers the last one's."""
        with open(self.folder / "tokens", "w") as file:
            for _ in range(sessions):
                made = json.loads(self.ask("/authentication/sign-in", json.loads(credentials)))
                print(made["refresh_token"], file=file)
        return made

    def sign_up(self, sessions):
        """Signs somebody up, and in again so many times."""
        email = "ada@example.com"
        token = self.command("sandbox", "token", email).strip()
        credentials = {"access_token": token, "email": email}
        claims = token.split(".")[1]
        subject = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"]
        self.ask("/authentication/sign-up", credentials)
        made = self.sign_in(json.dumps(credentials), sessions)
        checked = self.ask("/authentication/user-logged-in", headers={"authorization": f"Bearer {made['access_token']}"})
        return People(made["auth_id"].removeprefix("usr_"), subject, json.dumps(credentials), made["access_token"], checked)

    def create(self, slug):
        """Makes a plan."""
        plan = {
            "name": "Plan", "slug": slug, "price": 19.99, "billing_cycle": "monthly",
            "description": "For teams that ship every day.", "features": "SSO, Audit log, Support", "node_quota": 25,
        }
        self.ask("/subscription-plans", plan)


@contextlib.contextmanager
def postgres(settings=()):
    """A fresh cluster with these settings; answers the folder that all is in."""
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


@contextlib.contextmanager
def serving(binary, folder, variables=None, database=DATABASE, ports=(PORT, ADMIN_PORT), wrapper=()):
    """The service on a database that nothing is in yet; `variables` are the service's, `wrapper` is a command that runs it."""
    port, admin_port = ports
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "DATABASE_URL": database, "PERENNIAL_MODE": "sandbox",
        "PERENNIAL_LISTEN": f"127.0.0.1:{port}", "PERENNIAL_ADMIN_LISTEN": f"127.0.0.1:{admin_port}",
        # Counted like everybody's, and never reached.
        "PERENNIAL_RATE_PER_CLIENT": "1000000", "PERENNIAL_CONNECTIONS_PER_PEER": "10000",
        "PERENNIAL_SIGN_INS_PER_CLIENT": "1000000", "PERENNIAL_SIGN_INS_PER_IDENTITY": "1000000",
        "PERENNIAL_REFUSED_TOKENS_PER_CLIENT": "1000000",
        **(variables or {}),
    }
    command = lambda *arguments: run(str(binary), *arguments, env=environment)
    client = json.loads(command("client", "create", "--json"))
    server = subprocess.Popen([*wrapper, str(binary), "serve"], env=environment, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            # Or somebody else's may answer.
            if server.poll() is not None:
                raise SystemExit(f"the service ended with {server.returncode}; is port {port} or {admin_port} taken?")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{admin_port}/readyz", timeout=1).read()
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise SystemExit("the service did not get ready")
        yield Stage(folder, client["client_id"], command, server.pid, f"http://127.0.0.1:{port}")
    finally:
        server.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(30)
        server.kill()


@contextlib.contextmanager
def stage(binary, settings=(), variables=None, wrapper=()):
    """The service on a fresh database; `settings` are PostgreSQL's."""
    with postgres(settings) as folder, serving(binary, folder, variables, wrapper=wrapper) as service:
        yield service
