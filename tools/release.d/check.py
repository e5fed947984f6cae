"""Checks the files of a release."""

import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile

import package
from build import HOST, run

IDENTITY = "releases@example.com"


# How to run binaries of another architecture: the emulator and the libraries of Debian's qemu-user-static and libc6-arm64-cross.
EMULATORS = {"arm64": ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]}


def command_for(binary, architecture):
    """Returns the command that runs a binary here, or None if it is for another architecture and there is no emulator."""
    if architecture == HOST:
        return [binary]
    if architecture not in EMULATORS:
        return None
    emulator, option, libraries = EMULATORS[architecture]
    is_installed = shutil.which(emulator) and pathlib.Path(libraries).exists()
    return [emulator, option, libraries, binary] if is_installed else None


def find_version_errors(tree, command, commit):
    """Returns what is wrong with the output of `--version` and with the changelog. `commit` may be None."""
    errors = []
    version = package.read_version(tree)
    shown = run(*command, "--version").strip()
    built = re.fullmatch(r"perennial (\S+) \(([^()]+)\)", shown)
    if not built or built[1] != version:
        errors.append(f"--version prints {shown!r}; expected perennial {version} (COMMIT)")
    elif commit and built[2] != commit[:12]:
        errors.append(f"--version names {built[2]}; the commit is {commit[:12]}")
    changelog = (tree / "CHANGELOG.md").read_text()
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.M):
        errors.append(f"CHANGELOG.md has no dated section [{version}]")
    return errors


def find_deb_errors(deb):
    """Returns the errors that lintian finds, and the files that the package should have and has not."""
    result = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", deb], capture_output=True, text=True)
    print(result.stdout + result.stderr, end="")
    errors = [f"lintian: {line}" for line in result.stdout.splitlines() if line.startswith("E: ")]
    if result.returncode and not errors:
        errors.append(f"lintian failed: {result.stderr.strip()}")
    listed = run("dpkg-deb", "--contents", deb)
    for path in ["/usr/bin/perennial", "/usr/lib/systemd/system/perennial.service", "/usr/lib/sysusers.d/perennial.conf",
                 "/etc/perennial/environment.example", "/usr/share/man/man1/perennial.1.gz",
                 "/usr/share/man/man1/perennial-client-create.1.gz", "/usr/share/bash-completion/completions/perennial",
                 "/usr/share/zsh/vendor-completions/_perennial", "/usr/share/fish/vendor_completions.d/perennial.fish",
                 "/usr/share/doc/perennial/third-party-licenses.gz"]:
        if f" .{path}\n" not in listed:
            errors.append(f"{deb.name}: {path} is missing")
    with tempfile.TemporaryDirectory() as folder:
        run("dpkg-deb", "--extract", deb, folder)
        unit = pathlib.Path(folder, "usr/lib/systemd/system/perennial.service").read_text()
    if "ExecStart=/usr/bin/perennial serve" not in unit:
        errors.append(f"{deb.name}: the unit does not start /usr/bin/perennial")
    return errors


def find_archive_errors(archive, staged):
    """Returns what is missing in an archive. The binary must be the staged one."""
    with tarfile.open(archive) as files:
        prefix = archive.name.removesuffix(".tar.gz")
        names = files.getnames()
        missing = [f"{archive.name}: {name} is missing" for name in
                   ["LICENSE", "README.md", "completions/perennial.bash", "man1/perennial.1", "third-party-licenses.txt",
                    "systemd/perennial.service"] if f"{prefix}/{name}" not in names]
        if files.extractfile(f"{prefix}/perennial").read() != (staged / "perennial").read_bytes():
            missing.append(f"{archive.name}: contains another binary")
    return missing


def find_signature_errors(folder):
    """Signs a folder with a new key, and returns errors unless a changed file, list or signer is noticed. Removes the signature
    afterwards."""
    errors = []
    sums = folder / "SHA256SUMS"
    victim = max(folder.glob("*.tar.gz"), key=lambda path: path.name)
    with tempfile.TemporaryDirectory() as keys:
        signers = pathlib.Path(keys, "signers")
        for name in ["release", "other"]:
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", f"{keys}/{name}")
        trusted = pathlib.Path(keys, "release.pub").read_text()
        signers.write_text(f'{IDENTITY} namespaces="{package.SIGNATURE_NAMESPACE}" {trusted}')

        def expect(outcome, situation):
            if package.is_signed(folder, signers, IDENTITY) != outcome:
                errors.append(f"signature: {situation} is {'rejected' if outcome else 'accepted'}")

        package.sign(sums, f"{keys}/release")
        expect(True, "an unchanged folder")
        content, listed = victim.read_bytes(), sums.read_text()
        victim.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        expect(False, "a changed file")
        package.write_checksums(folder)
        expect(False, "a changed file with a new checksum")
        victim.write_bytes(content)
        sums.write_text(listed)
        expect(True, "the restored folder")
        package.sign(sums, f"{keys}/other")
        expect(False, "another key")
        pathlib.Path(f"{sums}.sig").unlink()
    return errors
