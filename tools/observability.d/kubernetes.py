"""Renders and checks deploy/kubernetes. No cluster is used."""

import os
import re
import shutil
import subprocess

import kubernetes_validate
import yaml

# The oldest and the newest release to validate for.
VERSIONS = ("1.28", "1.37")
FOLDERS = ("base", "example")
# Not a setting, but read by the service.
OTHER_VARIABLES = {"CREDENTIALS_DIRECTORY"}
MASTER_KEY = "dGVzdHMgb25seTogYSBrZXkgdGhhdCBpcyBubyBrZXk"


def render(root, kubectl, folder):
    """Returns the objects of each folder, as `kubectl kustomize` renders them."""
    shutil.copytree(root / "deploy/kubernetes", folder / "kubernetes")
    version = subprocess.run([kubectl, "version", "--client", "-o", "json"], text=True, capture_output=True, check=True).stdout
    if int(re.search(r'"minor": *"(\d+)', version)[1]) < 21:
        # Debian 12 has kubectl 1.20, which knows folders as `bases` only.
        overlay = folder / "kubernetes/example/kustomization.yaml"
        overlay.write_text(overlay.read_text().replace("resources:\n  - ../base\n", "bases:\n  - ../base\nresources:\n"))
    rendered = {}
    for name in FOLDERS:
        result = subprocess.run([kubectl, "kustomize", folder / "kubernetes" / name], text=True, capture_output=True)
        if result.returncode or result.stderr:
            raise SystemExit(f"observability: kubectl kustomize deploy/kubernetes/{name}: {result.stderr}")
        rendered[name] = list(yaml.safe_load_all(result.stdout))
    return rendered


def validate(rendered):
    problems = []
    for name, objects in rendered.items():
        for version in VERSIONS:
            for item in objects:
                try:
                    kubernetes_validate.validate(item, version, strict=True)
                except kubernetes_validate.ValidationError as error:
                    problems.append(f"{name}, {item['kind']}, Kubernetes {version}: {error}")
    print(f"{sum(map(len, rendered.values()))} objects, Kubernetes {' and '.join(VERSIONS)}")
    return problems


def workloads(objects):
    return [item for item in objects if item["kind"] in ("Deployment", "Job")]


def check(root, objects):
    """Checks what the schemas do not: selectors, names, ports, the restricted Pod Security Standard, resources."""
    problems = []
    settings = (root / "docs/reference/configuration.md").read_text()
    config_maps = {item["metadata"]["name"]: item["data"] for item in objects if item["kind"] == "ConfigMap"}
    accounts = {item["metadata"]["name"]: item for item in objects if item["kind"] == "ServiceAccount"}
    pods = [item["spec"]["template"] for item in workloads(objects)]
    for item in workloads(objects):
        name, template = item["metadata"]["name"], item["spec"]["template"]
        pod = template["spec"]
        (container,) = pod["containers"]
        security, restrictions = pod["securityContext"], container["securityContext"]
        ports = {port["name"] for port in container.get("ports", [])}
        probes = [container[key] for key in ("livenessProbe", "readinessProbe") if key in container]
        names = {variable["name"] for variable in container["env"]}
        for source in container["envFrom"]:
            reference = source["configMapRef"]["name"]
            names |= config_maps.get(reference, {}).keys()
            problems += [] if reference in config_maps else [f"{name}: no ConfigMap {reference}"]
        expected = {
            "runs as root": security.get("runAsNonRoot") is True and security.get("runAsUser", 0) > 0,
            "has no seccomp profile": security.get("seccompProfile") == {"type": "RuntimeDefault"},
            "can gain privileges": restrictions.get("allowPrivilegeEscalation") is False,
            "has capabilities": restrictions.get("capabilities") == {"drop": ["ALL"]},
            "has a writable root": restrictions.get("readOnlyRootFilesystem") is True,
            "has a token": pod.get("automountServiceAccountToken") is False,
            "has the variables of services": pod.get("enableServiceLinks") is False,
            "has no separate account": accounts.get(pod["serviceAccountName"], {}).get("automountServiceAccountToken") is False,
            "has no memory limit": {"requests", "limits"} <= container["resources"].keys(),
            "has no probes": item["kind"] == "Job" or len(probes) == 2,
            "has a probe without a port": all(probe["httpGet"]["port"] in ports for probe in probes),
            "selects other pods": item["kind"] == "Job"
            or item["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items(),
            "is not spread": item["kind"] == "Job" or len(pod["topologySpreadConstraints"]) == 2,
        }
        problems += [f"{name} {problem}" for problem, is_right in expected.items() if not is_right]
        for variable in names - OTHER_VARIABLES:
            if f"### `{variable.removesuffix('_FILE')}`" not in settings:
                problems.append(f"{name}: unknown setting {variable}")
    for item in objects:
        selector = {"Service": lambda spec: spec["selector"], "NetworkPolicy": lambda spec: spec["podSelector"]["matchLabels"],
                    "PodDisruptionBudget": lambda spec: spec["selector"]["matchLabels"]}.get(item["kind"])
        if not selector:
            continue
        selected = [pod for pod in pods if selector(item["spec"]).items() <= pod["metadata"]["labels"].items()]
        open_ports = {port["name"] for pod in selected for port in pod["spec"]["containers"][0].get("ports", [])}
        used = [port.get("targetPort") for port in item["spec"].get("ports", [])]
        used += [port["port"] for rule in item["spec"].get("ingress", []) for port in rule["ports"]]
        if not selected or not set(used) <= open_ports:
            problems.append(f"{item['kind']} {item['metadata']['name']} selects no pod, or a port that its pods do not have")
    return problems


def check_settings(binary, objects, folder):
    """Checks the settings of each deployment with the binary, as its pods would read them."""
    problems = []
    config_maps = {item["metadata"]["name"]: item["data"] for item in objects if item["kind"] == "ConfigMap"}
    files = {"master-key": MASTER_KEY, "database-url": "postgres://perennial_app@db.example.com/perennial?sslmode=verify-full"}
    for item in workloads(objects):
        pod = item["spec"]["template"]["spec"]
        (container,), (volume,) = pod["containers"], pod["volumes"]
        secret = folder / volume["secret"]["secretName"]
        secret.mkdir(exist_ok=True)
        for name, content in files.items():
            (secret / name).unlink(missing_ok=True)
            (secret / name).write_text(content)
            (secret / name).chmod(volume["secret"]["defaultMode"])
        environment = {"PATH": os.environ["PATH"]}
        for source in container["envFrom"]:
            environment |= config_maps[source["configMapRef"]["name"]]
        for variable in container["env"]:
            environment[variable["name"]] = variable["value"].replace("/etc/perennial", str(secret))
        # Migrations do not need the master key; `config check` does.
        if item["kind"] == "Job":
            environment["PERENNIAL_MASTER_KEY"] = MASTER_KEY
        for arguments in (["config", "check"], [*container["args"], "--help"]):
            result = subprocess.run([binary, *arguments], env=environment, text=True, capture_output=True)
            if result.returncode:
                problems.append(f"{item['metadata']['name']}: perennial {' '.join(arguments)}: {result.stderr}")
    return problems
