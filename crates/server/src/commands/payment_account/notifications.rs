//! `perennial payment-account notifications` and `replay`

use clap::Args;
use perennial_domain::{NotificationState, PaymentAccountId, PaymentNotificationId};

use crate::{
    clock::Clock,
    commands::{
        bootstrap, explain::date, request_fields::into_error, tenant::TenantArg,
        terminal::print_wrapped, text_table::Listing,
    },
    config::Mode,
    db::{AgeOrder, Databases},
    payment_accounts::{
        self, PaymentNotificationView,
        notifications_sql::{self, NotificationFilter, PaymentNotification},
    },
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial payment-account notifications --state failed,refused
  perennial payment-account notifications --object sub_1042
  perennial payment-account notifications --type invoice.paid --limit 100")]
pub struct PaymentNotificationsArgs {
    /// List only notifications to this account (pac_…)
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<PaymentAccountId>,
    /// List only notifications in these states: new, done, ignored, waiting, failed or refused
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<NotificationState>,
    /// List only notifications of this type of the payment provider
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// List only notifications about the payment provider's object with this id, such as sub_1042
    #[arg(long, value_name = "ID")]
    object: Option<String>,
    /// List at most this many notifications
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    tenant: TenantArg,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct PaymentReplayArgs {
    /// The notification's id (pnt_…)
    #[arg(value_name = "NOTIFICATION")]
    id: PaymentNotificationId,
    #[command(flatten)]
    tenant: TenantArg,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn object(notification: &PaymentNotification) -> String {
    let object = notification.content.object.as_ref();
    object.map_or_else(String::new, |object| object.id.clone())
}

fn state(notification: &PaymentNotification) -> String {
    let content = &notification.content;
    match &content.reason {
        Some(reason) => format!("{}: {reason}", content.state),
        None => content.state.to_string(),
    }
}

impl PaymentNotificationsArgs {
    pub(super) async fn run(self, db: &Databases) -> anyhow::Result<()> {
        let tenant = self.tenant.resolve(&db.home()?.connection().await?).await?;
        let mut connection = db.cell(&tenant.cell)?.connection().await?;
        let filter = NotificationFilter {
            accounts: self.account.map(|account| vec![account]),
            states: Some(self.state).filter(|states| !states.is_empty()),
            event_types: self.event_type.map(|event_type| vec![event_type]),
            object_ids: self.object.map(|object| vec![object]),
            ..NotificationFilter::default()
        };
        let (start, limit) = ((AgeOrder::NewestFirst, None), self.limit.into());
        let notifications =
            notifications_sql::list(&mut connection, tenant.id, &filter, start, limit).await?;
        let header = ["ID", "TYPE", "OBJECT", "STATE", "RECEIVED"];
        let mut list = Listing::new(header, self.json);
        for notification in &notifications {
            let row = [
                notification.id.to_string(),
                notification.content.event_type.clone(),
                object(notification),
                state(notification),
                date(notification.created_at),
            ];
            let view = serde_json::to_string(&PaymentNotificationView::from(notification))?;
            list.add(row, &view);
        }
        list.print_or("no notifications");
        Ok(())
    }
}

impl PaymentReplayArgs {
    pub(super) async fn run(self, db: &Databases, mode: Mode) -> anyhow::Result<()> {
        let home = db.home()?.connection().await?;
        let tenant = self.tenant.resolve(&home).await?;
        let keys = bootstrap::derived_keys(&home, mode).await?;
        drop(home);
        let database = db.cell(&tenant.cell)?;
        let replayed = payment_accounts::replay_notification(
            database,
            &keys,
            Clock::System,
            tenant.id,
            self.id,
        );
        let notification = replayed.await.map_err(into_error)?;
        if self.json {
            let view = PaymentNotificationView::from(&notification);
            println!("{}", serde_json::to_string(&view)?);
        } else {
            print_wrapped(&format!("{}  {}", notification.id, state(&notification)));
        }
        Ok(())
    }
}
