"""What every measurement stands on: a private PostgreSQL and the service on it, both gone afterwards.

PostgreSQL comes from the machine's own binaries, with checksums and fsync on. Touches loopback only.
"""

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
PG_PORT, PORT, ADMIN_PORT = 15433, 18080, 19090
DATABASE = f"postgres://postgres@127.0.0.1:{PG_PORT}/postgres"
URL = f"http://127.0.0.1:{PORT}"


def run(*command, **kwargs):
    return subprocess.run(command, check=True, text=True, capture_output=True, **kwargs).stdout


def as_postgres(*command):
    """PostgreSQL refuses to run as root."""
    return ["runuser", "-u", "postgres", "--", *command] if os.getuid() == 0 else list(command)


def release_binary():
    print("building the release binary", flush=True)
    subprocess.run(["cargo", "build", "--release", "--locked", "--quiet"], cwd=ROOT, check=True)
    return ROOT / "target/release/perennial"


class Stage(typing.NamedTuple):
    """A running service: a folder for scripts, and the header value of a client that may do everything."""

    folder: Path
    client_id: str

    def create(self, slug):
        """Makes a plan."""
        plan = {
            "name": "Plan", "slug": slug, "price": 19.99, "billing_cycle": "monthly",
            "description": "For teams that ship every day.", "features": "SSO, Audit log, Support", "node_quota": 25,
        }
        headers = {"client-id": self.client_id, "content-type": "application/json"}
        request = urllib.request.Request(f"{URL}/subscription-plans", json.dumps(plan).encode(), headers)
        urllib.request.urlopen(request).read()


@contextlib.contextmanager
def stage(binary, settings=(), variables=None):
    """The service on a fresh database; `settings` are PostgreSQL's, `variables` the service's."""
    folder = Path(tempfile.mkdtemp(prefix="perennial-bench-", dir="/var/tmp"))
    folder.chmod(0o755)
    data = folder / "data"
    data.mkdir(mode=0o700)
    if os.getuid() == 0:
        shutil.chown(data, "postgres")
    server = None
    try:
        run(*as_postgres(str(BIN / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "--data-checksums"), cwd="/")
        settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=''", "max_connections=200", "shared_buffers=1GB", *settings]
        options = f"-p {PG_PORT} " + " ".join(f"-c {setting}" for setting in settings)
        run(*as_postgres(str(BIN / "pg_ctl"), "-D", str(data), "-w", "-l", str(data / "log"), "-o", options, "start"), cwd="/")
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "DATABASE_URL": DATABASE, "PERENNIAL_MODE": "sandbox",
            "PERENNIAL_LISTEN": f"127.0.0.1:{PORT}", "PERENNIAL_ADMIN_LISTEN": f"127.0.0.1:{ADMIN_PORT}",
            # Counted like everybody's, and never reached.
            "PERENNIAL_RATE_PER_CLIENT": "1000000", "PERENNIAL_CONNECTIONS_PER_PEER": "10000",
            **(variables or {}),
        }
        client = json.loads(run(str(binary), "client", "create", "--json", env=environment))
        server = subprocess.Popen([str(binary), "serve"], env=environment, stderr=subprocess.DEVNULL)
        for _ in range(100):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{ADMIN_PORT}/readyz", timeout=1).read()
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise SystemExit("the service did not get ready")
        yield Stage(folder, client["client_id"])
    finally:
        if server:
            server.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(30)
            server.kill()
        subprocess.run(as_postgres(str(BIN / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop"), cwd="/", capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)
