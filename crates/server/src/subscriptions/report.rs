//! Which subscriptions somebody who moves a sandbox's time may want to hear of.

use jiff::Timestamp;
use perennial_domain::{Id, Status, SubscriptionId, TenantId, Turn};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::db::{Connection, Error, Sql, row::Reader};

/// A subscription that got into trouble by itself.
#[derive(Debug)]
pub struct Noticed {
    /// Whose.
    pub email: String,
    /// Which.
    pub subscription: SubscriptionId,
    /// Where it stands.
    pub status: Status,
    /// Whether any payment was ever recorded for it.
    pub any_payment: bool,
    /// When it should have renewed.
    pub renews_at: Option<Timestamp>,
}

impl Noticed {
    /// Why it is there, for people.
    pub fn why(&self) -> String {
        match (self.status, self.renews_at) {
            (Status::PastDue | Status::Unpaid, _) if !self.any_payment => {
                "no payment recorded".to_owned()
            }
            (Status::PastDue | Status::Unpaid, Some(renewal)) => {
                let date = renewal.strftime("%Y-%m-%d");
                format!("nothing has paid for the period from {date}")
            }
            (Status::Expired, _) => "it is over".to_owned(),
            _ => "something was due, and it has gone on since".to_owned(),
        }
    }
}

// The one that was made last is most likely the one that somebody is looking at.
static NOTICED: Sql = Sql::new(
    "WITH troubled AS MATERIALIZED (
        SELECT DISTINCT tenant_id, subject_id FROM events
        WHERE tenant_id = ANY ($1) AND at > $2 AND at <= $3 AND kind = ANY ($4))
     SELECT email, one.id, one.status, one.renews_at, (
        SELECT id FROM subscription_payments
        WHERE subscription_payments.tenant_id = troubled.tenant_id AND subscription_id = one.id LIMIT 1) IS NOT NULL AS any_payment
     FROM troubled,
        LATERAL (SELECT id, user_id, status, renews_at, created_at FROM subscriptions
            WHERE subscriptions.tenant_id = troubled.tenant_id AND subscriptions.id = subject_id AND deleted_at IS NULL
            LIMIT 1) AS one,
        LATERAL (SELECT email FROM users
            WHERE users.tenant_id = troubled.tenant_id AND users.id = one.user_id LIMIT 1) AS whose
     ORDER BY one.created_at DESC LIMIT $5",
);

/// Those that became past due, unpaid or expired by themselves between two instants, the youngest first.
pub async fn noticed(
    connection: &Connection,
    tenants: &[TenantId],
    (from, to): (Timestamp, Timestamp),
    limit: i64,
) -> Result<Vec<Noticed>, Error> {
    let tenants: Vec<Uuid> = tenants.iter().map(|tenant| tenant.uuid()).collect();
    let kinds = [Turn::PastDue, Turn::Unpaid, Turn::Expired].map(|turn| turn.event().as_str());
    let params: [&(dyn ToSql + Sync); 5] = [&tenants, &from, &to, &kinds.as_slice(), &limit];
    let rows = connection.query(&NOTICED, &params).await?;
    rows.iter()
        .map(|row| {
            Ok(Noticed {
                email: row.try_get("email")?,
                subscription: SubscriptionId::new(row.try_get("id")?),
                status: Reader::of(row).text("status")?,
                any_payment: row.try_get("any_payment")?,
                renews_at: row.try_get("renews_at")?,
            })
        })
        .collect()
}
