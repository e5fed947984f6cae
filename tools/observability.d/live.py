"""Uses a running service and its worker, and checks what they expose and how Prometheus evaluates it."""

import base64
import json
import os
import random
import re
import secrets
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import dashboard
import reference

TIMEOUT = 60
# An address at which nothing listens.
UNREACHABLE_ISSUER = "http://127.0.0.1:1"
UNREACHABLE_ENDPOINT = "http://127.0.0.1:1/hook"


def check(root, binary, promtool, prometheus, documented):
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="perennial-scrape-")))
        folder.chmod(0o777)
        database = stack.enter_context(fresh_database())
        service = stack.enter_context(start(binary, database, folder))
        use(service)
        problems = check_scrape(service, promtool, documented)
        server = stack.enter_context(start_prometheus(root, prometheus, service, folder))
        return problems + check_queries(root, server, service)


@contextmanager
def fresh_database():
    server = os.environ.get("TEST_DATABASE_URL") or "postgres://postgres@127.0.0.1:5432/postgres"
    name = f"perennial_observability_{secrets.token_hex(6)}"
    psql(server, f"CREATE DATABASE {name}")
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        psql(server, f"DROP DATABASE {name} WITH (FORCE)")


def psql(database, statement):
    command = ["psql", "-qX", "-v", "ON_ERROR_STOP=1", database, "-c", statement]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def free_port():
    """Returns a free port below the range of ephemeral ports, so that no outgoing connection takes it."""
    while True:
        port = random.randrange(10_000, 32_768)
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


@contextmanager
def running(command, environment, log):
    """Runs a server until the end of the block. As root, runs it as `nobody`, unless that user cannot enter the folder of
    the program."""
    unprivileged = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}
    with log.open("wb") as file:
        options = {"env": environment, "stdout": file, "stderr": file, "cwd": "/"}
        try:
            process = subprocess.Popen(command, **options, **unprivileged)
        except PermissionError:
            process = subprocess.Popen(command, **options)
    try:
        yield process
    except BaseException:
        print(f"--- {log.name}\n{log.read_text()[-4000:]}")
        raise
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(what, is_done):
    deadline = time.time() + TIMEOUT
    while time.time() < deadline:
        result = is_done()
        if result:
            return result
        time.sleep(0.2)
    raise SystemExit(f"observability: timed out: {what}")


def get(url):
    """Returns the body of a 200 response, or None."""
    try:
        return urllib.request.urlopen(url, timeout=10).read().decode()
    except OSError:
        return None


