"""The metrics that docs/reference/logs-and-metrics.md lists, and the metrics and labels that a query uses."""

import re

import promql_parser

# Labels that Prometheus adds, and the series that it creates for each target.
TARGET_LABELS = {"instance", "job"}
TARGET_METRICS = {"up": set()}
HISTOGRAM_SUFFIXES = ("_bucket", "_count", "_sum")


def metrics(root):
    """Returns the labels of each documented metric, by its name."""
    page = (root / "docs/reference/logs-and-metrics.md").read_text()
    table = page.split("\n## Metrics\n")[1]
    documented = {}
    for line in table.splitlines():
        if not line.startswith("| `perennial_"):
            continue
        names, labels, *_ = [cell.strip() for cell in line.strip("|").split("|")]
        for name in re.findall(r"`(\w+)`", names):
            documented[name] = set(re.findall(r"`(\w+)`", labels))
    if len(documented) < 10:
        raise SystemExit("observability: cannot read the table of metrics in docs/reference/logs-and-metrics.md")
    return documented


def base_name(name, known):
    """Returns the metric of a series: of a histogram, the name without its suffix."""
    for suffix in HISTOGRAM_SUFFIXES:
        if name not in known and name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


def query_problems(query, documented):
    """Parses a query. Returns its metrics, and its problems: syntax, unknown metrics, unknown labels."""
    try:
        expression = promql_parser.parse(query)
    except ValueError as error:
        return set(), [f"{query}: {error}"]
    known = documented | TARGET_METRICS
    used, problems, labels = set(), [], set(TARGET_LABELS)

    def visit(node):
        if not isinstance(node, promql_parser.VectorSelector):
            return True
        name = base_name(node.name or "", known)
        if name not in known:
            problems.append(f"{query}: unknown metric {node.name}")
            return True
        used.add(name)
        allowed = known[name] | TARGET_LABELS | ({"le"} if name != node.name else set())
        labels.update(allowed)
        for label in re.findall(r'(\w+)(?:=~|!~|!=|=)"', str(node.matchers)):
            if label not in allowed:
                problems.append(f"{query}: {name} has no label {label}")
        return True

    promql_parser.walk(expression, visit)
    for group in re.findall(r"\b(?:by|on|without|ignoring) \(([^)]*)\)", query):
        unknown = set(re.findall(r"\w+", group)) - labels
        problems.extend(f"{query}: no metric has the label {label}" for label in unknown)
    return used, problems
