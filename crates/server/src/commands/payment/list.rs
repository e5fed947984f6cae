//! `perennial payment list`

use anyhow::{Context, bail};
use clap::{Args, builder::PossibleValuesParser};
use jiff::Timestamp;
use perennial_domain::{Currency, ExternalId, PaymentStatus, Rfc3339Timestamp, SubscriptionId};

use super::unknown_subscription;
use crate::{
    auth::Tenant,
    commands::{
        explain::{day, money},
        tenant::TenantArg,
        terminal::eprint_wrapped,
        text_table::Listing,
        user_selector::UserIdent,
    },
    db::{CellDatabase, Databases, TimeRange},
    subscription_payments::{self, PAYMENT_ORDERS, PaymentFilter, PaymentOrder, PaymentView},
    subscriptions, users,
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial payment list --sort -created_at --limit 20
  perennial payment list --user ada@example.com
  perennial payment list --external-user-id customer-1042 --status refunded
  perennial payment list --paid-from 2026-11-01T00:00:00Z --currency EUR

Separate several values of a flag by commas. --user, --external-user-id and
--subscription exclude each other.")]
pub struct PaymentListArgs {
    /// The user: an email address, or an id as in `user show`
    #[arg(long, conflicts_with_all = ["external_user_ids", "subscriptions"])]
    user: Option<UserIdent>,
    /// Users by their ids in your system
    #[arg(
        long = "external-user-id",
        value_name = "ID",
        value_delimiter = ',',
        conflicts_with = "subscriptions"
    )]
    external_user_ids: Option<Vec<ExternalId>>,
    /// Subscriptions by their ids (sub_…)
    #[arg(long = "subscription", value_name = "ID", value_delimiter = ',')]
    subscriptions: Option<Vec<SubscriptionId>>,
    /// Statuses, such as completed,refunded
    #[arg(long = "status", value_name = "STATUS", value_delimiter = ',')]
    statuses: Option<Vec<PaymentStatus>>,
    /// The payment provider's or bank's ids of payments
    #[arg(long = "external-payment-id", value_name = "ID", value_delimiter = ',')]
    external_ids: Option<Vec<ExternalId>>,
    /// ISO 4217 codes
    #[arg(long = "currency", value_name = "CODE", value_delimiter = ',')]
    currencies: Option<Vec<Currency>>,
    /// Recorded at or after this time, such as 2026-11-15T09:30:00Z
    #[arg(long, value_name = "TIME")]
    created_from: Option<Rfc3339Timestamp>,
    /// Recorded before this time
    #[arg(long, value_name = "TIME")]
    created_before: Option<Rfc3339Timestamp>,
    /// Paid at or after this time
    #[arg(long, value_name = "TIME")]
    paid_from: Option<Rfc3339Timestamp>,
    /// Paid before this time
    #[arg(long, value_name = "TIME")]
    paid_before: Option<Rfc3339Timestamp>,
    /// The order: created_at or paid_at; with a leading - the newest first. By paid_at, only
    /// payments that were paid are listed [default: created_at, or paid_at with --paid-from or
    /// --paid-before]
    #[arg(long, value_name = "ORDER", allow_hyphen_values = true, hide_possible_values = true,
        value_parser = PossibleValuesParser::new(PAYMENT_ORDERS.map(|(name, _)| name)))]
    sort: Option<String>,
    /// List at most this many payments
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    tenant: TenantArg,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

impl PaymentListArgs {
    pub(super) async fn run(self, db: &Databases) -> anyhow::Result<()> {
        let tenant = self.tenant.resolve(&db.home()?.connection().await?).await?;
        let database = db.cell(&tenant.cell)?;
        let order = self.order()?;
        let filter = self.filter(database, &tenant).await?;
        let mut connection = database.connection().await?;
        let limit = usize::try_from(self.limit)?;
        // One more, to tell whether there are more.
        let row_limit = i64::from(self.limit).saturating_add(1);
        let (tenant, start) = (tenant.id, (order, None));
        let payments = subscription_payments::list_payments(
            &mut connection,
            tenant,
            &filter,
            start,
            row_limit,
        )
        .await?;
        let header = ["ID", "CREATED", "AMOUNT", "STATUS", "EXTERNAL"];
        let mut list = Listing::new(header, self.json);
        for payment in payments.iter().take(limit) {
            let external_id = payment.external_id.as_ref();
            let row = [
                payment.id.to_string(),
                day(payment.created_at),
                money(payment.amount),
                payment.status.to_string(),
                external_id.map_or(String::new(), |id| id.as_str().to_owned()),
            ];
            list.add(row, &serde_json::to_string(&PaymentView::from(payment))?);
        }
        list.print_or("no payments");
        if payments.len() > limit {
            eprint_wrapped(&format!(
                "there are more than {limit} payments; list them with --limit, or fewer with a filter"
            ));
        }
        Ok(())
    }

    fn order(&self) -> anyhow::Result<PaymentOrder> {
        let has_paid_range = self.paid_from.is_some() || self.paid_before.is_some();
        let default_order = if has_paid_range {
            "paid_at"
        } else {
            "created_at"
        };
        let name = self.sort.as_deref().unwrap_or(default_order);
        let order = PAYMENT_ORDERS.iter().find(|(other, _)| *other == name);
        let (_, order) = order.context("--sort: is not a sort order")?;
        if has_paid_range && matches!(order, PaymentOrder::Created(_)) {
            bail!("--sort: must be paid_at or -paid_at with --paid-from or --paid-before");
        }
        Ok(*order)
    }

    /// Returns the conditions of the flags. Fails if a user or subscription does not exist.
    async fn filter(
        &self,
        database: &CellDatabase,
        tenant: &Tenant,
    ) -> anyhow::Result<PaymentFilter> {
        let mut users = None;
        if let Some(user) = &self.user {
            users = Some(vec![user.find_existing(database, tenant).await?.id]);
        }
        if let Some(external_ids) = &self.external_user_ids {
            let found = users::table::find_ids_by_external_id(database, tenant.id, external_ids);
            let found = found.await?;
            if found.is_empty() {
                bail!("--external-user-id: there is no such user in this tenant");
            }
            users = Some(found);
        }
        for id in self.subscriptions.iter().flatten() {
            let owner = subscriptions::table::find_owner(database, tenant.id, *id).await?;
            owner.with_context(|| unknown_subscription(*id))?;
        }
        let range = |from: Option<Rfc3339Timestamp>, before: Option<Rfc3339Timestamp>| {
            let time = |bound: Option<Rfc3339Timestamp>| -> Option<Timestamp> {
                bound.map(Rfc3339Timestamp::get)
            };
            TimeRange {
                from: time(from),
                before: time(before),
            }
        };
        Ok(PaymentFilter {
            users,
            external_user_ids: None,
            subscriptions: self.subscriptions.clone(),
            statuses: self.statuses.clone(),
            external_ids: self.external_ids.clone(),
            currencies: self.currencies.clone(),
            created_at: range(self.created_from, self.created_before),
            paid_at: range(self.paid_from, self.paid_before),
        })
    }
}
