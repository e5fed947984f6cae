# Recipes for every day. Slow proofs and measurements are in tools/proofs.toml; `just prove` runs them.

set shell := ["bash", "-euo", "pipefail", "-c"]
set positional-arguments

# `just` and `cargo` may be called by their full path.
export PATH := justfile_directory() / ".tools/venv/bin:" + env("PATH") + ":" + env("CARGO_HOME", home_directory() / ".cargo") / "bin"
just := quote(just_executable()) + " --justfile " + quote(justfile())

_list:
    @{{ just }} --list --unsorted --list-heading $'`just prove --list` has the slow proofs and measurements. Recipes:\n'

# Install what building, testing and checking need
[group('every day')]
setup:
    tools/setup

# Run a sandbox on http://127.0.0.1:8080
[group('every day')]
dev *args:
    cargo run --quiet --bin perennial -- dev "$@"

# Run all tests, or those with this text in their name
[group('every day')]
test *args:
    TEST_DATABASE_URL="$(tools/postgres --fast)" cargo nextest run --workspace "$@"

# Check format, lints, wording and spelling
[group('every day')]
check:
    cargo fmt --all --check
    tools/wording
    typos
    cargo clippy --workspace --all-targets --locked -- -D warnings
    squawk migrations/*.sql
    python3 -c 'import ast, sys; [ast.parse(open(path).read(), path) for path in sys.argv[1:]]' \
        $(git ls-files '*.py') $(git grep -l '^#!/usr/bin/env python3$' -- bench e2e tools)
    tools/prove --check
    tools/payment-guides --self-test
    tools/report-replay --self-test
    bench/instructions --self-test
    bench/run --self-test
    e2e/run --self-test
    tools/terminal-picture --check

# Format the code
[group('every day')]
fmt:
    cargo fmt --all

# Run everything that continuous integration runs
[group('every day')]
ci:
    .ci/run

# Run a proof: `just prove NAME`
[group('every day')]
[no-exit-message]
prove *args:
    @tools/prove "$@"

# Review the difference, above all of openapi.json.
# Generate openapi.json and docs/reference from the code
[group('generate')]
reference:
    cargo run --quiet --bin perennial -- config reference > docs/reference/configuration.md
    UPDATE_REFERENCE=1 cargo nextest run every_input_has_a_test command_reference_is_current event_reference_is_current guide_lists_every_token_theft_scenario openapi_document_is_current

# Build console/dist, which `cargo build` embeds
[group('generate')]
console-build:
    cd console && npx --yes pnpm@10 install --frozen-lockfile && npx --yes pnpm@10 build

# Take the pictures of the documentation and the console
[group('generate')]
screenshots *args:
    cargo build --quiet
    e2e/run screenshots "$@"

# Record the terminal session of the README
[group('generate')]
terminal-picture:
    cargo build --quiet
    tools/terminal-picture

# Compare the tests' requests with the OpenAPI document
[group('check a part')]
request-check *args:
    rm -rf target/requests
    RECORD_REQUESTS="$PWD/target/requests" {{ just }} test "$@"
    tools/request-check target/requests

# Send random requests (50,000) by the OpenAPI document
[group('check a part')]
[no-exit-message]
contract *args:
    @tools/prove contract "$@"

# About a minute.
# Check the console's sources, and that dist is current
[group('check a part')]
console:
    tools/console

# With names only these, such as `just e2e docs console`. `--quick` checks less.
# Check examples, docs, console and SDK in Chromium
[group('check a part')]
e2e *args:
    cargo build --quiet
    e2e/run "$@"

# Compare endpoints with raw PostgreSQL (30 minutes)
[group('check a part')]
[no-exit-message]
bench *args:
    @tools/prove bench "$@"

# Check licenses, sources and banned crates
[group('check a part')]
deny: _cargo-deny
    # Dependencies for other platforms are checked too, and a build does not fetch them.
    cargo fetch --locked --quiet
    cargo deny --offline check bans licenses sources

# By default the debug build.
# Package a built binary into target/local-dist
[group('release')]
package *args:
    tools/release --package "${@:-target/debug/perennial}"

# Binaries, archives, Debian packages, bill of materials, checksums: about 20 minutes. With `--verify`, builds for x86-64 again in another
# folder, and compares every byte with target/dist: about ten minutes.
# Build the release of HEAD into target/dist
[group('release')]
release *args: _cargo-cyclonedx
    rustup target add --toolchain "$(sed -n 's/^RUST = "\(.*\)"/\1/p' tools/release.d/build.py)" x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
    tools/release "$@"

# Downloads the RustSec advisory database from GitHub.
# Check dependencies, advisories, deployment files
[group('release')]
release-check: deny _cargo-cyclonedx
    cargo deny check advisories
    tools/sbom
    tools/lint-deploy

_cargo-deny:
    cargo deny --version >/dev/null 2>&1 || CARGO_PROFILE_DEV_DEBUG=0 cargo install --locked --debug cargo-deny

_cargo-cyclonedx:
    cargo cyclonedx --version >/dev/null 2>&1 || CARGO_PROFILE_DEV_DEBUG=0 cargo install --locked --debug cargo-cyclonedx@0.5.9

# For .ci/run.
[private]
lint-deploy:
    tools/lint-deploy

# For .ci/run.
[private]
payment-stand-ins:
    tools/prove --no-record payment-stand-ins