class Service:
    """`perennial serve` without background tasks, `perennial work`, and `perennial relay` with its NATS server."""

    def __init__(self, binary, database, folder):
        self.binary, self.database = binary, database
        port, self.admin_ports = free_port(), [free_port(), free_port(), free_port()]
        self.url = f"http://127.0.0.1:{port}"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder)} | {
            "DATABASE_URL": database,
            "PERENNIAL_MODE": "sandbox",
            "PERENNIAL_MASTER_KEY": "dGVzdHMgb25seTogYSBrZXkgdGhhdCBpcyBubyBrZXk",
            "PERENNIAL_LISTEN": f"127.0.0.1:{port}",
            "PERENNIAL_ADMIN_LISTEN": f"127.0.0.1:{self.admin_ports[0]}",
            "PERENNIAL_WORKERS": "0",
            "PERENNIAL_DATABASE_POOL": "4",
            "PERENNIAL_WEBHOOK_NETWORKS": "127.0.0.0/8",
            # Low, so that requests are rejected.
            "PERENNIAL_RATE_PER_PEER": "1",
        }

    def command(self, *arguments):
        command = [self.binary, *arguments]
        return subprocess.run(command, env=self.environment, check=True, text=True, capture_output=True).stdout

    def request(self, path, body=None, headers=None):
        """Returns the status and the body of a response."""
        headers = {"content-type": "application/json"} | (headers or {})
        request = urllib.request.Request(self.url + path, body and json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def scrape(self):
        return "".join(get(f"http://127.0.0.1:{port}/metrics") or "" for port in self.admin_ports)


@contextmanager
def start(binary, database, folder):
    service = Service(binary, database, folder)
    listen = lambda port: f"--admin-listen=127.0.0.1:{port}"
    _, work_port, relay_port = service.admin_ports
    nats_port = str(free_port())
    with ExitStack() as stack:
        nats = ["nats-server", "-js", "-sd", str(folder / "nats"), "-a", "127.0.0.1", "-p", nats_port]
        stack.enter_context(running(nats, service.environment, folder / "nats.log"))
        relay = [f"--to=nats://127.0.0.1:{nats_port}", listen(relay_port)]
        for name, arguments in (("serve", []), ("work", [listen(work_port)]), ("relay", relay)):
            stack.enter_context(running([binary, name, *arguments], service.environment, folder / f"{name}.log"))
        for port in service.admin_ports:
            wait_until("the service is ready", lambda port=port: get(f"http://127.0.0.1:{port}/readyz"))
        yield service


def use(service):
    """Causes at least one series of every metric."""
    client = json.loads(service.command("client", "create", "--name", "observability", "--json"))["client_id"]
    own = {"client-id": client}
    status, body = service.request("/webhook-endpoints", {"url": UNREACHABLE_ENDPOINT}, own)
    assert status == 201, body
    email = "ada@example.com"
    credentials = {"access_token": service.command("sandbox", "token", email).strip(), "email": email}
    status, body = service.request("/authentication/sign-up", credentials, own)
    assert status == 201, body
    bearer = own | {"authorization": f"Bearer {json.loads(body)['access_token']}"}
    for _ in range(3):
        assert service.request("/authentication/user-logged-in", {}, bearer)[0] == 200
    wait_until("a webhook request has failed", lambda: "perennial_webhook_attempt_seconds_count" in service.scrape())
    wait_until("an event is relayed", lambda: re.search(r"^perennial_relay_events_total\{.*\} [1-9]", service.scrape(), re.M))
    # Refused, and then rejected by the rate limit.
    wait_until("a request is refused", lambda: service.request("/subscription-plans")[0] == 401)
    wait_until("a request is rejected", lambda: 429 in {service.request("/subscription-plans")[0] for _ in range(30)})
    # An identity provider that does not respond.
    service.command("provider", "add", "--issuer", UNREACHABLE_ISSUER, "--audience", "product")
    encode = lambda part: base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
    token = f"{encode({'alg': 'RS256', 'kid': 'a', 'typ': 'JWT'})}.{encode({'iss': UNREACHABLE_ISSUER})}.AAAA"
    wait_until("the provider is known, and unavailable", lambda: 503 == service.request(
        "/authentication/sign-in", {"access_token": token, "email": email}, own)[0])
    # An item for a background task, and a failing one.
    psql(service.database, """INSERT INTO client_values (tenant_id, client_id, value_hash, created_at, expires_at)
        SELECT tenant_id, id, sha256('observability'), now(), now() FROM clients LIMIT 1""")
    wait_until("a task has processed an item", lambda: "perennial_task_items_total{" in service.scrape())
    psql(service.database, "ALTER TABLE task_leases RENAME TO task_leases_renamed")
    wait_until("a task has failed", lambda: "perennial_task_failures_total{" in service.scrape())
    psql(service.database, "ALTER TABLE task_leases_renamed RENAME TO task_leases")


def check_scrape(service, promtool, documented):
    """Compares a scrape with the reference, and checks its form with promtool."""
    problems = []
    for port in service.admin_ports:
        text = get(f"http://127.0.0.1:{port}/metrics")
        lint = subprocess.run([promtool, "check", "metrics"], input=text, text=True, capture_output=True)
        if lint.returncode:
            problems.append(f"promtool check metrics: {lint.stdout}{lint.stderr}")
    scrape = service.scrape()
    helped = set(re.findall(r"^# HELP (\w+) \S", scrape, re.M))
    exposed = {}
    for name, labels in re.findall(r"^(perennial_\w+)(?:\{(.*)\})? \S+$", scrape, re.M):
        found = exposed.setdefault(reference.base_name(name, documented), set())
        found |= set(re.findall(r'(\w+)="(?:[^"\\]|\\.)*"', labels)) - {"le"}
    for name in exposed.keys() | documented.keys():
        if name not in exposed:
            problems.append(f"{name} is in the reference, but was not scraped")
        elif name not in documented:
            problems.append(f"{name} is not in docs/reference/logs-and-metrics.md")
        elif exposed[name] != documented[name]:
            problems.append(f"{name} has the labels {sorted(exposed[name])}, but {sorted(documented[name])} in the reference")
        if name in exposed and name not in helped:
            problems.append(f"{name} has no HELP")
    print(f"{len(exposed)} metrics")
    return problems


@contextmanager
def start_prometheus(root, prometheus, service, folder):
    """Starts Prometheus with the alerts. Yields its URL."""
    url = f"http://127.0.0.1:{free_port()}"
    targets = [f"127.0.0.1:{port}" for port in service.admin_ports]
    (folder / "alerts.yaml").write_text((root / "deploy/prometheus/alerts.yaml").read_text())
    settings = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["alerts.yaml"],
        "scrape_configs": [{"job_name": "perennial", "static_configs": [{"targets": targets}]}],
    }
    # JSON is YAML.
    (folder / "prometheus.yaml").write_text(json.dumps(settings))
    (folder / "data").mkdir()
    (folder / "data").chmod(0o777)
    command = [prometheus, f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data",
               f"--web.listen-address={urlsplit(url).netloc}"]
    with running(command, {"PATH": os.environ["PATH"]}, folder / "prometheus.log"):
        wait_until("Prometheus is ready", lambda: get(f"{url}/-/ready"))
        yield url


def check_queries(root, server, service):
    """Waits until each query of the dashboard returns data, and each alert was evaluated. Unchanged counters have
    data too: `rate` returns 0."""
    problems, waiting = [], dashboard.queries(root)
    deadline = time.time() + TIMEOUT
    while waiting and time.time() < deadline:
        service.request("/subscription-plans")
        waiting = [(title, query) for title, query in waiting if not has_data(server, query)]
        time.sleep(0.5)
    problems += [f"{title}: no data for {query}" for title, query in waiting]

    def evaluated_rules():
        groups = json.loads(get(f"{server}/api/v1/rules"))["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return rules if all(rule["health"] != "unknown" for rule in rules) else None

    rules = wait_until("Prometheus evaluates the alerts", evaluated_rules)
    problems += [f"{rule['name']}: {rule.get('lastError')}" for rule in rules if rule["health"] != "ok"]
    print(f"{len(dashboard.queries(root)) - len(waiting)} queries have data, {len(rules)} alerts evaluated")
    return problems


def has_data(server, query):
    result = get(f"{server}/api/v1/query?{urllib.parse.urlencode({'query': query})}")
    return bool(result and json.loads(result)["data"]["result"])
