//! Parameters that several operations share.

use serde_json::json;
use utoipa::{
    IntoParams,
    openapi::{
        Required,
        path::{Parameter, ParameterBuilder, ParameterIn},
        schema::{Object, ObjectBuilder, Type},
    },
};

use crate::http::{
    filter_params::filter,
    schema::{
        self,
        named::{self, NamedSchema},
    },
};

/// The header of operations that create a record.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(
    dead_code,
    reason = "describes the header that `IdempotencyKey` parses"
)]
pub struct IdempotencyKeyParam {
    /// Identifies the request. A retry with the same key within 24 hours returns the same response (with
    /// `Idempotency-Replayed: true`) and creates nothing.
    #[param(
        rename = "Idempotency-Key",
        min_length = 1,
        max_length = 255,
        pattern = "^[!-~]([ -~]*[!-~])?$",
        example = "5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11"
    )]
    idempotency_key: Option<String>,
}

/// The header of operations that update or delete a record.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes the header that `IfMatch` parses")]
pub struct IfMatchParam {
    /// The ETag that the record must have, else the request fails with 412.
    #[param(rename = "If-Match", example = "*")]
    if_match: Option<String>,
}

/// The header of sign-in and sign-up.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(
    dead_code,
    reason = "describes the header that `client_ip` reads for every request"
)]
pub struct ForwardedForParam {
    /// The user's IP address, sent by a secret client for its user. It is stored with the session, and limits of
    /// sign-ins apply to it. From a publishable client, it is ignored. Trusted proxies append their clients.
    #[param(rename = "x-forwarded-for", example = "203.0.113.7")]
    x_forwarded_for: Option<String>,
}

/// The parameters `limit` and `cursor` of lists.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "describes the parameters that `PageRequest` parses"
)]
pub struct CursorParams {
    /// The maximum number of records on a page. Default: 50.
    #[param(minimum = 1, maximum = 200, example = 50)]
    limit: Option<i64>,
    /// The `next_cursor` of the previous page. Filters and sort order must be the same.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
}

/// The parameter `sort` of lists that are ordered by age only.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "describes the parameter that `PageRequest` parses"
)]
pub struct CreatedAtSortParam {
    #[param(required = false, schema_with = created_at_sort)]
    sort: (),
}

/// The parameter `local` of a subscription's update.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "describes the parameter that the handler takes from `QueryParams`"
)]
pub struct LocalParam {
    #[param(required = false, schema_with = local)]
    local: (),
}

/// The parameter of the removal of an identity provider.
pub struct EndSessionsParam;

impl IntoParams for EndSessionsParam {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let description = "Whether to end the sessions of users who signed in with this provider.";
        let parameter = filter("end_sessions", schema::boolean(description));
        let required = ParameterBuilder::from(parameter).required(Required::True);
        vec![required.build()]
    }
}

fn local() -> Object {
    let description = "`true` changes only the record and tells the payment provider nothing. Default: `false`. Not for users.";
    schema::boolean(description)
}

fn created_at_sort() -> Object {
    let description = "`created_at` (default) or `-created_at` for newest first.";
    sort_order(description, &["created_at", "-created_at"])
}

/// Describes the parameter `sort` with these values.
pub fn sort_order(description: &str, orders: &[&'static str]) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(orders.iter().copied()))
        .description(Some(description))
        .examples(orders.get(1).map(|order| json!(order)))
        .build()
}

/// Declares parameters that a request must have: type, place, name, schema, description.
macro_rules! required_parameters {
    ($($type:ident $place:ident $name:literal $schema:ident $description:literal;)*) => {$(
        pub struct $type;

        impl IntoParams for $type {
            fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
                vec![required_parameter(ParameterIn::$place, $name, &named::$schema, $description)]
            }
        }
    )*};
}

required_parameters! {
    PlanSlugPath Path "slug" SLUG "The plan's slug; case-insensitive.";
    PlanSlugOrIdPath Path "slug" SLUG "The plan's slug, case-insensitive, or its id.";
    SubscriptionIdPath Path "id" SUBSCRIPTION_ID "The subscription's id.";
    PaymentIdPath Path "payment_id" PAYMENT_ID "The payment's id.";
    SessionIdPath Path "id" SESSION_ID "The session's id.";
    EventIdPath Path "id" EVENT_ID "The event's id.";
    WebhookEndpointIdPath Path "id" WEBHOOK_ENDPOINT_ID "The endpoint's id.";
    PaymentAccountIdPath Path "id" PAYMENT_ACCOUNT_ID "The account's id.";
    PaymentNotificationIdPath Path "id" PAYMENT_NOTIFICATION_ID "The notification's id.";
    ClientIdPath Path "id" CLIENT_ID "The client's id.";
    IdentityProviderIdPath Path "id" IDENTITY_PROVIDER_ID "The provider's id.";
    StaffIdPath Path "id" STAFF_ID "The staff member's id.";
    UserIdPath Path "id" USER_ID "The user's id.";
    EntitledUserPath Path "user_id" USER_ID "The user's id.";
    AccountIdPath Path "auth_id" USER_ID "The id of the signed-in user.";
}

fn required_parameter(
    place: ParameterIn,
    name: &str,
    schema: &NamedSchema,
    description: &str,
) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(schema.reference("")))
        .build()
}
