"""Starts the services of compose.yaml together, with podman-compose."""

import re
import shutil
import subprocess
import sys
import threading

import engine
from engine import ROOT, podman, succeeds, wait_until
from instances import responds_ok

PODMAN_COMPOSE = "podman-compose==1.6.0"
PROGRAM = ROOT / ".tools/venv/bin/podman-compose"
PROJECT = "perennial-test-compose"
FILE = engine.FOLDER / "compose.yaml"


def fit(text, postgres, port, admin_port):
    """Returns compose.yaml with the images, the binary and the ports of the test. Nothing else is changed."""
    changes = [
        (r"^name: perennial$", f"name: {PROJECT}"),
        (r"^      context: \.$", f"      context: {ROOT}"),
        (r"^      dockerfile: Containerfile$", "      dockerfile: Containerfile\n      args:\n" + "\n".join(
            "        " + argument.removeprefix("--build-arg=").replace("=", ": ", 1) for argument in engine.BUILD_ARGUMENTS)),
        (r"^    image: postgres:.*$", f"    image: {postgres}"),
        (r"^      - '127.0.0.1:8080:8080'$", f"      - '127.0.0.1:{port}:8080'"),
        (r"^      - '127.0.0.1:9090:9090'$", f"      - '127.0.0.1:{admin_port}:9090'"),
        (r"http://127.0.0.1:8080$", f"http://127.0.0.1:{port}"),
    ]
    for pattern, replacement in changes:
        text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        if count != 1:
            sys.exit(f"failed: {pattern} is {count} times in compose.yaml")
    return text


def run(*arguments):
    command = [PROGRAM, "--file", FILE, *arguments]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"failed: podman-compose {' '.join(arguments)}\n{result.stdout}{result.stderr}")
    return result.stdout


def run_health_checks(stop):
    """Runs the health checks, which Podman leaves to systemd's timers. This machine may have none."""
    while not stop.wait(1):
        for service in ["postgres", "perennial"]:
            succeeds("healthcheck", "run", f"{PROJECT}_{service}_1")


def check(postgres, port, admin_port):
    print("\n== compose.yaml", flush=True)
    if not PROGRAM.exists():
        if not shutil.which(PROGRAM.with_name("pip")):
            subprocess.run([sys.executable, "-m", "venv", ROOT / ".tools/venv"], check=True)
        subprocess.run([PROGRAM.with_name("pip"), "install", "--quiet", "--disable-pip-version-check", PODMAN_COMPOSE], check=True)
    FILE.write_text(fit((ROOT / "compose.yaml").read_text(), postgres, port, admin_port))
    stop = threading.Event()
    checks = threading.Thread(target=run_health_checks, args=[stop])
    checks.start()
    try:
        run("up", "--build", "--detach")
        wait_until("the service is ready", lambda: responds_ok(f"http://127.0.0.1:{admin_port}/readyz"))
        wait_until("the service is healthy", lambda: succeeds("healthcheck", "run", f"{PROJECT}_perennial_1"))
    finally:
        stop.set()
        checks.join()
    created = run("exec", "-T", "perennial", "perennial", "client", "create", "--json")
    if "prn_sk_" not in created:
        sys.exit(f"failed: client create printed {created}")
    token = run("exec", "-T", "perennial", "perennial", "sandbox", "token", "ada@example.com")
    if token.count(".") != 2:
        sys.exit(f"failed: sandbox token printed {token}")
    for service in ["perennial", "postgres"]:
        info = podman("inspect", "--format={{.HostConfig.ReadonlyRootfs}} {{.HostConfig.Memory}} {{.HostConfig.PidsLimit}} "
                      "{{.EffectiveCaps}} {{.Config.StopTimeout}}", f"{PROJECT}_{service}_1")
        print(f"{service}: read-only, memory, process limit, capabilities, stop timeout: {info}")
        if not info.startswith("true ") or " [] " not in info:
            sys.exit(f"failed: {service} is not restricted as in compose.yaml")
    run("down", "--volumes")
    print("both services started, healthy, and stopped")


def clean():
    engine.remove([f"{PROJECT}_perennial_1", f"{PROJECT}_postgres_1"], [f"localhost/{PROJECT}_perennial"], [f"{PROJECT}_default"],
                  [f"{PROJECT}_postgres", f"{PROJECT}_socket", f"{PROJECT}_state"])
    FILE.unlink(missing_ok=True)
