//! The catalogue: what comes in from outside that nobody meant to be sent, numbered once and for all.
//!
//! Every entry that the endpoints of today can be hit by has a test; the others say what they wait for. The
//! table in `docs/hostile-input.md` is made from here and from the tests' comments.

use std::{collections::BTreeMap, fs, path::Path};

use crate::architecture::{rust_files, source};

/// What an entry without a test waits for.
const NO_WEBHOOKS: &str = "there are no webhooks yet";
const NO_HTTP2: &str = "HTTP/2 is not spoken";

/// The entries: number, what it is, and what it waits for, if it does.
const CATALOGUE: &[(u16, &str, Option<&str>)] = &[
    (1, "a body that is empty", None),
    (2, "JSON that is cut off, at any place", None),
    (
        3,
        "a second document, or anything else, behind the first",
        None,
    ),
    (4, "comments and trailing commas", None),
    (5, "a byte order mark; UTF-16, UTF-32", None),
    (
        6,
        "bytes that are not UTF-8, or an overlong form of it",
        None,
    ),
    (7, "half a surrogate pair", None),
    (8, "the character NUL", None),
    (9, "an array, a scalar or null instead of an object", None),
    (10, "a key that stands twice", None),
    (
        11,
        "keys with escapes, in other case, in look-alike letters",
        None,
    ),
    (
        12,
        "fields that nobody asked for: id, role, created_at",
        None,
    ),
    (13, "`__proto__` and its kin", None),
    (14, "nesting, 1 to 100,000 deep", None),
    (15, "a million elements", None),
    (16, "a million keys", None),
    (17, "a string of 64 KiB and a byte to 100 MiB", None),
    (18, "a body just below, at and above the limit", None),
    (19, "a compressed body that would not end", None),
    (20, "a body declared as something else, or not at all", None),
    (21, "null for each field", None),
    (22, "each field missing", None),
    (23, "each field as every other type", None),
    (24, "blanks for a text", None),
    (25, "amounts below zero, zero, minus zero", None),
    (26, "amounts such as 1e400 and 1E1000000000", None),
    (27, "amounts with more digits than a float has", None),
    (28, "amounts finer than their currency", None),
    (29, "NaN and Infinity", None),
    (30, "integers at and beyond 2^31, 2^53, 2^63, 2^64", None),
    (31, "integers as `1.0`, `1e2`, `007`", None),
    (
        32,
        "a currency in other case, unknown, not the plan's",
        None,
    ),
    (
        33,
        "instants without an offset, with +14:00, with a small z",
        None,
    ),
    (34, "more than nine digits of a second", None),
    (35, "30 February, second 60, 24:00", None),
    (36, "years 0, 2038, 9999, 294277; infinity", None),
    (37, "an end before its beginning", None),
    (
        38,
        "a month after 31 January, a year after 29 February",
        None,
    ),
    (
        39,
        "joiners, right-to-left overrides, look-alikes, a thousand accents",
        None,
    ),
    (
        40,
        "e-mail addresses that differ by case or composition",
        None,
    ),
    (
        41,
        "e-mail addresses quoted, international, too long, with line breaks",
        None,
    ),
    (42, "slugs such as `..`, `%2f`, 256 characters", None),
    (43, "ids that are none: nil, `%00`, `%252e`, 10 KiB", None),
    (44, "SQL, stacked and timed", None),
    (45, "the wildcards `%`, `_` and `\\`", None),
    (46, "HTML, `{{}}`, `${}`", None),
    (47, "what a spreadsheet takes for a formula", None),
    (48, "line breaks and terminal codes for the log", None),
    (
        49,
        "links such as javascript: and file:, and with a password",
        None,
    ),
    (50, "webhook addresses that lead inside", Some(NO_WEBHOOKS)),
    (51, "features as `a,,b`, and ten thousand of them", None),
    (52, "a status that is unknown, or not reachable", None),
    (
        53,
        "a client-id that is missing, doubled, huge or unknown",
        None,
    ),
    (54, "Authorization as Basic, doubled, of 64 KiB", None),
    (
        55,
        "x-forwarded-for that is made up, of 1,000 hops, garbage",
        None,
    ),
    (
        56,
        "TRACE, CONNECT, and headers that would change the method",
        None,
    ),
    (
        57,
        "two lengths, a length and chunks, chunks that overflow",
        None,
    ),
    (58, "bare line feeds, folded lines, 10,000 headers", None),
    (
        59,
        "a URL of 64 KiB, limits out of bounds, cursors altered or another's",
        None,
    ),
    (60, "doubled slashes, `;x`, a slash at the end", None),
    (61, "a body that is announced and never comes", None),
    (
        62,
        "peers that send or read slowly, vanish, or ask all at once",
        None,
    ),
    (
        63,
        "HTTP/2's rapid resets and endless headers",
        Some(NO_HTTP2),
    ),
    (64, "a Host that is missing or forged", None),
    (65, "bodies of GET and DELETE", None),
    (
        66,
        "an Accept that cannot be met, an If-Match that is stale",
        None,
    ),
    (
        67,
        "idempotency keys that are no keys, reused, another's, expired",
        None,
    ),
    (68, "tokens without a signature", None),
    (
        69,
        "tokens signed with a public key as if it were a secret",
        None,
    ),
    (
        70,
        "key ids that are paths, SQL or URLs; keys inside the token",
        None,
    ),
    (
        71,
        "tokens whose times are missing, strange or skewed",
        None,
    ),
    (
        72,
        "tokens of another issuer, audience, type or subject",
        None,
    ),
    (
        73,
        "tokens with flipped bits, more dots, doubled claims",
        None,
    ),
    (
        74,
        "a refresh or ID token as access token; another environment's key",
        None,
    ),
    (75, "signatures of zeros, or in another encoding", None),
    (76, "a token after logout, revocation, deletion", None),
    (
        77,
        "a refresh token that is reused, expired, another client's",
        None,
    ),
    (
        78,
        "a sign-in with another's e-mail; sign-ups at once",
        None,
    ),
    (
        79,
        "ids of what does not exist, is deleted, or is another tenant's",
        None,
    ),
    (
        80,
        "changes after deletion, and deletion of what is in use",
        None,
    ),
];

