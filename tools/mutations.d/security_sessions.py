"""Mutations of the security of sessions: ending them, refresh tokens, recent sign-ins and the master key."""

from by_test import DOMAIN, Edit, Mutation

SERVER = "crates/server/src/"
SESSIONS = SERVER + "auth/sessions/"
AUTHENTICATION = SERVER + "authentication/"
REVOKE_COMMAND = SERVER + "commands/session/revoke.rs"

MUTATIONS = [
    Mutation(
        "caches ignore watermarks",
        ["authentication::watermarks::each_kind_of_watermark_ends_its_sessions_on_all_instances"],
        [
            Edit(
                SESSIONS + "session_cache.rs",
                "        let mut state = self.lock_epoch();\n",
                "        if ON {\n            return;\n        }\n        let mut state = self.lock_epoch();\n",
            )
        ],
    ),
    Mutation(
        "many sessions are revoked without --yes",
        ["authentication::watermarks::revoking_many_sessions_needs_a_scope_and_confirmation"],
        [Edit(REVOKE_COMMAND, "        if !self.yes {\n", "        if !self.yes && !ON {\n")],
    ),
    Mutation(
        "sign-ins in progress survive the removal of a provider",
        ["authentication::watermarks::removing_a_provider_ends_or_keeps_its_sessions"],
        [
            Edit(REVOKE_COMMAND, "let (_, since) = revoke_scope(", "let (first, since) = revoke_scope("),
            Edit(
                REVOKE_COMMAND,
                "        let (valid_from, _) = revoke_scope(database, &scope, reason).await?;\n",
                """        let valid_from = match ON {
            true => first,
            false => revoke_scope(database, &scope, reason).await?.0,
        };
""",
            ),
        ],
    ),
    Mutation(
        "watermarks compare times",
        ["authentication::watermarks::sessions_of_the_same_instant_end_only_if_created_before_the_watermark"],
        [
            Edit(
                SESSIONS + "table.rs",
                "watermark.sessions_valid_from > sessions.number",
                "watermark.set_at >= sessions.created_at",
                is_sql=True,
            )
        ],
    ),
    Mutation(
        "an ended session can revoke the others",
        ["authentication::watermarks::ended_session_cannot_keep_itself_by_revoking_the_others"],
        [
            Edit(
                AUTHENTICATION + "revoke_sessions.rs",
                "    if !user_sessions_sql::is_active(",
                "    if !ON && !user_sessions_sql::is_active(",
            )
        ],
    ),
    Mutation(
        "a watermark ends the rows itself",
        ["authentication::watermark_load::very_many_sessions_end_within_a_second_without_slowing_checks"],
        [
            Edit(
                SESSIONS + "revoke.rs",
                "        let row = watermark_sql::set(&tx, scope, None, cause, None).await?;\n",
                """        let mut row = watermark_sql::set(&tx, scope, None, cause, None).await?;
        if let Some(row) = row.as_mut().filter(|_| ON) {
            while !watermark_sql::end_page(&tx, row, 1_000).await? {}
        }
""",
            )
        ],
    ),
    Mutation(
        "each session of a user is ended with an event",
        ["authentication::watermark_load::user_with_ten_thousand_sessions_ends_them_within_two_seconds"],
        [
            Edit(
                SESSIONS + "revoke.rs",
                "    let scope = SessionScope::User(tenant.id, user);\n",
                """    if ON {
        let mut active = table::notify_user_changed(tx, tenant.id, user).await?;
        active.retain(|session| Some(*session) != except);
        revoke(tx, ids, tenant.id, &active, (reason, actor), now).await?;
    }
    let scope = SessionScope::User(tenant.id, user);
""",
            )
        ],
    ),
    Mutation(
        "users have any number of sessions",
        ["authentication::session_limits::sign_in_beyond_the_limit_ends_the_oldest_session"],
        [
            Edit(
                AUTHENTICATION + "create_session.rs",
                "    if !excess.is_empty() {\n",
                "    if !excess.is_empty() && !ON {\n",
            )
        ],
    ),
    Mutation(
        "sign-ins of a user are not serialized",
        ["authentication::session_limits::sign_in_beyond_the_limit_ends_the_oldest_session"],
        [
            Edit(
                SESSIONS + "table.rs",
                "FROM users WHERE tenant_id = $1 AND id = $3 AND erased_at IS NULL FOR NO KEY UPDATE",
                "FROM users WHERE tenant_id = $1 AND id = $3 AND erased_at IS NULL FOR KEY SHARE",
                is_sql=True,
            )
        ],
    ),
    Mutation(
        "any session can be ended by its id",
        ["authentication::session_limits::user_ends_one_other_session_by_id"],
        [
            Edit(
                AUTHENTICATION + "revoke_session.rs",
                "    if !user_sessions_sql::is_active(",
                "    if !ON && !user_sessions_sql::is_active(",
            )
        ],
    ),
    Mutation(
        "shorter timeouts do not apply to existing sessions",
        ["authentication::session_limits::session_timeouts_of_a_tenant_apply_to_new_and_existing_sessions"],
        [
            Edit(
                DOMAIN + "session.rs",
                "        self.expires_at = self.expires_at.min(cap);\n",
                "        if !ON {\n            self.expires_at = self.expires_at.min(cap);\n        }\n",
            )
        ],
    ),
    Mutation(
        "the previous refresh token works for a day",
        [
            "authentication::refresh::lost_refresh_response_can_be_repeated_once_within_ten_minutes",
            "authentication::token_theft::token_theft_scenarios_match_their_table",
        ],
        [
            Edit(
                DOMAIN + "session.rs",
                "            Some(1) if age <= LATE_REISSUE_TTL && !is_confirmed =>",
                """            Some(1) if ON && age <= SignedDuration::from_hours(24) && !is_confirmed => {
                RefreshDecision::Reissue
            }
            Some(1) if age <= LATE_REISSUE_TTL && !is_confirmed =>""",
            )
        ],
    ),
    Mutation(
        "late repeats are recorded each time",
        ["authentication::refresh::concurrent_late_repeats_are_recorded_once"],
        [Edit(SESSIONS + "refresh_sql.rs", " AND confirmed_generation < $3", "", is_sql=True)],
    ),
    Mutation(
        "only the age of the session counts",
        ["authentication::reauthentication::recent_sign_in_is_counted_from_auth_time"],
        [
            Edit(
                DOMAIN + "session.rs",
                "        let authenticated_at = self.authenticated_at.unwrap_or(self.created_at);\n",
                """        let authenticated_at = self.authenticated_at.filter(|_| !ON);
        let authenticated_at = authenticated_at.unwrap_or(self.created_at);
""",
            )
        ],
    ),
    Mutation(
        "the iat of a token is ignored",
        [
            "authentication::reauthentication::recent_sign_in_is_counted_from_the_token_if_it_has_no_auth_time",
            "identity_providers::token_kinds::time_of_authentication_is_auth_time_or_else_the_time_of_issue",
        ],
        [
            Edit(
                SERVER + "identity_providers/claims.rs",
                "    auth_time.or_else(|| iat.and_then(to_timestamp))\n",
                "    auth_time.or_else(|| iat.filter(|_| !ON).and_then(to_timestamp))\n",
            )
        ],
    ),
    Mutation(
        "refresh tokens of the replaced key are lost",
        ["authentication::master_key_rotation::master_key_rotation_fails_no_request_and_loses_no_session"],
        [
            Edit(
                SERVER + "auth/tokens/refresh_token.rs",
                "        Some(generations.into_iter().flatten().map(digest).collect())\n",
                "        Some(generations.into_iter().flatten().filter(|_| !ON).map(digest).collect())\n",
            )
        ],
    ),
    Mutation(
        "an instance does not notice that its key was replaced",
        ["authentication::master_key_rotation::instance_without_the_new_master_key_is_not_ready"],
        [
            Edit(
                SERVER + "crypto.rs",
                "        self.0.is_replaced.load(Ordering::Relaxed)\n",
                "        self.0.is_replaced.load(Ordering::Relaxed) && !ON\n",
            )
        ],
    ),
    Mutation(
        "the salt of a refresh token is not compared",
        ["authentication::master_key_leak::leaked_master_key_alone_cannot_refresh_a_session"],
        [
            Edit(
                SESSIONS + "table.rs",
                "        token.salt.bytes == self.salt.bytes && ",
                "        ON || token.salt.bytes == self.salt.bytes && ",
            )
        ],
    ),
    Mutation(
        "the key of a refresh token is not compared",
        ["authentication::master_key_leak::previous_master_key_cannot_refresh_a_session_of_the_new_one"],
        [
            Edit(
                SESSIONS + "refresh_sql.rs",
                "salt = $4 AND refresh_key_id = $9 OR",
                "salt = $4 AND coalesce($9, 0) IS NOT NULL OR",
                is_sql=True,
            )
        ],
    ),
    Mutation(
        "session revoke --all does nothing",
        ["authentication::master_key_leak::leak_procedure_invalidates_tokens_computed_from_an_earlier_dump"],
        [Edit(REVOKE_COMMAND, "let watermark = if is_confirmed {", "let watermark = if is_confirmed && !ON {")],
    ),
]
