"""Load generators: wrk, as fast as possible, and `steady` of `bench/bare`, on schedule or each request once. And the tokens that
they send.

Both read a file of raw HTTP requests, each after a line with its length.
"""

import math
import os
import re
import shutil
import subprocess
import typing
from pathlib import Path

from harness import run

# wrk has two threads. Each one loads all requests before the measurement, and sends them in random order.
RANDOM_REQUESTS = """
local threads, requests = 0, {{}}
function setup(thread) thread:set('number', threads); threads = threads + 1 end
function init()
  math.randomseed(os.time() * 100 + number)
  local file = io.open('{file}', 'rb')
  local length = file:read('*l')
  while length do
    requests[#requests + 1] = file:read(tonumber(length))
    length = file:read('*l')
  end
end
request = function() return requests[math.random(1, #requests)] end
"""


def install_wrk():
    if not shutil.which("wrk"):
        as_root = [] if os.getuid() == 0 else ["sudo"]
        subprocess.run([*as_root, "apt-get", "install", "-y", "-q", "wrk"], check=True)


def wrk(script, seconds, connections, url, *arguments):
    """Runs a Lua script and returns the requests per second. All responses must have a 20x status."""
    # Its option has whole seconds.
    interrupt = ["timeout", "--preserve-status", "--signal=INT", str(seconds)] if seconds < 1 else []
    out = run(*interrupt, "wrk", "-t", "2", "-c", str(connections), "-d", f"{math.ceil(seconds)}s", "-s", str(script), *arguments, url)
    if "Non-2xx" in out or "Socket errors" in out:
        raise SystemExit(f"the service returned errors:\n{out}")
    rate = float(re.search(r"Requests/sec:\s+([0-9.]+)", out).group(1))
    # On a busy machine, no response may come in half a second.
    return rate or wrk(script, 2 * seconds, connections, url, *arguments)


def write_requests(file, requests):
    """Writes requests for both generators, and beside them the Lua script that sends them in random order."""
    file.write_text("".join(f"{len(request)}\n{request}" for request in requests))
    file.with_suffix(".lua").write_text(RANDOM_REQUESTS.format(file=file))


class StolenTime:
    """The share of CPU time that the hypervisor gave to other machines. Above a few percent, figures are not comparable."""

    def __init__(self):
        self.before = self.read()

    @staticmethod
    def read():
        return [int(ticks) for ticks in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]

    def __str__(self):
        ticks = [after - before for before, after in zip(self.before, self.read())]
        return f"{ticks[7] / max(1, sum(ticks)):.0%} of the CPU time stolen by other machines"


class Latency(typing.NamedTuple):
    """Responses, their percentiles and the time until the last one in microseconds, and requests rejected with 503."""

    count: int
    p50: int
    p99: int
    p999: int
    took: int
    rejected: int

    def __str__(self):
        return ", ".join(f"{time / 1000:.1f}" for time in (self.p50, self.p99, self.p999)) + " ms"


def steady(folder, port, rate, seconds, connections, file):
    """Sends requests at this rate, or each one once if it is 0. `folder` contains the program."""
    out = run(str(folder / "steady"), *(str(value) for value in (port, rate, math.ceil(seconds), connections, file)))
    return Latency(*(int(number) for number in out.split()))


def sign(folder, service, key, sample, claims, values):
    """Signs copies of a token, each with one line of `values` in its claims. `folder` contains the program."""
    return run(str(folder / "tokens"), service.master_key, key, sample, *claims, input=values).split()
