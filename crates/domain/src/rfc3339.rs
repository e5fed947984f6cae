//! RFC 3339 timestamps with microsecond precision.
//!
//! The parser is stricter than most: a date without time, a time without offset, a leap second,
//! `24:00` and `infinity` are rejected. Fractions have up to nine digits and are truncated to
//! microseconds, which is the precision of PostgreSQL.
//!
//! Timestamps are displayed in UTC with six fraction digits.
//!
//! Other systems write "no end" as `9999-12-31T23:59:59Z`. jiff's `Timestamp` ends 26 hours earlier, so that it
//! can be shown in every time zone. The last 26 hours of year 9999 are therefore one instant, [`FAR_FUTURE`],
//! which is displayed as `9999-12-31T23:59:59.000000Z` again.

use std::{fmt, str::FromStr};

use jiff::{SignedDuration, Timestamp, civil::DateTime, fmt::temporal::Pieces, tz::Offset};

use crate::{Rule, ValidationError, suggest::quoted};

/// The instant that stands for the last 26 hours of year 9999, in microseconds: 9999-12-30T22:00:00Z, the last
/// whole second of jiff's `Timestamp`.
const FAR_FUTURE: i64 = 253_402_207_200_000_000;

/// An instant from 1970 to 9999 with microsecond precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rfc3339Timestamp(Timestamp);

impl Rfc3339Timestamp {
    /// Returns the instant.
    pub fn get(self) -> Timestamp {
        self.0
    }

    /// Converts to an instant and checks the range.
    fn new(datetime: DateTime, offset: Offset) -> Option<Self> {
        let micros = match offset.to_timestamp(datetime) {
            // Before the microseconds are cut off, which rounds towards 1970.
            Ok(exact) if exact < Timestamp::UNIX_EPOCH => return None,
            Ok(exact) => exact.as_microsecond().min(FAR_FUTURE),
            Err(_) if is_in_last_hours(datetime, offset) => FAR_FUTURE,
            Err(_) => return None,
        };
        Timestamp::from_microsecond(micros).ok().map(Self)
    }
}

impl From<Timestamp> for Rfc3339Timestamp {
    fn from(instant: Timestamp) -> Self {
        Self(instant)
    }
}

impl fmt::Display for Rfc3339Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.as_microsecond() == FAR_FUTURE {
            return f.write_str("9999-12-31T23:59:59.000000Z");
        }
        write!(f, "{:.6}", self.0)
    }
}

/// Returns whether a time that jiff's `Timestamp` cannot hold is in the last 26 hours of year 9999 in UTC.
fn is_in_last_hours(datetime: DateTime, offset: Offset) -> bool {
    // Whole seconds suffice: the fraction is less than a second, and the year ends with a whole one.
    let utc = datetime.checked_sub(SignedDuration::from_secs(offset.seconds().into()));
    utc.is_ok_and(|utc| utc.year() == 9999 && utc.month() == 12 && utc.day() >= 30)
}

/// Parses a local time and its offset. The shape is checked first because jiff accepts more formats.
fn parse(text: &str) -> Option<(DateTime, Offset)> {
    if !has_rfc3339_shape(text) {
        return None;
    }
    let pieces = Pieces::parse(text).ok()?;
    let offset = pieces.to_numeric_offset()?;
    // jiff accepts offsets of up to 25 hours.
    let is_less_than_a_day = offset.seconds().abs() < 24 * 60 * 60;
    is_less_than_a_day.then_some((pieces.date().to_datetime(pieces.time()?), offset))
}

/// Checks for `9999-99-99T99:99:99`, an optional fraction of one to nine digits, and an offset of the
/// form `Z` or `+99:99`, where 9 is any digit. Rejects leap seconds, which jiff would clamp.
fn has_rfc3339_shape(text: &str) -> bool {
    let Some((datetime, rest)) = text.split_at_checked(19) else {
        return false;
    };
    let offset = match rest.strip_prefix('.') {
        None => rest,
        Some(rest) => {
            let offset = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            if !(1..=9).contains(&(rest.len() - offset.len())) {
                return false;
            }
            offset
        }
    };
    let is_offset = ["Z", "+99:99", "-99:99"]
        .iter()
        .any(|pattern| matches(offset, pattern));
    is_offset && matches(datetime, "9999-99-99T99:99:99") && !datetime.ends_with(":60")
}

