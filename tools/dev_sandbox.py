"""Starts sandboxes with `perennial dev` on new databases, for checks that need a running service."""

import json
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

# The service must not run as root.
USER = "nobody" if os.getuid() == 0 else None
AS_USER = ["runuser", "-u", USER, "--"] if USER else []
# The options of `subprocess` for a process of this user.
USER_OPTIONS = {"user": USER, "group": "nogroup", "extra_groups": []} if USER else {}
# Below the ports that the system assigns.
DEFAULT_PORTS = "26000-26899"


def free_ports(number):
    """Returns consecutive ports of the range in TEST_PORTS that nothing listens on."""
    first, last = map(int, os.environ.get("TEST_PORTS", DEFAULT_PORTS).split("-"))
    while True:
        start = secrets.choice(range(first, last - number + 2))
        ports = list(range(start, start + number))
        if all(map(is_free, ports)):
            return ports


def is_free(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@contextmanager
def fresh_database(prefix):
    """Creates a database on the server in TEST_DATABASE_URL and yields its URL."""
    server = os.environ.get("TEST_DATABASE_URL") or "postgres://postgres@127.0.0.1:5432/postgres"
    name = f"{prefix}_{secrets.token_hex(6)}"

    def psql(statement):
        subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", server, "-c", statement], check=True)

    psql(f"CREATE DATABASE {name}")
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        psql(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def sandbox(binary, prefix):
    """Starts a sandbox. Yields the variables that `perennial` and its clients need, and the command that runs it."""
    folder = Path(tempfile.mkdtemp(prefix=f"perennial-{prefix}-", dir="/var/tmp"))
    program = shutil.copy(binary, folder / "perennial")
    if USER:
        shutil.chown(folder, USER)
    with fresh_database(prefix) as database:
        listen, admin = free_ports(2)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "DATABASE_URL": database,
            "PERENNIAL_LISTEN": f"127.0.0.1:{listen}",
            "PERENNIAL_ADMIN_LISTEN": f"127.0.0.1:{admin}",
        }
        command = [*AS_USER, str(program), "dev", "--data", str(folder / "state")]
        try:
            started = subprocess.run([*command, "--background", "--json"], env=environment, stdout=subprocess.PIPE, check=True)
            yield {**environment, **json.loads(started.stdout)}, [*AS_USER, str(program)]
        finally:
            subprocess.run([*command, "--stop"], env=environment, stderr=subprocess.DEVNULL, check=False)
            shutil.rmtree(folder, ignore_errors=True)
