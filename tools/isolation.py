"""Keeps checks apart from each other and from the machine: a database and ports for each run, and a user that is not root."""

import fcntl
import os
import secrets
import socket
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

# The service must not run as root.
USER = "nobody" if os.getuid() == 0 else None
AS_USER = ["runuser", "-u", USER, "--"] if USER else []
# The options of `subprocess` for a process of this user.
USER_OPTIONS = {"user": USER, "group": "nogroup", "extra_groups": []} if USER else {}

# The ports of all running processes are locked in this file, and those of this process are in the set.
RESERVED = (Path(tempfile.gettempdir()) / f"perennial-ports-{os.getuid()}.lock").open("a")
TAKEN = set()
TAKING = threading.Lock()


@contextmanager
def fresh_database(prefix):
    """Yields the URL of a new database, which is removed at the end."""
    server = os.environ.get("TEST_DATABASE_URL") or "postgres://postgres@127.0.0.1:5432/postgres"
    name = f"{prefix}_{secrets.token_hex(6)}"

    def psql(statement):
        subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", server, "-c", statement], check=True)

    psql(f"CREATE DATABASE {name}")
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        psql(f"DROP DATABASE {name} WITH (FORCE)")


def free_ports(number):
    """Returns consecutive ports that nothing listens on, below those that the system assigns. No other process gets them too."""
    while True:
        first = secrets.choice(range(20_000, 32_000))
        ports = range(first, first + number)
        with TAKING:
            if TAKEN.isdisjoint(ports) and reserve(first, number) and all(map(is_free, ports)):
                TAKEN.update(ports)
                return list(ports)


def reserve(first, number):
    """Locks a byte of a file for each port until this process ends. Returns whether that was possible."""
    try:
        fcntl.lockf(RESERVED, fcntl.LOCK_EX | fcntl.LOCK_NB, number, first)
    except OSError:
        return False
    return True


def is_free(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
