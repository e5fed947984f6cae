//! Lists as CSV (RFC 4180), for requests with `Accept: text/csv`.

use std::{collections::BTreeMap, convert::Infallible};

use axum::{
    extract::FromRequestParts,
    http::{HeaderValue, Uri, header, request::Parts},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{accept::accepts_media_type, pagination::Page, problem::Problem};

pub const CSV_MEDIA_TYPE: &str = "text/csv";
pub const CSV_CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("text/csv; charset=utf-8; header=present");

/// A record that lists show as CSV.
pub trait CsvRecord: Serialize {
    /// The fields of the record, in this order.
    const COLUMNS: &'static [&'static str];
}

/// Which format the request asks for.
#[derive(Debug, Clone)]
pub struct ListFormat {
    is_csv: bool,
    uri: Uri,
}

impl<S: Sync> FromRequestParts<S> for ListFormat {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self {
            is_csv: accepts_media_type(&parts.headers, CSV_MEDIA_TYPE),
            uri: parts.uri.clone(),
        })
    }
}

impl ListFormat {
    pub fn is_csv(&self) -> bool {
        self.is_csv
    }

    /// Returns a page in the format of the request.
    pub fn respond<T: CsvRecord>(&self, page: Page<T>) -> Response {
        if !self.is_csv {
            return page.into_response();
        }
        let csv = match to_csv(&page.data) {
            Ok(csv) => csv,
            Err(error) => return Problem::internal(&error).into_response(),
        };
        let mut response = ([(header::CONTENT_TYPE, CSV_CONTENT_TYPE)], csv).into_response();
        let next = page.next_cursor.map(|cursor| self.next_link(&cursor));
        if let Some(Ok(next)) = next {
            response.headers_mut().insert(header::LINK, next);
        }
        response
    }

    /// Returns the `Link` to the next page: this request with another cursor.
    fn next_link(&self, cursor: &str) -> Result<HeaderValue, header::InvalidHeaderValue> {
        let pairs = self.uri.query().unwrap_or_default().split('&');
        let mut query: Vec<&str> = pairs
            .filter(|pair| !pair.is_empty() && !pair.starts_with("cursor="))
            .collect();
        let cursor = format!("cursor={cursor}");
        query.push(&cursor);
        let (path, query) = (self.uri.path(), query.join("&"));
        HeaderValue::try_from(format!("<{path}?{query}>; rel=\"next\""))
    }
}

fn to_csv<T: CsvRecord>(records: &[T]) -> serde_json::Result<String> {
    let mut csv = T::COLUMNS.join(",");
    csv.push_str("\r\n");
    for record in records {
        // Raw text keeps amounts exactly as in JSON.
        let json = serde_json::to_string(record)?;
        let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&json)?;
        let mut values = Vec::with_capacity(T::COLUMNS.len());
        for column in T::COLUMNS {
            let value = fields.get(*column).map_or("null", |value| value.get());
            values.push(to_field(value)?);
        }
        csv.push_str(&values.join(","));
        csv.push_str("\r\n");
    }
    Ok(csv)
}

/// Returns a JSON value as a field. Text that a spreadsheet would take for a formula gets an apostrophe.
fn to_field(json: &str) -> serde_json::Result<String> {
    let mut text = match json {
        "null" => String::new(),
        text if text.starts_with('"') => serde_json::from_str(text)?,
        other => other.to_owned(),
    };
    if json.starts_with('"') && text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        text.insert(0, '\'');
    }
    if text.contains(['"', ',', '\r', '\n']) {
        text = format!("\"{}\"", text.replace('"', "\"\""));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_and_formulas_are_text() {
        for (json, field) in [
            ("null", ""),
            ("19.90", "19.90"),
            ("-5.00", "-5.00"),
            ("true", "true"),
            (r#""pro""#, "pro"),
            (r#""a, \"b\"""#, r#""a, ""b""""#),
            (r#""=1+1""#, "'=1+1"),
            (r#""-1""#, "'-1"),
            (r#"{"a":"b"}"#, r#""{""a"":""b""}""#),
        ] {
            assert_eq!(to_field(json).unwrap(), field, "{json}");
        }
    }

    #[test]
    fn next_page_is_the_request_with_another_cursor() {
        let format = |uri: &'static str| ListFormat {
            is_csv: true,
            uri: Uri::from_static(uri),
        };
        let link = format("/users?cursor=a&email_prefix=b").next_link("c");
        assert_eq!(
            link.unwrap(),
            "</users?email_prefix=b&cursor=c>; rel=\"next\""
        );
        let link = format("/users").next_link("c");
        assert_eq!(link.unwrap(), "</users?cursor=c>; rel=\"next\"");
    }
}
