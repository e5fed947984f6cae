# Recipes for developers. `just` lists them.

set shell := ["bash", "-euo", "pipefail", "-c"]
set positional-arguments

export PATH := justfile_directory() / ".tools/venv/bin:" + env("PATH")

_list:
    @just --list --unsorted

# Install everything that building, testing and checking need
[group('develop')]
setup:
    tools/setup

# Run a sandbox on http://127.0.0.1:8080 (needs only PostgreSQL on this machine)
[group('develop')]
dev *args:
    cargo run --quiet -- dev "$@"

# Run all tests, or those whose name contains an argument
[group('develop')]
test *args:
    TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --workspace "$@"

# Check formatting, lints, wording and spelling
[group('develop')]
check:
    cargo fmt --all --check
    tools/wording
    typos
    cargo clippy --workspace --all-targets --locked -- -D warnings
    squawk migrations/*.sql
    python3 -c 'import ast, sys; [ast.parse(open(path).read(), path) for path in sys.argv[1:]]' \
        bench/run bench/cases.py bench/overload bench/instructions bench/size bench/rows.py bench/harness.py bench/statements.py tools/contract tools/contract.d/hooks.py tools/five-minutes tools/mutations tools/wording tools/terminal-picture
    bench/instructions --self-test
    bench/run --self-test

# Format the code
[group('develop')]
fmt:
    cargo fmt --all

# Generate the pages in docs/reference/ that come from the code
[group('develop')]
reference:
    cargo run --quiet -- config reference > docs/reference/configuration.md
    UPDATE_REFERENCE=1 cargo nextest run every_input_has_a_test command_reference_is_current

# Render the terminal session in the README
[group('develop')]
terminal-picture:
    cargo build --quiet
    tools/terminal-picture

# Accept the changed OpenAPI document, after reviewing the difference
[group('develop')]
accept-openapi:
    INSTA_UPDATE=always cargo nextest run document_matches_snapshot
    git diff --stat crates/server/tests/it/snapshots

# Run everything that continuous integration runs
[group('develop')]
ci:
    .ci/run

# Benchmark endpoints against raw PostgreSQL (about 25 minutes after the build)
[group('measure')]
bench *args:
    bench/run "$@"

# Count the instructions of requests and compare them with bench/instructions.json (about two minutes after the build)
[group('measure')]
instructions *args:
    bench/instructions "$@"

# Compare response times with 2,000 and 10 million subscriptions; `--scale 0.001` takes a minute, `--scale 1` needs 54 GB
[group('measure')]
size *args:
    bench/size "$@"

# Send five times the sustainable load and check what is still served
[group('measure')]
overload *args:
    bench/overload "$@"

# Lint deployment files and examples
[group('verify')]
lint-deploy:
    tools/lint-deploy

# Check licenses, sources and banned crates (installs cargo-deny on first use)
[group('verify')]
deny:
    cargo deny --version >/dev/null 2>&1 || cargo install --locked --debug cargo-deny
    # Dependencies for other platforms are checked too, and a build does not fetch them.
    cargo fetch --locked --quiet
    cargo deny --offline check bans licenses sources

# Run the commands of the quickstart with the built binary
[group('verify')]
five-minutes *args:
    cargo build --quiet
    tools/five-minutes "$@"

# Test the service against its OpenAPI document with this many requests (50,000 take about 20 minutes)
[group('verify')]
contract cases="50000" *args:
    cargo build --quiet
    TEST_DATABASE_URL="$(tools/postgres)" tools/contract --cases "$@"

# Revoke sessions while notifications fail, this many times per fault (200 take about six minutes)
[group('verify')]
revocation rounds="200":
    ROUNDS={{ rounds }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture authentication::revocation::revoked

# Compare response times that must not differ, with this many requests per kind (about three minutes)
[group('verify')]
timing samples="100000":
    SAMPLES={{ samples }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture authentication::timing::

# Remove half of this many sessions during 1,000 checks per second (5,000,000 take about ten minutes)
[group('verify')]
housekeeping sessions="5000000":
    cargo build --release
    SESSIONS={{ sessions }} TEST_BINARY="$PWD/target/release/perennial" TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture authentication::session_cleanup::

# Upgrade databases of every earlier schema under load, and run the previous release meanwhile
[group('verify')]
upgrade-drill:
    PREVIOUS_BINARY="$(tools/previous)" TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture upgrade::

# Back up this many rows, restore them into another database, and verify every table
[group('verify')]
backup-drill rows="1000000":
    ROWS={{ rows }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture backup::

# Simulate two years of this many subscribers with random calls and workers that are killed; the auditor checks each ledger
[group('verify')]
simulate seeds="300":
    SEEDS={{ seeds }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture lifecycle::simulation::

# Break the billing rules one by one and check that the tests notice (about six minutes)
[group('verify')]
mutations *args:
    tools/mutations "$@"

# Run each race between requests and workers this many times, on two instances
[group('verify')]
races rounds="50":
    ROUNDS={{ rounds }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture lifecycle::races::

# Kill one of five workers every second for this many seconds, and restart the database twice
[group('verify')]
killed-workers seconds="300":
    SECONDS_OF_KILLING={{ seconds }} TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture killed_workers_apply_each_transition_once

# Apply this many transitions that are due in one second, and measure reads meanwhile
[group('verify')]
due count="100000":
    cargo build --release
    DUE={{ count }} TEST_BINARY="$PWD/target/release/perennial" TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture transitions_due_at_once_do_not_slow_reads
