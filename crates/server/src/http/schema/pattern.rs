//! Regular expressions (ECMA-262) of field types, without anchors.
//!
//! Each matches exactly the texts that the parser of its type accepts. Where a regular expression cannot say
//! all of it, it accepts more, and its documentation says what. A test compares the expressions with the
//! parsers.

use std::collections::{BTreeMap, BTreeSet};

use perennial_domain::EventTypePattern;

/// Control characters, for use in brackets.
const CONTROL: &str = r"\u0000-\u001f\u007f-\u009f";
/// White space that is not a control character, for use in brackets.
const SPACE: &str = r" \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000";
/// Characters that an email address cannot have anywhere, for use in brackets.
const INVISIBLE: &str = r"\u0000-\u0020\u007f-\u00a0\u00ad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufe00-\ufe0f\ufeff";

/// Adds anchors, so that the whole text must match.
pub fn anchored(pattern: &str) -> String {
    format!("^{pattern}$")
}

/// Matches one line of text that is not blank.
pub fn single_line() -> String {
    format!(r"(?!((?!\ufeff)\s)*$)[^{CONTROL}]+")
}

/// Matches one line in a comma-separated list, of any length: a counted repetition in a counted repetition is too large
/// for some engines.
pub fn listed_line() -> String {
    format!("[^,{CONTROL}{SPACE}][^,{CONTROL}]*")
}

/// Matches text with any number of lines. Tabs and line breaks are the only control characters.
pub fn multi_line() -> String {
    r"[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*".to_owned()
}

/// Matches these words in any case. Words with the same beginning share it.
pub fn any_case<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    alternatives(&words.into_iter().collect())
}

/// Matches any of these words. An empty one makes the others optional.
fn alternatives(words: &BTreeSet<&str>) -> String {
    let mut rests: BTreeMap<char, BTreeSet<&str>> = BTreeMap::new();
    for word in words {
        let mut letters = word.chars();
        if let Some(first) = letters.next() {
            rests.entry(first).or_default().insert(letters.as_str());
        }
    }
    let branches = rests
        .iter()
        .map(|(first, rests)| either_case(&[*first]) + &alternatives(rests));
    let branches: Vec<String> = branches.collect();
    let joined = branches.join("|");
    if words.contains("") && !branches.is_empty() {
        format!("({joined})?")
    } else if branches.len() > 1 {
        format!("({joined})")
    } else {
        joined
    }
}

/// Matches one of these characters. A letter may be in upper or lower case.
fn either_case(characters: &[char]) -> String {
    let cases = characters.iter().flat_map(|one| {
        let (upper, lower) = (one.to_ascii_uppercase(), one.to_ascii_lowercase());
        [upper].into_iter().chain((upper != lower).then_some(lower))
    });
    let cases: String = cases.collect();
    if cases.len() > 1 {
        format!("[{cases}]")
    } else {
        cases
    }
}

/// Matches these words of three letters in any case. Words with the same first and third letter share one alternative.
pub fn any_case_of_three_letters(words: impl IntoIterator<Item = [char; 3]>) -> String {
    let mut seconds: BTreeMap<char, BTreeMap<char, Vec<char>>> = BTreeMap::new();
    for [first, second, third] in words {
        let by_third = seconds.entry(first).or_default();
        by_third.entry(third).or_default().push(second);
    }
    let groups = seconds.iter().map(|(first, by_third)| {
        let rests = by_third
            .iter()
            .map(|(third, seconds)| either_case(seconds) + &either_case(&[*third]));
        let rests: Vec<String> = rests.collect();
        format!("{}({})", either_case(&[*first]), rests.join("|"))
    });
    let groups: Vec<String> = groups.collect();
    format!("({})", groups.join("|"))
}

/// Matches one of the patterns of event types. Those of a record share its name.
pub fn event_types() -> String {
    let mut by_record: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for pattern in EventTypePattern::all() {
        if let Some((record, change)) = pattern.as_str().split_once('.') {
            by_record.entry(record).or_default().push(change);
        }
    }
    let records = by_record.iter().map(|(record, changes)| {
        let changes = changes.join("|").replace('*', r"\*");
        format!(r"{record}\.({changes})")
    });
    let records: Vec<String> = records.collect();
    format!("({})", records.join("|"))
}

