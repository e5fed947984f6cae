//! Applies a page of a list, or predicts what would happen.

use std::collections::{HashMap, HashSet};

use perennial_domain::{ExternalId, Fact, SubscriptionFact};
use tokio::sync::Mutex;

use super::{
    fetched_object::FetchedObject,
    list_page::{ListPage, ListStep, ListedObject},
    list_report::ListReport,
    list_walk::ListWalk,
    listed_apply::{ListedApply, ListedOutcome},
    listed_sql,
    purchase_sync::is_lifetime,
    sync_sql::ObjectKey,
};
use crate::{db::Error, subscription_plans};

/// Objects of a page that are applied at the same time. Each uses a connection to the database.
const MAX_LANES: usize = 4;

/// Applies the pages of a walk.
pub(super) struct PageApply<'a> {
    pub walk: &'a ListWalk<'a>,
    pub apply: ListedApply<'a>,
    /// Of a dry run: the number of plans by variant and product.
    pub offers: Mutex<HashMap<(String, String), OfferCount>>,
}

/// The plans that have a variant or product.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfferCount {
    all: usize,
    lifetime: usize,
}

impl PageApply<'_> {
    /// Applies a page. Returns whether all of its objects were known.
    pub(super) async fn apply(
        &self,
        step: ListStep,
        page: &ListPage,
        report: &mut ListReport,
        unmatched: &mut HashSet<String>,
    ) -> Result<bool, Error> {
        let walk = self.walk;
        let owner = (walk.tenant, walk.account.id);
        let ids: Vec<&str> = { page.items.iter() }
            .map(|listed| listed.object.id.as_str())
            .collect();
        let facts = listed_sql::list_facts(walk.database, owner, step.kind(), &ids).await?;
        let (mut is_known, mut unknown) = (true, Vec::new());
        for listed in &page.items {
            let fields = match &listed.fetched {
                Ok(FetchedObject::Subscription { reported, .. }) => reported.fact.to_fields(),
                Ok(FetchedObject::Payment(reported)) => reported.fact.to_fields(),
                Ok(FetchedObject::Purchase(purchase)) => purchase.payment.fact.to_fields(),
                Ok(FetchedObject::LeadsTo(_) | FetchedObject::Unrelated(_)) => {
                    report.add(step, listed, ListedOutcome::Ignored);
                    continue;
                }
                Err(error) => {
                    report.add(step, listed, ListedOutcome::Failed(error.to_string()));
                    continue;
                }
            };
            let stored = facts.get(&listed.object.id);
            if stored == Some(&fields) {
                report.add(step, listed, ListedOutcome::Unchanged);
                continue;
            }
            if walk.is_dry_run {
                let outcome = self.predict(listed, stored.is_some(), unmatched).await?;
                is_known &= outcome == ListedOutcome::Ignored;
                report.add(step, listed, outcome);
            } else {
                unknown.push(listed);
            }
        }
        // Lanes instead of tasks, because they borrow the page.
        let lanes: [Vec<&ListedObject>; MAX_LANES] = std::array::from_fn(|lane| {
            let of_lane = unknown.iter().filter(|listed| lane_of(listed) == lane);
            of_lane.copied().collect()
        });
        let [first, second, third, fourth] = &lanes;
        let outcomes = tokio::try_join!(
            self.apply_lane(first),
            self.apply_lane(second),
            self.apply_lane(third),
            self.apply_lane(fourth),
        )?;
        let outcomes = [outcomes.0, outcomes.1, outcomes.2, outcomes.3];
        for (lane, outcomes) in lanes.iter().zip(outcomes) {
            for (listed, outcome) in lane.iter().zip(outcomes) {
                // An invoice of 0 and one that waits have no stored fact, and are no news.
                is_known &= !matches!(outcome, ListedOutcome::Created | ListedOutcome::Changed);
                report.add(step, listed, outcome);
            }
        }
        Ok(is_known)
    }

    async fn apply_lane(&self, lane: &[&ListedObject]) -> Result<Vec<ListedOutcome>, Error> {
        let mut outcomes = Vec::new();
        for listed in lane {
            let key = ObjectKey {
                tenant: self.walk.tenant,
                account: self.walk.account.id,
                object: listed.object.clone(),
            };
            if let Ok(fetched) = &listed.fetched {
                outcomes.push(self.apply.apply(&key, fetched).await?);
            }
        }
        Ok(outcomes)
    }

    /// Returns what an import would do with an object, if every customer has a user or gets one.
    async fn predict(
        &self,
        listed: &ListedObject,
        has_fact: bool,
        unmatched: &mut HashSet<String>,
    ) -> Result<ListedOutcome, Error> {
        if has_fact {
            return Ok(ListedOutcome::Changed);
        }
        Ok(match &listed.fetched {
            Ok(FetchedObject::Subscription { reported, .. }) => {
                match self.count_offers(&reported.fact).await?.all {
                    0 => {
                        unmatched.insert(listed.object.id.clone());
                        let variant = &reported.fact.plan.variant;
                        ListedOutcome::Waiting(format!("no plan has {variant} in its variants"))
                    }
                    1 => ListedOutcome::Created,
                    _ => {
                        unmatched.insert(listed.object.id.clone());
                        let variant = &reported.fact.plan.variant;
                        ListedOutcome::Failed(format!("several plans have {variant}"))
                    }
                }
            }
            Ok(FetchedObject::Payment(reported)) if reported.fact.amount.minor_units() == 0 => {
                ListedOutcome::Ignored
            }
            Ok(FetchedObject::Payment(reported))
                if unmatched.contains(reported.fact.subscription.as_str()) =>
            {
                ListedOutcome::Waiting("its subscription waits or has failed".to_owned())
            }
            Ok(FetchedObject::Purchase(purchase)) => {
                let found = self.count_offers(&purchase.subscription.fact).await?;
                match found.lifetime {
                    0 => ListedOutcome::Ignored,
                    1 if found.all == 1 => ListedOutcome::Created,
                    _ => {
                        let variant = &purchase.subscription.fact.plan.variant;
                        ListedOutcome::Failed(format!("several plans have {variant}"))
                    }
                }
            }
            Ok(_) => ListedOutcome::Created,
            Err(error) => ListedOutcome::Failed(error.to_string()),
        })
    }

    async fn count_offers(&self, fact: &SubscriptionFact) -> Result<OfferCount, Error> {
        let variant = fact.plan.variant.as_str();
        if self.walk.assumed_variants.contains(variant) {
            return Ok(OfferCount {
                all: 1,
                lifetime: 0,
            });
        }
        let product = fact.plan.product.as_ref().map(ExternalId::as_str);
        let id = (variant.to_owned(), product.unwrap_or_default().to_owned());
        let mut offers = self.offers.lock().await;
        if let Some(count) = offers.get(&id) {
            return Ok(*count);
        }
        let mut connection = self.walk.database.connection().await?;
        let tx = connection.begin();
        let tenant = self.walk.tenant;
        let found =
            subscription_plans::table::lock_offers_for_variant(&tx, tenant, variant, product)
                .await?;
        tx.rollback().await;
        let count = OfferCount {
            all: found.len(),
            lifetime: found.iter().filter(|offer| is_lifetime(offer)).count(),
        };
        offers.insert(id, count);
        Ok(count)
    }
}

/// Returns the lane of an object. Objects that change the same records have the same lane, so that none waits for another
/// lane: subscriptions of a customer, and payments of a subscription.
fn lane_of(listed: &ListedObject) -> usize {
    let shared = match &listed.fetched {
        Ok(FetchedObject::Subscription { customer, .. }) => customer.id.as_str(),
        Ok(FetchedObject::Purchase(purchase)) => purchase.customer.id.as_str(),
        Ok(FetchedObject::Payment(reported)) => reported.fact.subscription.as_str(),
        Ok(FetchedObject::LeadsTo(_) | FetchedObject::Unrelated(_)) | Err(_) => &listed.object.id,
    };
    let sum: usize = shared.bytes().map(usize::from).sum();
    sum % MAX_LANES
}
