//! The query: parameters taken out one by one, everything that is wrong reported at once.
//!
//! The same idea as for bodies: a parameter that nobody asked for is refused, because a misspelt
//! filter that is ignored shows too much and says nothing.

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

use super::problem::{Code, FieldError, Problem};

/// How many values a filter may have.
const MAX_VALUES: usize = 100;

/// The parameters of a query, and what has been found wrong with them.
#[derive(Debug)]
pub struct Params {
    given: Vec<(String, String)>,
    known: Vec<&'static str>,
    errors: Vec<FieldError>,
}

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self::of(&parts.uri))
    }
}

/// Stands for no parameters at all, at an endpoint that takes none and reads nothing else.
pub struct NoQuery;

impl<S: Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        none(&parts.uri).map(|()| Self)
    }
}

/// For an endpoint that takes none: whatever the query says is refused.
pub(super) fn none(uri: &Uri) -> Result<(), Problem> {
    match uri.query() {
        None => Ok(()),
        Some(_) => Params::of(uri).finish(),
    }
}

impl Params {
    fn of(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        let given = url::form_urlencoded::parse(query.as_bytes());
        Self {
            given: given.into_owned().collect(),
            known: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// The text of a parameter, if it was given; it may stand once.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        let mut values: Vec<String> = Vec::new();
        self.given.retain(|(given, value)| {
            let ours = given == name;
            if ours {
                values.push(value.clone());
            }
            !ours
        });
        if values.len() > 1 {
            self.refuse(
                name,
                "stands twice; give several values in one, separated by commas",
            );
        }
        values.pop()
    }

    /// A parameter, parsed.
    pub fn value<T: FromStr<Err: Display + 'static>>(&mut self, name: &'static str) -> Option<T> {
        let text = self.text(name)?;
        text.parse()
            .map_err(|why: T::Err| self.refuse(name, &said(&why)))
            .ok()
    }

    /// A parameter that must be there, parsed.
    pub fn required<T: FromStr<Err: Display + 'static>>(
        &mut self,
        name: &'static str,
    ) -> Option<T> {
        if !self.given.iter().any(|(given, _)| given == name) {
            self.known.push(name);
            self.refuse(name, "is required");
            return None;
        }
        self.value(name)
    }

    /// A filter: one of several values, separated by commas. `None` if it was not given.
    pub fn any_of<T: FromStr<Err: Display + 'static>>(
        &mut self,
        name: &'static str,
    ) -> Option<Vec<T>> {
        let text = self.text(name)?;
        let mut read = Vec::new();
        if text.split(',').nth(MAX_VALUES).is_some() {
            self.refuse(name, &format!("has more than {MAX_VALUES} values"));
            return None;
        }
        for item in text.split(',') {
            match item.trim().parse() {
                Ok(value) => read.push(value),
                Err(why) => self.refuse(name, &said::<T::Err>(&why)),
            }
        }
        Some(read)
    }

    /// The parameter `sort`: one of these orders, of which the first is the default.
    pub fn order<O: Copy, const N: usize>(&mut self, orders: &[(&'static str, O); N]) -> O {
        const { assert!(N > 0, "a list has an order") };
        let [(_, default), ..] = orders.as_slice() else {
            unreachable!("there is one");
        };
        let Some(wanted) = self.text("sort") else {
            return *default;
        };
        let found = orders.iter().find(|(name, _)| *name == wanted);
        if found.is_none() {
            let allowed = orders.map(|(name, _)| name);
            let hint = perennial_domain::closest(&wanted, allowed).map_or_else(
                || format!("allowed: {}", allowed.join(", ")),
                |near| format!("did you mean \"{near}\"?"),
            );
            self.refuse("sort", &format!("is not an order of this list; {hint}"));
        }
        found.map_or(*default, |(_, order)| *order)
    }

    /// Notes what is wrong with a parameter.
    pub fn refuse(&mut self, name: &str, message: &str) {
        self.errors.push(FieldError {
            pointer: format!("?{name}"),
            code: Code::InvalidParameter.as_str(),
            message: message.to_owned(),
            allowed: Vec::new(),
            kind: Code::InvalidParameter,
        });
    }

    /// Refuses what is wrong, and what nobody asked for.
    pub fn finish(mut self) -> Result<(), Problem> {
        for (name, _) in std::mem::take(&mut self.given).into_iter().take(20) {
            let near = perennial_domain::closest(&name, self.known.iter().copied());
            let hint = match near {
                Some(near) => format!("did you mean \"{near}\"?"),
                None if self.known.is_empty() => "it takes none".to_owned(),
                None => format!("allowed: {}", self.known.join(", ")),
            };
            let shown: String = name.chars().take(40).collect();
            self.refuse(
                &shown,
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

/// Why a text could not be read, in words that say what is allowed; the standard library's own do not.
fn said<E: Display + 'static>(why: &E) -> String {
    let any: &dyn Any = why;
    if any.is::<ParseIntError>() {
        "must be a whole number".to_owned()
    } else if any.is::<ParseBoolError>() {
        "must be true or false".to_owned()
    } else {
        why.to_string()
    }
}