/// Returns whether `text` has the form of `pattern`, in which 9 stands for any digit.
fn matches(text: &str, pattern: &str) -> bool {
    let matches_byte = |(byte, expected): (u8, u8)| match expected {
        b'9' => byte.is_ascii_digit(),
        _ => byte.eq_ignore_ascii_case(&expected),
    };
    text.len() == pattern.len() && text.bytes().zip(pattern.bytes()).all(matches_byte)
}

impl FromStr for Rfc3339Timestamp {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        let Some((datetime, offset)) = parse(text) else {
            let message = format!(
                "{} is not a valid timestamp; must be RFC 3339 with an offset, such as \
                 \"2026-11-15T09:30:00Z\"",
                quoted(text)
            );
            return Err(ValidationError::new(Rule::InvalidFormat, message));
        };
        Self::new(datetime, offset).ok_or_else(|| {
            let message = "must be from 1970-01-01T00:00:00Z to 9999-12-31T23:59:59Z";
            ValidationError::new(Rule::OutOfRange, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<String, Rule> {
        let timestamp = text.parse::<Rfc3339Timestamp>();
        timestamp
            .map(|timestamp| timestamp.to_string())
            .map_err(|error| error.rule)
    }

    /// Malformed input: 33, 34, 35, 36.
    /// The numbers are from `docs/reference/malformed-input.md`.
    #[test]
    fn timestamp_is_exact_or_rejected() {
        for (text, expected) in [
            ("2026-11-15T09:30:00Z", "2026-11-15T09:30:00.000000Z"),
            ("2026-11-15t09:30:00z", "2026-11-15T09:30:00.000000Z"),
            ("2026-11-15T09:30:00+14:00", "2026-11-14T19:30:00.000000Z"),
            ("2026-11-15T09:30:00-00:00", "2026-11-15T09:30:00.000000Z"),
            ("2026-11-15T09:30:00.5Z", "2026-11-15T09:30:00.500000Z"),
            (
                "2026-11-15T09:30:00.123456789Z",
                "2026-11-15T09:30:00.123456Z",
            ),
            ("2038-01-19T03:14:08Z", "2038-01-19T03:14:08.000000Z"),
            ("9999-12-30T21:59:59.999999Z", "9999-12-30T21:59:59.999999Z"),
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"),
            ("2028-02-29T00:00:00Z", "2028-02-29T00:00:00.000000Z"),
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000000Z"),
            ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.000000Z"),
            ("9999-12-31T23:59:59+00:01", "9999-12-31T23:59:59.000000Z"),
            ("9999-12-30T22:00:00Z", "9999-12-31T23:59:59.000000Z"),
            ("9999-12-30T22:00:00.5Z", "9999-12-31T23:59:59.000000Z"),
            ("9999-12-30T22:00:01Z", "9999-12-31T23:59:59.000000Z"),
        ] {
            assert_eq!(parsed(text).as_deref(), Ok(expected), "{text}");
        }
        for text in [
            "",
            "now",
            "infinity",
            "-infinity",
            "2026-11-15",
            "2026-11-15T09:30:00",
            "2026-11-15 09:30:00Z",
            "2026-11-15T09:30Z",
            "2026-11-15T24:00:00Z",
            "2026-11-15T23:59:60Z",
            "2026-02-30T00:00:00Z",
            "2027-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-15T09:30:00.Z",
            "2026-11-15T09:30:00.1234567890Z",
            "2026-11-15T09:30:00+24:00",
            "2026-11-15T09:30:00+0100",
            "2026-11-15T09:30:00+01",
            "294277-01-01T00:00:00Z",
            "+02026-11-15T09:30:00Z",
            "2026-11-15T09:30:00Z[UTC]",
            "2026-+1-15T09:30:00Z",
            "٢٠٢٦-11-15T09:30:00Z",
            "1763199000",
        ] {
            assert_eq!(parsed(text), Err(Rule::InvalidFormat), "{text}");
        }
        for text in [
            "0000-01-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "1969-12-31T23:59:59.999999999Z",
            "1970-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
        ] {
            assert_eq!(parsed(text), Err(Rule::OutOfRange), "{text}");
        }
    }
}
