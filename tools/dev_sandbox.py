"""Starts sandboxes with `perennial dev` on new databases, for checks that need a running service."""

import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

from isolation import AS_USER, USER, free_ports, fresh_database


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
