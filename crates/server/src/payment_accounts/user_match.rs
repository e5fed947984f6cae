//! Which user a payment provider's customer is.
//!
//! In this order: the signed value in the custom data, the user of another subscription of the customer, the user with the
//! customer's email address, and a user that is created ahead of time, unless the account's `creates_users` is false. A customer
//! of an erased user gets no new user, because that would store the erased address again.
//!
//! An address is that of a user if an identity provider has verified it, or if the tenant's own server has stated it. So a
//! person who signs up with the address of another one gets nothing: sign-up requires a verified address.

use perennial_domain::{Email, EventKind, Id, PaymentObjectKind, User, UserId};

use super::{
    fetched_object::CustomerRef,
    provider_notification::PaymentObjectRef,
    sync_apply::ObjectSync,
    sync_sql::{self, AwaitedRecord, ObjectKey},
    user_token,
};
use crate::{
    db::Error,
    record::ChangeContext,
    users::{self, KnownUser, UserEvent, UserRef},
};

/// The result of looking for a user.
pub enum UserMatch {
    /// The user is locked against erasure.
    Found(KnownUser),
    /// No user: what the subscription waits for, and why.
    Missing(AwaitedRecord, &'static str),
    /// A concurrent transaction has created the user.
    Conflict,
}

/// Returns the user with an address, or any user that is created if the address must not be stored.
fn awaited(address: Option<&Email>) -> AwaitedRecord {
    match address {
        Some(address) => AwaitedRecord {
            kind: "user",
            ids: vec![address.normalized().to_owned()],
        },
        None => AwaitedRecord {
            kind: "new_user",
            ids: Vec::new(),
        },
    }
}

/// Returns what a subscription waits for whose user only another notification can name.
pub(super) fn awaited_notification() -> AwaitedRecord {
    AwaitedRecord {
        kind: "notification",
        ids: Vec::new(),
    }
}

/// Returns the key of a customer.
pub fn customer_key(subscription: &ObjectKey, customer: &CustomerRef) -> ObjectKey {
    ObjectKey {
        object: PaymentObjectRef {
            kind: PaymentObjectKind::Customer,
            id: customer.id.clone(),
        },
        ..subscription.clone()
    }
}

/// Finds the user of a customer, or creates it.
pub(super) async fn find_or_create_user(
    sync: &ObjectSync<'_>,
    context: &ChangeContext<'_>,
    customer: &CustomerRef,
) -> Result<UserMatch, Error> {
    let (app, subscription) = (sync.app, sync.key());
    let token = customer.user_token.as_deref();
    let signed = token.and_then(|token| user_token::verify(&app.keys, subscription.account, token));
    let known = sync_sql::find_record(sync.database, &customer_key(subscription, customer)).await?;
    let candidates = [signed, known.map(UserId::new)];
    for user in candidates.into_iter().flatten() {
        if let Some(user) = lock(context, user).await? {
            return Ok(UserMatch::Found(user));
        }
    }
    let is_erased = candidates.iter().any(Option::is_some);
    let email = customer.email.as_deref();
    let Some(email) = email.and_then(|email| email.parse::<Email>().ok()) else {
        let reason = "no user: the customer has no email address";
        return Ok(UserMatch::Missing(awaited_notification(), reason));
    };
    let found = users::lock_sql::lock_by_email(context.tx, context.tenant, &email).await?;
    if let Some((user, _)) = found {
        return Ok(UserMatch::Found(KnownUser {
            id: user.id,
            external_id: user.external_id,
        }));
    }
    if is_erased {
        let reason = "no user: the customer's user was erased";
        return Ok(UserMatch::Missing(awaited(None), reason));
    }
    if !sync.creates_users {
        let reason = "no user: no user has the customer's address, and the payment account does not create users";
        return Ok(UserMatch::Missing(awaited(Some(&email)), reason));
    }
    let now = app.clock.now();
    let user = User::with_email(email, app.ids.generate(now), now);
    if !users::table::insert(context.tx, context.tenant, &user).await? {
        return Ok(UserMatch::Conflict);
    }
    let data = UserEvent::created(&user);
    context
        .record_event_at(now, EventKind::UserCreated, user.id, &data)
        .await?;
    Ok(UserMatch::Found(KnownUser {
        id: user.id,
        external_id: None,
    }))
}

async fn lock(context: &ChangeContext<'_>, user: UserId) -> Result<Option<KnownUser>, Error> {
    users::lock_sql::lock_key_share(context.tx, context.tenant, &UserRef::Id(user)).await
}
