//! SQL of cohorts: how many users of a month still pay later, and how much.

use jiff::civil::Date;
use perennial_domain::{Currency, Id};
use tokio_postgres::{Row, types::ToSql};

use super::figures_sql::SumsReader;
use crate::db::{Error, RowReader, Sql};

static COHORTS: Sql = Sql::new(
    "SELECT currency, cohort_month, month, joined, users, arr_minor::text FROM revenue_cohorts
     WHERE tenant_id = $1 AND generation = $2 AND cohort_month >= date_trunc('month', $3::date::timestamp)::date
       AND cohort_month <= $4 AND month <= $4 AND ($5::text IS NULL OR currency = $5)
     ORDER BY currency, cohort_month, month",
);

/// A sum of a cohort.
pub(super) struct CohortSum {
    pub currency: Currency,
    pub cohort: Date,
    pub month: Date,
    pub joined: i64,
    pub users: i64,
    pub annual_value: i128,
}

impl SumsReader<'_> {
    /// Reads the cohorts of the months of the period.
    pub async fn cohorts(&self) -> Result<Vec<CohortSum>, Error> {
        let params: [&(dyn ToSql + Sync); 5] = [
            &self.tenant.uuid(),
            &self.generation,
            &self.query.from,
            &self.query.to,
            &self.filter.currency.map(Currency::code),
        ];
        let rows = self.tx.query(&COHORTS, &params).await?;
        let read = |row: &Row| {
            let row = RowReader::new(row);
            Ok(CohortSum {
                currency: row.parse("currency")?,
                cohort: row.get("cohort_month")?,
                month: row.get("month")?,
                joined: row.get("joined")?,
                users: row.get("users")?,
                annual_value: row.parse("arr_minor")?,
            })
        };
        rows.iter().map(read).collect()
    }
}
