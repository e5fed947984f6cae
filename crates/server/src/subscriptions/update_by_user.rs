//! What users can change with `PUT /subscriptions/{id}`, if the tenant's setting `self_service` is on: cancel,
//! and undo a cancellation. The rules are in `domain/subscription/self_service.rs`.

use jiff::Timestamp;
use perennial_domain::{
    AppliedChange, Cancellation, Id, SelfServiceError, Subscription, SubscriptionChanges,
    SubscriptionStatus, TenantId,
};

use super::{body::parse_update, cancellation_sql};
use crate::{
    auth::Tenant,
    db::{Error, Transaction},
    http::{
        json::BodyFields,
        problem::{Code, Problem, ProblemFieldError},
    },
    payment_commands,
    subscription_plans::PlanRef,
};

/// Rejects a user's request unless the tenant allows self-service.
pub(super) fn check_enabled(tenant: &Tenant) -> Result<(), Problem> {
    if tenant.self_service {
        return Ok(());
    }
    let detail = "users cannot change their subscriptions; an operator can allow it: perennial tenant set --self-service on";
    Err(Problem::new(Code::SelfServiceDisabled, detail))
}

/// Applies the body of a user's request to their locked subscription. Returns `None` if nothing changes.
pub(super) async fn apply(
    tx: &Transaction<'_>,
    tenant: TenantId,
    before: &Subscription,
    fields: BodyFields,
    now: Timestamp,
) -> Result<Option<AppliedChange>, Problem> {
    // The plan is not looked up: a user must not learn which plans exist.
    let (changes, plan) = parse_update(fields, before)?;
    let mut refused = changes.refused_to_users(before, now);
    refused.extend(plan.iter().map(|plan| match plan {
        PlanRef::Slug(_) => "subscription_plan_slug",
        PlanRef::Id(_) | PlanRef::Both(..) => "subscription_plan_id",
    }));
    if !refused.is_empty() {
        return Err(Problem::fields(
            refused.into_iter().map(refused_field).collect(),
        ));
    }
    let last = match changes.status {
        Some(SubscriptionStatus::Active) => cancellation_sql::find(tx, tenant, before.id).await?,
        _ => None,
    };
    let provider_follows = before.external_id.is_some()
        && payment_commands::table::is_run_by_account(tx, tenant.uuid(), before.id.uuid()).await?;
    let applied = before.update_by_user(changes.status, last.as_ref(), provider_follows, now);
    applied.map_err(|error| self_service_problem(before, error))
}

/// Stores what a change replaced if it is a cancellation, for any caller.
pub(super) async fn save_cancellation(
    tx: &Transaction<'_>,
    tenant: TenantId,
    before: &Subscription,
    after: &Subscription,
    changes: &SubscriptionChanges,
) -> Result<(), Error> {
    let (was, is) = (before.status, after.status);
    if is != SubscriptionStatus::Cancelled || was == is {
        return Ok(());
    }
    match Cancellation::from_change(before, after, changes) {
        Some(cancellation) => cancellation_sql::save(tx, tenant, after.id, &cancellation).await,
        None => cancellation_sql::delete(tx, tenant, after.id).await,
    }
}

fn refused_field(name: &'static str) -> ProblemFieldError {
    let pointer = format!("/{name}");
    if name == "status" {
        let allowed = [SubscriptionStatus::Cancelled, SubscriptionStatus::Active];
        let message = "users can only set it to cancelled or active";
        return ProblemFieldError::new(pointer, Code::NotForUsers, message)
            .with_allowed(allowed.map(SubscriptionStatus::as_str).to_vec());
    }
    let message = "users cannot change it; omit it, or send its current value";
    ProblemFieldError::new(pointer, Code::NotForUsers, message)
}

fn self_service_problem(subscription: &Subscription, error: SelfServiceError) -> Problem {
    let rejected = |detail: String| Problem::new(Code::InvalidTransition, detail);
    match error {
        SelfServiceError::NotAllowed { from, to } => {
            let allowed: Vec<&str> = from
                .allowed_to_users()
                .iter()
                .map(|status| status.as_str())
                .collect();
            let detail = if allowed.is_empty() {
                format!("users cannot change a subscription that is {from}")
            } else {
                let allowed = allowed.join(", ");
                format!("users cannot change from {from} to {to}; allowed: {allowed}")
            };
            rejected(detail).with_allowed(allowed)
        }
        SelfServiceError::LifetimeCancelled => {
            rejected("a lifetime subscription does not renew, so it cannot be cancelled".to_owned())
        }
        SelfServiceError::ProviderManaged => rejected(
            "the payment provider charges this subscription and cannot be told by the service; it must be changed there"
                .to_owned(),
        ),
        SelfServiceError::CannotUndo => {
            let from = subscription.status;
            rejected(format!(
                "users cannot undo this: the subscription did not give access before it was {from}, or a server has set its end"
            ))
        }
    }
}
