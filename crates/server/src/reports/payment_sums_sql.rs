//! SQL of the payments report: reads the sums of payments, grouped by interval.

use perennial_domain::{Currency, Id, PaymentTotalKind};
use tokio_postgres::{Row, types::ToSql};

use super::{
    figures_sql::{Bucket, SumsReader},
    report_query::ReportInterval,
};
use crate::db::{Error, RowReader, Sql};

macro_rules! payments {
    ($columns:literal, $groups:literal) => {
        Sql::new(concat!(
            "SELECT currency, kind, ",
            $columns,
            " FROM payments_daily
              WHERE tenant_id = $1 AND generation = $2 AND day >= $3 AND day <= $4 AND ($5::text IS NULL OR currency = $5) ",
            $groups
        ))
    };
}

static GROUPED: Sql = payments!(
    "date_trunc($6, day::timestamp)::date AS bucket, sum(payments)::bigint AS payments, sum(amount_minor)::text AS amount_minor",
    "GROUP BY bucket, currency, kind"
);

/// The rows of each day as they are: a day has one for each currency and kind.
static DAILY: Sql = payments!(
    "day AS bucket, payments, amount_minor::text AS amount_minor",
    ""
);

/// A sum of payments.
pub(super) struct PaymentSum {
    pub bucket: Bucket,
    pub currency: Currency,
    pub kind: PaymentTotalKind,
    pub payments: i64,
    pub amount: i128,
}

impl SumsReader<'_> {
    pub async fn payments(&self) -> Result<Vec<PaymentSum>, Error> {
        let tenant = self.tenant.uuid();
        let currency = self.filter.currency.map(Currency::code);
        let interval = self.query.interval.as_str();
        let mut params: Vec<&(dyn ToSql + Sync)> = vec![
            &tenant,
            &self.generation,
            &self.query.from,
            &self.query.to,
            &currency,
        ];
        let sql = if self.query.interval == ReportInterval::Day {
            &DAILY
        } else {
            params.push(&interval);
            &GROUPED
        };
        let rows = self.tx.query(sql, &params).await?;
        let read = |row: &Row| {
            let row = RowReader::new(row);
            Ok(PaymentSum {
                bucket: row.get("bucket")?,
                currency: row.parse("currency")?,
                kind: row.parse("kind")?,
                payments: row.get("payments")?,
                amount: row.parse("amount_minor")?,
            })
        };
        rows.iter().map(read).collect()
    }
}
