//! Typo suggestions ("did you mean …?") and quoting of input in messages.

/// Returns the candidate with the smallest edit distance to `word`, if it is close enough to be a
/// typo. The comparison ignores case.
pub fn suggest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Bounds the cost of comparing hostile input.
    const MAX_BYTES: usize = 64;
    if word.len() > MAX_BYTES {
        return None;
    }
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::osa_distance(&word, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
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
    fn quoted_escapes_control_characters_and_truncates() {
        assert_eq!(quoted("a\u{1b}[31m\r\n"), "\"a\\u{1b}[31m\\r\\n\"");
        assert_eq!(quoted(&"x".repeat(50)).chars().count(), 43);
    }
}
