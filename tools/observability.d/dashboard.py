"""Checks deploy/grafana/perennial.json. Grafana itself is not used."""

import json

import reference

# The variables of the dashboard and of Grafana, with values for which the queries can be parsed and run.
VARIABLES = {"$__rate_interval": "10s", "$instance": ".+"}


def queries(root):
    """Returns the panel and the query of each target, with values for the variables."""
    found = []
    for panel in load(root)["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"]
            for variable, value in VARIABLES.items():
                query = query.replace(variable, value)
            found.append((panel["title"], query))
    return found


def load(root):
    return json.loads((root / "deploy/grafana/perennial.json").read_text())


def check(root, documented):
    """Checks each query, that all metrics are shown, and that the guide explains each panel."""
    guide = (root / "docs/how-to/monitoring.md").read_text()
    panels = [panel for panel in load(root)["panels"] if panel["type"] != "row"]
    problems, shown, taken = [], set(), {}
    for title, query in queries(root):
        used, found = reference.query_problems(query, documented)
        shown |= used
        problems += [f"{title}: {problem}" for problem in found]
        if "$" in query:
            problems.append(f"{title}: unknown variable in {query}")
    problems += [f"no panel shows {name}" for name in documented.keys() - shown]
    for panel in panels:
        title, area = panel["title"], panel["gridPos"]
        if not panel.get("description") or not panel.get("targets"):
            problems.append(f"{title}: must have a description and a query")
        if f"| {title} |" not in guide:
            problems.append(f"{title} is not in docs/how-to/monitoring.md")
        for x in range(area["x"], area["x"] + area["w"]):
            for y in range(area["y"], area["y"] + area["h"]):
                other = taken.setdefault((x, y), title)
                if other != title or x >= 24:
                    problems.append(f"{title} overlaps {other}")
    print(f"{len(panels)} panels, {len(queries(root))} queries, {len(shown)} metrics")
    return sorted(set(problems))
