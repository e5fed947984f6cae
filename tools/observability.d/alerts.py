"""Checks deploy/prometheus: the rules, their unit tests and their runbooks."""

import re
import subprocess

import yaml

import reference

SEVERITIES = {"critical", "warning", "info"}


def run_tests(root, promtool):
    """Runs promtool on the rules and on their tests."""
    folder = root / "deploy/prometheus"
    tests = sorted((folder / "tests").glob("*.yaml"))
    problems = []
    for command in (["check", "rules", folder / "alerts.yaml"], ["test", "rules", *tests]):
        result = subprocess.run([promtool, *command], text=True, capture_output=True)
        if result.returncode:
            problems.append(f"promtool {command[0]} rules: {result.stdout}{result.stderr}")
    return problems


def check(root, documented):
    """Checks each alert: severity, runbook, metrics, and a test in which it is silent, fires and resolves."""
    folder = root / "deploy/prometheus"
    groups = yaml.safe_load((folder / "alerts.yaml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    tested = tested_alerts(folder / "tests")
    guide = (root / "docs/how-to/monitoring.md").read_text()
    problems = []
    for rule in rules:
        name, annotations = rule["alert"], rule["annotations"]
        problems += [f"{name}: {problem}" for problem in reference.query_problems(rule["expr"], documented)[1]]
        if rule["labels"].get("severity") not in SEVERITIES:
            problems.append(f"{name}: severity must be one of {sorted(SEVERITIES)}")
        if name not in tested:
            problems.append(f"{name}: no test in which it is silent, then fires, then resolves")
        if f"`{name}`" not in guide:
            problems.append(f"{name} is not in docs/how-to/monitoring.md")
        runbook = re.fullmatch(r"https://billing\.example\.com/docs/runbooks/([a-z-]+)", annotations["runbook_url"])
        page = root / f"docs/runbooks/{runbook[1]}.md" if runbook else None
        if not page or not page.exists():
            problems.append(f"{name}: {annotations['runbook_url']} is not a page in docs/runbooks")
        elif f"`{name}`" not in page.read_text():
            problems.append(f"{name} is not mentioned in {page.relative_to(root)}")
    for name in set(re.findall(r"`(Perennial[A-Z]\w+)`", guide)) - {rule["alert"] for rule in rules}:
        problems.append(f"docs/how-to/monitoring.md: there is no alert {name}")
    print(f"{len(rules)} alerts, {len(tested)} of them fire and resolve in a test")
    return problems


def tested_alerts(folder):
    """Returns the alerts that a test expects to be silent, then to fire, then to be silent again."""
    tested = set()
    for path in folder.glob("*.yaml"):
        for test in yaml.safe_load(path.read_text())["tests"]:
            steps = {}
            for step in test["alert_rule_test"]:
                steps.setdefault(step["alertname"], []).append((minutes(step["eval_time"]), bool(step["exp_alerts"])))
            tested |= {name for name, seen in steps.items() if [fires for _, fires in sorted(seen)] == [False, True, False]}
    return tested


def minutes(text):
    return int(re.fullmatch(r"(\d+)m", text)[1])
