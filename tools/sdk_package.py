"""Builds and packs the TypeScript SDK, and installs the package into a project without a registry."""

import subprocess
import tarfile
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


def pack(folder):
    """Packs the built SDK and its dependencies into a folder. Returns the archives."""
    run(*PNPM, "--silent", "pack", "--pack-destination", folder, stdout=subprocess.DEVNULL)
    fetch = (SDK / "node_modules/openapi-fetch").resolve()
    for package in (fetch, (fetch.parent / "openapi-typescript-helpers").resolve()):
        # pnpm links equal files to each other, and npm does not unpack links.
        with tarfile.open(folder / f"{package.name}.tgz", "w:gz", dereference=True) as archive:
            archive.add(package, "package", filter=lambda entry: None if "node_modules" in entry.name else entry)
    return sorted(folder.glob("*.tgz"))


def install(project, archives):
    """Installs the archives into a project."""
    run("npm", "install", "--silent", "--offline", "--no-audit", "--no-fund", *archives, cwd=project)
