//! What changes the status of a subscription for the better: payments and requests.

use perennial_domain::{LifecycleKind, Money, SubscriptionStatus};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::{ToSchema, openapi::schema::Object};

use super::situation::Situation;
use crate::http::{
    response::money_number_or_null,
    schema::{amount_output, nullable},
};

pub(super) const RESUME: &str = "Setting the status to active resumes it.";
pub(super) const UNDO: &str = "Setting the status to active undoes the cancellation.";

/// Something that fixes or prevents a problem of a subscription.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = TimelineFix, example = json!({
    "action": "record_payment",
    "sentence": "A completed payment of 19.99 USD or more makes it active.",
    "amount": 19.99,
    "currency": "USD",
    "request": {"method": "POST", "path": "/subscription-payments", "body": {"subscription_id":
        "sub_0192f0c1a2b37c4d8e5f60718293a4b5", "amount": 19.99, "currency": "USD", "status": "completed"}}
}))]
pub struct Fix {
    /// `record_payment`, `resolve_dispute`, `resume`, `undo_cancellation`, `reopen`, `set_status`, `set_renewal`,
    /// `remove_end`, `lift_suspension`, `set_price`, or `wait_for_provider`. More may follow.
    pub action: &'static str,
    /// The same in words.
    pub sentence: String,
    #[serde(serialize_with = "money_number_or_null")]
    #[schema(required, schema_with = amount)]
    pub amount: Option<Money>,
    /// The currency of `amount` (ISO 4217).
    #[schema(required)]
    pub currency: Option<&'static str>,
    /// The request that does it. Absent if it is done elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = FixRequest, required = false)]
    pub request: Option<FixRequest>,
}

/// A request of this API.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = TimelineRequest, example = json!({
    "method": "PUT",
    "path": "/subscriptions/sub_0192f0c1a2b37c4d8e5f60718293a4b5",
    "body": {"status": "active"}
}))]
pub struct FixRequest {
    /// The HTTP method.
    pub method: &'static str,
    /// The path. A part in braces is for you to fill in.
    pub path: String,
    /// The JSON body; null if you choose its values.
    #[schema(value_type = Option<Object>, required)]
    pub body: Option<Box<RawValue>>,
}

fn amount() -> Object {
    nullable(amount_output("The amount to pay; null if nothing is paid."))
}

