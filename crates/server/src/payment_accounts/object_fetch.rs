//! Fetches an object from the API of its payment provider, or reads it from notifications.

use perennial_domain::{PaymentAccount, PaymentProvider};
use serde_json::Value;

use super::{
    account_api::{AccountApi, open_api_key},
    account_secrets,
    fetched_object::{CustomerRef, FetchError, FetchedObject},
    lemon_squeezy,
    object_lease_sql::ClaimedObject,
    outcome_sql,
    sync_apply::FactSource,
};
use crate::{
    app::App,
    db::{CellDatabase, Error},
    http::outbound::{ApiErrorCodes, ApiHttpError},
};

/// Fetches an object from the API, or reads its newest notification if the account has no API key.
pub(super) async fn fetch(
    app: &App,
    database: &CellDatabase,
    account: &PaymentAccount,
    item: &ClaimedObject,
) -> Result<(Result<FetchedObject, FetchError>, FactSource), Error> {
    let object = &item.key.object;
    let Some(api_key) = open_api_key(&app.keys, database, item.key.tenant, account).await? else {
        let fetched = match account.provider {
            PaymentProvider::LemonSqueezy => read_newest_payload(app, database, item).await?,
            // An account of Stripe has a key: its objects have no version.
            PaymentProvider::Stripe => {
                let codes = ApiErrorCodes::default();
                Err(ApiHttpError::Unauthorized(401, codes).into())
            }
        };
        return Ok((fetched, FactSource::Notification));
    };
    let api = AccountApi::for_account(app, account, &api_key);
    let mut fetched = api.fetch(object).await;
    // Custom data is in webhook requests only. It is needed for the first match.
    if account.provider == PaymentProvider::LemonSqueezy
        && !item.has_record
        && let Ok(fetched) = &mut fetched
        && let Some(customer) = fetched.customer_mut()
    {
        find_user_token(app, database, item, customer).await?;
    }
    Ok((fetched, FactSource::Api))
}

/// Reads the value that selects a user from the custom data of the latest notification about a subscription.
pub(super) async fn find_user_token(
    app: &App,
    database: &CellDatabase,
    item: &ClaimedObject,
    customer: &mut CustomerRef,
) -> Result<(), Error> {
    let bodies = open_bodies(app, database, item).await?;
    let mut tokens = bodies.iter().filter_map(lemon_squeezy::webhook_user_token);
    customer.user_token = tokens.next().map(str::to_owned);
    customer.may_be_named_later = bodies.is_empty();
    Ok(())
}

/// Returns the bodies of the latest notifications about an object, newest first.
async fn open_bodies(
    app: &App,
    database: &CellDatabase,
    item: &ClaimedObject,
) -> Result<Vec<Value>, Error> {
    let mut bodies = Vec::new();
    for (id, sealed) in outcome_sql::list_bodies(database, &item.key).await? {
        let body = account_secrets::open_body(&app.keys, id, &sealed)?;
        bodies.extend(serde_json::from_slice::<Value>(&body).ok());
    }
    Ok(bodies)
}

/// Returns the newest of the payloads about an object.
async fn read_newest_payload(
    app: &App,
    database: &CellDatabase,
    item: &ClaimedObject,
) -> Result<Result<FetchedObject, FetchError>, Error> {
    let bodies = open_bodies(app, database, item).await?;
    let kind = item.key.object.kind;
    let mut newest: Option<FetchedObject> = None;
    for body in &bodies {
        let mut payload = match lemon_squeezy::resource_fact(kind, body) {
            Ok(payload) => payload,
            // What cannot be read must not be replaced by something older.
            Err(error) if newest.is_none() => return Ok(Err(error.into())),
            Err(_) => continue,
        };
        if let Some(customer) = payload.customer_mut() {
            customer.user_token = lemon_squeezy::webhook_user_token(body).map(str::to_owned);
            customer.may_be_named_later = false;
        }
        let is_newer = match (&payload, &newest) {
            (_, None) => true,
            (
                FetchedObject::Subscription { reported, .. },
                Some(FetchedObject::Subscription {
                    reported: other, ..
                }),
            ) => reported.is_newer_than(other),
            (FetchedObject::Payment(reported), Some(FetchedObject::Payment(other))) => {
                reported.is_newer_than(other)
            }
            (FetchedObject::Purchase(purchase), Some(FetchedObject::Purchase(other))) => {
                purchase.payment.is_newer_than(&other.payment)
            }
            _ => false,
        };
        if is_newer {
            newest = Some(payload);
        }
    }
    let missing = FetchedObject::Unrelated("no notification about the object is stored");
    Ok(Ok(newest.unwrap_or(missing)))
}
