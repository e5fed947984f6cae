"""What the end-to-end checks share: counted checks, folders, sandboxes, processes, and the start of browser tests."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parent.parent
E2E = ROOT / "e2e"
# Of one file of tests of Node.js, in milliseconds.
TEST_TIMEOUT = 400_000
sys.path.insert(0, str(ROOT / "tools"))

from isolation import AS_USER, USER, USER_OPTIONS, free_ports, fresh_database  # noqa: E402, F401


class Failed(Exception):
    """A check failed. The text says which one, and what was seen."""


counted = 0


def check(condition, message, number=1):
    """Counts checks. Ends the test if they fail."""
    global counted
    counted += number
    if not condition:
        raise Failed(message)


@contextmanager
def group(name):
    """Prints the number and the time of the checks in a block."""
    before, started = counted, time.monotonic()
    yield
    print(f"  {name}: {counted - before} checks, {time.monotonic() - started:.1f} s", flush=True)


def run(*command, **options):
    """Runs a command and returns its output, which is printed only if the command fails."""
    done = subprocess.run(command, **{"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **options}, text=True, check=False)
    if done.returncode:
        raise Failed(f"exit code {done.returncode} of {' '.join(map(str, command))}\n{done.stdout or ''}{done.stderr or ''}")
    return done.stdout


def run_tests(folder, **options):
    """Runs tests of Node.js, and counts them."""
    limits = ["--test-concurrency=1", f"--test-timeout={TEST_TIMEOUT}"]
    printed = run("node", "--test", *limits, "--test-reporter=spec", folder, **options)
    check(True, folder, number=int(re.search(r"^ℹ pass (\d+)", printed, re.MULTILINE).group(1)))


@contextmanager
def new_folder(name, user=None):
    """Yields a new folder, which the user of the servers can enter and `user` owns. Removes it at the end."""
    path = Path(tempfile.mkdtemp(prefix=f"perennial-{name}-", dir="/var/tmp"))
    path.chmod(0o755)
    if user:
        shutil.chown(path, user)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def child(command, first_line, **options):
    """Runs a process while the block runs, which starts when the process has printed a line with this start. Yields the line."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, **options)
        try:
            line = process.stdout.readline()
            check(line and line.startswith(first_line), f"{command[1]} does not start")
            yield line
        except Failed:
            errors.seek(0)
            print(errors.read())
            raise
        finally:
            process.terminate()
            process.wait()


class Sandbox:
    """A running sandbox: the variables and the command of its `perennial`."""

    def __init__(self, folder, command, variables):
        self.folder, self.command, self.variables = folder, command, variables
        self.url = variables["URL"]

    def perennial(self, *arguments):
        """Runs a command of `perennial`. Returns what it prints, or the object in the last line of JSON."""
        output = run(*self.command, *arguments, env=self.variables, stderr=subprocess.PIPE).strip()
        return json.loads(output.splitlines()[-1]) if "--json" in arguments else output

    def call(self, path, fields=None):
        """Reads, or creates a record, as the product's server."""
        headers = {"client-id": self.variables["CLIENT_ID"], "content-type": "application/json"}
        with urlopen(Request(self.url + path, fields and json.dumps(fields).encode(), headers)) as response:
            return json.load(response)


@contextmanager
def sandbox(options):
    """Starts a sandbox with `perennial dev` on a new database."""
    with new_folder("sandbox", USER) as folder, fresh_database("e2e") as database:
        program = shutil.copy(options.binary, folder / "perennial")
        listen, admin = free_ports(2)
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "DATABASE_URL": database,
            "PERENNIAL_LISTEN": f"127.0.0.1:{listen}", "PERENNIAL_ADMIN_LISTEN": f"127.0.0.1:{admin}",
        }
        command = [*AS_USER, str(program)]
        dev = [*command, "dev", "--data", str(folder / "state")]
        try:
            started = run(*dev, "--background", "--json", env=environment, stderr=subprocess.PIPE)
            yield Sandbox(folder, command, {**environment, **json.loads(started)})
        finally:
            subprocess.run([*dev, "--stop"], env=environment, stderr=subprocess.DEVNULL, check=False)


def browse(script, options, service=None, **settings):
    """Runs a browser test. It gets the options, the sandbox if there is one, and the settings."""
    settings = {
        "name": script.removesuffix(".mjs"), "quick": options.quick, "only": options.only,
        # Pictures take time, and CI does not look at them.
        "pictures": None if options.quick else options.pictures / script.removesuffix(".mjs"),
        **({"url": service.url, "clientId": service.variables["CLIENT_ID"]} if service else {}),
        **settings,
    }
    command = ["node", E2E / script]
    if subprocess.run(command, input=json.dumps(settings, default=str), text=True, check=False).returncode:
        raise Failed("the checks in the browser")
