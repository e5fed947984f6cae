//! Typo suggestions ("did you mean …?") and quoting of input in messages.

/// Returns the candidate that `word` is most likely a typo of, if there is exactly one. The comparison
/// ignores case.
pub fn suggest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    suggest_by(word, candidates.into_iter().map(|name| (name, name)))
}

/// Like [`suggest`], for pairs of a name to compare with and the value to suggest for it.
///
/// A suggestion must not mislead. A word with another first letter is none: `inactive` is not a typo of
/// `active`, nor `biweekly` of `weekly`. Two edits are the most, so `created_at` is no typo of
/// `updated_at`. There is no suggestion if two values are equally close.
pub(crate) fn suggest_by<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Option<&'a str> {
    // Bounds the cost of comparing hostile input.
    const MAX_BYTES: usize = 64;
    const MAX_EDITS: usize = 2;
    if word.len() > MAX_BYTES {
        return None;
    }
    let word = word.to_lowercase();
    let mut closest: Option<(usize, &str)> = None;
    let mut is_ambiguous = false;
    for (name, value) in candidates {
        let name = name.to_lowercase();
        let distance = strsim::osa_distance(&word, &name);
        let is_close = distance <= (name.chars().count() / 3).clamp(1, MAX_EDITS);
        if !is_close || !has_same_start(&word, &name) {
            continue;
        }
        match closest {
            Some((best, _)) if distance > best => {}
            Some((best, other)) if distance == best => is_ambiguous |= other != value,
            _ => (closest, is_ambiguous) = (Some((distance, value)), false),
        }
    }
    closest.filter(|_| !is_ambiguous).map(|(_, value)| value)
}

/// Returns whether both words start with the same letter, or with the same two letters swapped.
fn has_same_start(word: &str, name: &str) -> bool {
    let start = |text: &str| (text.chars().next(), text.chars().nth(1));
    let ((first, second), (expected, next)) = (start(word), start(name));
    first == expected || (first, second) == (next, expected)
}

/// Quotes `text` for an error message: control characters are escaped, long text is truncated.
pub(crate) fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    let mut quoted: String = text
        .chars()
        .take(MAX_CHARS)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        quoted.push('…');
    }
    format!("\"{quoted}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggest_returns_only_close_candidates() {
        let cycles = ["monthly", "yearly"];
        assert_eq!(suggest("montly", cycles), Some("monthly"));
        assert_eq!(suggest("YERLY", cycles), Some("yearly"));
        assert_eq!(suggest("fortnight", cycles), None);
        assert_eq!(suggest(&"m".repeat(10_000), cycles), None);
    }

    #[test]
    fn suggestion_does_not_mislead() {
        for (word, candidate) in [
            ("inactive", "active"),
            ("unactive", "active"),
            ("biweekly", "weekly"),
            ("bimonthly", "monthly"),
            ("uncompleted", "completed"),
            ("created_at", "updated_at"),
            ("external_id", "external_user_id"),
        ] {
            assert_eq!(suggest(word, [candidate]), None, "{word}");
        }
        assert_eq!(suggest("atcive", ["active"]), Some("active"));
        assert_eq!(suggest("cat", ["car", "cab"]), None, "both are as close");
    }

    #[test]
    fn typo_of_an_alias_suggests_its_value() {
        let names = [
            ("yearly", "yearly"),
            ("annually", "yearly"),
            ("annual", "yearly"),
        ];
        assert_eq!(suggest_by("anually", names), Some("yearly"));
        assert_eq!(suggest_by("anual", names), Some("yearly"));
    }

    #[test]
    fn quoted_escapes_control_characters_and_truncates() {
        assert_eq!(quoted("a\u{1b}[31m\r\n"), "\"a\\u{1b}[31m\\r\\n\"");
        assert_eq!(quoted(&"x".repeat(50)).chars().count(), 43);
    }
}
