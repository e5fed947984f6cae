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
    TEST_DATABASE_URL="$(tools/postgres --fast)" cargo nextest run --workspace "$@"

# Check formatting, lints, wording and spelling
[group('develop')]
check:
    cargo fmt --all --check
    tools/wording
    typos
    cargo clippy --workspace --all-targets --locked -- -D warnings
    squawk migrations/*.sql
    python3 -c 'import ast, sys; [ast.parse(open(path).read(), path) for path in sys.argv[1:]]' \
        $(git ls-files '*.py') $(git grep -l '^#!/usr/bin/env python3$' -- bench tools)
    tools/exploit-mutations --check
    tools/security-mutations --check
    tools/guides --self-test
    tools/payment-guides --self-test
    tools/report-replay --self-test
    bench/instructions --self-test
    bench/run --self-test
    tools/site --self-test
    tools/terminal-picture --check

# Format the code
[group('develop')]
fmt:
    cargo fmt --all

# Generate the pages in docs/reference/ that come from the code
[group('develop')]
reference:
    cargo run --quiet -- config reference > docs/reference/configuration.md
    UPDATE_REFERENCE=1 cargo nextest run every_input_has_a_test command_reference_is_current event_reference_is_current guide_lists_every_token_theft_scenario

# Run the terminal session of the README, and render it as an animated picture
[group('develop')]
terminal-picture:
    cargo build --quiet
    tools/terminal-picture

# Accept the changed OpenAPI document, after reviewing the difference
[group('develop')]
accept-openapi:
    INSTA_UPDATE=always cargo nextest run document_matches_snapshot
    git diff --stat crates/server/tests/it/openapi/snapshots

# Check the sources of the console, and that console/dist is built from them (about a minute; installs npm packages)
[group('develop')]
console:
    tools/console

# Build the console's web app into console/dist, which `cargo build` embeds
[group('develop')]
console-build:
    cd console && npx --yes pnpm@10 install --frozen-lockfile && npx --yes pnpm@10 build

# Take pictures of the console on demo data and of the example product: all into target, those of the documentation into docs/pictures
[group('develop')]
screenshots *args:
    cargo build
    TEST_DATABASE_URL="$(tools/postgres)" tools/browser --only screenshots "$@"
    TEST_DATABASE_URL="$(tools/postgres)" tools/product --quick --screenshots "$@"

# Check the TypeScript SDK: sources, package, behavior against a new sandbox, tabs in Chromium (about five minutes, two with `--quick`; installs npm packages)
[group('develop')]
sdk *args:
    cargo build --quiet
    TEST_DATABASE_URL="$(tools/postgres)" tools/sdk "$@"

# Check the example product in Chromium, from the sign-up to the end of a subscription, with a sandbox and a stand-in of Stripe (about two minutes, one with `--quick`; installs npm packages)
[group('develop')]
product *args:
    cargo build --quiet
    TEST_DATABASE_URL="$(tools/postgres)" tools/product "$@"

# Run everything that continuous integration runs
[group('develop')]
ci:
    .ci/run

# Benchmark endpoints against raw PostgreSQL (about 30 minutes after the build)
[group('measure')]
bench *args:
    bench/run "$@"

# Measure session checks over 1, 1,000 and 100,000 sessions, and a cold start (about four minutes after the build)
[group('measure')]
sessions *args:
    bench/sessions "$@"

# Compare session checks with better-auth, Fastify and oidc-provider (about three minutes; installs npm packages)
[group('measure')]
peers *args:
    bench/peers/run "$@"

# Count the instructions of requests and compare them with bench/instructions.json (about two minutes after the build)
[group('measure')]
instructions *args:
    bench/instructions "$@"

# Compare response times with 2,000 and 10 million subscriptions; `--scale 0.001` takes a minute, `--scale 1` needs 78 GB
[group('measure')]
size *args:
    bench/size "$@"

# Send five times the sustainable load and check what is still served
[group('measure')]
overload *args:
    bench/overload "$@"

# Measure the delay from commit to readable at 1,000 events per second, and the cost of the event log for writes
[group('measure')]
event-log-bench *args:
    bench/event-log "$@"

# Measure webhook deliveries per second, and the delay from an event to its arrival (about two minutes after the build)
[group('measure')]
webhook-bench *args:
    bench/webhooks "$@"

# Compare deliveries beside 64 endpoints that never respond, 64 that send a byte per second and 64 that reset connections (about seven minutes)
[group('measure')]
webhook-isolation *args:
    bench/webhooks --isolation "$@"

# Compare deliveries beside a replay of this many events (1,000,000 take about ten minutes)
[group('measure')]
webhook-replay events="1000000" *args:
    bench/webhooks --replay "$@"

# Measure how fast signed payment notifications are accepted and applied at 200 per second, and the highest rate (about two minutes)
[group('measure')]
payment-bench *args:
    bench/payments "$@"

# Measure reports with this many subscriptions, and what they cost writes (about 45 minutes after the build)
[group('measure')]
report-bench subscriptions="10000000" *args:
    bench/reports --subscriptions "$@"

# Compare writes with and without the states that reports need (about ten minutes after the build of both)
[group('measure')]
report-write-bench *args:
    bench/reports --only writes "$@"

# Measure how soon the console shows its overview and finds a user, with a million subscriptions and two years of sums
console-bench *args:
    bench/reports --only console --subscriptions 1000000 "$@"

# Lint deployment files and examples
[group('verify')]
lint-deploy:
    tools/lint-deploy

# Check the Kubernetes base, the alerts and the dashboard against a running service and Prometheus (about 20 seconds)
[group('verify')]
observability *args:
    cargo build --quiet --features relay-nats
    TEST_DATABASE_URL="$(tools/postgres)" tools/observability "$@"

# Check the documentation, the API explorer and the console in Chromium, with axe, at three widths, in light and dark (about ten minutes)
[group('verify')]
browser *args:
    cargo build
    TEST_DATABASE_URL="$(tools/postgres)" tools/browser "$@"

# Audit the console with Lighthouse: performance, accessibility and best practices (about two minutes; installs npm packages)
[group('verify')]
lighthouse *args:
    cargo build
    TEST_DATABASE_URL="$(tools/postgres)" tools/browser --only lighthouse "$@"

# Export the documentation as static files to target/site, check every link, and open it in Chromium (about half a minute, ten seconds with `--quick`)
[group('verify')]
site *args:
    cargo build --quiet
    tools/site "$@"

# Build the images and run them with Podman: tutorials, SIGTERM under load, backup, compose.yaml (about two minutes; needs root)
[group('verify')]
container *args:
    tools/container --max-seconds 60 "$@"

# Boot systemd in a container, install the Debian package and upgrade it under load (about two minutes; needs root)
[group('verify')]
systemd *args:
    tools/systemd --max-seconds 60 "$@"

# Check licenses, sources and banned crates (installs cargo-deny on first use)
[group('verify')]
deny:
    cargo deny --version >/dev/null 2>&1 || cargo install --locked --debug cargo-deny
    # Dependencies for other platforms are checked too, and a build does not fetch them.
    cargo fetch --locked --quiet
    cargo deny --offline check bans licenses sources

# Check dependencies for known vulnerabilities and yanked versions; downloads the RustSec advisory database from GitHub
[group('verify')]
advisories:
    cargo deny --version >/dev/null 2>&1 || cargo install --locked --debug cargo-deny
    cargo deny check advisories

# Write the software bill of materials (CycloneDX JSON) and check it (installs cargo-cyclonedx on first use, about 90 seconds)
[group('verify')]
sbom *args:
    cargo cyclonedx --version >/dev/null 2>&1 || cargo install --locked --debug cargo-cyclonedx@0.5.9
    tools/sbom "$@"

# Build the release of HEAD into target/dist: binaries, archives, Debian packages, bill of materials, checksums (about 20 minutes)
[group('release')]
release *args: _release-tools
    tools/release "$@"

# Build the release of HEAD for x86-64 again in another folder, and compare every byte with target/dist (about 10 minutes)
[group('release')]
reproducible *args: _release-tools
    tools/release --verify "$@"

# Package a binary that is already built, by default the debug build, into target/local-dist
[group('release')]
package binary="target/debug/perennial" *args:
    tools/release --package "$@"

# Install, use, remove and purge a Debian package in minimal systems of Debian 11, 12 and 13 (needs root and mmdebstrap)
[group('release')]
install-check package *suites:
    tools/install-check "$@"

_release-tools:
    cargo cyclonedx --version >/dev/null 2>&1 || cargo install --locked --debug cargo-cyclonedx@0.5.9
    rustup target add --toolchain "$(sed -n 's/^RUST = "\(.*\)"/\1/p' tools/release.d/build.py)" x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu

# Check the supply chain and the deployment files of a release; needs network access
[group('verify')]
release-check: deny advisories sbom lint-deploy

# Attack the service: other tenants' records, forged tokens, HTTP smuggling; prints each attack and its outcome
[group('verify')]
attack:
    TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture attack::

# Judge the stand-ins of Stripe and Lemon Squeezy with the official SDKs and the Stripe CLI (about 40 seconds)
[group('verify')]
payment-stand-ins:
    node --test --test-concurrency=2 --test-timeout=120000 crates/server/tests/payment_providers/judges/*.test.mjs

# Run the commands of the quickstart with the built binary
[group('verify')]
five-minutes *args:
    cargo build --quiet
    tools/five-minutes "$@"

# Run the code of the guides for app developers, or of the named ones, with a new sandbox, the packed SDK and Chromium (about a minute; installs npm packages)
[group('verify')]
guides *args:
    cargo build --quiet
    TEST_DATABASE_URL="$(tools/postgres)" tools/guides "$@"

# Run examples/email with a new sandbox and an SMTP server, and check the mails (about 40 seconds; installs npm packages)
[group('verify')]
email-example *args:
    cargo build --quiet
    TEST_DATABASE_URL="$(tools/postgres)" tools/email-example "$@"

# Run the commands of the guides about payment accounts, or of the named ones, against stand-ins with the Stripe CLI (about 40 seconds)
[group('verify')]
payment-guides *args:
    cargo build --quiet
    tools/payment-guides "$@"

# Run the commands of "Sell with Stripe in ten minutes" against the stand-in, through a webhook and forwarded by the Stripe CLI
[group('verify')]
sell-with-stripe:
    cargo build --quiet
    tools/payment-guides sell-with-stripe
    tools/payment-guides sell-with-stripe --forward

# Run the commands of "Sell with Stripe in ten minutes" against Stripe itself; needs STRIPE_API_KEY=sk_test_… and a person who pays with a test card
[group('verify')]
verify-stripe:
    tools/payment-guides --check-key
    cargo build --quiet
    tools/payment-guides --stripe

# Test the service against its OpenAPI document with this many requests (50,000 take about 20 minutes)
[group('verify')]
contract cases="50000" *args:
    cargo build --quiet
    TEST_DATABASE_URL="$(tools/postgres)" tools/contract --cases "$@"

# Run all tests, or those whose name contains an argument, and compare their requests with the OpenAPI document
[group('verify')]
request-check *args:
    rm -rf target/requests
    RECORD_REQUESTS="$PWD/target/requests" just test "$@"
    tools/request-check target/requests

# Generate clients in TypeScript, Python and Rust from the OpenAPI document and compile them (about three minutes; needs Java and network access)
[group('verify')]
generators:
    cargo build --quiet
    tools/generators

# Revoke sessions and disable clients while notifications fail, and through a load balancer, this many times (200 take about 20 minutes)
[group('verify')]
revocation rounds="200":
    ROUNDS={{ rounds }} TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture authentication::revocation:: authentication::load_balancer::timing:: client_changes::disabled_client_is_rejected_

# Rotate the signing key this many times during refreshes and checks on two instances (50 take about a minute)
[group('verify')]
key-rotations rotations="50":
    ROTATIONS={{ rotations }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture key_rotations_under_load

# Restart two instances in turn under load, this many times (20 take about a minute)
[group('verify')]
restarts restarts="20":
    RESTARTS={{ restarts }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture graceful_shutdown::

# Kill `perennial listen` and cut its connections this many times while events are recorded; none may be lost
[group('verify')]
listen interruptions="200":
    LISTEN_INTERRUPTIONS={{ interruptions }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture interrupted_listener

# Compare response times that must not differ, with this many requests per kind (about three minutes)
[group('verify')]
timing samples="100000":
    SAMPLES={{ samples }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture authentication::timing::

# Replace the master key twice at this many requests per second, and kill `keys rewrap` each time (about two minutes)
[group('verify')]
rotate-master-key rate="500" sessions="200000":
    cargo build --release
    RATE={{ rate }} SESSIONS={{ sessions }} TEST_BINARY="$PWD/target/release/perennial" TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture master_key_rotation::master_key_rotation_fails

# Relay this many events to NATS while the relay is killed this many times, and NATS once (100,000 and 50 take about five minutes)
[group('verify')]
relay events="100000" kills="50":
    EVENTS={{ events }} KILLS={{ kills }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture relay::

# Run the tests of the API through PgBouncer in session mode
[group('verify')]
pgbouncer *args:
    tools/pgbouncer "$@"

# Run the tests of the API, the SQL and the migrations against PostgreSQL 16, 17 and 18 (about five minutes after the build)
[group('verify')]
postgres-versions *args:
    tools/postgres-versions "$@"

# Send this many CORS preflights with different origins, and check the memory (100,000 take about a minute)
[group('verify')]
memory preflights="100000":
    PREFLIGHTS={{ preflights }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture memory::

# Remove half of this many sessions during 1,000 checks per second (5,000,000 take about ten minutes)
[group('verify')]
housekeeping sessions="5000000":
    cargo build --release
    SESSIONS={{ sessions }} TEST_BINARY="$PWD/target/release/perennial" TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture authentication::session_cleanup::

# End this many sessions at once during session checks, on two instances (1,000,000 take about five minutes)
[group('verify')]
watermark sessions="1000000":
    cargo build --release
    SESSIONS={{ sessions }} TEST_BINARY="$PWD/target/release/perennial" TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture authentication::watermark_load::

# Read while a thousand connections send one byte per second, in five alternating rounds
[group('verify')]
slow-connections:
    cargo build --release
    ROUNDS=5 TEST_BINARY="$PWD/target/release/perennial" TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture slow_connections_do_not_delay_others

# Upgrade the newest release under load, while it keeps serving; needs a tag v*
[group('verify')]
[no-exit-message]
upgrade-drill:
    previous="$(tools/previous)" && PREVIOUS_BINARY="$previous" TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture upgrade::

# Import this many subscribers with examples/import-subscribers.py, and kill it in the middle
[group('verify')]
import subscribers="10000":
    cargo build --release
    SUBSCRIBERS={{ subscribers }} TEST_BINARY="$PWD/target/release/perennial" TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture examples::import_subscribers::killed_import

# Back up this many rows, restore them into another database, and verify every table
[group('verify')]
backup-drill rows="1000000":
    ROWS={{ rows }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture backup::

# Simulate random calls: ten years on the domain alone, and two years of this many subscribers with workers that are killed
[group('verify')]
simulate seeds="300":
    SEEDS=1100 cargo nextest run --no-capture -p perennial-domain ledger_does_not_depend_on_when_the_worker_runs
    SEEDS={{ seeds }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture lifecycle::simulation::

# Compare the roll-ups of this many random histories over HTTP with a replay of the event log (1,000 of 3 years take 17 minutes after the build)
[group('verify')]
reports histories="1000" years="3":
    REPORT_HISTORIES={{ histories }} REPORT_YEARS={{ years }} TEST_DATABASE_URL="$(tools/postgres --fast)" \
        cargo nextest run --no-capture reports::histories::

# Deliver this many random histories of a payment provider late, repeated, lost and out of order (100,000 take about a minute)
[group('verify')]
convergence cases="100000":
    CONVERGENCE_CASES={{ cases }} cargo nextest run --no-capture -p perennial-domain payment_account::tests::

# Let records follow this many random histories of a Stripe stand-in over HTTP, with two instances and killed workers
[group('verify')]
payment-sync cases="500":
    TEST_DATABASE_URL="$(tools/postgres --fast)" SYNC_CASES={{ cases }} cargo nextest run --no-capture -p perennial payment_accounts::sync::convergence

# Send this many payment notifications while the stand-in's API fails for this many seconds, and expect all to be applied soon after
[group('verify')]
payment-outage seconds="3600" notifications="3600":
    OUTAGE_SECONDS={{ seconds }} OUTAGE_NOTIFICATIONS={{ notifications }} TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture notifications_of_a_provider_outage

# Change one user's subscriptions concurrently in this many rounds, while workers add the changes to reports and are killed
[group('verify')]
report-races rounds="50":
    ROUNDS={{ rounds }} TEST_DATABASE_URL="$(tools/postgres --fast)" cargo nextest run --no-capture reports::races::

# Import this many subscriptions and invoices from stand-ins of Stripe and Lemon Squeezy, and kill the import in between
[group('verify')]
payment-import subscriptions="20000" invoices="100000":
    cargo build --release
    IMPORT_SUBSCRIPTIONS={{ subscriptions }} IMPORT_INVOICES={{ invoices }} TEST_BINARY="$PWD/target/release/perennial" \
        TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture payment_accounts::import::killed_import

# Break the rules of billing and of payment accounts one by one and check that the tests notice (about 15 minutes)
[group('verify')]
mutations *args:
    tools/mutations "$@"

# Break each billing rule in the running service and check that its HTTP tests fail
[group('verify')]
exploit-mutations *args:
    tools/exploit-mutations "$@"

# Remove each security fix in the running service and check that its regression tests fail (about ten minutes)
[group('verify')]
security-mutations *args:
    tools/security-mutations "$@"

# Run each race between requests and workers this many times, on two instances
[group('verify')]
races rounds="50":
    ROUNDS={{ rounds }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture lifecycle::races::

# Kill one of five workers every second for this many seconds, and restart the database twice
[group('verify')]
killed-workers seconds="300":
    SECONDS_OF_KILLING={{ seconds }} TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture killed_workers_apply_each_transition_once

# Write, read and kill sequencers of the event log for this many seconds, and restart the database twice
[group('verify')]
event-log seconds="180":
    EVENT_LOG_SECONDS={{ seconds }} TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture readers_miss_no_event_while_sequencers_are_killed

# Kill one of five webhook workers each second for this many seconds, and expect every event at every endpoint
[group('verify')]
webhook-kills seconds="300":
    SECONDS={{ seconds }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture killed_workers_lose_no_event

# Kill the server this many times while it receives payment notifications, and expect every acknowledged one to be stored
[group('verify')]
payment-kills kills="100":
    KILLS={{ kills }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture killed_server_loses_no_acknowledged_notification

# Check that every statement uses an index with this many subscriptions
[group('verify')]
statements rows="10000000":
    ROWS={{ rows }} TEST_DATABASE_URL="$(tools/postgres)" cargo nextest run --no-capture statements_use_indexes

# Apply this many transitions that are due in one second, and measure reads meanwhile
[group('verify')]
due count="100000":
    cargo build --release
    DUE={{ count }} TEST_BINARY="$PWD/target/release/perennial" TEST_DATABASE_URL="$(tools/postgres)" \
        cargo nextest run --no-capture transitions_due_at_once_do_not_slow_reads
