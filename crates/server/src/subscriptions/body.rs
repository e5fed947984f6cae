//! Request fields of `POST /subscriptions` and `PUT /subscriptions/{id}`: their schema and parsing.

use perennial_domain::{
    Currency, NewSubscription, PlanId, Quantity, Subscription, SubscriptionChanges, SubscriptionId,
};
use serde_json::json;
use utoipa::openapi::{
    RefOr,
    schema::{ObjectBuilder, Schema, Type},
};

use super::view::COMPUTED;
use crate::http::{
    json::{BodyFields, boolean, decimal, integer, text, timestamp},
    problem::Problem,
    request_schema::{RequestField, request_body},
    schema::{self, named},
};

const FIELDS: &[RequestField] = &[
    RequestField::required("user_id", || {
        named::USER_ID
            .reference("The subscriber. Cannot change.")
            .into()
    }),
    RequestField::required("subscription_plan_id", || {
        named::PLAN_ID.reference("The plan. Must be active.").into()
    }),
    RequestField::nullable("external_subscription_id", || {
        let description = "The payment provider's id of the subscription. Must be unique within the tenant. Cannot be a \
                           card number.";
        schema::single_line(description, 255, "sub_42").into()
    }),
    RequestField::with_default("billing_cycle", || {
        let description = "How often the subscription renews. Default: the plan's.";
        named::BILLING_CYCLE_INPUT.reference(description).into()
    }),
    RequestField::with_default("quantity", quantity),
    RequestField::nullable("price", || {
        let description = "Price of one unit for one billing cycle, in the plan's currency. On update, null takes the \
                           plan's current price. In managed billing a new price applies from the next period that is \
                           not paid yet. Default: the plan's price.";
        named::AMOUNT.reference(description).into()
    }),
    RequestField::with_default("status", || {
        let description = "The status. Default: `on_trial` if the plan has `trial_days` and the user \
                           has had no trial of it; else `active`. In managed billing, `active` only if the \
                           subscription is free, else `pending` until it is paid.";
        named::SUBSCRIPTION_STATUS_INPUT
            .reference(description)
            .into()
    }),
    RequestField::with_default("is_active", || {
        let description = "`false` suspends a subscription that gives access, `true` lifts the suspension. If the request \
                           also has a `status`, that decides about access. Otherwise `true` is rejected if the status \
                           gives no access.";
        schema::boolean(description).into()
    }),
    RequestField::with_default("starts_at", || {
        named::TIMESTAMP
            .reference("Start of access. Default: now.")
            .into()
    }),
    RequestField::nullable("renews_at", || {
        let description = "The next renewal; must not be before `starts_at`. Default: one billing cycle after \
                           `starts_at`, or the end of the trial; none for lifetime subscriptions. In managed billing, \
                           a later date on update covers the time up to it without charge; an earlier one is rejected.";
        named::TIMESTAMP.reference(description).into()
    }),
    RequestField::nullable("ends_at", || {
        let description = "End of access; must not be before `starts_at`.";
        named::TIMESTAMP.reference(description).into()
    }),
    RequestField::generated("id", || {
        named::SUBSCRIPTION_ID
            .reference("The subscription's id. Cannot change.")
            .into()
    }),
    RequestField::generated_nullable("currency", || {
        let description = "The currency of the price. Cannot change.";
        named::CURRENCY_CODE.reference(description).into()
    }),
    RequestField::generated("created_at", || {
        let description = "Creation time. Cannot change.";
        named::TIMESTAMP.reference(description).into()
    }),
];

fn quantity() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(Quantity::MIN))
        .maximum(Some(Quantity::MAX))
        .description(Some(
            "How many units of the plan, such as seats. Default: 1.",
        ))
        .examples([json!(1)])
        .into()
}

request_body!(
    CreateSubscription,
    create_schema(FIELDS, COMPUTED),
    "The subscription to create.",
    {
        "user_id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5",
        "subscription_plan_id": "plan_0192f0c1a2b37c4d8e5f60718293a4b5"
    }
);

request_body!(
    UpdateSubscription,
    update_schema(FIELDS, COMPUTED),
    "The fields to change. Absent fields stay; null clears a nullable field. You can send back everything that GET \
     returns: a field equal to its current value changes nothing.",
    {"status": "cancelled"}
);

/// Parses the body of a create request, or returns all field errors.
pub(super) fn parse_create(mut fields: BodyFields) -> Result<(NewSubscription, PlanId), Problem> {
    fields.read_only(COMPUTED);
    fields.read_only(&["id", "currency", "created_at"]);
    let user = fields.required("user_id", text);
    let plan = fields.required("subscription_plan_id", text);
    let external_id = fields.optional("external_subscription_id", text);
    let billing_cycle = fields.optional("billing_cycle", text);
    let quantity = fields.optional("quantity", integer);
    let price = fields.optional("price", decimal);
    let status = fields.optional("status", text);
    let is_active = fields.optional("is_active", boolean);
    let starts_at = fields.optional("starts_at", timestamp);
    let renews_at = fields.optional("renews_at", timestamp);
    let ends_at = fields.optional("ends_at", timestamp);
    fields.finish(|| {
        let new = NewSubscription {
            user: user?,
            external_id: external_id?,
            billing_cycle: billing_cycle?,
            price: price?,
            quantity: quantity?,
            status: status?,
            is_active: is_active?,
            starts_at: starts_at?,
            renews_at: renews_at?,
            ends_at: ends_at?,
        };
        Some((new, plan?))
    })
}

/// Parses the body of an update request, or returns all field errors. Leaves `offer` empty: the
/// handler looks it up by the returned plan id.
pub(super) fn parse_update(
    mut fields: BodyFields,
    current: &Subscription,
) -> Result<(SubscriptionChanges, Option<PlanId>), Problem> {
    fields.read_only(COMPUTED);
    fields.immutable::<SubscriptionId>("id", text, &current.id);
    fields.immutable("user_id", text, &current.user);
    fields.immutable("created_at", timestamp, &current.created_at);
    fields.immutable_nullable::<Currency>("currency", text, &current.plan.price.currency());
    let plan = fields.if_present("subscription_plan_id", text);
    let external_id = fields.if_present_nullable("external_subscription_id", text);
    let billing_cycle = fields.if_present("billing_cycle", text);
    let quantity = fields.if_present("quantity", integer);
    let price = fields.if_present_nullable("price", decimal);
    let status = fields.if_present("status", text);
    let is_active = fields.if_present("is_active", boolean);
    let starts_at = fields.if_present("starts_at", timestamp);
    let renews_at = fields.if_present_nullable("renews_at", timestamp);
    let ends_at = fields.if_present_nullable("ends_at", timestamp);
    fields.finish(|| {
        let changes = SubscriptionChanges {
            offer: None,
            external_id: external_id?,
            billing_cycle: billing_cycle?,
            price: price?,
            quantity: quantity?,
            status: status?,
            is_active: is_active?,
            starts_at: starts_at?,
            renews_at: renews_at?,
            ends_at: ends_at?,
        };
        Some((changes, plan?))
    })
}