impl Situation<'_> {
    /// Lists what makes the subscription active or keeps it so. Empty if nothing is wrong.
    pub fn fixes(&self) -> Vec<Fix> {
        let mut fixes = match self.kind() {
            LifecycleKind::Managed => self.managed_fixes(),
            LifecycleKind::Recorded => self.recorded_fixes(),
            LifecycleKind::Provider => self.provider_fixes(),
        };
        if self.is_unpriced() && self.status() != SubscriptionStatus::Expired {
            let sentence = "Setting price lets the service charge its periods.";
            fixes.push(self.update("set_price", sentence, None));
        }
        fixes.extend(self.remove_end());
        fixes.extend(self.lift_suspension());
        fixes
    }

    fn recorded_fixes(&self) -> Vec<Fix> {
        let has_passed = self.renewal().is_some_and(|renewal| renewal <= self.now);
        match self.status() {
            SubscriptionStatus::Pending => {
                let sentence = "Setting the status to active starts it.";
                vec![self.activate("set_status", sentence)]
            }
            SubscriptionStatus::OnTrial if has_passed => {
                let sentence = "Setting the status to active, past_due or expired reports what follows the trial.";
                vec![self.update("set_status", sentence, None)]
            }
            SubscriptionStatus::Active if has_passed => {
                let sentence = "Setting renews_at to the next renewal, or the status to past_due, reports what happened.";
                vec![self.update("set_renewal", sentence, None)]
            }
            SubscriptionStatus::OnTrial | SubscriptionStatus::Active => Vec::new(),
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => {
                let amount = self.current.amount().filter(|amount| *amount > 0);
                let price = amount.map(|amount| format!(", {} for one period,", self.sum(amount)));
                let price = price.unwrap_or_default();
                let sentence = format!("A completed payment{price} makes it active.");
                vec![self.payment(amount.unwrap_or(0), sentence)]
            }
            SubscriptionStatus::Paused => {
                vec![self.activate("resume", RESUME)]
            }
            SubscriptionStatus::Cancelled => {
                vec![self.activate("undo_cancellation", UNDO)]
            }
            SubscriptionStatus::Expired => {
                let sentence = "Setting the status to active, with a renews_at or ends_at in the future, reopens it.";
                vec![self.update("reopen", sentence, None)]
            }
        }
    }

    fn provider_fixes(&self) -> Vec<Fix> {
        let has_passed = self.renewal().is_some_and(|renewal| renewal <= self.now);
        let sentence = match self.status() {
            SubscriptionStatus::Pending => {
                "The subscriber completes the first payment at the payment provider, which reports it."
            }
            SubscriptionStatus::OnTrial | SubscriptionStatus::Active if has_passed => {
                "The payment provider reports what happened. If it does not, compare the subscription with the payment provider's."
            }
            SubscriptionStatus::OnTrial | SubscriptionStatus::Active => return Vec::new(),
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => {
                "The subscriber pays at the payment provider, which reports that it is active."
            }
            SubscriptionStatus::Paused => {
                "It is resumed at the payment provider, which reports that it is active."
            }
            SubscriptionStatus::Cancelled => {
                let sentence = "Setting the status to active undoes the cancellation. If a payment account runs the subscription, so does the payment provider.";
                return vec![self.activate("undo_cancellation", sentence)];
            }
            SubscriptionStatus::Expired => {
                "The subscriber buys a new subscription at the payment provider."
            }
        };
        vec![Fix {
            action: "wait_for_provider",
            sentence: sentence.to_owned(),
            amount: None,
            currency: None,
            request: None,
        }]
    }

    /// Returns the removal of an end that was set without a cancellation.
    fn remove_end(&self) -> Option<Fix> {
        let has_own_end = matches!(
            self.status(),
            SubscriptionStatus::Cancelled | SubscriptionStatus::Expired
        );
        if has_own_end || self.current.ends_at.is_none() {
            return None;
        }
        let body = r#"{"ends_at":null}"#.to_owned();
        let sentence = "Setting ends_at to null removes its end date.";
        Some(self.update("remove_end", sentence, Some(body)))
    }

    /// Returns the end of the suspension, unless the request of another fix has it.
    fn lift_suspension(&self) -> Option<Fix> {
        if !self.current.suspended {
            return None;
        }
        let body = Some(r#"{"is_active":true}"#.to_owned());
        match self.status() {
            status if status.gives_access() => {
                let sentence =
                    "Setting is_active to true lifts the suspension and gives access again.";
                Some(self.update("lift_suspension", sentence, body))
            }
            SubscriptionStatus::Paused | SubscriptionStatus::Expired
                if self.kind() != LifecycleKind::Provider =>
            {
                None
            }
            _ => {
                let sentence = "Once its status gives access again, setting is_active to true lifts the suspension.";
                Some(self.update("lift_suspension", sentence, body))
            }
        }
    }

    /// Returns the request that sets the status to active, and lifts a suspension of a subscription without access.
    pub(super) fn activate(&self, action: &'static str, sentence: &str) -> Fix {
        let lifts = self.current.suspended && !self.status().gives_access();
        if lifts {
            let body = r#"{"status":"active","is_active":true}"#.to_owned();
            let sentence = format!("{sentence} Sending is_active too lifts the suspension.");
            return self.update(action, &sentence, Some(body));
        }
        let body = r#"{"status":"active"}"#.to_owned();
        self.update(action, sentence, Some(body))
    }

    fn update(&self, action: &'static str, sentence: &str, body: Option<String>) -> Fix {
        Fix {
            action,
            sentence: sentence.to_owned(),
            amount: None,
            currency: None,
            request: Some(FixRequest {
                method: "PUT",
                path: format!("/subscriptions/{}", self.current.id),
                body: body.and_then(raw),
            }),
        }
    }

    /// Returns a completed payment of this amount; 0 if the client chooses it.
    pub(super) fn payment(&self, minor_units: i64, sentence: String) -> Fix {
        let currency = self.currency();
        let amount = Money::from_minor_units(minor_units, currency).filter(|_| minor_units > 0);
        let body = amount.map(|amount| {
            let (id, code) = (self.current.id, currency.code());
            format!(
                r#"{{"subscription_id":"{id}","amount":{amount},"currency":"{code}","status":"completed"}}"#
            )
        });
        Fix {
            action: "record_payment",
            sentence,
            amount,
            currency: amount.map(|amount| amount.currency().code()),
            request: Some(FixRequest {
                method: "POST",
                path: "/subscription-payments".to_owned(),
                body: body.and_then(raw),
            }),
        }
    }
}

pub(super) fn raw(json: String) -> Option<Box<RawValue>> {
    RawValue::from_string(json).ok()
}
