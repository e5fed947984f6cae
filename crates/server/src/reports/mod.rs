//! Reports: recurring revenue, churn, trials, cohorts and payments.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `GET /reports/revenue` | `revenue_report.rs` | secret clients with `reports:read` |
//! | `GET /reports/churn` | `churn_report.rs` | the same |
//! | `GET /reports/trials` | `trials_report.rs` | the same |
//! | `GET /reports/cohorts` | `cohorts_report.rs` | the same |
//! | `GET /reports/payments` | `payments_report.rs` | the same |
//! | `GET /reports/changes` | `list_changes.rs` | the same |
//!
//! Each change of a subscription or a payment is written to the journal (`revenue_journal.rs`) in its transaction. The
//! roll-up (`roll_up.rs`) adds it to sums by day within seconds, and the endpoints read only these sums, so a report takes
//! as long with ten million subscriptions as with ten. `rebuild.rs` computes the sums again from the journal, and `compare.rs`
//! checks them against the subscriptions.
//!
//! The definitions are in `domain/revenue`.

use std::sync::Arc;

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use perennial_domain::TenantId;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::Caller,
    db::{CellDatabase, PooledConnection},
    http::problem::Problem,
};

mod churn_report;
mod cohort_sums_sql;
mod cohorts_report;
mod compare;
mod copied_states_sql;
mod definitions;
mod figures_sql;
mod journal_sql;
mod levels;
mod list_changes;
mod payment_sums_sql;
mod payments_report;
mod rebuild;
mod report_query;
mod report_view;
mod revenue_report;
mod roll_up;
mod state_sql;
mod sum_spans;
mod sums_sql;
mod trials_report;

use figures_sql::SumsReader;
use report_view::ReportFrame;

pub use churn_report::{ChurnReport, churn_report};
pub use cohorts_report::{CohortsReport, cohorts_report};
pub use compare::{SumComparison, compare_sums};
pub use payments_report::{PaymentsReport, payments_report};
pub use rebuild::{RebuildStep, rebuild_step};
pub use report_query::{ReportInterval, ReportQuery};
pub use report_view::{ReportTable, Tabular};
pub use revenue_report::{RevenueReport, revenue_report};
pub use roll_up::roll_up;
pub use trials_report::{TrialsReport, trials_report};

/// Returns the endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(revenue_report::read_revenue))
        .routes(routes!(churn_report::read_churn))
        .routes(routes!(trials_report::read_trials))
        .routes(routes!(cohorts_report::read_cohorts))
        .routes(routes!(payments_report::read_payments))
        .routes(routes!(list_changes::list_changes))
}

/// What the reports of a tenant are read from.
pub struct ReportContext {
    connection: PooledConnection,
    tenant: TenantId,
    /// Billing time.
    now: Timestamp,
}

impl ReportContext {
    pub async fn new(
        database: &CellDatabase,
        tenant: TenantId,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let connection = database.connection().await?;
        Ok(Self {
            connection,
            tenant,
            now,
        })
    }

    async fn for_caller<P>(app: &App, caller: &Caller<P>) -> Result<Self, Problem> {
        let database = app.database_for(caller.tenant())?;
        Self::new(database, caller.tenant().id, app.billing_clock.now()).await
    }

    /// Returns the current day, in UTC.
    pub fn today(&self) -> Date {
        TimeZone::UTC.to_datetime(self.now).date()
    }

    fn frame(
        &self,
        query: &ReportQuery,
        definitions: &[(&'static str, &'static str)],
    ) -> ReportFrame {
        ReportFrame::new(query, self.now, definitions)
    }

    async fn sums<'a>(&'a mut self, query: &'a ReportQuery) -> Result<SumsReader<'a>, Problem> {
        let filter = query.sums_filter(&self.connection, self.tenant).await?;
        // Otherwise a rebuild that completes meanwhile would delete the generation that is read.
        let tx = self.connection.begin_snapshot().await?;
        tx.force_custom_plans().await?;
        let state = state_sql::find(&tx, self.tenant).await?;
        Ok(SumsReader {
            tx,
            tenant: self.tenant,
            generation: state.generation,
            query,
            filter,
        })
    }
}
