//! Regular expressions (ECMA-262) of field types, without anchors.
//!
//! Each matches exactly the texts that the parser of its type accepts. Where a regular expression cannot say
//! all of it, it accepts more, and its documentation says what. A test compares the expressions with the
//! parsers.

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
    format!("[^{CONTROL}]*[^{CONTROL}{SPACE}][^{CONTROL}]*")
}

/// Matches one line in a comma-separated list, of any length: a counted repetition in a counted repetition is too large
/// for some engines.
pub fn listed_line() -> String {
    let visible = format!("[^,{CONTROL}{SPACE}]");
    format!("{visible}([^,{CONTROL}]*{visible})?")
}

/// Matches text with any number of lines. Tabs and line breaks are the only control characters.
pub fn multi_line() -> String {
    r"[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*".to_owned()
}

/// Matches these words in any case.
pub fn any_case<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let letter = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' => {
            let (upper, lower) = (letter.to_ascii_uppercase(), letter.to_ascii_lowercase());
            format!("[{upper}{lower}]")
        }
        other => other.to_string(),
    };
    let words = words.into_iter();
    let words: Vec<String> = words
        .map(|word| word.chars().map(letter).collect())
        .collect();
    format!("({})", words.join("|"))
}

/// Matches one to 100 items, separated by commas. White space around an item is ignored.
pub fn comma_separated(item: &str) -> String {
    let space = format!(r"[\t-\r\u0085{SPACE}]*");
    format!("(?!,)((^|,){space}({item}){space}){{1,100}}")
}

/// Matches an id with or without its prefix. The UUID may have hyphens; it cannot be nil.
pub fn id(prefix: &str) -> String {
    let hex = "[0-9A-Fa-f]";
    format!(
        "({prefix}_)?(?!0{{32}}|0{{8}}(-0{{4}}){{3}}-0{{12}})({hex}{{32}}|{hex}{{8}}(-{hex}{{4}}){{3}}-{hex}{{12}})"
    )
}

/// Matches an RFC 3339 timestamp from 1970-01-01T00:00:00Z to 9999-12-30T22:00:00Z. Within a day of both ends it
/// ignores the offset, which decides there.
pub fn timestamp() -> String {
    let (minute, fraction) = ("[0-5][0-9]", r"(\.[0-9]{1,9})?");
    let year = "(19[7-9][0-9]|[2-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])";
    let leap_year = "(19(7[26]|8[048]|9[26])|[2-9][0-9](0[48]|[2468][048]|[13579][26])|([2468][048]|[3579][26])00)";
    let day_before_december = "((0[13578]|10)-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))";
    let date = format!(
        "({year}-({day_before_december}|12-(0[1-9]|[12][0-9]|3[01]))|{leap_year}-02-29|9999-({day_before_december}|12-(0[1-9]|[12][0-9])))"
    );
    let time = format!("([01][0-9]|2[0-3]):{minute}:{minute}{fraction}");
    // Digits after the microseconds are dropped, so that they can be anything in the last one.
    let last_time = format!(
        r"(([01][0-9]|2[01]):{minute}:{minute}{fraction}|22:00:00(\.(0{{1,6}}|0{{6}}[0-9]{{1,3}}))?)"
    );
    let offset = format!("([Zz]|[+-]([01][0-9]|2[0-3]):{minute})");
    format!("({date}[Tt]{time}|9999-12-30[Tt]{last_time}){offset}")
}

/// Matches a decimal number in the syntax of JSON that is not negative. The largest amount and the number of
/// decimals depend on the currency.
pub fn decimal() -> String {
    r"(-0(\.0+)?|(0|[1-9][0-9]*)(\.[0-9]+)?)([eE][+-]?[0-9]+)?".to_owned()
}

/// Matches an email address. Outside ASCII it accepts more: lengths are limited in bytes, the characters
/// before the `@` by UTS #39, and those of a domain by IDNA, which also checks labels that start with `xn--`.
pub fn email() -> String {
    let local = format!(r#"[^{INVISIBLE}"(),.:;<>@\[\\\]]+"#);
    let international = format!(r"[^\u0000-\u007f{INVISIBLE}]");
    let label = format!(
        r"([A-Za-z0-9]([A-Za-z0-9-]{{0,61}}[A-Za-z0-9])?|[A-Za-z0-9-]*{international}[^\u0000-,.\/:-@\[-`\{{-\u007f{INVISIBLE}]*)"
    );
    format!(r"(?=[^@]{{1,64}}@){local}(\.{local})*@{label}(\.{label})*")
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

/// Matches an IPv6 address, by the grammar of RFC 3986.
fn ipv6_address() -> String {
    let group = "[0-9A-Fa-f]{1,4}";
    let octet = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    let last = format!(r"({group}:{group}|({octet}\.){{3}}{octet})");
    let mut forms = vec![format!("({group}:){{6}}{last}")];
    // The groups before and after the `::`, which stands for at least one.
    for after in (0..=5).rev() {
        let before = match 5 - after {
            0 => String::new(),
            1 => format!("({group})?"),
            most => format!("(({group}:){{0,{}}}{group})?", most - 1),
        };
        forms.push(format!("{before}::({group}:){{{after}}}{last}"));
    }
    forms.push(format!("(({group}:){{0,5}}{group})?::{group}"));
    forms.push(format!("(({group}:){{0,6}}{group})?::"));
    format!("({})", forms.join("|"))
}
