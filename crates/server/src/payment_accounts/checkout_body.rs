//! Request fields of `POST /checkouts` and `POST /billing-portal-sessions`, and what both look up.

use perennial_domain::{ExternalId, Href, PaymentAccount, PaymentAccountId, PaymentMode, UserId};

use super::fetched_object::FetchError;
use crate::{
    config::Mode,
    http::{
        json::{BodyFields, text},
        problem::{Code, Problem, ProblemFieldError},
        request_schema::{RequestField, request_body},
        schema::named,
    },
    subscription_plans::PlanRef,
    subscriptions::plan_ref,
    users::UserRef,
};

const USER_ID: RequestField = RequestField::with_default("user_id", || {
    let description =
        "The buyer. Required, unless `external_user_id` or a user's access token is sent.";
    named::USER_ID.reference(description).into()
});
const EXTERNAL_USER_ID: RequestField = RequestField::nullable("external_user_id", || {
    let description = "The buyer's id in your system, instead of `user_id`.";
    named::EXTERNAL_ID.reference(description).into()
});
const PAYMENT_ACCOUNT_ID: RequestField = RequestField::nullable("payment_account_id", || {
    let description = "The payment account. Required if there are several to choose from.";
    named::PAYMENT_ACCOUNT_ID.reference(description).into()
});

const CHECKOUT_FIELDS: &[RequestField] = &[
    RequestField::with_default("subscription_plan_id", || {
        let description =
            "The plan to buy. Must be active. Required, unless `subscription_plan_slug` is sent.";
        named::PLAN_ID.reference(description).into()
    }),
    RequestField::with_default("subscription_plan_slug", || {
        let description = "The plan's slug, instead of `subscription_plan_id`; case-insensitive.";
        named::SLUG.reference(description).into()
    }),
    USER_ID,
    EXTERNAL_USER_ID,
    RequestField::required("success_url", || {
        let description = "Where the payment provider sends the buyer after the payment.";
        named::URL.reference(description).into()
    }),
    PAYMENT_ACCOUNT_ID,
];

const PORTAL_FIELDS: &[RequestField] = &[
    USER_ID,
    EXTERNAL_USER_ID,
    PAYMENT_ACCOUNT_ID,
    RequestField::nullable("return_url", || {
        let description =
            "Where the portal's back link leads, if the payment provider supports it.";
        named::URL.reference(description).into()
    }),
];

request_body!(
    CreateCheckout,
    create_schema(CHECKOUT_FIELDS, &[]),
    "What is bought, and by whom.",
    {
        "user_id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5",
        "subscription_plan_slug": "pro",
        "success_url": "https://example.com/welcome"
    }
);

request_body!(
    CreateBillingPortalSession,
    create_schema(PORTAL_FIELDS, &[]),
    "Whose portal is opened.",
    {"user_id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5", "return_url": "https://example.com/account"}
);

/// The fields of `POST /checkouts`.
#[derive(Debug)]
pub struct CheckoutFields {
    pub user: UserRef,
    pub plan: PlanRef,
    pub success_url: Href,
    pub account: Option<PaymentAccountId>,
}

/// The fields of `POST /billing-portal-sessions`.
#[derive(Debug)]
pub struct PortalFields {
    pub user: UserRef,
    pub return_url: Option<Href>,
    pub account: Option<PaymentAccountId>,
}

/// Parses the body of `POST /checkouts`. `own` is the signed-in user, for whom `user_id` is implied.
pub(super) fn parse_checkout(
    mut fields: BodyFields,
    own: Option<UserId>,
) -> Result<CheckoutFields, Problem> {
    let user = user_ref(&mut fields, own);
    let plan = plan_ref(&mut fields);
    let success_url = fields.required("success_url", text);
    let account = fields.optional("payment_account_id", text);
    let mut parsed = fields.finish(|| {
        Some(CheckoutFields {
            user: user?,
            plan: plan?,
            success_url: success_url?,
            account: account?,
        })
    })?;
    parsed.user = restrict(parsed.user, own)?;
    Ok(parsed)
}

