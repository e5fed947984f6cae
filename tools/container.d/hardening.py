"""Checks that the restrictions of the unit are in effect for the running process."""

import re
import sys

SUFFIXES = {"K": 2**10, "M": 2**20, "G": 2**30}
# Not restrictions, or shown by systemd under another name.
SKIPPED = {"Type", "ExecStart", "EnvironmentFile", "LoadCredential", "Environment", "Restart", "RestartSec", "TimeoutStopSec",
           "SystemCallFilter", "SystemCallErrorNumber"}
# Lines of /proc/PID/status.
STATUS = {"NoNewPrivs": "1", "Seccomp": "2", **{name: "0" * 16 for name in ["CapPrm", "CapEff", "CapBnd", "CapAmb"]}}
# Mount points of the process, with options that each must have.
MOUNTS = {
    "/": ["ro", "nosuid"], "/home": ["ro"], "/root": ["ro"], "/run/user": ["ro"], "/dev": ["ro", "noexec"], "/sys": ["ro"],
    "/sys/fs/cgroup": ["ro"], "/proc": ["hidepid=invisible", "subset=pid"], "/run/credentials/perennial.service": ["ro", "ramfs"],
    "/tmp": [], "/var/tmp": [],
}
# System calls outside the filter, one of each denied group.
DENIED_CALLS = ["mount", "reboot", "setrlimit", "ptrace", "init_module", "chroot"]


def read_options(unit):
    """Returns the options of the section [Service], as (name, value)."""
    service = unit.read_text().split("[Service]")[1].split("[Install]")[0]
    return re.findall(r"^(\w+)=(.*)$", service, re.MULTILINE)


def normalize(value):
    if match := re.fullmatch(r"(\d+)([KMG])", value):
        return str(int(match.group(1)) * SUFFIXES[match.group(2)])
    return value


def check(run, pid, unit):
    """Compares the unit with what systemd applies, and with what the kernel says about the process."""
    errors = []
    options = {name: normalize(value) for name, value in read_options(unit) if name not in SKIPPED}
    shown = dict(line.split("=", 1) for line in run(f"systemctl show perennial.service --property={','.join(options)}").splitlines())
    errors += [f"{name} is {shown.get(name)}, not {value}" for name, value in options.items() if shown.get(name) != value]

    calls = run("systemctl show perennial.service --property=SystemCallFilter --value").split()
    errors += [f"the system call {name} is allowed" for name in DENIED_CALLS if name in calls or "~" in calls[0]]

    status = dict(line.split(":\t", 1) for line in run(f"cat /proc/{pid}/status").splitlines() if ":\t" in line)
    errors += [f"{name} is {status[name]}, not {value}" for name, value in STATUS.items() if status[name] != value]
    if status["Uid"].split()[0] == "0":
        errors.append("the process runs as root")
    if not re.search(r"Max core file size +0 +0 ", limits := run(f"cat /proc/{pid}/limits")):
        errors.append("core dumps are possible")

    mounts = {}
    for line in run(f"cat /proc/{pid}/mountinfo").splitlines():
        fields, _, source = line.partition(" - ")
        mounts[fields.split()[4]] = set(f"{fields.split()[5]},{source.replace(' ', ',')}".split(","))
    for path, needed in MOUNTS.items():
        missing = set(needed) - mounts.get(path, set())
        if path not in mounts or missing:
            errors.append(f"{path} is not mounted with {needed}")
    namespaces = [name for name in ["ipc", "mnt", "user", "uts"]
                  if run(f"readlink /proc/{pid}/ns/{name}") != run(f"readlink /proc/1/ns/{name}")]
    if namespaces != ["ipc", "mnt", "user", "uts"]:
        errors.append(f"the process has its own namespaces {namespaces} only")
    if errors:
        sys.exit("failed: " + "\n        ".join(errors))
    print(f"{len(options)} options of the unit are applied; the process has no capability, its own namespaces, and a read-only root")
    # The kernel enforces these through cgroups, which a container has only if its host delegates them.
    cgroups = run(f"cat /proc/{pid}/cgroup").splitlines()
    own = {name for line in cgroups if line.endswith("perennial.service") for name in line.split(":")[1].split(",")}
    unified = any(line.startswith("0::") for line in cgroups) and run("cat /sys/fs/cgroup/cgroup.controllers 2>/dev/null", check=False)
    enforced = [name for name in ["memory", "pids", "devices"] if name in own or name in (unified or "")]
    print(f"limits that this machine's cgroups enforce in a container: {', '.join(enforced) or 'none (of memory, pids, devices)'}; "
          f"open files: {re.search(r'Max open files +([0-9]+)', limits).group(1)}")
