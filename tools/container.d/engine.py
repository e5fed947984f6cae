"""Podman with its own configuration and storage, and the base image of the tests.

Images, containers and networks are in FOLDER, apart from those of other users of the machine. There is no public registry: the
base image is created with mmdebstrap from the package archive that the machine's apt uses.
"""

import fcntl
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Short, because paths of Unix sockets are limited to 107 bytes.
FOLDER = Path("/var/tmp/perennial-containers")
# Debian 12 with systemd, PostgreSQL and curl. Kept between runs.
DEBIAN = "localhost/perennial-test-debian"
DEBIAN_PACKAGES = ["ca-certificates", "curl", "dbus", "iproute2", "postgresql", "procps", "systemd-sysv"]
# Builds the Containerfile with target/image/perennial and without a public registry.
BUILD_ARGUMENTS = ["--build-arg=BINARY=prebuilt", f"--build-arg=BUILD_IMAGE={DEBIAN}", f"--build-arg=CLIENT_IMAGE={DEBIAN}"]
# The limit of processes that a container gets, below the one of the machine.
MAX_PROCESSES = 32_768


def install_packages():
    needed = {"podman": "podman", "runc": "runc", "mmdebstrap": "mmdebstrap", "iptables": "iptables", "strip": "binutils"}
    packages = [package for program, package in needed.items() if not shutil.which(program)]
    packages += [name for name in ["netavark", "aardvark-dns"] if not Path("/usr/lib/podman", name).exists()]
    if packages:
        print(f"installing {' '.join(packages)}", flush=True)
        subprocess.run(["apt-get", "update", "-q"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(
            ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages],
            check=True, stdout=subprocess.DEVNULL, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )


def write_configuration():
    """Writes the configuration, and makes this process and its children use it."""
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    # Other subnets than Podman's own, which another installation on this machine may use. Podman's default limits
    # are above the limits of a machine that is itself a container.
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    (FOLDER / "containers.conf").write_text(f"""[containers]
default_ulimits = ["nofile={files}:{files}", "nproc={MAX_PROCESSES}:{MAX_PROCESSES}"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
[network]
network_backend = "netavark"
default_subnet = "10.213.0.0/24"
default_subnet_pools = [{{base = "10.213.1.0/24", size = 28}}]
network_config_dir = "{FOLDER}/networks"
""")
    (FOLDER / "storage.conf").write_text(f"""[storage]
driver = "overlay"
graphroot = "{FOLDER}/storage"
runroot = "{FOLDER}/run"
""")
    os.environ["CONTAINERS_CONF"] = str(FOLDER / "containers.conf")
    os.environ["CONTAINERS_STORAGE_CONF"] = str(FOLDER / "storage.conf")
    # OCI images have no health check; Docker's format has.
    os.environ["BUILDAH_FORMAT"] = "docker"


def podman(*arguments, check=True, **options):
    """Runs Podman and returns its standard output."""
    command = ["podman", *map(str, arguments)]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if check and result.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}\n{result.stdout}{result.stderr}")
    return result.stdout.strip()


def succeeds(*arguments):
    command = ["podman", *map(str, arguments)]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def apt_sources():
    """Returns the package sources of this machine's distribution, for sources.list."""
    output = subprocess.check_output(
        ["apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages", "Origin: Debian"],
        text=True,
    )
    lines = sorted({line for line in output.splitlines() if " bookworm" in line})
    if not lines:
        sys.exit("failed: apt has no package lists of Debian 12; run `apt-get update`")
    return "\n".join(lines) + "\n"


def create_debian():
    """Creates the base image unless it exists."""
    if succeeds("image", "exists", DEBIAN):
        return
    started_at = time.monotonic()
    archive = FOLDER / "debian.tar"
    # PostgreSQL's package chooses another port if 5432 is in use on the machine that creates the image.
    set_port = "sed -i 's/^port = .*/port = 5432/' \"$1\"/etc/postgresql/*/main/postgresql.conf"
    subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(DEBIAN_PACKAGES)}", f"--customize-hook={set_port}",
         "bookworm", str(archive), "-"],
        input=apt_sources(), text=True, check=True,
    )
    podman("import", "--quiet", archive, DEBIAN)
    archive.unlink()
    print(f"created {DEBIAN} in {time.monotonic() - started_at:.0f} s", flush=True)


def prepare():
    """Prepares the engine and the base image. Returns a lock that the caller holds while it uses them."""
    if os.geteuid() != 0:
        sys.exit("failed: must run as root, because Podman's networks and systemd need it")
    install_packages()
    write_configuration()
    lock = (FOLDER / "lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    create_debian()
    return lock


def delete_everything():
    """Deletes the storage with all images."""
    if FOLDER.exists():
        write_configuration()
        podman("system", "reset", "--force")
        shutil.rmtree(FOLDER)


def remove(containers=(), images=(), networks=(), volumes=()):
    """Removes what a test has created; what does not exist is skipped."""
    for kind, names in [("rm --force --time 0 --ignore --volumes", containers), ("volume rm --force", volumes),
                        ("network rm --force", networks), ("rmi --force", images)]:
        for name in names:
            succeeds(*kind.split(), name)


def wait_until(what, condition, seconds=60, interval=0.1):
    """Waits until a condition returns a true value, and returns it."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > deadline:
            sys.exit(f"failed: waited {seconds} s until {what}")
        time.sleep(interval)
    return result
