//! The query string: each endpoint takes its parameters by name, then [`QueryParams::finish`] reports
//! all errors together.
//!
//! Unknown parameters are rejected: a misspelled filter that is ignored would return too many records.

use std::{
    any::Any,
    fmt::Display,
    num::ParseIntError,
    str::{FromStr, ParseBoolError},
};

use axum::{
    extract::FromRequestParts,
    http::{Uri, request::Parts},
};

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{Rfc3339Timestamp, ValidationError};

use super::problem::{Code, Problem, ProblemFieldError};
use crate::db::TimeRange;

/// The maximum number of values of a filter.
const MAX_VALUES: usize = 100;
/// The maximum number of unknown parameters that are reported.
const MAX_UNKNOWN: usize = 20;
/// The length to which the name of an unknown parameter is cut.
const MAX_NAME_CHARS: usize = 40;

/// Returns the names of a time's four bounds, in the order of [`QueryParams::time_range`].
macro_rules! time_bounds {
    ($field:literal) => {
        [
            concat!($field, "[gte]"),
            concat!($field, "[gt]"),
            concat!($field, "[lt]"),
            concat!($field, "[lte]"),
        ]
    };
}
pub(crate) use time_bounds;

/// The query parameters that have not been taken yet, and the errors so far.
#[derive(Debug)]
pub struct QueryParams {
    remaining: Vec<(String, String)>,
    /// The names of the parameters that the endpoint knows, for suggestions.
    known: Vec<&'static str>,
    errors: Vec<ProblemFieldError>,
}

impl<S: Sync> FromRequestParts<S> for QueryParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self::from_uri(&parts.uri))
    }
}

/// Extractor for an endpoint without query parameters, path parameters or a body.
pub struct NoQuery;

impl<S: Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        reject_all(&parts.uri).map(|()| Self)
    }
}

/// Rejects any query parameter.
pub(super) fn reject_all(uri: &Uri) -> Result<(), Problem> {
    match uri.query() {
        None => Ok(()),
        Some(_) => QueryParams::from_uri(uri).finish(),
    }
}

impl QueryParams {
    fn from_uri(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        Self {
            remaining: pairs.into_owned().collect(),
            known: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Takes a parameter, which must not be repeated.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        let mut values: Vec<String> = Vec::new();
        self.remaining.retain(|(other, value)| {
            let matches = other == name;
            if matches {
                values.push(value.clone());
            }
            !matches
        });
        if values.len() > 1 {
            self.push_error(
                name,
                "cannot be repeated; separate several values by commas",
            );
        }
        values.pop()
    }

    /// Takes and parses a parameter.
    pub fn value<T: FromStr<Err: Display + 'static>>(&mut self, name: &'static str) -> Option<T> {
        let text = self.text(name)?;
        text.parse()
            .map_err(|error: T::Err| self.push_error(name, &message(&error)))
            .ok()
    }

    /// Returns whether the query has a parameter that was not taken yet.
    pub fn contains(&self, name: &str) -> bool {
        self.remaining.iter().any(|(other, _)| other == name)
    }

