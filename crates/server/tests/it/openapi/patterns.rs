//! The patterns of the document accept exactly what the parsers accept.
//!
//! Thousands of generated texts are parsed, and checked against the document by a JavaScript engine, because the
//! patterns are regular expressions of JavaScript (ECMA-262).

use std::{
    io::Write,
    process::{Command, Stdio},
    str::FromStr,
};

use perennial_domain::{
    AsciiToken, BillingCycle, Currency, Decimal, Email, EmailPrefix, EventTypePattern, Href,
    MultiLine, PaymentId, PaymentStatus, PlanId, Rfc3339Timestamp, SessionId, SingleLine, Slug,
    SubscriptionId, SubscriptionStatus, UserId,
};
use proptest::{prelude::*, sample::select, strategy::ValueTree, test_runner::TestRunner};
use serde_json::{Value, json};

use super::document;

/// Texts that are generated per type.
const CASES: usize = 2_000;

/// Prints which of the values are valid, as a JSON list. Supports the keywords that strings have here.
const VALIDATOR: &str = r#"
const {document, schema, values} = JSON.parse(require("fs").readFileSync(0, "utf8"));
const resolve = (ref) => ref.slice(2).split("/").reduce((part, name) => part[name], document);
const compile = (schema) => {
  if (schema.$ref) return compile(resolve(schema.$ref));
  if (schema.oneOf) { const all = schema.oneOf.map(compile); return (value) => all.filter((one) => one(value)).length === 1; }
  const pattern = schema.pattern && new RegExp(schema.pattern, "u");
  return (value) => [...value].length <= (schema.maxLength ?? Infinity) && [...value].length >= (schema.minLength ?? 0)
    && (!pattern || pattern.test(value)) && (!schema.enum || schema.enum.includes(value));
};
console.log(JSON.stringify(values.map(compile(schema))));
"#;

