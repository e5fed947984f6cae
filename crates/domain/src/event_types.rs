//! Selections of event types, as in `types=plan.created,subscription.*`.

use std::{fmt, str::FromStr};

use crate::{EventKind, ValidationError};

/// Selects the events that a tenant may see of one type (`plan.created`), or of all types of a record
/// (`plan.*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventTypePattern {
    /// One type.
    Kind(EventKind),
    /// All types of a record, by one of [`EventTypePattern::RECORDS`].
    Record(&'static str),
}

impl EventTypePattern {
    /// The patterns of whole records.
    pub const RECORDS: [&'static str; 7] = [
        "payment.*",
        "payment_account.*",
        "plan.*",
        "session.*",
        "subscription.*",
        "user.*",
        "webhook_endpoint.*",
    ];

    /// Returns whether the pattern selects events of this type.
    pub fn matches(self, kind: EventKind) -> bool {
        match self {
            Self::Kind(own) => own == kind,
            Self::Record(pattern) => kind.is_public() && record_pattern(kind) == Some(pattern),
        }
    }

    /// Returns all patterns: those of whole records, then the types that a tenant may see.
    pub fn all() -> impl Iterator<Item = Self> {
        let kinds = EventKind::ALL.into_iter().filter(|kind| kind.is_public());
        let records = Self::RECORDS.into_iter().map(Self::Record);
        records.chain(kinds.map(Self::Kind))
    }

    /// Returns the text of the pattern.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kind(kind) => kind.as_str(),
            Self::Record(pattern) => pattern,
        }
    }
}

/// Returns the pattern of a type's record.
fn record_pattern(kind: EventKind) -> Option<&'static str> {
    let record = kind.record_type();
    let mut patterns = EventTypePattern::RECORDS.into_iter();
    patterns.find(|pattern| pattern.strip_suffix(".*") == Some(record))
}

impl fmt::Display for EventTypePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EventTypePattern {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        let mut all = Self::all();
        all.find(|pattern| pattern.as_str() == text).ok_or_else(|| {
            let allowed = Self::all().map(Self::as_str).collect();
            ValidationError::unknown_value("an event type", text, allowed, &[])
        })
    }
}

/// A selection of event types: patterns in the order of their text, without duplicates. Without a pattern, it selects all
/// types that a tenant may see.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventTypes(Vec<EventTypePattern>);

impl EventTypes {
    /// Creates a selection.
    pub fn new(mut patterns: Vec<EventTypePattern>) -> Self {
        patterns.sort_unstable_by_key(|pattern| pattern.as_str());
        patterns.dedup();
        Self(patterns)
    }

    /// Returns whether the selection has no pattern, so that it selects all types.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the selection has events of this type.
    pub fn matches(&self, kind: EventKind) -> bool {
        match self.0.as_slice() {
            [] => kind.is_public(),
            patterns => patterns.iter().any(|pattern| pattern.matches(kind)),
        }
    }

    /// Returns the texts of the patterns.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|pattern| pattern.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_public_type_has_the_pattern_of_its_record() {
        for kind in EventKind::ALL {
            assert_eq!(record_pattern(kind).is_some(), kind.is_public(), "{kind}");
        }
        for pattern in EventTypePattern::all() {
            assert_eq!(pattern.to_string().parse(), Ok(pattern));
            assert!(EventKind::ALL.into_iter().any(|kind| pattern.matches(kind)));
        }
    }

    fn selected(patterns: &[&str]) -> Vec<EventKind> {
        let patterns = patterns.iter().map(|text| text.parse().unwrap());
        let types = EventTypes::new(patterns.collect());
        let kinds = EventKind::ALL.into_iter();
        kinds.filter(|kind| types.matches(*kind)).collect()
    }

    #[test]
    fn selection_has_the_types_of_its_patterns() {
        assert_eq!(
            selected(&["plan.*", "plan.created", "user.erased"]),
            [
                EventKind::PlanCreated,
                EventKind::PlanUpdated,
                EventKind::PlanDeleted,
                EventKind::UserErased
            ]
        );
    }

    #[test]
    fn empty_selection_has_all_public_types() {
        let public = EventKind::ALL.into_iter().filter(|kind| kind.is_public());
        assert_eq!(selected(&[]), public.collect::<Vec<_>>());
    }

    #[test]
    fn patterns_are_sorted_without_duplicates() {
        let patterns = ["user.*", "plan.created", "plan.*", "user.*"];
        let types = EventTypes::new(patterns.map(|text| text.parse().unwrap()).into());
        assert_eq!(types.names(), ["plan.*", "plan.created", "user.*"]);
    }

    #[test]
    fn other_types_are_rejected_with_the_allowed_ones() {
        for text in [
            "",
            "*",
            "tenant.created",
            "client.*",
            "plan.",
            "Plan.created",
        ] {
            let error = text.parse::<EventTypePattern>().unwrap_err();
            assert!(error.allowed.contains(&"plan.*"), "{text}");
            assert!(error.allowed.contains(&"plan.created"), "{text}");
            assert!(!error.allowed.contains(&"tenant.created"), "{text}");
        }
        let error = "plan.craeted".parse::<EventTypePattern>().unwrap_err();
        assert!(error.message.ends_with("did you mean \"plan.created\"?"));
    }
}
