//! Request fields of the sandbox clock: their schema and parsing.

use jiff::{Span, Timestamp, tz::TimeZone};
use perennial_domain::{Rule, SingleLine, ValidationError};
use serde_json::value::RawValue;

use super::MAX_ADVANCE;
use crate::http::{
    json::{BodyFields, ValueError, text, timestamp},
    problem::Problem,
    request_schema::{RequestField, request_body},
    schema::{self, named},
};

const FIELDS: &[RequestField] = &[
    RequestField::nullable("now", || {
        let description = "The new billing time: later than the present one, by ten years at most. Either this or `advance` \
                           is required.";
        named::TIMESTAMP.reference(description).into()
    }),
    RequestField::nullable("advance", || {
        let description = "How far to advance: an ISO 8601 duration, or a time span such as `2w` or `1y 15d`, with the units \
                           y, mo, w, d, h, m and s.";
        schema::single_line(description, 40, "P1M").into()
    }),
];

request_body!(
    AdvanceSandboxClock,
    create_schema(FIELDS, &[]),
    "The new billing time, or how far to advance.",
    {"advance": "P1M"}
);

/// Parses a time span that is longer than none.
pub fn parse_span(text: &str) -> Result<Span, String> {
    let expected = || "expected a time span such as 1mo, 2w or 36h".to_owned();
    let span: Span = text.parse().map_err(|_| expected())?;
    if span.is_negative() || span.is_zero() {
        return Err(format!("the clock only moves forward; {}", expected()));
    }
    Ok(span)
}

/// Returns the time after a span, in the calendar of UTC.
pub fn add_span(from: Timestamp, span: Span) -> Result<Timestamp, String> {
    let to = TimeZone::UTC.to_datetime(from).checked_add(span);
    let to = to.and_then(|to| TimeZone::UTC.to_timestamp(to));
    let to = to.map_err(|_| "the resulting date is out of range".to_owned())?;
    check_step(from, to)?;
    Ok(to)
}

/// Checks that a step goes forward and is not too long.
fn check_step(from: Timestamp, to: Timestamp) -> Result<(), String> {
    if to <= from {
        return Err(format!(
            "the clock only moves forward; must be after {from:.0}"
        ));
    }
    if to.duration_since(from).as_hours() > MAX_ADVANCE.as_hours() {
        return Err("cannot advance more than ten years in one step".to_owned());
    }
    Ok(())
}

fn span(raw: &RawValue) -> Result<Span, ValueError> {
    let token: SingleLine<40> = text(raw)?;
    parse_span(token.as_str())
        .map_err(|message| ValidationError::new(Rule::InvalidFormat, message).into())
}

/// Parses the body of a request at billing time `from`, and returns the new time.
pub(super) fn parse_advance(mut fields: BodyFields, from: Timestamp) -> Result<Timestamp, Problem> {
    let now = fields.optional("now", timestamp);
    let span = fields.optional("advance", span);
    let (now, span) = fields.finish(|| Some((now?, span?)))?;
    let (field, to) = match (now, span) {
        (Some(to), None) => ("now", check_step(from, to).map(|()| to)),
        (None, Some(span)) => ("advance", add_span(from, span)),
        (None, None) => {
            let error = ValidationError::new(Rule::Required, "is required, unless advance is sent");
            return Err(Problem::from_field_errors(vec![("now", error)]));
        }
        (Some(_), Some(_)) => {
            let error = ValidationError::new(Rule::InvalidFormat, "cannot be sent with now");
            return Err(Problem::from_field_errors(vec![("advance", error)]));
        }
    };
    to.map_err(|message| {
        let error = ValidationError::new(Rule::OutOfRange, message);
        Problem::from_field_errors(vec![(field, error)])
    })
}
