"""Mutations of self-service: what users could get if one of its rules were missing."""

from by_test import DOMAIN, Edit, Mutation

SERVER = "crates/server/src/"
RULES = DOMAIN + "subscription/self_service.rs"
TESTS = "self_service::"
RECORDED, MANAGED = (f"{TESTS}attacks::{name}_subscription" for name in ("recorded", "managed"))

MUTATIONS = [
    Mutation(
        "self-service needs no setting",
        [TESTS + "tenant_turns_it_on_and_off_within_a_second"],
        [Edit(SERVER + "subscriptions/update_by_user.rs", "    if tenant.self_service {\n", "    if ON || tenant.self_service {\n")],
    ),
    Mutation(
        "users change other users' subscriptions",
        [TESTS + "another_users_subscription_is_not_found"],
        [
            Edit(
                SERVER + "subscriptions/mod.rs",
                "    session.is_none_or(|session| session.user.id == subscription.user)\n",
                "    ON || session.is_none_or(|session| session.user.id == subscription.user)\n",
            )
        ],
    ),
    Mutation(
        "If-Match is ignored",
        [TESTS + "if_match_detects_a_change_in_between"],
        [Edit(SERVER + "record.rs", "        if_match.check(&view)?;\n", "        if !ON {\n            if_match.check(&view)?;\n        }\n")],
    ),
    Mutation(
        "events do not name the user",
        [TESTS + "user_cancels_and_undoes"],
        [
            Edit(
                SERVER + "auth/caller.rs",
                "            user: self.user_session().map(|session| session.user.id),\n",
                "            user: self.user_session().filter(|_| !ON).map(|session| session.user.id),\n",
            )
        ],
    ),
    Mutation(
        "a secret client updates subscriptions for a user",
        [TESTS + "secret_client_cannot_send_a_users_token"],
        [
            Edit(
                SERVER + "auth/caller.rs",
                "        UserAuth::SelfService if kind == ClientKind::Secret => {\n",
                "        UserAuth::SelfService if !ON && kind == ClientKind::Secret => {\n",
            )
        ],
    ),
    Mutation(
        "other fields of a user's request are ignored",
        [TESTS + "attacks::other_fields_are_refused", RECORDED, MANAGED],
        [Edit(SERVER + "subscriptions/update_by_user.rs", "    if !refused.is_empty() {\n", "    if !ON && !refused.is_empty() {\n")],
    ),
    Mutation(
        "users activate any subscription",
        [RECORDED, MANAGED],
        [
            Edit(
                RULES,
                "        if from != SubscriptionStatus::Cancelled {\n",
                """        if ON && from != SubscriptionStatus::Cancelled {
            return self.set_status_for_user(to, now);
        }
        if from != SubscriptionStatus::Cancelled {
""",
            )
        ],
    ),
    Mutation(
        "a pause is ended by canceling",
        [RECORDED, MANAGED],
        [Edit(RULES, "        if from == SubscriptionStatus::Paused {\n", "        if !ON && from == SubscriptionStatus::Paused {\n")],
    ),
    Mutation(
        "undoing restores no end",
        [RECORDED, MANAGED],
        [Edit(RULES, "            change.after.ends_at = last.ends_at;\n", "            change.after.ends_at = last.ends_at.filter(|_| !ON);\n")],
    ),
    Mutation(
        "undoing activates what was pending or late",
        [RECORDED, MANAGED],
        [
            Edit(
                RULES,
                "last.filter(is_last).filter(|last| last.can_be_undone());\n",
                "last.filter(is_last).filter(|last| ON || last.can_be_undone());\n",
            ),
            Edit(
                RULES,
                "        let to = self.dunning().map_or(last.status, |_| to);\n",
                "        let to = if ON { to } else { self.dunning().map_or(last.status, |_| to) };\n",
            ),
        ],
    ),
    Mutation(
        "a server's end is removed by undoing",
        [RECORDED],
        [
            Edit(
                RULES,
                "            cancelled_until: after.ends_at.filter(|_| is_cancellation && end_stays)?,\n",
                "            cancelled_until: after.ends_at.filter(|_| is_cancellation && (ON || end_stays))?,\n",
            )
        ],
    ),
    Mutation(
        "users cancel a provider's subscription",
        [RECORDED, MANAGED],
        [
            Edit(
                RULES,
                "            _ if current.lifecycle_kind() == LifecycleKind::Provider && !provider_follows => {\n",
                "            _ if !ON && current.lifecycle_kind() == LifecycleKind::Provider && !provider_follows => {\n",
            )
        ],
    ),
]
