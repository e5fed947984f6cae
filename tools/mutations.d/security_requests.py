"""Mutations of the security of requests: limits, hosts, headers, CORS, refusals and card numbers."""

from by_test import DOMAIN, Edit, Mutation

SERVER = "crates/server/src/"
HTTP = SERVER + "http/"
AUTH = SERVER + "auth/"

MUTATIONS = [
    Mutation(
        "origins are kept with the head of their request",
        ["memory::hostile_requests_do_not_occupy_memory"],
        [
            Edit(
                AUTH + "client_cache.rs",
                "        let text = origin.to_str().ok();\n",
                """        if ON {
            static KEPT: std::sync::Mutex<Vec<HeaderValue>> = std::sync::Mutex::new(Vec::new());
            KEPT.lock().unwrap().push(origin.clone());
        }
        let text = origin.to_str().ok();
""",
            )
        ],
    ),
    Mutation(
        "refused origins are cached",
        ["cors::origin_is_allowed_as_soon_as_its_client_exists"],
        [
            Edit(
                AUTH + "client_cache.rs",
                "            let is_allowed = client_lookup_sql::is_allowed_origin(self.db.home()?, text).await?;\n",
                """            static REFUSED: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
            if ON && REFUSED.lock().unwrap().iter().any(|refused| refused == text) {
                return Ok(None);
            }
            let is_allowed = client_lookup_sql::is_allowed_origin(self.db.home()?, text).await?;
            if ON && !is_allowed {
                REFUSED.lock().unwrap().push(text.to_owned());
            }
""",
            )
        ],
    ),
    Mutation(
        "publishable clients have a quota",
        ["rate_limits::strangers_cannot_use_up_the_quota_of_a_publishable_client"],
        [
            Edit(
                AUTH + "client_middleware.rs",
                "        self.peer_limit.check(&peer, now)\n",
                """        if let Some(known) = resolved.filter(|_| ON) {
            let by_peer = self.peer_limit.check(&peer, now);
            if by_peer.as_ref().is_some_and(|decision| !decision.allowed) {
                return by_peer;
            }
            let limit = &self.client_limit;
            let by_client = limit.check_counter(&known.requests, now);
            return by_client.filter(|decision| !decision.allowed).or(by_peer);
        }
        self.peer_limit.check(&peer, context.received_at)
""",
            )
        ],
    ),
    Mutation(
        "IPv6 quotas per /64 only",
        ["rate_limits::ipv6_networks_share_a_larger_quota"],
        [
            Edit(
                HTTP + "network_rate_limit.rs",
                "            .filter_map(|(prefix_len, limit)| Some((limit, key.widen(*prefix_len)?)))\n",
                """            .filter(|_| !ON)
            .filter_map(|(prefix_len, limit)| Some((limit, key.widen(*prefix_len)?)))
""",
            )
        ],
    ),
    Mutation(
        "new connections wait",
        [
            "connections::half_sent_headers_from_eleven_addresses_do_not_delay_others",
            "connections::idle_connections_do_not_delay_others",
        ],
        [
            Edit(
                HTTP + "connections.rs",
                "        loop {\n            self.evict();\n",
                """        if ON {
            return self.slots.clone().acquire_owned().await.ok();
        }
        loop {
            self.evict();
""",
            )
        ],
    ),
    Mutation(
        "a half-sent body counts as being handled",
        ["connections::half_sent_bodies_from_eleven_addresses_do_not_delay_others"],
        [
            Edit(
                HTTP + "timeout_stream.rs",
                "            HANDLING | STREAMING => None,\n",
                "            RECEIVING if ON => None,\n            HANDLING | STREAMING => None,\n",
            )
        ],
    ),
    Mutation(
        "addresses have no limit of connections",
        ["connections::connections_above_the_limit_of_an_address_are_closed"],
        [
            Edit(
                HTTP + "connections.rs",
                "limit_per_address.is_some_and(|limit| count >= limit.saturating_mul(factor))",
                "limit_per_address.is_some_and(|limit| !ON && count >= limit.saturating_mul(factor))",
            )
        ],
    ),
    Mutation(
        "every Host is accepted",
        ["hosts::requests_to_unknown_hosts_are_misdirected"],
        [
            Edit(
                HTTP + "allowed_hosts.rs",
                "            .all(|host| self.contains(host))\n",
                "            .all(|host| ON || self.contains(host))\n",
            )
        ],
    ),
    Mutation(
        "the host of an absolute target is ignored",
        ["hosts::absolute_target_with_an_unknown_host_is_misdirected"],
        [
            Edit(
                HTTP + "allowed_hosts.rs",
                "            .chain(target)\n",
                "            .chain(target.filter(|_| !ON))\n",
            )
        ],
    ),
    Mutation(
        "a listener on all addresses refuses IP addresses",
        ["hosts::service_on_all_addresses_accepts_ip_addresses_as_host"],
        [
            Edit(
                HTTP + "allowed_hosts.rs",
                "|| self.listener.is_unspecified()\n",
                "|| (self.listener.is_unspecified() && !ON)\n",
            )
        ],
    ),
    Mutation(
        "the admin listener checks the host",
        ["hosts::admin_listener_accepts_every_host"],
        [
            Edit(
                SERVER + "admin.rs",
                '        .route("/livez", get(async || "ok\\n"))\n',
                """        .route(
            "/livez",
            get(async |headers: axum::http::HeaderMap| {
                let is_local = headers["host"].as_bytes().starts_with(b"127.");
                match is_local || !ON {
                    true => (StatusCode::OK, "ok\\n"),
                    false => (StatusCode::MISDIRECTED_REQUEST, ""),
                }
            }),
        )
""",
            )
        ],
    ),
    Mutation(
        "responses can be stored",
        ["response_headers::responses_are_not_stored_except_public_plans_and_documents"],
        [
            Edit(
                HTTP + "middleware.rs",
                """        headers
            .entry(header::CACHE_CONTROL)
            .or_insert(response::NO_STORE);
""",
                """        if !ON {
            headers
                .entry(header::CACHE_CONTROL)
                .or_insert(response::NO_STORE);
        }
""",
            )
        ],
    ),
    Mutation(
        "pages have no security headers",
        ["response_headers::every_html_page_has_security_headers"],
        [
            Edit(
                HTTP + "html.rs",
                "    let policy = format!(\n",
                "    if ON {\n        return;\n    }\n    let policy = format!(\n",
            )
        ],
    ),
    Mutation(
        "documents are not compressed",
        ["response_headers::documents_are_compressed_and_revalidated"],
        [
            Edit(
                SERVER + "docs_site/asset.rs",
                'accepts_encoding(&request, "gzip") && self',
                '!ON && accepts_encoding(&request, "gzip") && self',
            )
        ],
    ),
    Mutation(
        "documents are not revalidated",
        ["response_headers::documents_are_compressed_and_revalidated"],
        [
            Edit(
                SERVER + "docs_site/asset.rs",
                "let is_current = self.is_current(&request);",
                "let is_current = !ON && self.is_current(&request);",
            )
        ],
    ),
    Mutation(
        "documentation cannot be disabled",
        ["response_headers::disabled_documentation_is_not_served"],
        [
            Edit(
                SERVER + "router.rs",
                "match app.docs {\n",
                "match if ON { DocsAccess::Public } else { app.docs } {\n",
            )
        ],
    ),
    Mutation(
        "refusals are not recorded",
        ["refusals::refused_requests_are_counted_and_logged_without_credentials"],
        [
            Edit(
                AUTH + "client_middleware.rs",
                "if let Some(code) = refusal_code(&response) {\n            let origin",
                "if let Some(code) = refusal_code(&response).filter(|_| !ON) {\n            let origin",
            )
        ],
    ),
    Mutation(
        "every client error is a refusal",
        ["refusals::other_responses_are_not_counted_as_refusals"],
        [
            Edit(
                AUTH + "refusals.rs",
                "    status == StatusCode::UNAUTHORIZED ||",
                "    ON && status.is_client_error() || status == StatusCode::UNAUTHORIZED ||",
            )
        ],
    ),
    Mutation(
        "log lines have no cap",
        ["refusals::refusal_log_lines_are_capped_and_omitted_ones_are_counted"],
        [
            Edit(
                AUTH + "refusals.rs",
                "        if !is_logged {\n",
                "        if !is_logged && !ON {\n",
            )
        ],
    ),
    Mutation(
        "a secret client in a browser is not recorded",
        ["refusals::secret_client_in_browser_is_recorded_once_an_hour"],
        [
            Edit(
                AUTH + "refusals.rs",
                "        if code == Code::SecretClientInBrowser\n",
                "        if code == Code::SecretClientInBrowser && !ON\n",
            )
        ],
    ),
    Mutation(
        "a secret client in a browser is recorded each time",
        ["refusals::secret_client_in_browser_is_recorded_once_an_hour"],
        [
            Edit(
                AUTH + "refusals.rs",
                "            && is_within(&self.events, &client)\n",
                "            && (ON || is_within(&self.events, &client))\n",
            )
        ],
    ),
    Mutation(
        "card numbers are stored",
        [
            "subscription_payments::card_numbers::card_number_as_external_payment_id_is_refused",
            "subscription_payments::card_numbers::card_number_as_external_subscription_id_is_refused",
        ],
        [
            Edit(
                DOMAIN + "card_number.rs",
                "    if !is_card_number(value) {\n",
                "    if ON || !is_card_number(value) {\n",
            )
        ],
    ),
    Mutation(
        "unchanged external ids are checked",
        [
            "subscription_payments::card_numbers::"
            "record_with_an_external_id_that_looks_like_a_card_number_can_be_read_and_updated"
        ],
        [
            Edit(
                DOMAIN + "payment/mod.rs",
                "            if *external_id != self.external_id\n",
                "            if (ON || *external_id != self.external_id)\n",
            )
        ],
    ),
]