    /// Takes and parses a parameter that must be present.
    pub fn required<T: FromStr<Err: Display + 'static>>(
        &mut self,
        name: &'static str,
    ) -> Option<T> {
        if !self.contains(name) {
            self.known.push(name);
            self.push_error(name, "is required");
            return None;
        }
        self.value(name)
    }

    /// Takes and parses a comma-separated list of values. Returns `None` if the parameter is absent.
    ///
    /// The values are sorted and without duplicates, so that their order does not matter to a cursor.
    pub fn any_of<T: FromStr<Err: Display + 'static> + Ord>(
        &mut self,
        name: &'static str,
    ) -> Option<Vec<T>> {
        let text = self.text(name)?;
        let mut values = Vec::new();
        if text.split(',').nth(MAX_VALUES).is_some() {
            self.push_error(name, &format!("cannot have more than {MAX_VALUES} values"));
            return None;
        }
        for item in text.split(',') {
            match item.trim().parse() {
                Ok(value) => values.push(value),
                Err(error) => {
                    self.push_error(name, &message::<T::Err>(&error));
                    if let (Some(last), Some(allowed)) =
                        (self.errors.last_mut(), allowed_values(&error))
                    {
                        last.allowed = allowed;
                    }
                }
            }
        }
        values.sort_unstable();
        values.dedup();
        Some(values)
    }

    /// Takes a filter that is true or false. Returns `None` if it is absent or lists both values.
    pub fn boolean(&mut self, name: &'static str) -> Option<bool> {
        match self.any_of(name)?.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }

    /// Takes the bounds of a time, which [`time_bounds!`] names, and combines them into one range.
    pub fn time_range(&mut self, [gte, gt, lt, lte]: [&'static str; 4]) -> TimeRange {
        // Stored timestamps have microsecond precision, so "after" means from the next microsecond on.
        let next = |bound: Rfc3339Timestamp| {
            let microsecond = SignedDuration::from_micros(1);
            let next = bound.get().saturating_add(microsecond);
            next.unwrap_or(Timestamp::MAX)
        };
        let from = self.value(gte).map(Rfc3339Timestamp::get);
        let after = self.value(gt).map(next);
        let before = self.value(lt).map(Rfc3339Timestamp::get);
        let until = self.value(lte).map(next);
        TimeRange {
            from: from.into_iter().chain(after).max(),
            before: before.into_iter().chain(until).min(),
        }
    }

    /// Takes the parameter `sort`. The first of `orders` is the default.
    pub fn order<O: Copy, const N: usize>(&mut self, orders: &[(&'static str, O); N]) -> O {
        const { assert!(N > 0, "a list has at least one order") };
        let [(_, default), ..] = orders.as_slice() else {
            unreachable!("there is at least one");
        };
        let Some(requested) = self.text("sort") else {
            return *default;
        };
        let order = orders.iter().find(|(name, _)| *name == requested);
        if order.is_none() {
            let allowed = orders.map(|(name, _)| name);
            let hint = perennial_domain::suggest(&requested, allowed).map_or_else(
                || format!("allowed: {}", allowed.join(", ")),
                |closest| format!("did you mean \"{closest}\"?"),
            );
            self.push_error("sort", &format!("is not a sort order of this list; {hint}"));
        }
        order.map_or(*default, |(_, order)| *order)
    }

    pub fn push_error(&mut self, name: &str, message: &str) {
        let pointer = format!("?{name}");
        self.errors.push(ProblemFieldError::new(
            pointer,
            Code::InvalidParameter,
            message,
        ));
    }

    /// Reports all errors, including parameters that were not taken.
    pub fn finish(mut self) -> Result<(), Problem> {
        for (name, _) in std::mem::take(&mut self.remaining)
            .into_iter()
            .take(MAX_UNKNOWN)
        {
            let closest = perennial_domain::suggest(&name, self.known.iter().copied());
            let hint = match closest {
                Some(closest) => format!("did you mean \"{closest}\"?"),
                None if self.known.is_empty() => "it has none".to_owned(),
                None => format!("allowed: {}", self.known.join(", ")),
            };
            let name: String = name.chars().take(MAX_NAME_CHARS).collect();
            self.push_error(
                &name,
                &format!("is not a parameter of this endpoint; {hint}"),
            );
        }
        if self.errors.is_empty() {
            Ok(())
        } else {
            Err(Problem::parameters(self.errors))
        }
    }
}

/// Limits the values of a filter to `others`.
pub fn intersect<T: PartialEq>(values: &mut Option<Vec<T>>, others: Vec<T>) {
    match values {
        Some(values) => values.retain(|value| others.contains(value)),
        None => *values = Some(others),
    }
}

/// Returns the allowed values that a parse error of the domain lists.
fn allowed_values<E: 'static>(error: &E) -> Option<Vec<&'static str>> {
    let any: &dyn Any = error;
    let error = any.downcast_ref::<ValidationError>()?;
    Some(error.allowed.clone())
}

/// Returns the message of a parse error. Those of the standard library do not say what is allowed.
fn message<E: Display + 'static>(error: &E) -> String {
    let any: &dyn Any = error;
    if any.is::<ParseIntError>() {
        "must be a whole number".to_owned()
    } else if any.is::<ParseBoolError>() {
        "must be true or false".to_owned()
    } else {
        error.to_string()
    }
}
