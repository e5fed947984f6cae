//! Instants as callers write them: RFC 3339, to the microsecond.
//!
//! A date alone, a time without an offset, a leap second, `24:00` and `infinity` are no instants. Fractions may have
//! up to nine digits; what the database cannot store, beyond microseconds, is cut off.

use std::str::FromStr;

use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time},
    tz::{Offset, TimeZone},
};

use crate::{Invalid, Rule, words::quoted};

/// An instant from 1970 to 9999, to the microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Timestamp);

impl Moment {
    /// The instant.
    pub fn get(self) -> Timestamp {
        self.0
    }

    /// What is written: a date and a time, somewhere.
    fn read(text: &str) -> Option<(DateTime, Offset)> {
        let (date, rest) = text.split_once(['T', 't'])?;
        let date = Date::new(
            number(date.get(..4)?)?,
            number(date.strip_prefix_at(4, "-")?.get(..2)?)?,
            number(date.strip_prefix_at(7, "-").filter(|day| day.len() == 2)?)?,
        )
        .ok()?;
        let (hour, minute, second) = (
            number(rest.get(..2)?)?,
            number(rest.strip_prefix_at(2, ":")?.get(..2)?)?,
            number(rest.strip_prefix_at(5, ":")?.get(..2)?)?,
        );
        let (nanosecond, offset) = fraction(rest.get(8..)?)?;
        let time = Time::new(hour, minute, second, nanosecond).ok()?;
        Some((date.to_datetime(time), self::offset(offset)?))
    }

    /// The instant, if it is neither too early nor too late.
    fn of((written, offset): (DateTime, Offset)) -> Option<Self> {
        let zoned = written.to_zoned(TimeZone::fixed(offset)).ok()?;
        let micros = zoned.timestamp().as_microsecond();
        let instant = Timestamp::from_microsecond(micros).ok()?;
        let year = TimeZone::UTC.to_datetime(instant).year();
        (1970..=9999).contains(&year).then_some(Self(instant))
    }
}

/// What stands after a separator at a fixed place.
trait StripPrefixAt {
    fn strip_prefix_at(&self, at: usize, separator: &str) -> Option<&str>;
}

impl StripPrefixAt for str {
    fn strip_prefix_at(&self, at: usize, separator: &str) -> Option<&str> {
        self.get(at..)?.strip_prefix(separator)
    }
}

/// Digits, and nothing else.
fn number<T: FromStr>(digits: &str) -> Option<T> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

/// The nanoseconds that a text begins with, and the rest of it.
fn fraction(text: &str) -> Option<(i32, &str)> {
    let Some(text) = text.strip_prefix('.') else {
        return Some((0, text));
    };
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, rest) = text.split_at(end);
    let nanoseconds = number(&format!("{digits:0<9}"))?;
    (1..=9)
        .contains(&digits.len())
        .then_some((nanoseconds, rest))
}

fn offset(text: &str) -> Option<Offset> {
    if text.eq_ignore_ascii_case("z") {
        return Some(Offset::UTC);
    }
    let sign = match text.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let [hours, minutes] = [hours, minutes].map(|part| {
        let two: Option<i32> = number(part).filter(|_| part.len() == 2);
        two
    });
    let (hours, minutes) = (
        hours.filter(|hours| *hours < 24)?,
        minutes.filter(|minutes| *minutes < 60)?,
    );
    Offset::from_seconds(sign * (hours * 60 + minutes) * 60).ok()
}

impl FromStr for Moment {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let Some(written) = Self::read(text) else {
            let message = format!(
                "{} is not an instant; expected RFC 3339 with an offset, such as \"2026-11-15T09:30:00Z\"",
                quoted(text)
            );
            return Err(Invalid::new(Rule::InvalidFormat, message));
        };
        Self::of(written).ok_or_else(|| {
            let message = "must be from 1970-01-01T00:00:00Z to 9999-12-30T21:59:59Z";
            Invalid::new(Rule::OutOfRange, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<String, Rule> {
        let moment = text.parse::<Moment>().map_err(|invalid| invalid.rule);
        moment.map(|moment| moment.get().to_string())
    }

    /// Catalogue: 33, 34, 35, 36.
    #[test]
    fn as_written_or_refused() {
        for (text, expected) in [
            ("2026-11-15T09:30:00Z", "2026-11-15T09:30:00Z"),
            ("2026-11-15t09:30:00z", "2026-11-15T09:30:00Z"),
            ("2026-11-15T09:30:00+14:00", "2026-11-14T19:30:00Z"),
            ("2026-11-15T09:30:00-00:00", "2026-11-15T09:30:00Z"),
            ("2026-11-15T09:30:00.5Z", "2026-11-15T09:30:00.5Z"),
            (
                "2026-11-15T09:30:00.123456789Z",
                "2026-11-15T09:30:00.123456Z",
            ),
            ("2038-01-19T03:14:08Z", "2038-01-19T03:14:08Z"),
            ("9999-12-30T21:59:59.999999Z", "9999-12-30T21:59:59.999999Z"),
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
            ("2028-02-29T00:00:00Z", "2028-02-29T00:00:00Z"),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(expected), "{text}");
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
            assert_eq!(shown(text), Err(Rule::InvalidFormat), "{text}");
        }
        for text in [
            "0000-01-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59Z",
            "9999-12-30T22:00:00-00:01",
        ] {
            assert_eq!(shown(text), Err(Rule::OutOfRange), "{text}");
        }
    }
}