/// Returns which texts are valid for a schema of the document.
fn validate(document: &Value, schema: &Value, values: &[String]) -> Vec<bool> {
    let mut node = Command::new("node")
        .args(["-e", VALIDATOR])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node; run `just setup`");
    let input = json!({"document": document, "schema": schema, "values": values}).to_string();
    let mut stdin = node.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Generates texts, the same in every run.
fn generate(strategy: impl Strategy<Value = String>, count: usize) -> Vec<String> {
    let mut runner = TestRunner::deterministic();
    (0..count)
        .map(|_| strategy.new_tree(&mut runner).unwrap().current())
        .collect()
}

/// Compares the schema at a JSON pointer with a parser. The texts must have enough of both kinds.
fn compare<T: FromStr>(pointer: &str, values: &[String]) {
    let document = document();
    let schema = document.pointer(pointer).unwrap();
    let valid = validate(&document, schema, values);
    let mut accepted = 0;
    for (value, valid) in values.iter().zip(valid) {
        let parsed = value.parse::<T>().is_ok();
        accepted += usize::from(parsed);
        assert_eq!(
            valid,
            parsed,
            "{pointer} says {valid}, {} says {parsed}: {value:?}",
            std::any::type_name::<T>()
        );
    }
    let rejected = values.len() - accepted;
    assert!(
        accepted > values.len() / 10 && rejected > values.len() / 10,
        "{pointer}: {accepted} accepted, {rejected} rejected"
    );
}

fn schema_pointer(name: &str) -> String {
    format!("/components/schemas/{name}")
}

/// Replaces, inserts or removes a character of some texts.
fn mutated(strategy: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let letters = "0169aAfFzZ_-.:+@/%#[]() \t\n\u{7f}\u{85}\u{a0}\u{200b}\u{2028}\u{feff}é한";
    let letters: Vec<char> = letters.chars().collect();
    let mutation = (0..6_u8, any::<prop::sample::Index>(), select(letters));
    (strategy, mutation).prop_map(|(text, (kind, index, letter))| {
        let mut letters: Vec<char> = text.chars().collect();
        let at = index.index(letters.len() + 1);
        match kind {
            0 => letters.insert(at, letter),
            1 if at < letters.len() => letters[at] = letter,
            2 if at < letters.len() => {
                letters.remove(at);
            }
            _ => {}
        }
        letters.into_iter().collect()
    })
}

fn date() -> impl Strategy<Value = String> {
    let year = prop_oneof![
        6 => 1970_u32..2110,
        2 => 1_960_u32..10_000,
        1 => select(vec![0, 1900, 1969, 2000, 2100, 2400, 9996, 9998])
    ];
    let month = prop_oneof![9 => 1_u32..=12, 1 => select(vec![0, 2, 13])];
    let day = prop_oneof![6 => 1_u32..=28, 4 => select(vec![0, 29, 30, 31, 32])];
    let hour = prop_oneof![15 => 0_u32..24, 1 => 24_u32..30];
    let minute = || prop_oneof![15 => 0_u32..60, 1 => 60_u32..70];
    let separator = select(vec!["T", "T", "T", "t", " "]);
    let fraction = prop_oneof![Just(String::new()), r"\.[0-9]{1,9}", r"\.[0-9]{0,10}"];
    let offset = prop_oneof![
        Just("Z".to_owned()),
        Just("z".to_owned()),
        "[+-](0[0-9]|1[0-9]|2[0-3]):[0-5][0-9]",
        "[+-][0-2][0-9]:?[0-6][0-9]"
    ];
    let time = (hour, minute(), minute(), fraction, offset);
    (year, month, day, separator, time).prop_map(
        |(year, month, day, separator, (hour, minute, second, fraction, offset))| {
            format!("{year:04}-{month:02}-{day:02}{separator}{hour:02}:{minute:02}:{second:02}{fraction}{offset}")
        },
    )
}

/// Whether the offset decides that a timestamp is in range, which a pattern cannot say.
fn is_at_the_limit(text: &str) -> bool {
    let has_offset = !text.ends_with(['Z', 'z']);
    has_offset && !("1970-01-02"..="9999-12-31").contains(&text)
}

#[test]
fn timestamp_pattern_matches_the_parser() {
    let mut dates = generate(mutated(date()), CASES);
    // Both ends, and every February 29 and 30 of two centuries.
    dates.extend(
        [
            "1970-01-01T00:00:00Z",
            "1969-12-31T23:59:59.999999999Z",
            "9999-12-30T21:59:59Z",
            "9999-12-30T21:59:59.999999999Z",
            "9999-12-30T22:00:00Z",
            "9999-12-30T22:00:00.000000999Z",
            "9999-12-30T22:00:00.000001Z",
            "9999-12-30T22:00:00.999999999Z",
            "9999-12-30T22:00:01Z",
            "9999-12-31T23:59:59Z",
            "9999-12-31T23:59:59.999999999Z",
            "9999-12-31T24:00:00Z",
            "9999-12-32T00:00:00Z",
            "9999-11-30T23:59:59Z",
            "9999-02-29T00:00:00Z",
        ]
        .map(str::to_owned),
    );
    for year in (1970..2170).chain([2200, 2300, 2400, 3000, 3200, 3600, 9600, 9900]) {
        for day in [28, 29, 30] {
            dates.push(format!("{year}-02-{day}T12:00:00-05:30"));
        }
    }
    dates.retain(|date| !is_at_the_limit(date));
    assert!(dates.len() > CASES);
    compare::<Rfc3339Timestamp>(&schema_pointer("Timestamp"), &dates);
}

#[test]
fn id_patterns_match_the_parsers() {
    let digits = prop_oneof![
        4 => "[0-9a-f]{32}",
        4 => "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
        1 => "[0-9a-f]{8}-[0-9a-f]{24}",
        1 => select(vec!["0".repeat(32), "00000000-0000-0000-0000-000000000000".to_owned()]),
        1 => r"\{[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\}",
    ];
    let prefix = select(vec![
        "", "", "usr_", "usr_", "plan_", "sub_", "pay_", "ses_", "USR_", "usr", "usr__",
    ]);
    let ids = mutated((prefix, digits).prop_map(|(prefix, digits)| format!("{prefix}{digits}")));
    let ids = generate(ids, CASES);
    compare::<UserId>(&schema_pointer("UserId"), &ids);
    compare::<PlanId>(&schema_pointer("PlanId"), &ids);
    compare::<SubscriptionId>(&schema_pointer("SubscriptionId"), &ids);
    compare::<PaymentId>(&schema_pointer("PaymentId"), &ids);
    compare::<SessionId>(&schema_pointer("SessionId"), &ids);
}

fn email() -> impl Strategy<Value = String> {
    let local = prop_oneof![
        "[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]{1,20}",
        "[a-z]{1,8}(\\.[a-z]{1,8}){0,3}",
        "[a-z]{60,68}",
    ];
    let domain = prop_oneof![
        4 => "[a-zA-Z0-9]{1,10}(\\.[a-zA-Z0-9]{1,10}){0,3}",
        2 => "[a-z0-9-]{1,8}(\\.[a-z0-9-]{1,8}){0,2}",
        1 => "[a-z]{60,66}\\.example",
        1 => "([a-z]{50}\\.){3}[a-z]{30,50}",
    ];
    (local, domain).prop_map(|(local, domain)| format!("{local}@{domain}"))
}

/// Of addresses in ASCII, the pattern accepts exactly the valid ones; of others, all valid ones.
#[test]
fn email_pattern_matches_the_parser() {
    let emails = generate(mutated(email()), CASES + CASES / 2);
    let (ascii, others): (Vec<String>, Vec<String>) =
        emails.into_iter().partition(|email| email.is_ascii());
    assert!(ascii.len() > CASES, "{}", ascii.len());
    compare::<Email>(&schema_pointer("Email"), &ascii);

    let international = prop_oneof![
        "[a-zéàüß]{1,8}@[a-zéàüß]{1,8}\\.example",
        "[а-я]{1,8}@[а-я]{1,8}\\.[а-я]{2,3}",
        "[가-힣]{1,6}@[가-힣a-z0-9-]{1,6}(\\.|。|．)[가-힣]{1,3}",
        "\\PC{1,6}@\\PC{1,6}",
    ];
    let mut international = generate(mutated(international), CASES);
    international.extend(others);
    let document = document();
    let schema = &document["components"]["schemas"]["Email"];
    let valid = validate(&document, schema, &international);
    let mut accepted = 0;
    for (email, valid) in international.iter().zip(valid) {
        let parsed = email.parse::<Email>().is_ok();
        accepted += usize::from(parsed);
        assert!(valid || !parsed, "the pattern rejects {email:?}");
    }
    assert!(accepted > CASES / 4, "{accepted}");
}

#[test]
fn url_pattern_matches_the_parser() {
    let host = prop_oneof![
        3 => "[a-zA-Z0-9._~!$&'()*+,;=%-]{1,12}",
        3 => "[a-z]{1,8}\\.example",
        2 => "\\[([0-9a-f]{0,4}:){2,8}[0-9a-f]{0,4}\\]",
        2 => "\\[::([0-9a-f]{1,4}:){0,6}[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,2}\\.[0-9]{1,2}\\]",
    ];
    let port = prop_oneof![
        Just(String::new()),
        ":[0-9]{0,6}",
        ":6553[0-9]",
        ":0{1,4}[0-9]{1,3}"
    ];
    let rest = prop_oneof![Just(String::new()), "[/?#][a-z/?#%0-9@:]{0,12}"];
    let scheme = select(vec![
        "http://", "https://", "HTTPS://", "https://", "ftp://", "https:/",
    ]);
    let urls = mutated(
        (scheme, host, port, rest)
            .prop_map(|(scheme, host, port, rest)| format!("{scheme}{host}{port}{rest}")),
    );
    compare::<Href>(&schema_pointer("Url"), &generate(urls, CASES));
}

#[test]
fn text_patterns_match_the_parsers() {
    let plan = "/components/schemas/CreatePlan/properties";
    let lines = "[ \u{a0}\u{2003}\u{3000}\u{feff}aé]{0,4}";
    let lines = mutated(prop_oneof![
        lines,
        "[a-z ]{0,20}",
        "[a-zé]{190,210}",
        Just(" ".to_owned())
    ]);
    let lines = generate(lines, CASES);
    compare::<SingleLine<200>>(&format!("{plan}/name"), &lines);
    let texts = prop_oneof![4 => "[a-z\\n\\r\\té]{0,20}", 1 => "[a-z\\x00-\\x1f]{0,9}"];
    let texts = generate(mutated(texts), CASES);
    compare::<MultiLine<5_000>>(&format!("{plan}/description"), &texts);
    let tokens = prop_oneof!["[!-~]{1,20}", "[!-~]{250,260}", "[ -~]{0,10}"];
    let tokens = generate(mutated(tokens), CASES);
    let refresh = "/components/schemas/RefreshToken/properties/refresh_token";
    compare::<AsciiToken<255>>(refresh, &tokens);
    let slugs = prop_oneof!["[A-Za-z0-9._-]{0,12}", "[a-z]{60,68}"];
    let slugs = generate(mutated(slugs), CASES);
    compare::<Slug>(&schema_pointer("Slug"), &slugs);
}

#[test]
fn amount_pattern_matches_the_parser() {
    let numbers = prop_oneof![
        "(0|[1-9][0-9]{0,9})(\\.[0-9]{1,4})?([eE][+-]?[0-9]{1,3})?",
        "-?0{0,2}(\\.0{1,3})?",
        "[0-9eE.+-]{0,8}"
    ];
    let mut numbers = generate(mutated(numbers), CASES);
    // A negative number is a decimal, but not an amount: it is out of range.
    numbers.retain(|number| {
        !number.starts_with('-') || number.chars().all(|c| !c.is_ascii_digit() || c == '0')
    });
    let string = "/components/schemas/Amount/oneOf/1";
    compare::<Decimal>(string, &numbers);
}

/// Generates these words in different cases, and mutated.
fn words(names: &[&str]) -> Vec<String> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let cased = (select(names), 0..3_u8).prop_map(|(name, case)| match case {
        0 => name.to_uppercase(),
        1 => name[..1].to_uppercase() + &name[1..],
        _ => name,
    });
    generate(mutated(cased), CASES)
}

