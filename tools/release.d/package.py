"""Packages a binary: archive, Debian package, checksums and signature."""

import collections
import email.utils
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tomllib

from build import TARGETS, run

# Separates our signatures from others by the same key.
SIGNATURE_NAMESPACE = "perennial-release"


def read_version(tree):
    return tomllib.loads((tree / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def third_party_licenses(tree, target):
    """Returns the license texts of the linked crates, each text once, with the crates that it covers."""
    linked = set()
    for line in run("cargo", "tree", "--locked", "--package=perennial", "--edges=normal", "--prefix=none", f"--target={target}",
                    "--format={p}", cwd=tree).splitlines():
        name, version, *_ = line.split()
        linked.add((name, version.removeprefix("v")))
    metadata = json.loads(run("cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={target}", cwd=tree))
    crates = collections.defaultdict(list)
    for package in metadata["packages"]:
        if (package["name"], package["version"]) not in linked or not package["source"]:
            continue
        label = f"{package['name']} {package['version']} ({package['license'] or 'see the text'})"
        folder = pathlib.Path(package["manifest_path"]).parent
        texts = [path.read_text(errors="replace") for path in sorted(folder.iterdir())
                 if path.is_file() and path.name.upper().startswith(("LICEN", "COPYING", "NOTICE"))]
        for text in texts or ["(The crate has no license file; its manifest names the license.)\n"]:
            crates[text].append(label)
    parts = ["Licenses of the third-party crates that are linked into perennial.\n"]
    for text, labels in sorted(crates.items(), key=lambda each: each[1]):
        parts.append("=" * 80 + "\n" + "\n".join(sorted(labels)) + "\n" + "-" * 80 + "\n" + text.rstrip() + "\n")
    return "\n".join(parts)


def stage(tree, binary, runnable, target, timestamp, revision):
    """Collects the files of a package in `target/package` of a source tree. `runnable` is the same program for this machine."""
    folder = tree / "target/package"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ["completions", "units"]:
        (folder / name).mkdir(parents=True)
    shutil.copy(binary, folder / "perennial")
    for shell, name in [("bash", "perennial.bash"), ("fish", "perennial.fish"), ("zsh", "_perennial")]:
        (folder / "completions" / name).write_text(run(runnable, "completions", shell))
    run(runnable, "man-pages", folder / "man1")
    for unit in [*tree.glob("deploy/perennial.service"), *tree.glob("deploy/perennial.socket")]:
        text = unit.read_text().replace("/usr/local/bin/perennial", "/usr/bin/perennial")
        (folder / "units" / unit.name).write_text(text)
    licenses = third_party_licenses(tree, target)
    (folder / "third-party-licenses").write_text(licenses)
    (folder / "third-party-licenses.gz").write_bytes(compress(licenses.encode()))
    (folder / "changelog").write_text(
        f"perennial ({read_version(tree)}-{revision}) stable; urgency=medium\n\n"
        f"  * Release {read_version(tree)}; CHANGELOG.md in the source lists the changes.\n\n"
        f" -- Perennial maintainers <maintainers@example.com>  {email.utils.formatdate(int(timestamp))}\n")
    return folder


def compress(content):
    return gzip.compress(content, 9, mtime=0)


def write_archive(path, prefix, files, timestamp):
    """Writes a .tar.gz with these files, given as (name, path). Its bytes depend on their names and contents only."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, source in sorted(files):
            entry = tarfile.TarInfo(f"{prefix}/{name}")
            content = source.read_bytes()
            entry.size, entry.mtime = len(content), int(timestamp)
            entry.mode = 0o755 if name == "perennial" else 0o644
            archive.addfile(entry, io.BytesIO(content))
    path.write_bytes(compress(buffer.getvalue()))
    return path


def build_archive(tree, staged, architecture, output, timestamp):
    name = f"perennial-{read_version(tree)}-linux-{architecture}"
    files = [(name, tree / name) for name in ["LICENSE", "README.md", "CHANGELOG.md"]]
    files += [("perennial", staged / "perennial"), ("third-party-licenses.txt", staged / "third-party-licenses")]
    for folder in ["completions", "man1"]:
        files += [(f"{folder}/{path.name}", path) for path in (staged / folder).iterdir()]
    # The unit as it is in the repository: an administrator installs the binary in /usr/local.
    files += [(f"systemd/{path.name}", tree / "deploy" / path.name) for path in (staged / "units").iterdir()]
    return write_archive(output / f"{name}.tar.gz", name, files, timestamp)


def build_deb(tree, architecture, output, timestamp, revision, is_portable):
    """Writes the Debian package with the staged files and returns its path."""
    target, debian = TARGETS[architecture]
    version = f"{read_version(tree)}-{revision}"
    path = output / f"perennial_{version}_{debian}.deb"
    command = ["cargo", "deb", "--quiet", "--no-build", "--no-strip", "--package=perennial", f"--target={target}",
               f"--deb-version={version}", f"--output={path}", "--maintainer=Perennial maintainers <maintainers@example.com>"]
    command += [] if is_portable else ["--variant=local", "--fast"]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(timestamp)}
    subprocess.run(command, cwd=tree, env=environment, check=True)
    return path


def write_checksums(folder):
    """Writes SHA256SUMS for all other files of a folder, in the format of sha256sum."""
    sums = folder / "SHA256SUMS"
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("SHA256SUMS"))
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    sums.write_text("".join(lines))
    return sums


def sign(sums, key):
    """Signs the checksums with an SSH key, as SHA256SUMS.sig."""
    pathlib.Path(f"{sums}.sig").unlink(missing_ok=True)
    run("ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", SIGNATURE_NAMESPACE, sums, stderr=subprocess.PIPE)


def is_signed(folder, signers, identity):
    """Returns whether the signature of SHA256SUMS is valid and every listed file matches."""
    with (folder / "SHA256SUMS").open() as sums:
        signature = subprocess.run(
            ["ssh-keygen", "-q", "-Y", "verify", "-f", signers, "-I", identity, "-n", SIGNATURE_NAMESPACE,
             "-s", folder / "SHA256SUMS.sig"], stdin=sums, capture_output=True)
    files = subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=folder, capture_output=True)
    return signature.returncode == 0 and files.returncode == 0
