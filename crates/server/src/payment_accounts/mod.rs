//! Payment accounts: a tenant's accounts with payment providers, and the notifications that the providers send.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `GET /payment-accounts` | `list.rs` | secret clients with `payment_accounts:read` |
//! | `POST /payment-accounts` | `create.rs` | secret clients with `payment_accounts:write` |
//! | `GET /payment-accounts/{id}` | `read.rs` | secret clients with `payment_accounts:read` |
//! | `PUT /payment-accounts/{id}` | `update.rs` | secret clients with `payment_accounts:write` |
//! | `DELETE /payment-accounts/{id}` | `delete.rs` | secret clients with `payment_accounts:write` |
//! | `POST /payment-accounts/{id}/rotate-secret` | `rotate_account_secret.rs` | secret clients with `payment_accounts:write` |
//! | `POST /payment-notifications/{id}` | `receive.rs` | signed with a secret of the account `{id}` |
//! | `GET /payment-notifications` | `list_notifications.rs` | secret clients with `payment_accounts:read` |
//! | `GET /payment-notifications/{id}` | `read_notification.rs` | secret clients with `payment_accounts:read` |
//! | `POST /checkouts` | `checkout.rs` | secret clients with `subscriptions:write`; users buy for themselves |
//! | `POST /billing-portal-sessions` | `billing_portal.rs` | secret clients with `subscriptions:write`; users open their own |
//! | `POST /payment-notifications/{id}/replay` | `replay.rs` | secret clients with `payment_accounts:write` |
//!
//! A notification is a hint: it says that an object of the provider may have changed. It is stored, and the object is marked
//! as dirty, in one transaction. A queue task fetches the object and applies it ([`sync_worker`]). Another one sends commands,
//! such as cancellations, to the providers ([`command_worker`]). Each provider has a folder with the same functions, and [`notification_signature`],
//! [`provider_notification`] and [`fetched_object`] have what they share.

use std::sync::Arc;

use jiff::Timestamp;
use perennial_domain::{EventKind, Id, PaymentAccount, PaymentAccountId};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    db::{AgeKey, Sql},
    http::problem::Code,
    record::Record,
};

mod account_api;
mod account_pauses;
pub mod account_secrets;
mod backlog_sql;
mod billing_portal;
mod body;
mod checkout;
mod checkout_body;
mod checkout_request;
mod command_worker;
mod commands_sql;
mod connect;
mod create;
mod customers_sql;
mod delete;
mod fetched_object;
mod lemon_squeezy;
mod list;
mod list_notifications;
mod list_page;
mod list_position_sql;
mod list_report;
mod list_walk;
mod listed_apply;
mod listed_sql;
mod notification_signature;
pub mod notifications_sql;
mod object_fetch;
mod object_lease_sql;
mod objects_sql;
mod outcome_sql;
mod page_apply;
mod payment_sync;
mod provider_metrics;
mod provider_notification;
mod purchase_sync;
mod read;
mod read_notification;
mod receive;
mod reconcile;
mod reconcile_sql;
mod replay;
mod request_retries;
pub mod retention_sql;
mod rotate_account_secret;
mod sellable;
mod stripe;
mod subscription_sync;
pub mod support_sql;
mod sync_apply;
mod sync_sql;
mod sync_worker;
pub mod table;
mod update;
mod user_match;
pub mod user_token;
mod view;

pub use account_api::{AccountApi, open_api_key};
pub use backlog_sql::{PaymentBacklog, measure_backlog};
pub use body::{NewPaymentAccount, parse_create, parse_secret};
pub use command_worker::{PaymentCommandWorker, send_payment_command};
pub use commands_sql::ClaimedCommand;
pub use connect::{
    ConnectedAccount, ProviderWebhook, WebhookState, create_webhook, delete_webhooks, find_account,
    find_webhook,
};
pub use create::insert_account;
pub use delete::delete_account;
pub use fetched_object::FetchError;
pub use list::list_all;
pub use list_report::{ListCounts, ListReport, PaymentTotal};
pub use list_walk::{ListWalk, WalkError, WalkPurpose};
pub use provider_metrics::register_metrics;
pub use receive::RECEIVE_PATH;
pub use reconcile::{RECONCILE_TASK, reconcile_accounts};
pub use replay::replay_notification;
pub use rotate_account_secret::rotate_secret;
pub use sellable::{SellablePrice, UnsellablePrice};
pub use sync_worker::{HeldObject, PaymentSyncWorker, sync_object};
pub use update::update_account;
pub use view::{PaymentAccountView, PaymentNotificationView, PaymentSecretView};

/// Returns the endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list::list, create::create))
        .routes(routes!(read::read, update::update, delete::delete))
        .routes(routes!(rotate_account_secret::rotate))
        .routes(routes!(list_notifications::list_notifications))
        .routes(routes!(
            read_notification::read_notification,
            receive::receive
        ))
        .routes(routes!(replay::replay))
        .routes(routes!(checkout::create_checkout))
        .routes(routes!(billing_portal::create_portal_session))
}

impl Record for PaymentAccount {
    type Id = PaymentAccountId;
    type View = PaymentAccountView;

    const NOUN: &'static str = "payment account";
    const KEY: &'static str = "id";
    const NOT_FOUND: Code = Code::PaymentAccountNotFound;
    const DELETED: EventKind = EventKind::PaymentAccountDeleted;
    const SOFT_DELETE: &'static Sql = &table::SOFT_DELETE;

    fn id(&self) -> PaymentAccountId {
        self.id
    }

    fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    fn view(&self, _now: Timestamp) -> PaymentAccountView {
        PaymentAccountView::from(self)
    }
}

fn age_key(account: &PaymentAccount) -> AgeKey {
    AgeKey {
        created_at: account.created_at,
        id: account.id.uuid(),
    }
}
