//! The types of events in the event log.

string_enum! {
    /// The type of an event. Its string is a record type, a dot and what happened to it.
    pub enum EventKind: "an event type" {
        /// A client was created.
        ClientCreated = "client.created",
        /// A client's settings changed.
        ClientUpdated = "client.updated",
        /// A client received a new `client-id`. The old one works until it expires.
        ClientRotated = "client.rotated",
        /// A client's old `client-id` expired and was removed.
        ClientValueExpired = "client.value_expired",
        /// A client was disabled.
        ClientDisabled = "client.disabled",
        /// A browser sent a secret client's `client-id`. Recorded at most once an hour per instance.
        ClientUsedInBrowser = "client.used_in_browser",
        /// A payment was recorded.
        PaymentCreated = "payment.created",
        /// A payment was updated.
        PaymentUpdated = "payment.updated",
        /// A payment was deleted.
        PaymentDeleted = "payment.deleted",
        /// A payment account was created.
        PaymentAccountCreated = "payment_account.created",
        /// A payment account's settings or API key changed.
        PaymentAccountUpdated = "payment_account.updated",
        /// A payment account received a new secret. The old one verifies notifications until it expires.
        PaymentAccountSecretRotated = "payment_account.secret_rotated",
        /// A payment account was deleted.
        PaymentAccountDeleted = "payment_account.deleted",
        /// A plan was created.
        PlanCreated = "plan.created",
        /// A plan was updated.
        PlanUpdated = "plan.updated",
        /// A plan was deleted.
        PlanDeleted = "plan.deleted",
        /// An identity provider was added to a tenant.
        ProviderAdded = "provider.added",
        /// An identity provider's settings changed.
        ProviderUpdated = "provider.updated",
        /// An identity provider was removed from a tenant.
        ProviderRemoved = "provider.removed",
        /// A user signed in or signed up.
        SessionCreated = "session.created",
        /// The previous refresh token of a session was accepted once more, 30 seconds to 10 minutes after
        /// its first use: a response was lost, or the token was stolen.
        SessionRefreshRepeated = "session.refresh_repeated",
        /// A session was revoked. The event's data has the reason.
        SessionRevoked = "session.revoked",
        /// A staff member was invited, or received a sign-in link from the command line for the first time.
        StaffInvited = "staff.invited",
        /// A staff member's role changed.
        StaffChanged = "staff.changed",
        /// A staff member was removed, and the member's sessions ended.
        StaffRemoved = "staff.removed",
        /// A staff member signed in to the console.
        StaffSignedIn = "staff.signed_in",
        /// A staff member signed out of the console.
        StaffSignedOut = "staff.signed_out",
        /// A staff member exported the data of a user.
        StaffExported = "staff.exported",
        /// A subscription was created.
        SubscriptionCreated = "subscription.created",
        /// A subscription was updated.
        SubscriptionUpdated = "subscription.updated",
        /// A subscription's next period started, and it is paid or free.
        SubscriptionRenewed = "subscription.renewed",
        /// A subscription's next period started, and it is not paid.
        SubscriptionPastDue = "subscription.past_due",
        /// A subscription lost access because its payment was overdue for too long.
        SubscriptionUnpaid = "subscription.unpaid",
        /// A subscription reached its end, or was unpaid for too long.
        SubscriptionExpired = "subscription.expired",
        /// A subscription was ended because its user's account was deleted. If it has an
        /// `external_subscription_id`, the payment provider keeps charging until it is canceled there.
        SubscriptionEnded = "subscription.ended",
        /// A subscription was deleted.
        SubscriptionDeleted = "subscription.deleted",
        /// A tenant was created.
        TenantCreated = "tenant.created",
        /// A tenant's settings changed.
        TenantUpdated = "tenant.updated",
        /// A tenant without users, plans and subscriptions was deleted.
        TenantDeleted = "tenant.deleted",
        /// All sessions of a tenant, or those of one issuer, were revoked and have ended. The event's data
        /// has their number, the issuer and the reason.
        TenantSessionsRevoked = "tenant.sessions_revoked",
        /// A user was created, by sign-up or in advance by a server.
        UserCreated = "user.created",
        /// A user who was created in advance signed up.
        UserClaimed = "user.claimed",
        /// A user's personal data was erased.
        UserErased = "user.erased",
        /// A user's record was updated by a server. The event's data names the changed fields, not their
        /// values, which may be personal data.
        UserUpdated = "user.updated",
        /// A user's email address changed at the identity provider.
        UserEmailChanged = "user.email_changed",
        /// All sessions of a user were revoked, or all but one. The event's data has their number and the
        /// reason.
        UserSessionsRevoked = "user.sessions_revoked",
        /// A webhook endpoint was created.
        WebhookEndpointCreated = "webhook_endpoint.created",
        /// A webhook endpoint's settings changed.
        WebhookEndpointUpdated = "webhook_endpoint.updated",
        /// A webhook endpoint was enabled. It continues where it stopped.
        WebhookEndpointEnabled = "webhook_endpoint.enabled",
        /// A webhook endpoint was disabled: by a request, because it responded with 410, or because all
        /// attempts failed for five days. The event's data has the reason.
        WebhookEndpointDisabled = "webhook_endpoint.disabled",
        /// A webhook endpoint received a new secret. The old one signs too until it expires.
        WebhookEndpointSecretRotated = "webhook_endpoint.secret_rotated",
        /// A webhook endpoint was deleted.
        WebhookEndpointDeleted = "webhook_endpoint.deleted",
    }
}

impl EventKind {
    /// The record types whose events are for operators of the service, not for clients of a tenant.
    pub const OPERATOR_RECORD_TYPES: [&'static str; 4] = ["client", "provider", "staff", "tenant"];

    /// Returns the record type, which is the part of the string before the dot.
    pub fn record_type(self) -> &'static str {
        let kind = self.as_str();
        kind.split_once('.').map_or(kind, |(record, _)| record)
    }

    /// Returns whether clients of a tenant can read events of this type. Events about tenants, clients, staff
    /// and identity providers are for operators only.
    pub fn is_public(self) -> bool {
        !Self::OPERATOR_RECORD_TYPES.contains(&self.record_type())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_about_tenants_clients_staff_and_providers_are_not_public() {
        let hidden = EventKind::ALL.iter().filter(|kind| !kind.is_public());
        let mut records: Vec<&str> = hidden.map(|kind| kind.record_type()).collect();
        records.dedup();
        assert_eq!(records, ["client", "provider", "staff", "tenant"]);
        assert!(EventKind::SubscriptionCreated.is_public());
        assert!(EventKind::UserErased.is_public());
    }
}