/// Parses the body of `POST /billing-portal-sessions`. `own` is the signed-in user, for whom `user_id` is implied.
pub(super) fn parse_portal(
    mut fields: BodyFields,
    own: Option<UserId>,
) -> Result<PortalFields, Problem> {
    let user = user_ref(&mut fields, own);
    let return_url = fields.optional("return_url", text);
    let account = fields.optional("payment_account_id", text);
    let mut parsed = fields.finish(|| {
        Some(PortalFields {
            user: user?,
            return_url: return_url?,
            account: account?,
        })
    })?;
    parsed.user = restrict(parsed.user, own)?;
    Ok(parsed)
}

fn user_ref(fields: &mut BodyFields, own: Option<UserId>) -> Option<UserRef> {
    let id: Option<Option<UserId>> = fields.optional("user_id", text);
    let external_id: Option<Option<ExternalId>> = fields.optional("external_user_id", text);
    match (id?.or(own), external_id?) {
        (Some(id), None) => Some(UserRef::Id(id)),
        (None, Some(external_id)) => Some(UserRef::ExternalId(external_id)),
        (Some(id), Some(external_id)) => Some(UserRef::Both(id, external_id)),
        (None, None) => {
            fields.push_missing("user_id", "external_user_id");
            None
        }
    }
}

/// Rejects other users than the signed-in one, as if they did not exist.
fn restrict(user: UserRef, own: Option<UserId>) -> Result<UserRef, Problem> {
    match &user {
        UserRef::Id(id) | UserRef::Both(id, _) if own.is_some_and(|own| own != *id) => {
            Err(Problem::unknown_reference("user_id", id))
        }
        _ => Ok(user),
    }
}

/// Returns the account that a request names, or the only one. Users can choose among the accounts of the instance's mode,
/// and do not learn the ids of accounts.
pub(super) fn choose_account(
    mut accounts: Vec<PaymentAccount>,
    wanted: Option<PaymentAccountId>,
    is_user: bool,
    instance_mode: Mode,
) -> Result<PaymentAccount, Problem> {
    if is_user {
        let mode = match instance_mode {
            Mode::Live => PaymentMode::Live,
            Mode::Sandbox => PaymentMode::Test,
        };
        accounts.retain(|account| account.mode == mode);
    }
    if let Some(id) = wanted {
        let named = accounts.into_iter().find(|account| account.id == id);
        return named.ok_or_else(|| Problem::unknown_reference("payment_account_id", id));
    }
    let ids: Vec<String> = { accounts.iter() }
        .map(|account| account.id.to_string())
        .collect();
    let mut accounts = accounts.into_iter();
    match (accounts.next(), accounts.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(invalid_field(
            "payment_account_id",
            Code::UnknownReference,
            "there is no payment account; connect one with `perennial payment-account connect`",
        )),
        (Some(_), Some(_)) => {
            let message = if is_user {
                "is required, because there are several payment accounts".to_owned()
            } else {
                format!("is required, one of: {}", ids.join(", "))
            };
            Err(invalid_field("payment_account_id", Code::Required, message))
        }
    }
}

pub(super) fn invalid_field(field: &str, code: Code, message: impl Into<String>) -> Problem {
    Problem::fields(vec![ProblemFieldError::new(
        format!("/{field}"),
        code,
        message,
    )])
}

/// Returns the problem of a request that the payment provider did not fulfill.
pub(super) fn provider_problem(error: &FetchError) -> Problem {
    tracing::warn!(%error, "the payment provider did not fulfill a request");
    if error.is_temporary() {
        let detail = format!("the payment provider is unavailable: {error}");
        return Problem::retryable(Code::Unavailable, detail);
    }
    let detail = format!("the payment provider did not fulfill the request: {error}");
    Problem::new(Code::PaymentProviderFailed, detail)
}
