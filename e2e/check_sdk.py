"""Checks the TypeScript SDK: its sources, its package, and its behavior against a new sandbox and in Chromium.

Sources: types, lints and format; the generated files are those of the OpenAPI document and of the sources; the size is below its
limit. Package: it is packed, installed offline into an empty project, compiled there with correct and wrong fields, and runs through
the quickstart. The code in its documents compiles too. Service: 10,000 records by page, 1,000 responses that are cut off, events,
webhooks, sessions and entitlements. Tabs: 20 tabs that refresh at the same time. `--quick` uses 1,000 records and 100 responses.
"""

import json
import os
import re
import shutil

from harness import ROOT, browse, check, free_ports, group, new_folder, run, run_tests, sandbox
from sdk_package import BIN, SDK, build, install_dependencies, install_sdk

REFERENCE = ROOT / "docs/reference/typescript-sdk.md"
GENERATED = [SDK / "src/schema.d.ts", SDK / "src/idempotent_paths.ts", REFERENCE]
# The documents whose code must compile.
DOCUMENTS = {"readme": SDK / "README.md", "guide": ROOT / "docs/how-to/use-the-typescript-sdk.md"}


def check_sources():
    """Checks, generates and builds the sources. Generated files must be up to date."""
    service = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M).group(1)
    package = json.loads((SDK / "package.json").read_text())["version"]
    check(package == service, f"package.json has version {package}, and Cargo.toml {service}")
    before = [path.read_text() if path.exists() else "" for path in GENERATED]
    check_command("node", "scripts/generate.mjs")
    check_command(BIN / "oxlint", "--deny-warnings", "--quiet")
    check_command(BIN / "prettier", "--check", "--log-level", "warn", ".")
    build()
    check_command("node", "scripts/reference.mjs")
    for path, text in zip(GENERATED, before):
        check(path.read_text() == text, f"{path.relative_to(ROOT)} was not up to date; commit it")
    check_command("node", "scripts/size.mjs")
    run_tests("tests/unit/", cwd=SDK)


def check_command(*command, **options):
    run(*command, **{"cwd": SDK, **options})
    check(True, command)


def check_package(service):
    """Compiles and runs the quickstart in a project that has only the package."""
    with new_folder("sdk-package") as project:
        (project / "package.json").write_text('{"name": "empty", "private": true, "type": "module"}')
        install_sdk(project)
        for name in ("quickstart.mts", "wrong_fields.mts", "tsconfig.json"):
            shutil.copy(SDK / "tests/package" / name, project)
        for name, document in DOCUMENTS.items():
            blocks = re.findall(r"^```typescript\n(.*?)^```", document.read_text(), re.S | re.M)
            (project / f"{name}.mts").write_text("".join(blocks))
        check_command(BIN / "tsc", "--typeRoots", SDK / "node_modules/@types", cwd=project)
        check_command("node", "quickstart.mjs", cwd=project, env=environment(service))


def environment(service, **more):
    return {**os.environ, "PERENNIAL_SANDBOX": json.dumps({"variables": service.variables, "command": service.command}), **more}


def check_tabs(service, options):
    with new_folder("sdk") as folder:
        sdk = folder / "sdk.js"
        run(BIN / "esbuild", "dist/index.js", "--bundle", "--format=esm", f"--outfile={sdk}", cwd=SDK)
        [port] = free_ports(1)
        browse("tabs.mjs", options, service, variables=service.variables, command=service.command, port=port, sdk=sdk)


def run_sdk(options):
    """Runs the checks whose name contains `--only`."""
    def is_wanted(*names):
        return any(options.only in name for name in names)

    install_dependencies()
    if is_wanted("sources"):
        with group("sources"):
            check_sources()
    if is_wanted("package", "service", "tabs"):
        build()
        with sandbox(options) as service:
            if is_wanted("package"):
                with group("package"):
                    check_package(service)
            if is_wanted("service"):
                with group("service"):
                    run_tests("tests/service/", cwd=SDK, env=environment(service, **({"SDK_QUICK": "1"} if options.quick else {})))
            if is_wanted("tabs"):
                check_tabs(service, options)
