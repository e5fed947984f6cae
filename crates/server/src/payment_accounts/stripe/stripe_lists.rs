//! Lists of Stripe: subscriptions, invoices and events.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    stripe_api::{MAX_PAGE, StripeApi},
    stripe_invoice::{InvoiceMoney, invoice_fact, invoice_payment_intents, needs_charges},
    stripe_notification::read_notification,
    stripe_subscription::subscription_fact,
};
use crate::payment_accounts::{
    fetched_object::{FetchError, FetchedObject, ObjectReader, UnknownShape},
    list_page::{ListPage, ListRange, ListStep, ListedObject},
    provider_notification::PaymentObjectRef,
};

/// The events that are listed. Stripe accepts up to 20 types. They cover every change of a fact; the others are sent with one
/// of these.
const LISTED_EVENTS: [&str; 20] = [
    "customer.subscription.created",
    "customer.subscription.deleted",
    "customer.subscription.paused",
    "customer.subscription.resumed",
    "customer.subscription.updated",
    "invoice.finalized",
    "invoice.marked_uncollectible",
    "invoice.paid",
    "invoice.payment_action_required",
    "invoice.payment_failed",
    "invoice.updated",
    "invoice.voided",
    "charge.refunded",
    "refund.created",
    "refund.failed",
    "refund.updated",
    "charge.dispute.closed",
    "charge.dispute.created",
    "charge.dispute.funds_reinstated",
    "charge.dispute.updated",
];

/// Refunds and disputes by payment.
#[derive(Debug, Default)]
pub struct InvoiceMoneyIndex(HashMap<String, InvoiceMoney>);

/// The events to list.
#[derive(Debug, Clone, Copy)]
pub enum EventRange<'a> {
    /// The oldest ones after this event.
    After(&'a str),
    /// The newest ones since a time in Unix seconds, or those before the event `before`.
    Since {
        seconds: i64,
        before: Option<&'a str>,
    },
    /// The newest one.
    Newest,
}

/// A page of events, newest first.
#[derive(Debug)]
pub struct StripeEventPage {
    /// The ids, and the objects that the events are about.
    pub events: Vec<(String, Option<PaymentObjectRef>)>,
    pub has_more: bool,
}

