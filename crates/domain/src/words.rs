//! "Did you mean …?": finding the word that somebody meant.

/// The candidate nearest to `word`, if it is near enough to be a slip of the fingers.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Nobody mistypes a word of this length; comparing it would only cost time.
    if word.len() > 64 {
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

/// `word` in quotation marks, shortened if it is long, control characters escaped: fit for a
/// sentence that ends up on somebody's terminal.
pub(crate) fn quoted(word: &str) -> String {
    const SHOWN: usize = 40;
    let mut shown: String = word
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if word.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_what_is_near() {
        let cycles = ["monthly", "yearly"];
        assert_eq!(closest("montly", cycles), Some("monthly"));
        assert_eq!(closest("YERLY", cycles), Some("yearly"));
        assert_eq!(closest("fortnight", cycles), None);
        assert_eq!(closest(&"m".repeat(10_000), cycles), None);
    }

    #[test]
    fn quotes_without_control_characters() {
        assert_eq!(quoted("a\u{1b}[31m\r\n"), "\"a\\u{1b}[31m\\r\\n\"");
        assert_eq!(quoted(&"x".repeat(50)).chars().count(), 43);
    }
}
