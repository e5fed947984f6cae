//! Request fields of `POST /subscriptions` and `PUT /subscriptions/{id}`: their schema and parsing.

use perennial_domain::{
    Currency, ExternalId, NewSubscription, PlanId, Quantity, Slug, Subscription,
    SubscriptionChanges, SubscriptionId, UserId,
};
use serde_json::json;
use utoipa::openapi::{
    RefOr,
    schema::{ObjectBuilder, Schema, Type},
};

use super::view::COMPUTED;
use crate::{
    http::{
        json::{BodyFields, boolean, decimal, integer, text, timestamp},
        metadata_field,
        problem::Problem,
        request_schema::{RequestField, request_body},
        schema::{self, named},
    },
    subscription_plans::PlanRef,
    users::{KnownUser, UserRef},
};

const FIELDS: &[RequestField] = &[
    RequestField::with_default("user_id", || {
        named::USER_ID
            .reference("The subscriber. Cannot change.")
            .into()
    })
    .create_note("Required, unless `external_user_id` is sent."),
    RequestField::nullable("external_user_id", || {
        let description =
            "The subscriber's id in your system, instead of `user_id`. Cannot change.";
        named::EXTERNAL_ID.reference(description).into()
    }),
    RequestField::with_default("subscription_plan_id", || {
        named::PLAN_ID
            .reference("The plan. Must be active.")
            .into()
    })
    .create_note("Required, unless `subscription_plan_slug` is sent."),
    RequestField::with_default("subscription_plan_slug", || {
        let description = "The plan's slug, instead of `subscription_plan_id`; case-insensitive.";
        named::SLUG.reference(description).into()
    }),
    RequestField::nullable("external_subscription_id", || {
        let description = "The payment provider's id of the subscription. Must be unique within the tenant. Cannot be a \
                           card number.";
        named::EXTERNAL_ID.reference(description).into()
    }),
    RequestField::with_default("billing_cycle", || {
        named::BILLING_CYCLE_INPUT
            .reference("How often the subscription renews.")
            .into()
    })
    .create_note("Default: the plan's."),
    RequestField::with_default("quantity", quantity).create_note("Default: 1."),
    RequestField::nullable("price", || {
        let description = "Price of one unit for one billing cycle, in the plan's currency.";
        named::AMOUNT.reference(description).into()
    })
    .create_note("Default: the plan's price.")
    .update_note(
        "Null takes the plan's current price. In managed billing, a new price applies from the next period that is not \
         paid yet.",
    ),
    RequestField::with_default("status", || {
        named::SUBSCRIPTION_STATUS_INPUT
            .reference("The status.")
            .into()
    })
    .create_note(
        "Default: `on_trial` if the plan has `trial_days` and the user has had no trial of it; else `active`. In managed \
         billing, `active` only if the subscription is free, else `pending` until it is paid.",
    ),
    RequestField::with_default("is_active", || {
        let description = "`false` suspends a subscription that gives access, `true` lifts the suspension. If the request \
                           also has a `status`, that decides about access. Otherwise `true` is rejected if the status \
                           gives no access.";
        schema::boolean(description).into()
    }),
    RequestField::with_default("starts_at", || {
        named::TIMESTAMP.reference("Start of access.").into()
    })
    .create_note("Default: now."),
    RequestField::nullable("renews_at", || {
        let description = "The next renewal; must not be before `starts_at`.";
        named::TIMESTAMP.reference(description).into()
    })
    .create_note(
        "Default: one billing cycle after `starts_at`, or the end of the trial; none for lifetime subscriptions.",
    )
    .update_note("In managed billing, the service computes it and ignores this field; `free_until` gives free time."),
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
    RequestField::generated_nullable("free_until", || {
        let description = "Managed billing: gives free time up to this date, which must be later than the covered time. \
                           Ends lateness and forgives debt.";
        named::TIMESTAMP.reference(description).into()
    }),
    RequestField::generated("created_at", || {
        let description = "Creation time. Cannot change.";
        named::TIMESTAMP.reference(description).into()
    }),
    metadata_field::FIELD,
];

fn quantity() -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(Quantity::MIN))
        .maximum(Some(Quantity::MAX))
        .description(Some("How many units of the plan, such as seats."))
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
    "The fields to change; others stay. Null clears a nullable field. A record that GET returned can be sent back.",
    {"status": "cancelled"}
);

