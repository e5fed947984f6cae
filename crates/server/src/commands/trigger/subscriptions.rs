//! The calls that cause events of subscriptions.

use anyhow::bail;
use jiff::{SignedDuration, Timestamp};
use perennial_domain::EventKind;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Trigger, id, run_own_command, text};

/// Until a trial ends, so that the request that creates it arrives before.
const TRIAL_TIME: SignedDuration = SignedDuration::from_secs(2);
/// The weeks after which an overdue subscription must have become unpaid.
const MAX_OVERDUE_WEEKS: u32 = 60;

impl Trigger<'_> {
    pub(super) async fn cause_subscription_event(&self, kind: EventKind) -> anyhow::Result<String> {
        let subscription = self.create_subscription(json!({})).await?;
        let path = format!("/subscriptions/{}", id(&subscription)?);
        match kind {
            EventKind::SubscriptionUpdated => {
                let body = json!({"metadata": {"order": "1042"}});
                self.put(&path, &body).await?;
            }
            EventKind::SubscriptionDeleted => self.delete(&path).await?,
            EventKind::SubscriptionEnded => {
                let user = text(&subscription, "user_id")?;
                self.delete(&format!("/users/{user}")).await?;
            }
            _ => {}
        }
        id(&subscription)
    }

    /// Creates a subscription for which something is due in a moment, and lets the background task apply it.
    pub(super) async fn cause_due_event(
        &self,
        kind: EventKind,
        advance_clock: bool,
    ) -> anyhow::Result<String> {
        if kind == EventKind::SubscriptionUnpaid && !advance_clock {
            bail!(
                "subscription.unpaid comes days after subscription.past_due; allow it with --advance-clock, which moves the \
                 whole sandbox's billing clock forward"
            );
        }
        let due_at = billing_time()?.saturating_add(TRIAL_TIME)?.to_string();
        let fields = match kind {
            EventKind::SubscriptionExpired => json!({"ends_at": due_at}),
            // A trial of a free plan is followed by a free period.
            EventKind::SubscriptionRenewed => {
                json!({"status": "on_trial", "renews_at": due_at, "price": "0.00"})
            }
            _ => json!({"status": "on_trial", "renews_at": due_at}),
        };
        let subscription = self.create_subscription(fields).await?;
        let id = id(&subscription)?;
        if kind != EventKind::SubscriptionExpired && text(&subscription, "lifecycle")? != "managed"
        {
            bail!(
                "{kind} needs managed billing; enable it with: perennial tenant set --lifecycle managed"
            );
        }
        if kind == EventKind::SubscriptionUnpaid {
            for _ in 0..MAX_OVERDUE_WEEKS {
                run_own_command(&["sandbox", "clock", "advance", "1w", "--json"])?;
                let path = format!("/subscriptions/{id}");
                let read = self.service.send(Method::GET, &path, None).await?;
                if text(&read, "status")? != "past_due" {
                    break;
                }
            }
        }
        Ok(id)
    }
}

/// Returns the sandbox's billing time.
fn billing_time() -> anyhow::Result<Timestamp> {
    let shown = run_own_command(&["sandbox", "clock", "show", "--json"])?;
    let shown: Value = serde_json::from_str(&shown)?;
    Ok(text(&shown, "billing_time")?.parse()?)
}
