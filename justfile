# Everything that a developer does here, by name. `just` lists it.

set shell := ["bash", "-euo", "pipefail", "-c"]

export PATH := justfile_directory() / ".tools/venv/bin:" + env("PATH")

_list:
    @just --list --unsorted

# Install what building, testing and checking need
setup:
    tools/setup

# Run a sandbox on http://127.0.0.1:8080 (needs nothing but PostgreSQL on this machine)
dev *args:
    cargo run --quiet -- dev {{ args }}

# Lint what deploys and the examples
lint-deploy:
    tools/lint-deploy

# Run all tests, or those whose name contains the arguments
test *args:
    TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --workspace {{ args }}

# Formatting, lints
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings
    squawk migrations/*.sql
    python3 -c 'import ast, sys; [ast.parse(open(path).read(), path) for path in sys.argv[1:]]' \
        bench/run bench/cases.py bench/overload bench/instructions bench/size bench/rows.py bench/stage.py tools/contract tools/contract.d/hooks.py tools/five-minutes
    bench/instructions --self-test

# Licences, sources and banned crates (installs cargo-deny on first use)
deny:
    cargo deny --version >/dev/null 2>&1 || cargo install --locked --debug cargo-deny
    # What other platforms need is listed too, and not there after a build.
    cargo fetch --locked --quiet
    cargo deny --offline check bans licenses sources

# Measure endpoints beside the bare engine, in one run (takes about 25 minutes after the build)
bench *args:
    bench/run {{ args }}

# Count the instructions of requests, and hold them against bench/instructions.json (a minute or two after the build)
instructions *args:
    bench/instructions {{ args }}

# Ask every endpoint beside 10 million subscriptions and beside 2,000; `--scale 0.001` takes a minute, `--scale 1` 54 GB
size *args:
    bench/size {{ args }}

# Hold the service against its OpenAPI document with this many requests (50,000 take about 20 minutes)
contract cases="50000" *args:
    cargo build --quiet
    TEST_DATABASE_URL="$(tools/postgres)" tools/contract --cases {{ cases }} {{ args }}

# End sessions while the feed is cut, frozen and swallowed, this many times each (200 take about six minutes)
revocation rounds="200":
    ROUNDS={{ rounds }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture authentication::feed::ended

# Compare the times of requests whose answers must not differ, over this many of each kind (takes about three minutes)
timing samples="100000":
    SAMPLES={{ samples }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture time_does_not_tell

# Remove the dead half of so many sessions while a thousand checks a second go on (5,000,000 take about ten minutes)
housekeeping sessions="5000000":
    cargo build --release
    SESSIONS={{ sessions }} TEST_BINARY="$PWD/target/release/perennial" TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture half_of_them_dead

# Live through docs/quickstart.md, from the built binary and nothing else
five-minutes *args:
    cargo build --quiet
    tools/five-minutes {{ args }}

# Bring databases of every earlier schema to the newest while they are in use, and let the release before go on meanwhile
upgrade-drill:
    PREVIOUS_BINARY="$(tools/previous)" TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture upgrade::

# Back up so many rows, restore them elsewhere, and hold every table against the backup
backup-drill rows="1000000":
    ROWS={{ rows }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture a_backup_is_restored

# Ten years of whatever this many subscribers do, with workers that come, go and are killed (1,000 take about ten minutes)
simulate seeds="1000":
    SEEDS={{ seeds }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture ten_years_of_whatever

# Kill one of five workers every second for this long, and restart the database twice
killed-workers seconds="300":
    SECONDS_OF_KILLING={{ seconds }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture workers_killed_every_second

# So many subscriptions are due in one second: how fast one worker moves them, and what reads notice of it
due count="100000":
    cargo build --release
    DUE={{ count }} TEST_BINARY="$PWD/target/release/perennial" TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture all_due_in_one_second

# Send five times more than can be done, and see what is still done
overload *args:
    bench/overload {{ args }}

# Write docs/configuration.md and docs/hostile-input.md from the code
reference:
    cargo run --quiet -- config reference > docs/configuration.md
    UPDATE_REFERENCE=1 cargo nextest run every_entry_has_its_test the_commands_are_as_documented

# Accept the OpenAPI document as it now is, after reading the difference
accept-openapi:
    INSTA_UPDATE=always cargo nextest run the_document_is_as_reviewed
    git diff --stat crates/server/tests/it/snapshots

# Format the code
fmt:
    cargo fmt --all

# What continuous integration runs
ci:
    .ci/run
