#!/usr/bin/env python3
"""Sends requests at a constant rate, and prints what came back, as one JSON object in the last line.

    load.py --url URL [--admin URL] … --client-id ID --rate 200 --prefix NAME

Runs until standard input is closed. Every tenth request creates a plan, whose slug starts with --prefix; the others read the plan
`load`. Requests start on time, also while others wait (open loop). None is retried. With several instances (--url and --admin, in
the same order), requests go, as with a load balancer, to those whose /readyz responds with 200. A line `ready: PORT` says that an
instance gets requests again.
"""

import argparse
import asyncio
import collections
import json
import sys
import time
from urllib.parse import urlsplit

REQUEST_TIMEOUT = 30
# Shorter than the drain time of the service, so that no connection is idle while it stops.
MAX_IDLE = 0.5
READINESS_INTERVAL = 0.1
READINESS_TIMEOUT = 2
WRITE_EVERY = 10


class Instance:
    """An instance of the service and the open connections to it."""

    def __init__(self, url, admin):
        self.host, self.port = urlsplit(url).hostname, urlsplit(url).port
        self.admin = admin and Instance(admin, None)
        self.is_ready = True
        self.idle = collections.deque()

    async def request(self, method, path, client_id="", body=b""):
        """Sends a request, and returns the status."""
        connection = await self.connect()
        reader, writer = connection
        head = f"{method} {path} HTTP/1.1\r\nhost: {self.host}:{self.port}\r\nclient-id: {client_id}\r\n"
        if body:
            head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        writer.write(head.encode() + b"\r\n" + body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
        await reader.readexactly(int(fields.get("content-length", 0)))
        if fields.get("connection") == "close":
            writer.close()
        else:
            self.idle.append((time.monotonic(), connection))
        return int(head.split()[1])

    async def connect(self):
        while self.idle:
            since, (reader, writer) = self.idle.popleft()
            if time.monotonic() - since < MAX_IDLE and not reader.at_eof():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(self.host, self.port)

    async def watch_readiness(self):
        while True:
            try:
                is_ready = await asyncio.wait_for(self.admin.request("GET", "/readyz"), READINESS_TIMEOUT) == 200
            except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
                is_ready = False
            if is_ready and not self.is_ready:
                print(f"ready: {self.port}", flush=True)
            self.is_ready = is_ready
            await asyncio.sleep(READINESS_INTERVAL)


class Load:
    def __init__(self, arguments):
        admins = arguments.admin or [None] * len(arguments.url)
        self.instances = [Instance(url, admin) for url, admin in zip(arguments.url, admins, strict=True)]
        self.client_id, self.prefix, self.rate = arguments.client_id, arguments.prefix, arguments.rate
        self.failures, self.times, self.written, self.rejected = [], [], 0, 0

    async def send(self, number):
        ready = [instance for instance in self.instances if instance.is_ready]
        started_at = time.monotonic()
        is_write = number % WRITE_EVERY == 0
        plan = {"name": "Load", "slug": f"{self.prefix}-{number}", "price": 1, "billing_cycle": "monthly", "currency": "USD"}
        request = ("POST", "/subscription-plans", json.dumps(plan).encode()) if is_write else ("GET", "/subscription-plans/load", b"")
        try:
            if not ready:
                raise OSError("no instance is ready")
            method, path, body = request
            sent = ready[number % len(ready)].request(method, path, self.client_id, body)
            status = await asyncio.wait_for(sent, REQUEST_TIMEOUT)
            if status == 503:
                self.rejected += 1
            elif status != (201 if is_write else 200):
                self.failures.append(f"{method} {path}: {status}")
            self.written += is_write and status == 201
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError) as error:
            self.failures.append(f"{request[0]} {request[1]}: {error!r}")
        self.times.append(time.monotonic() - started_at)

    async def run(self):
        closed = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        watches = [asyncio.create_task(instance.watch_readiness()) for instance in self.instances if instance.admin]
        started_at, number, requests = time.monotonic(), 0, set()
        while not closed.done():
            number += 1
            task = asyncio.create_task(self.send(number))
            requests.add(task)
            task.add_done_callback(requests.discard)
            await asyncio.sleep(max(0, started_at + number / self.rate - time.monotonic()))
        elapsed = time.monotonic() - started_at
        if requests:
            await asyncio.wait(requests)
        for watch in watches:
            watch.cancel()
        times = sorted(self.times)
        print(json.dumps({
            "sent": number, "per_second": round(number / elapsed, 1), "failed": len(self.failures), "rejected": self.rejected,
            "written": self.written,
            "failures": self.failures[:10], "median_ms": round(times[len(times) // 2] * 1000, 1), "longest_ms": round(times[-1] * 1000),
        }))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", action="append", required=True)
    parser.add_argument("--admin", action="append")
    parser.add_argument("--client-id", required=True)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--prefix", default="load")
    asyncio.run(Load(parser.parse_args()).run())


if __name__ == "__main__":
    main()