/// Parses the body of a create request, or returns all field errors. The handler looks up the user and
/// the plan by the returned references, and calls the returned function with the user that it found.
pub(super) fn parse_create(
    mut fields: BodyFields,
) -> Result<(UserRef, PlanRef, impl FnOnce(KnownUser) -> NewSubscription), Problem> {
    fields.read_only(COMPUTED);
    fields.read_only(&["id", "currency", "free_until", "created_at"]);
    let user = user_ref(&mut fields);
    let plan = plan_ref(&mut fields);
    let external_id = fields.optional("external_subscription_id", text);
    let billing_cycle = fields.optional("billing_cycle", text);
    let quantity = fields.optional("quantity", integer);
    let price = fields.optional("price", decimal);
    let status = fields.optional("status", text);
    let is_active = fields.optional("is_active", boolean);
    let starts_at = fields.optional("starts_at", timestamp);
    let renews_at = fields.optional("renews_at", timestamp);
    let ends_at = fields.optional("ends_at", timestamp);
    let metadata = metadata_field::from_create(&mut fields);
    fields.finish(|| {
        let (external_id, metadata) = (external_id?, metadata?);
        let (billing_cycle, price, quantity) = (billing_cycle?, price?, quantity?);
        let (status, is_active) = (status?, is_active?);
        let (starts_at, renews_at, ends_at) = (starts_at?, renews_at?, ends_at?);
        let for_user = move |user: KnownUser| NewSubscription {
            user: user.id,
            external_user_id: user.external_id,
            external_id,
            billing_cycle,
            price,
            quantity,
            status,
            is_active,
            starts_at,
            renews_at,
            ends_at,
            metadata,
        };
        Some((user?, plan?, for_user))
    })
}

fn user_ref(fields: &mut BodyFields) -> Option<UserRef> {
    let id: Option<Option<UserId>> = fields.optional("user_id", text);
    let external_id: Option<Option<ExternalId>> = fields.optional("external_user_id", text);
    match (id?, external_id?) {
        (Some(id), None) => Some(UserRef::Id(id)),
        (None, Some(external_id)) => Some(UserRef::ExternalId(external_id)),
        (Some(id), Some(external_id)) => Some(UserRef::Both(id, external_id)),
        (None, None) => {
            fields.push_missing("user_id", "external_user_id");
            None
        }
    }
}

/// Takes the plan of a request that must name one.
pub fn plan_ref(fields: &mut BodyFields) -> Option<PlanRef> {
    let id: Option<Option<PlanId>> = fields.optional("subscription_plan_id", text);
    let slug: Option<Option<Slug>> = fields.optional("subscription_plan_slug", text);
    match (id?, slug?) {
        (Some(id), None) => Some(PlanRef::Id(id)),
        (None, Some(slug)) => Some(PlanRef::Slug(slug)),
        (Some(id), Some(slug)) => Some(PlanRef::Both(id, slug)),
        (None, None) => {
            fields.push_missing("subscription_plan_id", "subscription_plan_slug");
            None
        }
    }
}

/// Takes the plan of an update. Returns `Some(None)` if it stays. A field equal to its current value
/// changes nothing, so a client can send back both and change only one.
#[expect(
    clippy::option_option,
    reason = "as `BodyFields::if_present`: the outer option is empty if a field is invalid"
)]
fn changed_plan(fields: &mut BodyFields, current: &Subscription) -> Option<Option<PlanRef>> {
    let id: Option<Option<PlanId>> = fields.if_present("subscription_plan_id", text);
    let slug: Option<Option<Slug>> = fields.if_present("subscription_plan_slug", text);
    let id = id?.filter(|id| *id != current.plan.id);
    let slug = slug?.filter(|slug| !slug.is_same(&current.plan.slug));
    Some(match (id, slug) {
        (Some(id), None) => Some(PlanRef::Id(id)),
        (None, Some(slug)) => Some(PlanRef::Slug(slug)),
        (Some(id), Some(slug)) => Some(PlanRef::Both(id, slug)),
        (None, None) => None,
    })
}

/// Parses the body of an update request, or returns all field errors. Leaves `offer` empty: the
/// handler looks it up by the returned reference, which is `None` if the plan stays.
pub(super) fn parse_update(
    mut fields: BodyFields,
    current: &Subscription,
) -> Result<(SubscriptionChanges, Option<PlanRef>), Problem> {
    fields.read_only(COMPUTED);
    fields.immutable::<SubscriptionId>("id", text, &current.id);
    fields.immutable("user_id", text, &current.user);
    let external_user = |raw: &_| text::<ExternalId>(raw).map(Some);
    fields.immutable_nullable("external_user_id", external_user, &current.external_user_id);
    fields.immutable("created_at", timestamp, &current.created_at);
    fields.immutable_nullable::<Currency>("currency", text, &current.plan.price.currency());
    let plan = changed_plan(&mut fields, current);
    let external_id = fields.if_present_nullable("external_subscription_id", text);
    let billing_cycle = fields.if_present("billing_cycle", text);
    let quantity = fields.if_present("quantity", integer);
    let price = fields.if_present_nullable("price", decimal);
    let status = fields.if_present("status", text);
    let is_active = fields.if_present("is_active", boolean);
    let starts_at = fields.if_present("starts_at", timestamp);
    let renews_at = fields.if_present_nullable("renews_at", timestamp);
    let ends_at = fields.if_present_nullable("ends_at", timestamp);
    let free_until = fields.if_present_nullable("free_until", timestamp);
    let metadata = metadata_field::from_update(&mut fields, &current.metadata);
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
            free_until: free_until?,
            had_trial: false,
            metadata: Some(metadata?),
        };
        Some((changes, plan?))
    })
}
