"""Builds and packs the TypeScript SDK, and installs the package into a project without a registry."""

from functools import cache

from harness import ROOT, run

SDK = ROOT / "clients/typescript"
BIN = SDK / "node_modules/.bin"


@cache
def install_dependencies():
    run("npx", "--yes", "pnpm@10", "install", "--frozen-lockfile", "--silent", cwd=SDK)


@cache
def build():
    install_dependencies()
    run("node", "scripts/build.mjs", cwd=SDK)


def install_sdk(project):
    """Packs the built SDK and its dependencies, and installs them into a project."""
    build()
    run("node", "scripts/install-into.mjs", project, "--built", cwd=SDK)
