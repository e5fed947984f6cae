//! Why a value was refused, in words for the person who sent it.

/// The rule that a value broke. Each has a page in the error reference, so that a caller can look
/// it up, and a stable name, so that a program can match on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// More decimals than the currency has.
    AmountScaleInvalid,
    /// Empty, or nothing but white space.
    Blank,
    /// Dates in an order that cannot be.
    InconsistentDates,
    /// A status, and something beside it that cannot go with it.
    InconsistentStatus,
    /// Not written in the expected form.
    InvalidFormat,
    /// Not an identifier of the expected kind.
    InvalidId,
    /// Below the smallest or above the largest allowed value.
    OutOfRange,
    /// A plan that is not offered any more.
    PlanInactive,
    /// More characters than allowed.
    TooLong,
    /// More items than allowed.
    TooMany,
    /// Not one of the allowed words.
    UnknownValue,
}

/// A refusal: the rule, a sentence that says what is wrong, and the allowed words where it is a
/// matter of words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// The rule that was broken.
    pub rule: Rule,
    /// A sentence for the caller. Never carries a secret: it may quote what was sent.
    pub message: String,
    /// The words that are allowed, if the value is one of a set.
    pub allowed: Vec<&'static str>,
}

impl Invalid {
    /// A refusal by `rule`, explained by `message`.
    pub fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self {
            rule,
            message: message.into(),
            allowed: Vec::new(),
        }
    }

    /// `word` is not one of `allowed`; suggests the nearest if one is near.
    pub fn unknown_word(what: &str, word: &str, allowed: Vec<&'static str>) -> Self {
        let message = match crate::closest(word, allowed.iter().copied()) {
            Some(near) => format!(
                "{} is not {what}; did you mean \"{near}\"?",
                crate::words::quoted(word)
            ),
            None => format!(
                "{} is not {what}; allowed: {}",
                crate::words::quoted(word),
                allowed.join(", ")
            ),
        };
        Self {
            rule: Rule::UnknownValue,
            message,
            allowed,
        }
    }
}
