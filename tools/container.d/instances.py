"""Containers with PostgreSQL and instances of the service, and load on them."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import engine
from engine import podman, succeeds, wait_until

IMAGE, BACKUP_IMAGE = "localhost/perennial-test", "localhost/perennial-test:backup"
POSTGRES = "localhost/perennial-test-postgres"
DATABASE, NETWORK, STATE = "perennial-test-db", "perennial-test", "perennial-test-state"
DATABASE_URL = f"postgres://perennial:perennial@{DATABASE}/perennial"
# The restrictions of compose.yaml.
RESTRICTIONS = ["--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--memory=1792m", "--pids-limit=1024"]
LOAD = Path(__file__).with_name("load.py")

_next_port = 18_080


def free_port():
    """Returns a free port below the range that outgoing connections use, another one for each call."""
    global _next_port
    while _next_port < 32_768:
        _next_port += 1
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", _next_port)) != 0:
                return _next_port
    sys.exit("failed: no free port")


def responds_ok(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return response.status == 200
    except (urllib.error.URLError, OSError):
        return False


def start_database():
    podman("network", "create", NETWORK)
    podman("run", "--detach", "--name", DATABASE, "--network", NETWORK, "--env=POSTGRES_USER=perennial",
           "--env=POSTGRES_PASSWORD=perennial", "--env=POSTGRES_DB=perennial", POSTGRES)
    wait_until("PostgreSQL accepts connections",
               lambda: succeeds("exec", DATABASE, "pg_isready", "-q", "-h", "127.0.0.1", "-d", "perennial"))


def query(sql, database="perennial"):
    return podman("exec", "--env=PGPASSWORD=perennial", DATABASE, "psql", "-qAtX", "-U", "perennial", "-d", database, "-c", sql)


class Instance:
    """A container that serves the API of a sandbox."""

    def __init__(self, name):
        self.name, self.port, self.admin_port = name, free_port(), free_port()
        self.url, self.admin_url = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self.admin_port}"

    def start(self):
        """Starts the container, and returns the seconds until it is ready."""
        started_at = time.monotonic()
        podman("run", "--detach", "--replace", "--name", self.name, "--network", NETWORK, *RESTRICTIONS,
               f"--volume={STATE}:/var/lib/perennial", f"--publish=127.0.0.1:{self.port}:8080",
               f"--publish=127.0.0.1:{self.admin_port}:9090", "--env=PERENNIAL_MODE=sandbox", "--env=PERENNIAL_DRAIN_SECONDS=2",
               f"--env=DATABASE_URL={DATABASE_URL}",
               # Few, because a debug build needs a tenth of a second of CPU time to authenticate each (SCRAM).
               "--env=PERENNIAL_DATABASE_POOL=4", "--env=PERENNIAL_DATABASE_LANES=2", IMAGE)
        wait_until(f"{self.name} is ready", lambda: responds_ok(f"{self.admin_url}/readyz"), interval=0.02)
        return time.monotonic() - started_at

    def stop(self):
        """Sends SIGTERM, and waits until the container has exited by itself."""
        podman("stop", "--time", 30, self.name)
        code = podman("inspect", "--format={{.State.ExitCode}}", self.name)
        log = subprocess.run(["podman", "logs", self.name], capture_output=True, text=True).stderr
        if code != "0" or "stopped" not in log or "aborted" in log:
            sys.exit(f"failed: {self.name} exited with {code}:\n{log[-2000:]}")

    def run(self, *arguments):
        """Runs a command of the binary in the container."""
        return podman("exec", self.name, "perennial", *arguments)


def start_load(instances, client_id, prefix, rate):
    command = [sys.executable, LOAD, "--client-id", client_id, "--rate", str(rate), "--prefix", prefix]
    for instance in instances:
        command += ["--url", instance.url, "--admin", instance.admin_url]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def wait_for_load(load, instance):
    """Waits until the load sends requests to an instance that was started again."""
    for line in load.stdout:
        if line.strip() == f"ready: {instance.port}":
            return
    sys.exit("failed: the load has ended")


def stop_load(load, allow_rejected):
    """Ends the load. Returns its counts, after checking that no request has failed, or was rejected with 503."""
    counts = json.loads(load.communicate()[0].splitlines()[-1])
    if counts["failed"] or counts["rejected"] and not allow_rejected or counts["written"] == 0:
        sys.exit(f"failed: {json.dumps(counts, indent=2)}")
    return counts


def describe_load(counts):
    return (f"{counts['sent']} requests, {counts['per_second']} per second, {counts['written']} of them writes; "
            f"none failed, {counts['rejected']} rejected; "
            f"median {counts['median_ms']} ms, longest {counts['longest_ms']} ms")
