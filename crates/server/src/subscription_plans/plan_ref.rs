//! References to plans in requests.

use perennial_domain::{Offer, PlanId, Slug};

/// A reference to a plan in a request.
#[derive(Debug, Clone, Copy)]
pub enum PlanRef {
    Id(PlanId),
    Slug(Slug),
    /// Both must be of the same plan.
    Both(PlanId, Slug),
}

impl PlanRef {
    /// Returns the offer that was found by this reference, or the field that is wrong and why.
    pub fn resolve(&self, found: Option<Offer>) -> Result<Offer, (&'static str, String)> {
        match (self, found) {
            (Self::Both(id, slug), Some(offer)) if !offer.slug.is_same(slug) => {
                let message = format!("the plan {id} has the slug {}, not {slug}", offer.slug);
                Err(("subscription_plan_slug", message))
            }
            (_, Some(offer)) => Ok(offer),
            (Self::Id(id) | Self::Both(id, _), None) => {
                let message = format!("no record has the id {id}");
                Err(("subscription_plan_id", message))
            }
            (Self::Slug(slug), None) => {
                let message = format!("no plan has the slug {slug}");
                Err(("subscription_plan_slug", message))
            }
        }
    }
}
