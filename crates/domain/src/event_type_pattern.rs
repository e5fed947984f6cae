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
    pub const RECORDS: [&'static str; 5] = [
        "payment.*",
        "plan.*",
        "session.*",
        "subscription.*",
        "user.*",
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

    /// Returns the types that any of these patterns selects, without duplicates.
    pub fn kinds(patterns: &[Self]) -> Vec<EventKind> {
        let selected = |kind: &EventKind| patterns.iter().any(|pattern| pattern.matches(*kind));
        EventKind::ALL.into_iter().filter(selected).collect()
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
            assert!(!EventTypePattern::kinds(&[pattern]).is_empty());
        }
    }

    #[test]
    fn patterns_select_each_type_once() {
        let patterns = ["plan.*", "plan.created", "user.erased"].map(|text| text.parse().unwrap());
        assert_eq!(
            EventTypePattern::kinds(&patterns),
            [
                EventKind::PlanCreated,
                EventKind::PlanUpdated,
                EventKind::PlanDeleted,
                EventKind::UserErased
            ]
        );
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
