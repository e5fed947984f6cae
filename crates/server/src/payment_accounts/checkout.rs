//! `POST /checkouts`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use jiff::Timestamp;
use perennial_domain::{BillingCycle, Email, Href, PaymentAccount, Plan, PlanId, TenantId, User};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    account_api::{AccountApi, open_api_key},
    checkout_body::{
        CheckoutFields, CreateCheckout, choose_account, invalid_field, parse_checkout,
        provider_problem,
    },
    checkout_request::{CheckoutRequest, CreatedCheckout, sold_variant},
    customers_sql, lemon_squeezy, list_all, user_token,
};
use crate::{
    app::App,
    auth::{Caller, SubscriptionsUpdate},
    db::CellDatabase,
    http::{
        idempotency::IdempotencyKey,
        json::BodyFields,
        openapi::IdempotencyKeyParam,
        problem::{BodyResponses, Code, CommonResponses, Problem, ProblemBody},
        response::{NoStore, timestamp_or_null},
    },
    subscription_plans, subscriptions, users,
};

/// A payment page.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Checkout)]
pub struct CheckoutView {
    /// The payment provider's page. Send the buyer there.
    #[schema(example = "https://checkout.stripe.com/c/pay/cs_test_1042")]
    url: String,
    /// Until when the page can be used; null if it does not expire.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = "2026-11-16T09:30:00.000000Z")]
    expires_at: Option<Timestamp>,
}

