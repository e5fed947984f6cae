//! `PUT /payment-accounts/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{EventKind, PaymentAccount, PaymentAccountId};
use secrecy::ExposeSecret;

use super::{
    account_secrets,
    body::{ApiKeyChange, PaymentAccountChanges, UpdatePaymentAccount, parse_update},
    table,
    view::{PaymentAccountEvent, PaymentAccountView},
};
use crate::{
    app::App,
    auth::{Caller, PaymentAccountsWrite, notify_payment_account_changed},
    crypto::DerivedKeys,
    db::CellDatabase,
    events,
    http::{
        etag::IfMatch,
        json::BodyFields,
        openapi::{IfMatchParam, PaymentAccountIdPath},
        path_param::PathParam,
        problem::{BodyResponses, CommonResponses, ConditionalResponses, Problem, ProblemBody},
        response::OkJson,
    },
    record::{ChangeContext, ChangeOrigin, Locked, not_found},
};

/// Update a payment account
///
/// Changes only the fields in the request.
#[utoipa::path(
    put,
    path = "/payment-accounts/{id}",
    tag = "Payment accounts",
    operation_id = "updatePaymentAccount",
    params(
        PaymentAccountIdPath,
        IfMatchParam,
    ),
    request_body(content = UpdatePaymentAccount, description = "The fields to change."),
    responses(
        (status = 200, description = "The account.", body = PaymentAccountView),
        (status = 404, description = "There is no such account (`payment_account_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        ConditionalResponses,
        BodyResponses,
    ),
)]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentAccountsWrite>,
    PathParam(id): PathParam<PaymentAccountId>,
    if_match: IfMatch,
    fields: BodyFields,
) -> Result<OkJson<PaymentAccountView>, Problem> {
    let id = id.map_err(not_found::<PaymentAccount>)?;
    let database = app.database_for(caller.tenant())?;
    let origin = ChangeOrigin::new(&caller, app.ids, app.clock);
    let account = update_account(database, &origin, &app.keys, id, &if_match, fields).await?;
    app.payment_accounts.invalidate(&caller.tenant().cell);
    Ok(OkJson(PaymentAccountView::from(&account)))
}

/// Updates an account in a transaction and returns it.
pub async fn update_account(
    database: &CellDatabase,
    origin: &ChangeOrigin<'_>,
    keys: &DerivedKeys,
    id: PaymentAccountId,
    if_match: &IfMatch,
    fields: BodyFields,
) -> Result<PaymentAccount, Problem> {
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let row = table::lock(&tx, origin.tenant.id, id).await?;
    let Locked { record, now, .. } = Locked::new(row, id, origin.clock, if_match)?;
    let changes = parse_update(fields, &record)?;
    let account = save(&origin.context(now, &tx), keys, record, changes).await?;
    tx.commit().await?;
    Ok(account)
}

/// Stores the changes of a locked account and records their event, if there are any.
async fn save(
    context: &ChangeContext<'_>,
    keys: &DerivedKeys,
    record: PaymentAccount,
    changes: PaymentAccountChanges,
) -> Result<PaymentAccount, Problem> {
    let PaymentAccountChanges { details, api_key } = changes;
    // A key that is sent again is not compared with the stored one.
    let (is_new_key, has_api_key) = match &api_key {
        ApiKeyChange::Keep => (false, record.has_api_key),
        ApiKeyChange::Remove => (record.has_api_key, false),
        ApiKeyChange::Replace(_) => (true, true),
    };
    if !is_new_key && details == record.details {
        return Ok(record);
    }
    let account = PaymentAccount {
        details,
        has_api_key,
        updated_at: context.now,
        ..record.clone()
    };
    table::update(context.tx, context.tenant, &account).await?;
    if is_new_key {
        let owner = account_secrets::api_key_owner(account.id);
        let sealed = match api_key {
            ApiKeyChange::Replace(key) => Some(keys.seal(key.expose_secret(), &owner)),
            ApiKeyChange::Keep | ApiKeyChange::Remove => None,
        };
        table::set_api_key(context.tx, context.tenant, account.id, sealed.as_ref()).await?;
    }
    notify_payment_account_changed(context.tx, account.id).await?;
    let (old, new) = (
        PaymentAccountEvent::from(&record),
        PaymentAccountEvent::from(&account),
    );
    let data = events::diff(&old, &new)?;
    context
        .record_event(EventKind::PaymentAccountUpdated, account.id, &data)
        .await?;
    Ok(account)
}
