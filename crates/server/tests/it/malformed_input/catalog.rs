//! The catalog of malformed inputs. Each has a fixed number and a test, or the reason why it has none.
//!
//! `docs/reference/malformed-input.md` is generated from here and from the tests' comments.

use std::{collections::BTreeMap, fs, path::Path};

use crate::{
    architecture::{crate_path, rust_files},
    harness::generated_file,
};

/// Why an input has no test.
const NO_WEBHOOKS: &str = "there are no webhooks yet";
const NO_HTTP2: &str = "HTTP/2 is not supported";

/// Number, description, and why there is no test, if there is none.
const CATALOG: &[(u16, &str, Option<&str>)] = &[
    (1, "empty body", None),
    (2, "JSON truncated at any position", None),
    (3, "a second document or other text after the JSON", None),
    (4, "comments and trailing commas", None),
    (5, "byte order mark, UTF-16, UTF-32", None),
    (6, "invalid or overlong UTF-8", None),
    (7, "lone surrogates", None),
    (8, "NUL characters", None),
    (9, "an array, a scalar or null instead of an object", None),
    (10, "duplicate keys", None),
    (
        11,
        "keys with escapes, in other case, with lookalike letters",
        None,
    ),
    (12, "unexpected fields: id, role, created_at", None),
    (13, "`__proto__` and similar keys", None),
    (14, "nesting from 1 to 100,000 levels", None),
    (15, "a million elements", None),
    (16, "a million keys", None),
    (17, "strings from 64 KiB + 1 byte to 100 MiB", None),
    (18, "bodies just below, at and above the size limit", None),
    (19, "decompression bombs", None),
    (20, "wrong or missing content type", None),
    (21, "null for each field", None),
    (22, "each field missing", None),
    (23, "each field with every other type", None),
    (24, "blank text", None),
    (25, "negative, zero and negative zero amounts", None),
    (26, "amounts such as 1e400 and 1E1000000000", None),
    (
        27,
        "amounts with more digits than a float can represent",
        None,
    ),
    (28, "amounts with more decimals than the currency", None),
    (29, "NaN and Infinity", None),
    (30, "integers at and above 2^31, 2^53, 2^63, 2^64", None),
    (31, "integers as `1.0`, `1e2`, `007`", None),
    (
        32,
        "currencies in other case, unknown, or not the plan's",
        None,
    ),
    (
        33,
        "timestamps without offset, with +14:00, with a lowercase z",
        None,
    ),
    (34, "more than nine fractional digits of a second", None),
    (35, "February 30, second 60, 24:00", None),
    (36, "years 0, 2038, 9999, 294277; infinity", None),
    (37, "an end before the start", None),
    (
        38,
        "one month after January 31, one year after February 29",
        None,
    ),
    (
        39,
        "joiners, right-to-left overrides, lookalikes, 1,000 combining accents",
        None,
    ),
    (
        40,
        "email addresses that differ in case or composition",
        None,
    ),
    (
        41,
        "quoted, international, overlong and multi-line email addresses",
        None,
    ),
    (42, "slugs such as `..`, `%2f`, 256 characters", None),
    (43, "invalid ids: nil, `%00`, `%252e`, 10 KiB", None),
    (44, "SQL injection, stacked and timed", None),
    (45, "wildcards: `%`, `_`, `\\`", None),
    (46, "HTML and template syntax: `{{}}`, `${}`", None),
    (47, "spreadsheet formulas", None),
    (
        48,
        "line breaks and terminal escapes in logged values",
        None,
    ),
    (49, "links with javascript:, file: or a password", None),
    (50, "webhook URLs of internal addresses", Some(NO_WEBHOOKS)),
    (51, "features as `a,,b`, and 10,000 features", None),
    (52, "unknown or unreachable status", None),
    (
        53,
        "missing, repeated, oversized or unknown client-id",
        None,
    ),
    (54, "Authorization as Basic, repeated, or of 64 KiB", None),
    (55, "forged, overlong or invalid x-forwarded-for", None),
    (56, "TRACE, CONNECT and method override headers", None),
    (
        57,
        "conflicting lengths, length and chunks, chunk size overflow",
        None,
    ),
    (58, "bare line feeds, folded headers, 10,000 headers", None),
    (
        59,
        "URLs of 64 KiB, limits out of range, altered or foreign cursors",
        None,
    ),
    (60, "double slashes, `;x`, trailing slash", None),
    (61, "announced but missing body", None),
    (
        62,
        "peers that are slow, disappear or pipeline requests",
        None,
    ),
    (
        63,
        "HTTP/2's rapid resets and endless headers",
        Some(NO_HTTP2),
    ),
    (64, "missing or forged Host", None),
    (65, "bodies of GET and DELETE requests", None),
    (66, "unsatisfiable Accept, stale If-Match", None),
    (
        67,
        "invalid, reused, foreign or expired idempotency keys",
        None,
    ),
    (68, "tokens without a signature", None),
    (69, "tokens signed with a public key as HMAC secret", None),
    (
        70,
        "key ids with paths, SQL or URLs; keys embedded in the token",
        None,
    ),
    (71, "tokens with missing, invalid or skewed times", None),
    (
        72,
        "tokens with another issuer, audience, type or subject",
        None,
    ),
    (
        73,
        "tokens with flipped bits, more dots, duplicate claims",
        None,
    ),
    (
        74,
        "refresh or ID token as access token; key of another environment",
        None,
    ),
    (75, "zero signatures, signatures in another encoding", None),
    (76, "tokens after logout, revocation and deletion", None),
    (77, "reused, expired or foreign refresh tokens", None),
    (
        78,
        "sign-in with another user's email, concurrent sign-ups",
        None,
    ),
    (
        79,
        "ids of missing, deleted or other tenants' records",
        None,
    ),
    (
        80,
        "updates after deletion, deletion of records in use",
        None,
    ),
];

