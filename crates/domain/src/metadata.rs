//! Metadata: key-value pairs that clients attach to a record. The service stores and returns them.

use std::collections::BTreeMap;

use crate::{MultiLine, Rule, SingleLine, ValidationError, card_number::check_not_card_number};

/// A key: one line of 1 to 40 characters.
type MetadataKey = SingleLine<40>;
/// A value: up to 500 characters, possibly of several lines.
type MetadataValue = MultiLine<500>;

/// Up to 50 pairs of strings, sorted by key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata(BTreeMap<String, String>);

/// The requested change of one pair, checked: a value to set, or `None` to remove the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataChange {
    key: String,
    value: Option<String>,
}

impl MetadataChange {
    /// Checks the key and the value. A value cannot be a card number.
    pub fn new(key: &str, value: Option<&str>) -> Result<Self, ValidationError> {
        key.parse::<MetadataKey>().map_err(|error| {
            let message = format!("the key {}", error.message);
            ValidationError { message, ..error }
        })?;
        if let Some(value) = value {
            value.parse::<MetadataValue>()?;
            check_not_card_number(value)?;
        }
        Ok(Self {
            key: key.to_owned(),
            value: value.map(str::to_owned),
        })
    }
}

impl Metadata {
    /// The maximum number of pairs.
    pub const MAX_PAIRS: usize = 50;
    /// The maximum length of a key, in characters.
    pub const MAX_KEY_LENGTH: usize = 40;
    /// The maximum length of a value, in characters.
    pub const MAX_VALUE_LENGTH: usize = 500;

    /// Returns the metadata with these changes. Keys without a change stay.
    pub fn merge(&self, changes: Vec<MetadataChange>) -> Result<Self, ValidationError> {
        let mut pairs = self.0.clone();
        for MetadataChange { key, value } in changes {
            match value {
                Some(value) => pairs.insert(key, value),
                None => pairs.remove(&key),
            };
        }
        if pairs.len() > Self::MAX_PAIRS {
            let message = format!(
                "must have at most {} keys, not {}",
                Self::MAX_PAIRS,
                pairs.len()
            );
            return Err(ValidationError::new(Rule::TooMany, message));
        }
        Ok(Self(pairs))
    }

    /// Creates metadata from stored pairs.
    pub fn from_stored(pairs: BTreeMap<String, String>) -> Self {
        Self(pairs)
    }

    /// Returns the pairs, sorted by key.
    pub fn pairs(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(key: &str, value: Option<&str>) -> MetadataChange {
        MetadataChange::new(key, value).unwrap()
    }

    #[test]
    fn merge_sets_replaces_and_removes_keys() {
        let first = Metadata::default()
            .merge(vec![change("a", Some("1")), change("b", Some("2"))])
            .unwrap();
        let merged = first
            .merge(vec![
                change("a", None),
                change("b", Some("3")),
                change("c", Some("")),
                change("unknown", None),
            ])
            .unwrap();
        let pairs: Vec<_> = merged.pairs().iter().collect();
        assert_eq!(
            pairs,
            [
                (&"b".to_owned(), &"3".to_owned()),
                (&"c".to_owned(), &String::new())
            ]
        );
    }

    #[test]
    fn limits_are_50_keys_of_40_and_values_of_500_characters() {
        let pairs = |count: usize| {
            let changes = (0..count).map(|number| change(&format!("k{number}"), Some("v")));
            Metadata::default().merge(changes.collect())
        };
        assert!(pairs(50).is_ok());
        assert_eq!(pairs(51).unwrap_err().rule, Rule::TooMany);
        let full = pairs(50).unwrap();
        let replaced = vec![change("k0", None), change("new", Some("v"))];
        assert!(full.merge(replaced).is_ok(), "removed keys do not count");
        let rule = |key: &str, value: &str| {
            let change = MetadataChange::new(key, Some(value));
            change.err().map(|error| error.rule)
        };
        assert_eq!(rule(&"é".repeat(40), &"é".repeat(500)), None);
        assert_eq!(rule(&"k".repeat(41), "v"), Some(Rule::TooLong));
        assert_eq!(rule("k", &"v".repeat(501)), Some(Rule::TooLong));
        assert_eq!(rule(" ", "v"), Some(Rule::Blank));
        assert_eq!(rule("k", "a\0b"), Some(Rule::InvalidFormat));
        assert_eq!(rule("k", "4242 4242 4242 4242"), Some(Rule::InvalidFormat));
    }
}