/// The tests by the entries that their comments say they cover.
fn tests() -> BTreeMap<u16, Vec<String>> {
    let mut found: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    let mut files: Vec<_> = ["src", "tests", "../domain/src"]
        .iter()
        .flat_map(|folder| rust_files(&source(folder)))
        .collect();
    files.sort();
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let mut covers: Vec<u16> = Vec::new();
        for line in text.lines().map(str::trim) {
            if let Some(numbers) = line.strip_prefix("/// Catalogue: ") {
                let numbers = numbers.trim_end_matches('.').split(", ");
                covers = numbers.map(|number| number.parse().unwrap()).collect();
            } else if let Some(name) = line
                .strip_prefix("async fn ")
                .or_else(|| line.strip_prefix("fn "))
            {
                let name = name.split('(').next().unwrap();
                for number in covers.drain(..) {
                    found
                        .entry(number)
                        .or_default()
                        .push(format!("{}::{name}", module(&path)));
                }
            }
        }
    }
    found
}

/// The module of a file, as the test runner names it.
fn module(path: &Path) -> String {
    let path = path
        .to_str()
        .unwrap()
        .trim_end_matches(".rs")
        .trim_end_matches("/mod");
    let inside = path
        .rsplit_once("/tests/it/")
        .or_else(|| path.rsplit_once("/src/"))
        .unwrap()
        .1;
    inside.replace('/', "::")
}

#[test]
fn every_entry_has_its_test() {
    let tests = tests();
    let numbers: Vec<u16> = CATALOGUE.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, (1..=80).collect::<Vec<u16>>());
    for number in tests.keys() {
        assert!(numbers.contains(number), "there is no entry {number}");
    }
    let mut page = String::from(
        "# Hostile input\n\n\
         What comes in that nobody meant to be sent, and the tests that send it. Whatever it is, it is refused with a 4xx \
         that the OpenAPI document lists, at once, or it is harmless and taken for what it is; nothing of the inside is \
         shown, and nothing has changed.\n\n\
         This page is made from `crates/server/tests/it/hostile/catalogue.rs` and the tests' comments by \
         `just reference`.\n\n| | what | tests |\n|---|---|---|\n",
    );
    for (number, what, waits) in CATALOGUE {
        let covered = tests.get(number).map(|names| {
            names
                .iter()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ")
        });
        assert!(
            covered.is_some() != waits.is_some(),
            "entry {number} ({what}) has no test, or has one and says that it waits"
        );
        let how = covered.unwrap_or_else(|| format!("*{}*", waits.unwrap()));
        page += &format!("| {number} | {} | {how} |\n", what.replace('|', "\\|"));
    }
    let path = source("../../docs/hostile-input.md");
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == page,
        "docs/hostile-input.md is not up to date: run `just reference`"
    );
}
