"""Runs tests with and without the mutations that they must notice. tools/exploit-mutations and tools/security-mutations use it.

All mutations of a table are compiled together into a copy of the workspace, each behind a switch that the environment variable
MUTATION turns on. Each test must pass without its mutation and fail with it.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
DOMAIN = "crates/domain/src/"
TESTS = "crates/server/tests/it/"
# Many tests wait for clocks, timeouts and caches, so that two cores serve three tests.
PARALLEL_TESTS = 3
# Run without any other test, as in .config/nextest.toml.
EXCLUSIVE = re.compile(r"(^|::)(timing|saturation|load_balancer|master_key_rotation)::")
# In seconds. A test that hangs with its mutation fails.
TEST_TIMEOUT = 120
SWITCH = """
/// Returns whether the mutation `name` is on.
pub fn mutated(name: &str) -> bool {{
    static MUTATION: std::sync::LazyLock<Option<String>> =
        std::sync::LazyLock::new(|| std::env::var("MUTATION").ok());
    MUTATION.as_deref() == Some(name)
}}

/// Returns SQL with the mutation that is on.
pub fn mutated_sql(text: &'static str) -> &'static str {{
    let mut mutations = SQL_MUTATIONS.iter();
    match mutations.find(|(name, from, _)| mutated(name) && text.contains(from)) {{
        Some((_, from, to)) => text.replace(from, to).leak(),
        None => text,
    }}
}}

static SQL_MUTATIONS: &[(&str, &str, &str)] = &[{sql}];
"""


class Edit(NamedTuple):
    """Replaces a text in a file. ON in the replacement is true while the mutation is on."""

    file: str
    text: str
    replacement: str
    # The text is in a statement or migration, and replaced when that is used.
    is_sql: bool = False


class Mutation(NamedTuple):
    name: str
    tests: list[str]
    edits: list[Edit]


# What the switches need: they must also work in processes that tests start, and in SQL. Mutated migrations need template
# databases of their own.
SUPPORT = [
    Edit("crates/server/src/db/sql.rs", "        self.0\n", "        perennial_domain::mutated_sql(self.0)\n"),
    Edit(
        "crates/server/src/db/migrate.rs",
        "batch_execute(migration.text)",
        "batch_execute(perennial_domain::mutated_sql(migration.text))",
    ),
    Edit(
        TESTS + "harness/database.rs",
        "hash.update(migration.text)",
        "hash.update(perennial_domain::mutated_sql(migration.text))",
    ),
    Edit(TESTS + "harness/process.rs", '["PATH", "HOME"]', '["PATH", "HOME", "MUTATION"]'),
    Edit(
        TESTS + "harness/database.rs",
        'format!("perennial_template_{hash:016x}")',
        'format!("{}_{hash:016x}", std::env::var("TEST_TEMPLATE").unwrap())',
    ),
]


def tests_in(module):
    """Returns the full names of the tests in a module of crates/server/tests/it, such as `lifecycle::sales`."""
    file = ROOT / TESTS / (module.replace("::", "/") + ".rs")
    names = re.findall(r"#\[(?:tokio::)?test(?:\(.*\))?\]\n(?:async )?fn (\w+)", file.read_text())
    return [f"{module}::{name}" for name in names]


def read_workspace(to):
    """Returns the content of each file that git does not ignore, by its path in the copy."""
    files = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout
    return {
        to / name: (ROOT / name).read_bytes() for name in files.decode().split("\0") if name and (ROOT / name).is_file()
    }


def mutate(files, workspace, mutations):
    """Adds every mutation behind its switch. Returns the texts that do not occur exactly once."""
    problems, sql = [], []
    for name, edit in [("", edit) for edit in SUPPORT] + [(each.name, edit) for each in mutations for edit in each.edits]:
        file = workspace / edit.file
        source = files[file].decode() if file in files else ""
        if (count := source.count(edit.text)) != 1:
            problems.append(f"{name or 'support'}: its text occurs {count} times in {edit.file}: {edit.text.strip()}")
        if edit.is_sql:
            sql.append("\n    (" + ", ".join(f'r##"{text}"##' for text in (name, edit.text, edit.replacement)) + "),")
            continue
        crate = "crate" if edit.file.startswith(DOMAIN) else "perennial_domain"
        switch = f'{crate}::mutated("{name}")'
        files[file] = source.replace(edit.text, re.sub(r"\bON\b", switch, edit.replacement)).encode()
    files[workspace / DOMAIN / "lib.rs"] += SWITCH.format(sql="".join(sql)).encode()
    return problems


def write_workspace(files, workspace):
    """Writes the files that have changed, so that others are not compiled again, and deletes those that no longer exist."""
    marker = workspace / ".mutations"
    if workspace.is_dir() and any(workspace.iterdir()) and not marker.exists():
        sys.exit(f"{workspace} is not empty; choose a new folder.")
    files[marker] = b""
    for file, content in files.items():
        if not file.is_file() or file.read_bytes() != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    for file in [file for file in workspace.rglob("*") if file.is_file() and file not in files]:
        if "node_modules" not in file.parts:
            file.unlink()
    # The identity provider that tests run; git ignores its packages.
    packages = "crates/server/tests/provider/node_modules"
    if (ROOT / packages).is_dir() and not (workspace / packages).exists():
        shutil.copytree(ROOT / packages, workspace / packages, symlinks=True)


class Runner:
    """Compiles the workspace and runs its tests."""

    def __init__(self, workspace):
        self.workspace = workspace
        database = subprocess.run([ROOT / "tools/postgres"], capture_output=True, text=True, check=True).stdout.strip()
        self.template = f"perennial_mutations_{os.getpid()}"
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "mutations"
        self.environment = os.environ | {
            "CARGO_TARGET_DIR": str(target),
            "TEST_DATABASE_URL": database,
            "TEST_TEMPLATE": self.template,
            "INSTA_UPDATE": "no",
        }
        self.environment.pop("MUTATION", None)
        self.binaries = {}

    def compile(self, with_unit_tests):
        """Compiles the tests, and finds the binary that has each."""
        chosen = ["--bins", "--test", "it", *(["--lib"] if with_unit_tests else [])]
        command = ["cargo", "test", "--quiet", "--offline", "--package", "perennial", *chosen, "--no-run"]
        command += ["--message-format", "json-render-diagnostics"]
        compiled = subprocess.run(command, cwd=self.workspace, env=self.environment, stdout=subprocess.PIPE, text=True)
        if compiled.returncode:
            sys.exit("The mutations do not compile.")
        artifacts = [json.loads(line) for line in compiled.stdout.splitlines()]
        for artifact in artifacts:
            if artifact["reason"] == "compiler-artifact" and artifact["profile"]["test"] and artifact["executable"]:
                binary = artifact["executable"]
                listed = subprocess.run([binary, "--list", "--format", "terse"], capture_output=True, text=True, check=True)
                self.binaries |= {line.removesuffix(": test"): binary for line in listed.stdout.splitlines()}

    def passes(self, test, mutation=None):
        """Runs a test. Returns whether it passes, and its output."""
        environment = self.environment | ({"MUTATION": mutation} if mutation else {})
        process = subprocess.Popen(
            [self.binaries[test], "--exact", test, "--nocapture"],
            cwd=self.workspace / "crates/server",
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=TEST_TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return False, output + f"\npanicked at the limit of {TEST_TIMEOUT} seconds"
        count = re.search(r"(\d+) passed; (\d+) failed;", output.rsplit("test result:", 1)[-1])
        if not count or int(count[1]) + int(count[2]) != 1:
            raise RuntimeError(f"{test} did not run:\n{output}")
        return int(count[1]) == 1, output

    def run_all(self, runs):
        """Runs tests with mutations, several at a time. Yields each run with its result."""
        exclusive = [run for run in runs if EXCLUSIVE.search(run[0])]
        others = [run for run in runs if run not in exclusive]
        for batch, parallel in [(others, PARALLEL_TESTS), (exclusive, 1)]:
            with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
                yield from zip(batch, pool.map(lambda run: self.passes(*run), batch))

    def drop_templates(self):
        list_templates = f"SELECT datname FROM pg_database WHERE datname LIKE '{self.template}%'"
        psql = ["psql", "-w", "-qAtX", self.environment["TEST_DATABASE_URL"], "-c"]
        listed = subprocess.run([*psql, list_templates], capture_output=True, text=True)
        for name in listed.stdout.split():
            subprocess.run([*psql, f"DROP DATABASE {name}"])


def reason(output):
    """Returns the first panic of a failed test, in one line."""
    panic = re.search(r"panicked at ([^\n]*)\n?([^\n]*)", output)
    return " ".join(panic.groups())[:300] if panic else "no panic"


def run_and_print(runner, runs, show_reasons):
    """Prints a table. Returns whether every test passes without its mutation and fails with it."""
    word = {True: "passes", False: "fails"}
    tests = dict.fromkeys(test for test, _ in runs)
    print(f"Running {len(tests)} tests without a mutation, and {len(runs)} with one…", flush=True)
    without = {test: result for (test, _), result in runner.run_all([(test, None) for test in tests])}
    width = max(len(test) for test in tests)
    print(f"{'test':{width}}  without  with    mutation")
    missed = []
    for (test, mutation), (is_missed, output) in runner.run_all(runs):
        is_sound, sound_output = without[test]
        print(f"{test:{width}}  {word[is_sound]:7}  {word[is_missed]:6}  {mutation}", flush=True)
        if show_reasons and not is_missed:
            print(f"    {reason(output)}")
        if not is_sound:
            print(sound_output)
        if is_missed or not is_sound:
            missed.append(f"{test} ({mutation})")
    print(f"{len(tests)} tests, {len(runs)} runs with a mutation, {len(runs) - len(missed)} of them as expected")
    for run in missed:
        print(f"NOT SHOWN: {run}")
    return not missed


def main(description, mutations, listed):
    """Runs the mutations that the command line names. `listed` are the tests that must have one."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="run only mutations whose name or test contains NAME")
    parser.add_argument("--check", action="store_true", help="only check that the tests and the texts to replace exist")
    parser.add_argument("--reasons", action="store_true", help="print why each test fails with its mutation")
    parser.add_argument("--workspace", type=Path, help="keep the copy here, so that the next run compiles less")
    args = parser.parse_args()
    runs = [(test, each.name) for each in mutations for test in each.tests]
    chosen = [run for run in runs if not args.names or any(name in part for name in args.names for part in run)]
    if not chosen:
        parser.error("no mutation has such a name or test")
    if missing := sorted(set(listed) ^ {test for test, _ in runs}):
        print(f"These tests and the mutations do not match: {', '.join(missing)}", file=sys.stderr)
        return 1

    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        workspace = (args.workspace or Path(folder)).resolve()
        files = read_workspace(workspace)
        if problems := mutate(files, workspace, mutations):
            print("\n".join(problems), file=sys.stderr)
            return 1
        if args.check:
            tests = len({test for test, _ in runs})
            print(f"{tests} tests, {len(mutations)} mutations; every text to replace exists once")
            return 0
        write_workspace(files, workspace)
        runner = Runner(workspace)
        print("Compiling the mutations…", flush=True)
        runner.compile(with_unit_tests=any("::tests::" in test for test, _ in runs))
        if unknown := [test for test, _ in runs if test not in runner.binaries]:
            print(f"These tests do not exist: {', '.join(unknown)}", file=sys.stderr)
            return 1
        try:
            return 0 if run_and_print(runner, chosen, args.reasons) else 1
        finally:
            runner.drop_templates()
