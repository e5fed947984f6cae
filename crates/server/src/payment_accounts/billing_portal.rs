//! `POST /billing-portal-sessions`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use perennial_domain::{Href, PaymentAccount};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    account_api::{AccountApi, open_api_key},
    checkout_body::{
        CreateBillingPortalSession, choose_account, invalid_field, parse_portal, provider_problem,
    },
    customers_sql, list_all,
};
use crate::{
    app::App,
    auth::{Caller, SubscriptionsUpdate},
    http::{
        json::BodyFields,
        problem::{BodyResponses, Code, CommonResponses, Problem, ProblemBody},
        response::NoStore,
    },
    users,
};

/// A page on which a subscriber manages payment methods and invoices.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BillingPortalSession)]
pub struct BillingPortalSessionView {
    /// The payment provider's page. It is valid for a short time and must not be stored.
    #[schema(example = "https://billing.stripe.com/p/session/test_1042")]
    url: String,
}

/// Create a billing portal session
///
/// Returns a page of the payment provider on which the user changes the payment method, reads invoices or cancels. The user
/// must have bought something through a payment account before.
///
/// With a user's access token, which only publishable clients can send, `user_id` is implied.
#[utoipa::path(
    post,
    path = "/billing-portal-sessions",
    tag = "Payment accounts",
    operation_id = "createBillingPortalSession",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    request_body(content = CreateBillingPortalSession, description = "Whose portal is opened."),
    responses(
        (status = 200, description = "The session.", body = BillingPortalSessionView),
        (status = 502, description = "The payment provider rejected the request (`payment_provider_failed`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn create_portal_session(
    State(app): State<Arc<App>>,
    caller: Caller<SubscriptionsUpdate>,
    fields: BodyFields,
) -> Result<NoStore<BillingPortalSessionView>, Problem> {
    let tenant = caller.tenant();
    let own = caller.user();
    let fields = parse_portal(fields, own)?;
    let database = app.database_for(tenant)?;
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let user = users::lock_sql::lock_key_share(&tx, tenant.id, &fields.user).await?;
    let user = fields.user.resolve(user);
    let user = user.map_err(|error| Problem::unknown_references(vec![error]))?;
    tx.rollback().await;
    let customers = customers_sql::list(&connection, tenant.id, user.id).await?;
    let mut accounts = list_all(&connection, tenant.id).await?;
    drop(connection);
    if fields.account.is_none() {
        let is_customer = |account: &PaymentAccount| {
            let mut customers = customers.iter();
            customers.any(|customer| customer.account == account.id)
        };
        accounts.retain(is_customer);
        if accounts.is_empty() {
            return Err(no_customer());
        }
    }
    let account = choose_account(accounts, fields.account, own.is_some(), app.mode)?;
    let customer = { customers.iter() }.find(|customer| customer.account == account.id);
    let customer = customer.ok_or_else(no_customer)?.external_id.as_str();
    let api_key = open_api_key(&app.keys, database, tenant.id, &account).await?;
    let api_key = api_key.ok_or_else(|| {
        let message = "the payment account has no API key";
        invalid_field("payment_account_id", Code::UnknownReference, message)
    })?;
    let return_url = fields.return_url.as_ref().map(Href::as_str);
    let (client, apis) = (&app.payment_client, &app.payment_apis);
    let url = match AccountApi::new(account.provider, client, apis, &api_key) {
        AccountApi::Stripe(api) => {
            { api.create_portal_session(customer, return_url).await }.map(Some)
        }
        AccountApi::LemonSqueezy(api) => api.find_portal_url(customer).await,
    };
    let url = url.map_err(|error| provider_problem(&error))?;
    let url = url.ok_or_else(no_customer)?;
    Ok(NoStore(StatusCode::OK, BillingPortalSessionView { url }))
}

fn no_customer() -> Problem {
    let message = "the user has bought nothing through a payment account";
    invalid_field("user_id", Code::UnknownReference, message)
}