#[test]
fn enum_patterns_match_the_parsers() {
    let codes = prop_oneof!["[A-Z]{3}", "[a-zA-Z]{3}", "(USD|eur|Jpy|KWD|clf|XAU)"];
    let mut codes = generate(mutated(codes), CASES);
    for first in 'A'..='Z' {
        for second in 'A'..='Z' {
            for third in 'a'..='z' {
                codes.push(format!("{first}{second}{third}"));
            }
        }
    }
    let rejected = codes
        .iter()
        .filter(|code| code.parse::<Currency>().is_err());
    let rejected: Vec<String> = rejected.take(400).cloned().collect();
    codes.retain(|code| code.parse::<Currency>().is_ok());
    codes.extend(rejected);
    compare::<Currency>(&schema_pointer("CurrencyCode"), &codes);

    // The schemas in requests and the filters of lists.
    let parameter = |path: &str, name: &str| {
        let document = document();
        let pointer = format!("/paths/{}/get/parameters", path.replace('/', "~1"));
        let parameters = document
            .pointer(&pointer)
            .unwrap()
            .as_array()
            .unwrap()
            .clone();
        let at = parameters.iter().position(|one| one["name"] == name);
        format!("{pointer}/{}/schema", at.unwrap())
    };
    let names = BillingCycle::ALL.map(BillingCycle::as_str);
    let aliases = BillingCycle::ALIASES.map(|(alias, _)| alias);
    let cycles = words(&[&names[..], &aliases].concat());
    compare::<BillingCycle>(&schema_pointer("BillingCycleInput"), &cycles);
    let filter = parameter("/subscription-plans", "billing_cycle");
    compare::<Listed<BillingCycle>>(&filter, &pairs(&cycles));
    let names = SubscriptionStatus::ALL.map(SubscriptionStatus::as_str);
    let aliases = SubscriptionStatus::ALIASES.map(|(alias, _)| alias);
    let statuses = words(&[&names[..], &aliases].concat());
    compare::<SubscriptionStatus>(&schema_pointer("SubscriptionStatusInput"), &statuses);
    let filter = parameter("/subscriptions", "status");
    compare::<Listed<SubscriptionStatus>>(&filter, &pairs(&statuses));
    let names = PaymentStatus::ALL.map(PaymentStatus::as_str);
    let aliases = PaymentStatus::ALIASES.map(|(alias, _)| alias);
    let statuses = words(&[&names[..], &aliases].concat());
    compare::<PaymentStatus>(&schema_pointer("PaymentStatusInput"), &statuses);
    let filter = parameter("/payments", "status");
    compare::<Listed<PaymentStatus>>(&filter, &pairs(&statuses));
    let names: Vec<&str> = EventTypePattern::all()
        .map(EventTypePattern::as_str)
        .collect();
    let types = words(&names);
    compare::<EventTypePattern>(&schema_pointer("EventTypePattern"), &types);
    let types: Vec<String> = types.iter().map(|text| text.to_lowercase()).collect();
    compare::<Listed<EventTypePattern>>(&parameter("/events", "types"), &pairs(&types));
    let filter = parameter("/payments", "currency");
    compare::<Listed<Currency>>(&filter, &pairs(&codes));
    let filter = parameter("/subscriptions", "billing_cycle");
    compare::<Listed<BillingCycle>>(&filter, &pairs(&cycles));
    let slugs = generate(mutated("[a-z._-]{0,6}(,[A-Z0-9._-]{1,6}){0,2}"), CASES);
    let filter = parameter("/subscriptions", "subscription_plan_slug");
    compare::<Listed<Slug>>(&filter, &slugs);
    let mut prefixes = generate(mutated("[a-zA-Z0-9@.+ é]{0,6}|[a-z]{250,258}"), CASES);
    // A pattern cannot limit bytes.
    prefixes.retain(|prefix| prefix.is_ascii() || prefix.len() < 254);
    let filter = parameter("/users", "email_prefix");
    compare::<EmailPrefix>(&filter, &prefixes);
    let external_ids = generate(mutated("[ a-z,]{0,12}"), CASES);
    let filter = parameter("/subscriptions", "external_subscription_id");
    compare::<Listed<SingleLine<255>>>(&filter, &external_ids);
}

/// A comma-separated filter, as `QueryParams::any_of` parses it.
struct Listed<T>(std::marker::PhantomData<T>);

impl<T: FromStr> FromStr for Listed<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        for item in text.split(',') {
            item.trim().parse::<T>()?;
        }
        Ok(Self(std::marker::PhantomData))
    }
}

/// Joins neighbors with a comma, sometimes with white space.
fn pairs(words: &[String]) -> Vec<String> {
    words
        .chunks(2)
        .enumerate()
        .map(|(number, pair)| pair.join([",", ", ", "\t,\u{a0}"][number % 3]))
        .collect()
}