/// Matches one to 100 items, separated by commas. White space around an item is ignored.
pub fn comma_separated(item: &str) -> String {
    // The white space of Unicode: ECMA-262 counts U+FEFF, but not U+0085.
    let space = r"((?!\ufeff)[\s\u0085])*";
    format!("(?!,)((^|,){space}({item}){space}){{1,100}}")
}

/// Matches an id with or without its prefix. The UUID may have hyphens; it cannot be nil.
pub fn id(prefix: &str) -> String {
    let hex = "[0-9A-Fa-f]";
    format!(
        "({prefix}_)?(?!0{{32}}|0{{8}}(-0{{4}}){{3}}-0{{12}})({hex}{{32}}|{hex}{{8}}(-{hex}{{4}}){{3}}-{hex}{{12}})"
    )
}

/// Matches an RFC 3339 timestamp from 1970 to 9999. Within a day of both ends it ignores the offset, which decides
/// there.
pub fn timestamp() -> String {
    let (minute, fraction) = ("[0-5][0-9]", r"(\.[0-9]{1,9})?");
    let year = "(19[7-9][0-9]|[2-9][0-9]{3})";
    let leap_year = "(19(7[26]|8[048]|9[26])|[2-9][0-9](0[48]|[2468][048]|[13579][26])|([2468][048]|[3579][26])00)";
    let day = "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))";
    let date = format!("({year}-{day}|{leap_year}-02-29)");
    let time = format!("([01][0-9]|2[0-3]):{minute}:{minute}{fraction}");
    let offset = format!("([Zz]|[+-]([01][0-9]|2[0-3]):{minute})");
    format!("{date}[Tt]{time}{offset}")
}

/// Matches a plan's slug.
pub fn slug() -> String {
    "[A-Za-z0-9][A-Za-z0-9._-]{0,63}".to_owned()
}

/// Matches the beginning of an email address, as a filter. Outside ASCII it accepts more: the length is limited in
/// bytes, and not every engine can exclude the invisible characters above U+FFFF.
pub fn email_prefix() -> String {
    format!("[^{INVISIBLE}]+")
}

/// Matches a decimal number in the syntax of JSON that is not negative. The largest amount and the number of
/// decimals depend on the currency.
pub fn decimal() -> String {
    r"(-0(\.0+)?|(0|[1-9][0-9]*)(\.[0-9]+)?)([eE][+-]?[0-9]+)?".to_owned()
}

/// Matches an email address. Outside ASCII it accepts more: lengths are limited in bytes, the characters
/// before the `@` by UTS #39, and those of a domain by IDNA, which also checks labels that start with `xn--`.
pub fn email() -> String {
    let local = r#"[^"(),.:;<>@\[\\\]]+"#;
    let label = r"([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?|[A-Za-z0-9-]*[^\u0000-\u007f][^\u0000-,.\/:-@\[-`\{-\u007f]*)";
    format!(r"(?=[^@]{{1,64}}@)(?=[^{INVISIBLE}]+$){local}(\.{local})*@{label}(\.{label})*")
}

/// Matches an `http` or `https` URL in RFC 3986 syntax without a user name.
pub fn url() -> String {
    let encoded = "%[0-9A-Fa-f]{2}";
    let host = format!("([A-Za-z0-9._~!$&'()*+,;=-]|{encoded})+");
    let rest = format!("([A-Za-z0-9._~:/?@!$&'()*+,;=-]|{encoded})*");
    let port =
        "0*([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";
    let ipv6 = ipv6_address();
    format!(r"[Hh][Tt][Tt][Pp][Ss]?://({host}|\[{ipv6}\])(:{port})?([/?]{rest})?(#{rest})?")
}

/// Matches an IPv6 address before a closing bracket, by the grammar of RFC 3986: eight groups, or fewer and one `::`. An
/// IPv4 address stands for the last two groups.
fn ipv6_address() -> String {
    let group = "[0-9A-Fa-f]{1,4}";
    let octet = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    let ipv4 = format!(r"({octet}(\.(?!\])|(?=\]))){{4}}");
    // At most seven groups, or five before an IPv4 address, whose first octet looks like a group.
    let limit = format!(r"(?!(:*{group}\b){{8}}|(:*{group}\b){{7}}\.)");
    format!(
        "(({group}:){{7}}{group}|({group}:){{6}}{ipv4}|{limit}({group}(:{group})*)?::(({group}:)*({group}|{ipv4}))?)"
    )
}
