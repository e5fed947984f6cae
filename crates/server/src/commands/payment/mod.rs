//! `perennial payment`: lists payments and records payments and refunds, as the API does. The commands
//! move no money.

use anyhow::Context;
use clap::{Args, Subcommand};
use perennial_domain::{Currency, Payment, PaymentId, PaymentStatus, SubscriptionId};

use super::{
    bootstrap,
    explain::{self, money, print_metadata},
    request_fields::{MetadataArgs, RequestFields, into_error},
    tenant::TenantArg,
    terminal::print_wrapped,
};
use crate::{
    auth::Tenant,
    db::Databases,
    http::etag::IfMatch,
    subscription_payments::{self, PaymentView, table},
    subscriptions,
};

mod list;

#[derive(Debug, Subcommand)]
pub enum PaymentCommand {
    /// List payments, as GET /payments does: all, or those that match the flags
    List(list::PaymentListArgs),
    /// Record a payment that was made elsewhere, as POST /subscription-payments does
    #[command(after_help = "Examples:
  perennial payment record --amount 19.99 \\
    --subscription sub_0192f0c1a2b37c4d8e5f60718293a4b5
  perennial payment record --amount 19.99 --external-payment-id INV-1042 \\
    --subscription sub_0192f0c1a2b37c4d8e5f60718293a4b5

With --external-payment-id, a repeated command is refused instead of recording
the payment twice.")]
    Record(PaymentRecordArgs),
    /// Record a refund that was made elsewhere, as PUT /subscription-payments/{payment_id} does
    #[command(after_help = "Examples:
  perennial payment refund pay_0192f0c1a2b37c4d8e5f60718293a4b5
  perennial payment refund INV-1042 --refunded-amount 5.00

A refund does not end the subscription.")]
    Refund(PaymentRefundArgs),
}

#[derive(Debug, Args)]
pub struct PaymentRecordArgs {
    /// The id of the subscription that it pays for (sub_…)
    #[arg(long, value_name = "ID")]
    subscription: SubscriptionId,
    /// The amount, such as 19.99
    #[arg(long)]
    amount: String,
    /// ISO 4217 code [default: the subscription's]
    #[arg(long)]
    currency: Option<Currency>,
    /// The status. The API's default is pending
    #[arg(long, default_value = "completed")]
    status: PaymentStatus,
    /// The payment provider's or bank's id of the payment, unique within the tenant
    #[arg(long, value_name = "ID")]
    external_payment_id: Option<String>,
    /// When the payer paid, such as 2026-11-15T09:30:00Z [default: now, if it is completed]
    #[arg(long, value_name = "TIME")]
    paid_at: Option<String>,
    /// Why the payment failed
    #[arg(long, value_name = "REASON")]
    failure_reason: Option<String>,
    #[command(flatten)]
    metadata: MetadataArgs,
    #[command(flatten)]
    tenant: TenantArg,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct PaymentRefundArgs {
    /// The payment's id (pay_…), or its external payment id
    payment: String,
    /// The total that has been refunded so far, if it is less than the amount
    #[arg(long, value_name = "AMOUNT")]
    refunded_amount: Option<String>,
    #[command(flatten)]
    metadata: MetadataArgs,
    #[command(flatten)]
    tenant: TenantArg,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl PaymentCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, _) = bootstrap::open().await?;
        db.wait_until_connected().await;
        match self {
            Self::List(args) => args.run(&db).await,
            Self::Record(args) => args.run(&db).await,
            Self::Refund(args) => args.run(&db).await,
        }
    }
}

fn unknown_subscription(id: SubscriptionId) -> String {
    format!("there is no subscription {id}; `perennial user show` lists a user's")
}

impl PaymentRecordArgs {
    async fn run(self, db: &Databases) -> anyhow::Result<()> {
        let tenant = self.tenant.resolve(&db.home()?.connection().await?).await?;
        let database = db.cell(&tenant.cell)?;
        let id = self.subscription;
        let scope = subscriptions::scope(&tenant);
        let subscription = subscriptions::table::find(database, scope, id).await?;
        let subscription = subscription.with_context(|| unknown_subscription(id))?;
        let currency = self.currency.unwrap_or(subscription.plan.price.currency());
        let body = RequestFields::default()
            .with("subscription_id", Some(id.to_string()))
            .with("amount", Some(self.amount))
            .with("currency", Some(currency.code()))
            .with("status", Some(self.status.as_str()))
            .with("external_payment_id", self.external_payment_id)
            .with("paid_at", self.paid_at)
            .with("failure_reason", self.failure_reason)
            .with_metadata(self.metadata)
            .into_body()?;
        let new = subscription_payments::parse_create(body).map_err(into_error)?;
        let clock = bootstrap::clocks(db).await?.billing;
        let origin = bootstrap::change_origin(&tenant, clock);
        let mut connection = database.connection().await?;
        let tx = connection.begin();
        let payment = subscription_payments::record_payment(&tx, database, &origin, new).await;
        let payment = payment.map_err(into_error)?;
        tx.commit().await?;
        drop(connection);
        print(db, &tenant, &payment, self.json).await
    }
}

impl PaymentRefundArgs {
    async fn run(self, db: &Databases) -> anyhow::Result<()> {
        let tenant = self.tenant.resolve(&db.home()?.connection().await?).await?;
        let database = db.cell(&tenant.cell)?;
        let id = match self.payment.parse::<PaymentId>() {
            Ok(id) => Some(id),
            Err(_) => table::find_by_external_id(database, tenant.id, &self.payment).await?,
        };
        let payment = &self.payment;
        let unknown = || {
            format!(
                "there is no payment {payment}, and none with this external payment id; `perennial payment list` lists them"
            )
        };
        let id = id.with_context(unknown)?;
        let status = match &self.refunded_amount {
            Some(_) => PaymentStatus::PartiallyRefunded,
            None => PaymentStatus::Refunded,
        };
        let body = RequestFields::default()
            .with("status", Some(status.as_str()))
            .with("refunded_amount", self.refunded_amount)
            .with_metadata(self.metadata)
            .into_body()?;
        let clock = bootstrap::clocks(db).await?.billing;
        let origin = bootstrap::change_origin(&tenant, clock);
        subscription_payments::update_payment(database, &origin, id, &IfMatch::ABSENT, body)
            .await
            .map_err(into_error)?;
        let payment = table::find(database, tenant.id, id, None).await?;
        print(db, &tenant, &payment.with_context(unknown)?, self.json).await
    }
}

/// Prints a payment, and what it did to its subscription.
async fn print(
    db: &Databases,
    tenant: &Tenant,
    payment: &Payment,
    json: bool,
) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string(&PaymentView::from(payment))?);
        return Ok(());
    }
    let refunded = match (payment.status, payment.refunded) {
        (PaymentStatus::PartiallyRefunded, Some(refunded)) => format!(", {refunded} refunded"),
        _ => String::new(),
    };
    let (amount, status) = (money(payment.amount), payment.status);
    print_wrapped(&format!("{}  {amount} {status}{refunded}", payment.id));
    print_metadata("    ", &payment.metadata);
    let (database, scope) = (db.cell(&tenant.cell)?, subscriptions::scope(tenant));
    let subscription = subscriptions::table::find(database, scope, payment.subscription).await?;
    if let Some(subscription) = subscription {
        let now = bootstrap::clocks(db).await?.billing.now();
        let sentence = explain::sentence(&subscription, now);
        print_wrapped(&format!("{}  {sentence}", subscription.id));
    }
    Ok(())
}