impl StripeApi<'_> {
    /// Lists subscriptions of all statuses.
    pub async fn list_subscriptions(&self, range: ListRange<'_>) -> Result<ListPage, FetchError> {
        let query = [("status", "all"), ("expand[]", "data.customer")];
        let list = self.list("subscriptions", &query, range).await?;
        let mut items = Vec::new();
        for item in ObjectReader::new("subscription", &list).items("/data")? {
            items.push(listed(
                ListStep::Subscriptions,
                &item,
                subscription_fact(item.value),
            )?);
        }
        Ok(ListPage {
            items,
            next: next_cursor(&list)?,
        })
    }

    /// Lists invoices. Only one that is not paid after an attempt needs a request of its own, for why it failed.
    pub async fn list_invoices(
        &self,
        range: ListRange<'_>,
        index: &InvoiceMoneyIndex,
    ) -> Result<ListPage, FetchError> {
        let query = [("expand[]", "data.payments")];
        let list = self.list("invoices", &query, range).await?;
        let mut items = Vec::new();
        for item in ObjectReader::new("invoice", &list).items("/data")? {
            let fetched = match self.listed_invoice(&item, index).await {
                Err(error @ FetchError::Http(_)) => return Err(error),
                Err(FetchError::Shape(error)) => Err(error),
                Ok(fetched) => Ok(fetched),
            };
            items.push(listed(ListStep::Invoices, &item, fetched)?);
        }
        Ok(ListPage {
            items,
            next: next_cursor(&list)?,
        })
    }

    async fn listed_invoice(
        &self,
        invoice: &ObjectReader<'_>,
        index: &InvoiceMoneyIndex,
    ) -> Result<FetchedObject, FetchError> {
        let mut money = InvoiceMoney::default();
        if needs_charges(invoice.value)? {
            let is_paid = invoice.text("/status")? == "paid";
            for intent in invoice_payment_intents(invoice.value)? {
                if !is_paid {
                    self.fetch_money(&intent, &mut money).await?;
                } else if let Some(known) = index.0.get(&intent) {
                    money.add_payment(known);
                }
            }
        }
        Ok(invoice_fact(invoice.value, &money)?)
    }

    /// Lists all refunds and disputes since a time.
    pub async fn list_money(
        &self,
        created_since: Option<i64>,
    ) -> Result<InvoiceMoneyIndex, FetchError> {
        let mut index: HashMap<String, InvoiceMoney> = HashMap::new();
        for (path, noun) in [("refunds", "refund"), ("disputes", "dispute")] {
            let mut after: Option<String> = None;
            loop {
                let range = ListRange {
                    after: after.as_deref(),
                    created_since,
                };
                let list = self.list(path, &[], range).await?;
                for item in ObjectReader::new(noun, &list).items("/data")? {
                    let Some(intent) = item.optional_id("/payment_intent")? else {
                        continue;
                    };
                    let money = index.entry(intent).or_default();
                    if path == "refunds" {
                        money.add_refund(&item)?;
                    } else {
                        money.add_disputes(&json!({ "data": [item.value] }))?;
                    }
                }
                after = next_cursor(&list)?;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(InvoiceMoneyIndex(index))
    }

    /// Lists events that change records. Stripe keeps them for 30 days.
    pub async fn list_events(&self, range: EventRange<'_>) -> Result<StripeEventPage, FetchError> {
        let since;
        let mut query: Vec<(&str, &str)> = LISTED_EVENTS.map(|name| ("types[]", name)).to_vec();
        match range {
            EventRange::After(event) => {
                query.extend([("ending_before", event), ("limit", MAX_PAGE)]);
            }
            EventRange::Since { seconds, before } => {
                since = seconds.to_string();
                query.extend([("created[gte]", since.as_str()), ("limit", MAX_PAGE)]);
                query.extend(before.map(|event| ("starting_after", event)));
            }
            EventRange::Newest => query.push(("limit", "1")),
        }
        let list = self.get(&["events"], &query).await?;
        let list = ObjectReader::new("event", &list);
        let mut events = Vec::new();
        for item in list.items("/data")? {
            let id = item.id("/id")?.to_string();
            // One that cannot be read is skipped, as a notification would be ignored.
            let event = read_notification(item.value.to_string().as_bytes()).ok();
            events.push((id, event.and_then(|event| event.object)));
        }
        Ok(StripeEventPage {
            events,
            has_more: list.flag("/has_more")?,
        })
    }

    /// Requests a page of a list, newest first.
    pub(super) async fn list(
        &self,
        path: &str,
        query: &[(&str, &str)],
        range: ListRange<'_>,
    ) -> Result<Value, FetchError> {
        let mut query = query.to_vec();
        query.push(("limit", MAX_PAGE));
        query.extend(range.after.map(|id| ("starting_after", id)));
        let since = range.created_since.map(|seconds| seconds.to_string());
        query.extend(since.as_deref().map(|since| ("created[gte]", since)));
        self.get(&[path], &query).await
    }
}

fn listed(
    step: ListStep,
    item: &ObjectReader<'_>,
    fetched: Result<FetchedObject, UnknownShape>,
) -> Result<ListedObject, UnknownShape> {
    let object = PaymentObjectRef {
        kind: step.kind(),
        id: item.id("/id")?.to_string(),
    };
    Ok(ListedObject { object, fetched })
}

/// Returns the cursor of the page after this one: the id of its last object.
pub(super) fn next_cursor(page: &Value) -> Result<Option<String>, UnknownShape> {
    let page = ObjectReader::new("list", page);
    if !page.flag("/has_more")? {
        return Ok(None);
    }
    let items = page.items("/data")?;
    let last = items.last().map(|item| item.id("/id")).transpose()?;
    Ok(last.map(|id| id.to_string()))
}