/// Returns the tests of each input, from the tests' comments.
fn tests_by_input() -> BTreeMap<u16, Vec<String>> {
    let mut tests: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    let mut files: Vec<_> = ["src", "tests", "../domain/src"]
        .iter()
        .flat_map(|folder| rust_files(&crate_path(folder)))
        .collect();
    files.sort();
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let mut module = module(&path);
        let mut covers: Vec<u16> = Vec::new();
        for line in text.lines().map(str::trim) {
            let nested = line
                .strip_prefix("mod ")
                .and_then(|rest| rest.strip_suffix(" {"));
            if let Some(nested) = nested {
                module = format!("{module}::{nested}");
            } else if let Some(numbers) = line.strip_prefix("/// Malformed input: ") {
                let numbers = numbers.trim_end_matches('.').split(", ");
                covers = numbers.map(|number| number.parse().unwrap()).collect();
            } else if let Some(name) = line
                .strip_prefix("async fn ")
                .or_else(|| line.strip_prefix("fn "))
            {
                let name = name.split('(').next().unwrap();
                for number in covers.drain(..) {
                    let tests = tests.entry(number).or_default();
                    tests.push(format!("{module}::{name}"));
                }
            }
        }
    }
    tests
}

/// Returns the module path of a file.
fn module(path: &Path) -> String {
    let path = path
        .to_str()
        .unwrap()
        .trim_end_matches(".rs")
        .trim_end_matches("/mod");
    let relative = path
        .rsplit_once("/tests/it/")
        .or_else(|| path.rsplit_once("/src/"))
        .unwrap()
        .1;
    relative.replace('/', "::")
}

#[test]
fn every_input_has_a_test() {
    let tests = tests_by_input();
    let numbers: Vec<u16> = CATALOG.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, (1..=80).collect::<Vec<u16>>());
    for number in tests.keys() {
        assert!(numbers.contains(number), "there is no input {number}");
    }
    let mut page = String::from(
        "# Malformed input\n\n\
         The malformed and malicious inputs that the tests send. Each is rejected within a second with a 4xx status that the \
         OpenAPI document lists, or is harmless and accepted. No response reveals internals, and no data changes.\n\n\
         This page is generated from `crates/server/tests/it/malformed_input/catalog.rs` and the comments of the tests by \
         `just reference`.\n\n| | Input | Tests |\n|---|---|---|\n",
    );
    for (number, description, untested) in CATALOG {
        let covered = tests.get(number).map(|names| {
            names
                .iter()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ")
        });
        assert!(
            covered.is_some() != untested.is_some(),
            "input {number} ({description}) needs a test or a reason, not both"
        );
        let tests = covered.unwrap_or_else(|| format!("*{}*", untested.unwrap()));
        page += &format!(
            "| {number} | {} | {tests} |\n",
            description.replace('|', "\\|")
        );
    }
    generated_file::assert_current("docs/reference/malformed-input.md", &page);
}
