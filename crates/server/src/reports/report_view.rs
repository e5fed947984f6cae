//! What all reports share: the frame of a response, amounts, rates, and the table for CSV.

use std::collections::BTreeMap;

use axum::{
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use jiff::{Timestamp, civil::Date};
use perennial_domain::{Currency, format_minor_units, monthly_value};
use serde::Serialize;
use utoipa::ToSchema;

use super::report_query::ReportQuery;
use crate::http::{
    accept::accepts_media_type,
    csv_list::{CSV_CONTENT_TYPE, CSV_MEDIA_TYPE},
    response::{OkJson, timestamp},
};

/// What a report covers.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportFrame {
    /// The time of the report.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    as_of: Timestamp,
    /// The first day, in UTC.
    #[serde(serialize_with = "day")]
    #[schema(value_type = String, format = Date, example = "2025-12-01")]
    from: Date,
    /// The last day, in UTC.
    #[serde(serialize_with = "day")]
    #[schema(value_type = String, format = Date, example = "2026-11-15")]
    to: Date,
    /// The length of the intervals.
    #[schema(example = "month")]
    interval: &'static str,
    /// What each figure means, and what it leaves out.
    #[schema(example = json!({"expansion": "Added MRR of users who already paid."}))]
    definitions: BTreeMap<&'static str, &'static str>,
}

impl ReportFrame {
    pub(super) fn new(
        query: &ReportQuery,
        as_of: Timestamp,
        definitions: &[(&'static str, &'static str)],
    ) -> Self {
        Self {
            as_of,
            from: query.from,
            to: query.to,
            interval: query.interval.as_str(),
            definitions: definitions.iter().copied().collect(),
        }
    }
}

/// Serializes a day as `2026-11-15`.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde requires"
)]
pub(super) fn day<S: serde::Serializer>(day: &Date, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(day)
}

/// A recurring amount: exact per year, and rounded per month.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RecurringAmount {
    /// Per month: a twelfth of `arr`, rounded to the currency's minor unit.
    #[schema(example = "1999.00")]
    pub mrr: String,
    /// Per year, exact.
    #[schema(example = "23988.00")]
    pub arr: String,
}

impl RecurringAmount {
    pub(super) fn new(annual_value: i128, currency: Currency) -> Self {
        Self {
            mrr: format_minor_units(monthly_value(annual_value), currency),
            arr: format_minor_units(annual_value, currency),
        }
    }
}

/// Returns a fraction of two sums with four decimal places, rounded half away from zero; `None` if the whole is zero.
pub(super) fn rate(part: i128, whole: i128) -> Option<String> {
    if whole == 0 {
        return None;
    }
    let scaled = part.saturating_mul(10_000);
    let half = whole.abs() / 2;
    let rounded = if (scaled < 0) == (whole < 0) {
        (scaled.abs() + half) / whole.abs()
    } else {
        -((scaled.abs() + half) / whole.abs())
    };
    let sign = if rounded < 0 { "-" } else { "" };
    let magnitude = rounded.unsigned_abs();
    Some(format!(
        "{sign}{}.{:04}",
        magnitude / 10_000,
        magnitude % 10_000
    ))
}

/// A table: the report without its nesting.
#[derive(Debug, Clone, Default)]
pub struct ReportTable {
    pub header: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
}

impl ReportTable {
    /// Returns the table as CSV (RFC 4180). No value contains a comma, a quote or a line break.
    pub fn to_csv(&self) -> String {
        let mut csv = self.header.join(",");
        csv.push_str("\r\n");
        for row in &self.rows {
            csv.push_str(&row.join(","));
            csv.push_str("\r\n");
        }
        csv
    }
}

/// A report that has a table.
pub trait Tabular: Serialize {
    fn table(&self) -> ReportTable;
}

/// Returns the report as CSV if the request asks for it, and as JSON otherwise.
pub(super) fn respond(headers: &HeaderMap, report: &impl Tabular) -> Response {
    if accepts_media_type(headers, CSV_MEDIA_TYPE) {
        let csv = report.table().to_csv();
        return ([(header::CONTENT_TYPE, CSV_CONTENT_TYPE)], csv).into_response();
    }
    OkJson(report).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_rounded_half_away_from_zero() {
        assert_eq!(rate(1, 3).unwrap(), "0.3333");
        assert_eq!(rate(2, 3).unwrap(), "0.6667");
        assert_eq!(rate(-1, 20_000).unwrap(), "-0.0001");
        assert_eq!(rate(3, 2).unwrap(), "1.5000");
        assert_eq!(rate(1, 0), None);
    }
}
