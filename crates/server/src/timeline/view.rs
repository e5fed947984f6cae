//! The JSON representation of a user's timeline.

use jiff::Timestamp;
use perennial_domain::{Money, Payment, PaymentId, Slug, Subscription, SubscriptionId, UserId};
use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::{Ref, schema::Object},
};

use super::{
    ActorNames, Situation, deleted_sentence, event_sentence, fixes::Fix, history::StatusHistory,
    lifeline::Segment, next_steps::NextStep,
};
use crate::{
    events::{
        RecordedActor, RecordedEvent,
        view::{EventActor, subject_id},
    },
    http::{
        response::{display, money_number, timestamp, timestamp_or_null},
        schema::{amount_output, named},
    },
};

/// What is known about a user's subscriptions. Sentences are in English, with times in UTC.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Timeline)]
pub struct TimelineView {
    /// The user.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "usr_0192f0c1a2b37c4d8e5f60718293a4b5")]
    pub user_id: UserId,
    /// When the user's personal data was erased.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    pub erased_at: Option<Timestamp>,
    /// The time that the sentences refer to. In a sandbox, that of its clock.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    pub as_of: Timestamp,
    /// The 100 latest subscriptions, newest first, deleted ones too.
    pub subscriptions: Vec<SubscriptionTimelineView>,
    /// The 100 latest events of the user, the subscriptions and their payments, newest first.
    pub entries: Vec<EntryView>,
    /// Whether there are earlier events.
    #[schema(example = false)]
    pub has_more: bool,
}

/// A subscription: its status in words, and its past, present and future.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SubscriptionTimeline)]
pub struct SubscriptionTimelineView {
    /// The subscription's id.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "sub_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: SubscriptionId,
    /// The plan's slug.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "pro")]
    subscription_plan_slug: Slug,
    #[schema(schema_with = status)]
    status: &'static str,
    /// Whether the user has access now.
    #[schema(example = true)]
    is_active: bool,
    /// When the subscription was deleted.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    deleted_at: Option<Timestamp>,
    /// The status, since when, and why.
    #[schema(
        example = "Past due since 2026-11-12 09:30: the period from 2026-11-12 09:30 costs 19.99 USD and is not paid."
    )]
    sentence: String,
    /// What happens next. Empty for a deleted subscription.
    next: Vec<NextStep>,
    /// What makes it active or keeps it so. Empty if nothing is wrong.
    fixes: Vec<Fix>,
    /// The lifeline, oldest first, from the oldest of its 200 latest events to 12 months ahead.
    segments: Vec<Segment>,
    /// The 50 latest payments, newest first. Null if the client lacks the scope `payments:read`.
    #[schema(required)]
    payments: Option<Vec<TimelinePaymentView>>,
}

/// A payment on the lifeline.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TimelinePayment)]
pub struct TimelinePaymentView {
    /// The payment's id.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "pay_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: PaymentId,
    /// When the payer paid, or when the payment was recorded.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    at: Timestamp,
    #[serde(serialize_with = "money_number")]
    #[schema(schema_with = amount)]
    amount: Money,
    /// The currency (ISO 4217).
    #[schema(example = "USD")]
    currency: &'static str,
    #[schema(schema_with = payment_status)]
    status: &'static str,
}

/// An event in words.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TimelineEntry)]
pub struct EntryView {
    /// When the change took effect.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    at: Timestamp,
    /// The type of the event.
    #[schema(example = "subscription.past_due")]
    r#type: String,
    /// Id of the changed record.
    #[schema(example = "sub_0192f0c1a2b37c4d8e5f60718293a4b5")]
    subject_id: String,
    /// What happened, and which fields changed.
    #[schema(example = "Subscription became past due: status active → past_due.")]
    sentence: String,
    actor: EventActor,
    /// The name of the client that made the change, also on behalf of a user.
    #[schema(required, example = "backend")]
    client_name: Option<String>,
    /// The email address of the staff member who made the change.
    #[schema(required, example = json!(null))]
    staff_email: Option<String>,
    /// Id of the request that made the change.
    #[schema(required, example = "req_0192f0c1a2b37c4d8e5f60718293a4b5")]
    request_id: Option<String>,
}

fn status() -> Ref {
    named::SUBSCRIPTION_STATUS.reference("The current status; `expired` from `ends_at` on.")
}

fn payment_status() -> Ref {
    named::PAYMENT_STATUS.reference("The status.")
}

fn amount() -> Object {
    amount_output("The amount, with all decimals of the currency.")
}

impl SubscriptionTimelineView {
    /// `is_erased` is whether the user was erased, who cannot subscribe again.
    pub(super) fn new(
        (subscription, deleted_at): &(Subscription, Option<Timestamp>),
        history: &StatusHistory,
        now: Timestamp,
        is_erased: bool,
        payments: Option<Vec<TimelinePaymentView>>,
    ) -> Self {
        let situation = Situation::new(subscription, history, now);
        let is_final = deleted_at.is_some() || is_erased;
        Self {
            id: subscription.id,
            subscription_plan_slug: subscription.plan.slug,
            status: subscription.status_at(situation.now).as_str(),
            is_active: deleted_at.is_none() && subscription.has_access(situation.now),
            deleted_at: *deleted_at,
            sentence: match deleted_at {
                Some(deleted_at) => deleted_sentence(subscription, *deleted_at),
                None => situation.sentence(),
            },
            next: if is_final {
                Vec::new()
            } else {
                situation.next_steps()
            },
            fixes: if is_final {
                Vec::new()
            } else {
                situation.fixes()
            },
            segments: situation.segments(*deleted_at),
            payments,
        }
    }
}

impl From<&Payment> for TimelinePaymentView {
    fn from(payment: &Payment) -> Self {
        Self {
            id: payment.id,
            at: payment.paid_at.unwrap_or(payment.created_at),
            amount: payment.amount,
            currency: payment.amount.currency().code(),
            status: payment.status.as_str(),
        }
    }
}

impl EntryView {
    /// `is_for_user` is whether the client calls on behalf of the user, who does not learn the names of operators and staff
    /// members.
    pub(super) fn new(event: &RecordedEvent, names: &ActorNames, is_for_user: bool) -> Self {
        let RecordedActor {
            client,
            staff,
            operator,
            ..
        } = &event.actor;
        let mut actor = EventActor::from(&event.actor);
        if is_for_user && (operator.is_some() || staff.is_some()) {
            actor.id = None;
        }
        let record_type = event.kind.split('.').next().unwrap_or_default();
        let client_name = client.and_then(|client| names.clients.get(&client));
        let staff_email = staff.and_then(|staff| names.staff.get(&staff));
        Self {
            at: event.at,
            r#type: event.kind.clone(),
            subject_id: subject_id(record_type, event.subject),
            sentence: event_sentence::sentence(event),
            actor,
            client_name: client_name.cloned(),
            staff_email: staff_email.filter(|_| !is_for_user).cloned(),
            request_id: event.request_id.clone(),
        }
    }
}
