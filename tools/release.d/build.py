"""Builds the binary of a commit so that the bytes depend on the commit and the tool versions only."""

import hashlib
import io
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The compiler and linker of releases. Other versions give other bytes.
RUST = "1.95.0"
PYTHON_TOOLS = ["cargo-zigbuild==0.24.0", "ziglang==0.17.0"]
# The C library of Debian 11. Ubuntu 22.04 has 2.35.
MAX_GLIBC = (2, 31)
# Our name of an architecture, with those of Rust and Debian.
TARGETS = {
    "x86_64": ("x86_64-unknown-linux-gnu", "amd64"),
    "arm64": ("aarch64-unknown-linux-gnu", "arm64"),
}
HOST = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
# The libraries that every Debian system has: the C library is split in several before 2.34.
SYSTEM_LIBRARIES = re.compile(r"(lib(c|dl|m|pthread|rt|gcc_s)|ld-linux[-\w]*)\.so\.\d+")


def run(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def resolve_commit(revision):
    """Returns the hash of a commit and its time in seconds since 1970."""
    return run("git", "log", "-1", "--format=%H %ct", revision, cwd=ROOT).split()


def export_source(commit, folder):
    """Writes the files of a commit to a folder, without `.git`. Returns them as a tar archive too."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder)
    return archive


def install_tools():
    """Installs cargo-zigbuild and zig into .tools/release and returns the folder with their commands."""
    folder = ROOT / ".tools/release"
    stamp = folder / "stamp"
    if not stamp.exists() or stamp.read_text() != " ".join(PYTHON_TOOLS):
        print(f"release: installing {' '.join(PYTHON_TOOLS)} into {folder}")
        run("python3", "-m", "venv", folder)
        run(folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *PYTHON_TOOLS)
        stamp.write_text(" ".join(PYTHON_TOOLS))
    return folder / "bin"


def path_prefixes(source, target_dir):
    """Returns the folders of this machine that may appear in the binary, with what replaces them."""
    cargo_home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    sysroot = run("rustc", f"+{RUST}", "--print", "sysroot").strip()
    rustc = re.search(r"commit-hash: (\w+)", run("rustc", f"+{RUST}", "-vV"))[1]
    prefixes = {str(index): "/crates" for index in (cargo_home / "registry/src").glob("*")}
    # rustc replaces this folder itself where the component rust-src is not installed.
    prefixes[f"{sysroot}/lib/rustlib/src/rust"] = f"/rustc/{rustc}"
    # The last matching prefix applies: the target folder may be inside the source folder.
    return prefixes | {str(source): "/perennial", str(target_dir): "/target"}


def write_compiler(folder, prefixes):
    """Writes a script that runs the compiler with replaced folders, and returns its path.

    Cargo's own flags do not apply to procedural macros: their folders would change the hashes of all crates that use them.
    """
    flags = " ".join(f"'--remap-path-prefix={old}={new}'" for old, new in prefixes.items())
    compiler = folder / "rustc"
    folder.mkdir(parents=True, exist_ok=True)
    compiler.write_text(f'#!/bin/sh\nexec "$@" {flags}\n')
    compiler.chmod(0o755)
    return compiler


def build(source, target_dir, architecture, commit, timestamp):
    """Builds the binary for an architecture and returns its path. `source` is the exported commit."""
    target = TARGETS[architecture][0]
    prefixes = path_prefixes(source, target_dir)
    # Not computed by the linker, which would include the debug information and so the path of the linker's own sources.
    build_id = hashlib.sha1(f"{commit} {target}".encode()).hexdigest()
    environment = {name: value for name, value in os.environ.items() if not re.match(r"(CARGO_(?!HOME)|RUST|CFLAGS|BUILD_COMMIT)", name)}
    environment |= {
        "PATH": f"{install_tools()}:{os.environ['PATH']}",
        "RUSTUP_TOOLCHAIN": RUST,
        "CARGO_TARGET_DIR": str(target_dir),
        "CARGO_ENCODED_RUSTFLAGS": f"-Clink-arg=-Wl,--build-id=0x{build_id}",
        "RUSTC_WRAPPER": str(write_compiler(target_dir, prefixes)),
        "CFLAGS": " ".join(f"-ffile-prefix-map={old}={new}" for old, new in prefixes.items()),
        # What `__DATE__` and `__TIME__` are in C.
        "SOURCE_DATE_EPOCH": str(timestamp),
        # The folder that the linker writes into the debug information of its own objects.
        "PWD": "/proc/self/cwd",
        "ZIG_GLOBAL_CACHE_DIR": str(target_dir / "zig"),
        "CARGO_ZIGBUILD_CACHE_DIR": str(target_dir / "zigbuild"),
    }
    command = ["cargo", "zigbuild", "--quiet", "--release", "--locked", "--package=perennial", "--bin=perennial",
               f"--target={target}.{'.'.join(map(str, MAX_GLIBC))}"]
    subprocess.run(command, cwd=source, env=environment, check=True)
    return target_dir / target / "release/perennial"


def split_debug_info(binary, folder, toolchain=()):
    """Writes the stripped binary and its debug information to a folder and returns both paths."""
    sysroot = pathlib.Path(run("rustc", *toolchain, "--print", "sysroot").strip())
    # llvm-objcopy, which works for all architectures, unlike that of Debian.
    objcopy = next(sysroot.glob("lib/rustlib/*/bin/rust-objcopy"))
    environment = os.environ | {"LD_LIBRARY_PATH": str(sysroot / "lib")}
    folder.mkdir(parents=True, exist_ok=True)
    stripped, debug = folder / "perennial", folder / "perennial.debug"
    run(objcopy, "--only-keep-debug", binary, debug, env=environment)
    # Without a debug link, which contains a checksum of the debug information: debuggers match both files by the build id.
    run(objcopy, "--strip-all", binary, stripped, env=environment)
    return stripped, debug


def glibc_version(binary):
    """Returns the newest version of the C library that a binary asks for."""
    versions = re.findall(r"\bGLIBC_(\d+)\.(\d+)", run("readelf", "--version-info", "--wide", binary))
    return max((int(major), int(minor)) for major, minor in versions)


def find_portability_errors(binary):
    """Returns why a binary would not run on the oldest supported distribution."""
    errors = []
    if (version := glibc_version(binary)) > MAX_GLIBC:
        errors.append("needs glibc %d.%d; the baseline is %d.%d" % (version + MAX_GLIBC))
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "--dynamic", "--wide", binary))
    errors += [f"needs {library}" for library in needed if not SYSTEM_LIBRARIES.fullmatch(library)]
    return errors


def find_local_paths(binary):
    """Returns the folders of this machine whose names are in a file."""
    content = binary.read_bytes()
    folders = {str(ROOT), str(pathlib.Path.home() / ".cargo"), str(pathlib.Path.home() / ".rustup")}
    return sorted(folder for folder in folders if folder.encode() in content)