/// Create a checkout
///
/// Returns a page of the payment provider on which the user buys the plan. The first of the plan's `variants` that is a
/// price of the provider is sold. After the payment, the provider's notification creates the subscription for this user,
/// also if the buyer enters another email address.
///
/// A plan with the billing cycle `lifetime` is sold once, for a one-time price. Its subscription ends with a full refund or a lost
/// dispute.
///
/// For a Lemon Squeezy account without an API key, the page is the plan's `href` with a signed value; `success_url` then has
/// no effect.
///
/// With a user's access token, which only publishable clients can send, `user_id` is implied.
#[utoipa::path(
    post,
    path = "/checkouts",
    tag = "Payment accounts",
    operation_id = "createCheckout",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(IdempotencyKeyParam),
    request_body(content = CreateCheckout, description = "What is bought, and by whom."),
    responses(
        (status = 201, description = "The checkout.", body = CheckoutView),
        (status = 502, description = "The payment provider rejected the request (`payment_provider_failed`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn create_checkout(
    State(app): State<Arc<App>>,
    caller: Caller<SubscriptionsUpdate>,
    idempotency_key: IdempotencyKey,
    fields: BodyFields,
) -> Result<NoStore<CheckoutView>, Problem> {
    let tenant = caller.tenant();
    let now = app.clock.now();
    // No record is created, and the provider's response must not keep a transaction open. Stripe recognizes the retry.
    let key = idempotency_key.derive(&caller.idempotency_scope(), fields.fingerprint());
    let key = key.unwrap_or_else(|| app.ids.generate_uuid(now).to_string());
    let own = caller.user();
    let fields = parse_checkout(fields, own)?;
    let database = app.database_for(tenant)?;
    let order = load(&app, database, tenant.id, &fields, own.is_some()).await?;
    let created = create(&app, database, tenant.id, &order, &fields.success_url, &key).await?;
    let CreatedCheckout { url, expires_at } = created;
    Ok(NoStore(
        StatusCode::CREATED,
        CheckoutView { url, expires_at },
    ))
}

/// What is bought, by whom and where.
struct CheckoutOrder {
    user: User,
    plan: Plan,
    /// Of the plan.
    trial_days: u16,
    had_trial: bool,
    account: PaymentAccount,
    /// The provider's id of the user as a customer of the account.
    customer: Option<String>,
}

async fn load(
    app: &App,
    database: &CellDatabase,
    tenant: TenantId,
    fields: &CheckoutFields,
    is_user: bool,
) -> Result<CheckoutOrder, Problem> {
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let user = users::lock_sql::lock_key_share(&tx, tenant, &fields.user).await?;
    let offer = subscription_plans::table::lock_offer_key_share(&tx, tenant, &fields.plan).await?;
    // A user must not learn which plans exist.
    let offer = offer.filter(|offer| offer.is_active || !is_user);
    let (user, offer) = match (fields.user.resolve(user), fields.plan.resolve(offer)) {
        (Ok(user), Ok(offer)) => (user, offer),
        (user, offer) => {
            let errors = user.err().into_iter().chain(offer.err());
            return Err(Problem::unknown_references(errors.collect()));
        }
    };
    let had_trial = subscriptions::table::had_trial(&tx, tenant, user.id, offer.plan).await?;
    tx.rollback().await;
    let accounts = list_all(&connection, tenant).await?;
    let account = choose_account(accounts, fields.account, is_user, app.mode)?;
    let customers = customers_sql::list(&connection, tenant, user.id).await?;
    drop(connection);
    let customer = { customers.into_iter() }
        .find(|customer| customer.account == account.id)
        .map(|customer| customer.external_id);
    let plan = find_plan(database, tenant, offer.plan).await?;
    let found = users::table::find(database, tenant, user.id).await?;
    let user = found.ok_or_else(|| Problem::unknown_reference("user_id", user.id))?;
    Ok(CheckoutOrder {
        user,
        plan,
        trial_days: offer.trial_days,
        had_trial,
        account,
        customer,
    })
}

async fn find_plan(database: &CellDatabase, tenant: TenantId, id: PlanId) -> Result<Plan, Problem> {
    let plan = subscription_plans::table::find_by_id(database, tenant, id).await?;
    let plan = plan.ok_or_else(|| Problem::unknown_reference("subscription_plan_id", id))?;
    if plan.details.is_active {
        return Ok(plan);
    }
    let message = "the plan is not active, so it cannot be bought";
    Err(invalid_field(
        "subscription_plan_id",
        Code::PlanInactive,
        message,
    ))
}

async fn create(
    app: &App,
    database: &CellDatabase,
    tenant: TenantId,
    order: &CheckoutOrder,
    success_url: &Href,
    idempotency_key: &str,
) -> Result<CreatedCheckout, Problem> {
    let CheckoutOrder { plan, account, .. } = order;
    let details = &plan.details;
    let token = user_token::sign(&app.keys, account.id, order.user.id);
    let email = order.user.email.as_ref().map(Email::as_str);
    let Some(api_key) = open_api_key(&app.keys, database, tenant, account).await? else {
        let page = details.href.as_ref().map(Href::as_str);
        let link = page.and_then(|page| lemon_squeezy::checkout_link(page, &token, email));
        let message = "the plan has no href, and the payment account has no API key";
        let url = link.ok_or_else(|| plan_problem(message.to_owned()))?;
        let expires_at = None;
        return Ok(CreatedCheckout { url, expires_at });
    };
    let provider = account.provider;
    let variant = sold_variant(provider, details.variants.iter());
    let variant = variant.ok_or_else(|| {
        plan_problem(format!(
            "the plan has no price of {provider} in its variants"
        ))
    })?;
    let trial_days = u32::from(order.trial_days);
    let request = CheckoutRequest {
        variant,
        is_recurring: details.billing_cycle != BillingCycle::Lifetime,
        trial_days: if order.had_trial { 0 } else { trial_days },
        skips_trial: order.had_trial && trial_days > 0,
        user_token: &token,
        customer: order.customer.as_deref(),
        email,
        success_url: success_url.as_str(),
        idempotency_key,
    };
    let (client, apis) = (&app.payment_client, &app.payment_apis);
    let created = match AccountApi::new(provider, client, apis, &api_key) {
        AccountApi::Stripe(api) => api.create_checkout(&request).await,
        AccountApi::LemonSqueezy(api) => {
            let store = match account.details.external_account_id.as_ref() {
                Some(store) => store.as_str().to_owned(),
                None => only_store(&api).await?,
            };
            api.create_checkout(&store, &request, app.clock.now()).await
        }
    };
    created.map_err(|error| provider_problem(&error))
}

/// Returns the only store of an account that names none.
async fn only_store(api: &lemon_squeezy::LemonSqueezyApi<'_>) -> Result<String, Problem> {
    let stores = api.list_stores().await;
    let stores = stores.map_err(|error| provider_problem(&error))?;
    match <[String; 1]>::try_from(stores) {
        Ok([only]) => Ok(only),
        Err(stores) => {
            let message = format!(
                "the API key is for {} stores; set the account's external_account_id to one of them",
                stores.len()
            );
            Err(invalid_field("payment_account_id", Code::Required, message))
        }
    }
}

fn plan_problem(message: String) -> Problem {
    invalid_field("subscription_plan_id", Code::UnknownReference, message)
}
