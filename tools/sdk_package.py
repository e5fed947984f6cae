"""Builds and packs the TypeScript SDK, and installs the package into a project without a registry."""

import subprocess
from pathlib import Path

SDK = Path(__file__).resolve().parent.parent / "clients/typescript"
BIN = SDK / "node_modules/.bin"
PNPM = ["npx", "--yes", "pnpm@10"]


def run(*command, **options):
    subprocess.run(command, check=True, **{"cwd": SDK, **options})


def install_dependencies():
    run(*PNPM, "install", "--frozen-lockfile", "--silent")


def build():
    run("node", "scripts/build.mjs")


def install_sdk(project):
    """Packs the built SDK and its dependencies, and installs them into a project."""
    run("node", "scripts/install-into.mjs", project, "--built")
