// Generated from the OpenAPI document by `pnpm generate`.

export interface paths {
    "/.well-known/jwks.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the public keys
         * @description Returns the keys that verify access tokens. A new key is published ten minutes before it is used; an old key is
         *     published until its last token has expired.
         */
        get: operations["readSigningKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/openid-configuration": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the OpenID configuration
         * @description Returns the issuer of access tokens and the URL of the public keys. There is no authorization endpoint: users sign in at
         *     your identity provider.
         */
        get: operations["readOpenidConfiguration"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/authentication/delete-my-account/{auth_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete the account
         * @description Revokes all sessions, expires all subscriptions and deletes the personal data of the signed-in user, in one transaction.
         *     `auth_id` must be the id of the signed-in user; any other id is rejected, whether or not it exists. The same person can
         *     sign up again, as a new user.
         */
        delete: operations["deleteMyAccount"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/authentication/refresh-token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Refresh tokens
         * @description Returns the session's next access token and refresh token. Each refresh token is used once. The previous one returns
         *     the same tokens again for 30 seconds, and once more within 10 minutes if the new tokens have not been used yet, so
         *     that concurrent tabs and lost responses don't sign users out. Any other use of an old token revokes the session.
         */
        post: operations["refreshToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/authentication/sign-in": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign in
         * @description Creates a session for the user that the identity provider's token identifies. `email` must be the address that the
         *     provider has verified. If it differs from the account's address, the account is updated, unless another account has
         *     that address.
         */
        post: operations["signIn"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/authentication/sign-up": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign up
         * @description Creates an account for the user that the identity provider's token identifies, and a session. `email` must be the
         *     address that the provider has verified. If a server has already created a user with that address, the user signs up
         *     to that account.
         */
        post: operations["signUp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/authentication/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List sessions
         * @description Returns the active sessions of the signed-in user, newest first.
         */
        get: operations["listSessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/authentication/tokens/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign out
         * @description Revokes the current session of the signed-in user.
         */
        post: operations["signOut"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/authentication/tokens/revoke-all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign out everywhere
         * @description Revokes every session of the signed-in user, including the current one.
         */
        post: operations["revokeAllSessions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/authentication/tokens/revoke-all-except-current": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign out everywhere else
         * @description Revokes every session of the signed-in user except the current one.
         */
        post: operations["revokeOtherSessions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/authentication/tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke a session
         * @description Revokes one session of the signed-in user, for example on a lost device. `GET /authentication/tokens` lists the ids.
         */
        delete: operations["revokeSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/authentication/user-logged-in": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Check a session
         * @description Checks that the access token is valid and its session is active. A session that another instance revoked is rejected
         *     within a second.
         */
        post: operations["checkSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/billing-portal-sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a billing portal session
         * @description Returns a page of the payment provider on which the user changes the payment method, reads invoices or cancels. The user
         *     must have bought something through a payment account before.
         *
         *     With a user's access token, which only publishable clients can send, `user_id` is implied.
         */
        post: operations["createBillingPortalSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/checkouts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a checkout
         * @description Returns a page of the payment provider on which the user buys the plan. The first of the plan's `variants` that is a
         *     price of the provider is sold. After the payment, the provider's notification creates the subscription for this user,
         *     also if the buyer enters another email address.
         *
         *     A plan with the billing cycle `lifetime` is sold once, for a one-time price. Its subscription ends with a full refund or a lost
         *     dispute.
         *
         *     For a Lemon Squeezy account without an API key, the page is the plan's `href` with a signed value; `success_url` then has
         *     no effect.
         *
         *     With a user's access token, which only publishable clients can send, `user_id` is implied.
         */
        post: operations["createCheckout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clients": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List clients
         * @description Returns the tenant's clients, disabled ones included, without their API keys.
         */
        get: operations["listClients"];
        put?: never;
        /**
         * Create a client
         * @description The response has the API key in `client_id`, which cannot be read again. A client can only create clients whose scopes
         *     it has itself. A retry with the same `Idempotency-Key` returns the client without its key; rotate the key to get one.
         */
        post: operations["createClient"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clients/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a client
         * @description The API key is not returned: only its hash is stored.
         */
        get: operations["readClient"];
        /**
         * Update a client
         * @description Changes only the fields in the request, within a second on all instances. The calling client must have every scope that
         *     the client has before and after the change.
         */
        put: operations["updateClient"];
        post?: never;
        /**
         * Disable a client
         * @description All instances reject its API keys within a second, permanently. The client stays in lists. A client cannot disable
         *     itself.
         */
        delete: operations["disableClient"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clients/{id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate an API key
         * @description The previous key works for a grace period, a day unless the request has another one. A client has at most two keys: a
         *     second rotation within the grace period revokes the oldest key at once. The calling client must have every scope of the
         *     client.
         */
        post: operations["rotateClient"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/console/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Complete the sign-in with an identity provider
         * @description The provider redirects the browser here. Signs the person in if the provider has verified the email address and the person
         *     was invited with it, or is in one of the configured groups. Redirects to the console, with an error in the fragment if the
         *     person cannot sign in: `sign_in_expired`, `sign_in_refused`, `provider_unavailable`, `email_unverified` or `not_invited`.
         */
        get: operations["completeConsoleSignIn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/console/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the session of the console
         * @description Returns the signed-in staff member and the tenant whose data the session shows.
         */
        get: operations["readConsoleSession"];
        /**
         * Switch the tenant of the console
         * @description Changes the tenant whose data the session shows, for a staff member of all tenants. The session gets a new cookie; the old
         *     one ends.
         */
        put: operations["updateConsoleSession"];
        /**
         * Sign in to the console
         * @description Exchanges a sign-in link, once and within 10 minutes, for a session of its staff member, as the cookie
         *     `__Host-perennial-console`. The cookie replaces the header `client-id` on every endpoint, within the scopes of the member's
         *     role. The session ends 12 hours later, or after an hour without a request.
         */
        post: operations["createConsoleSession"];
        /**
         * Sign out of the console
         * @description Ends the session, on every instance within a second.
         */
        delete: operations["deleteConsoleSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/console/sign-in": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List sign-in options of the console
         * @description Returns what the sign-in page offers.
         */
        get: operations["listSignInOptions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/console/sign-in/{provider}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Sign in to the console with an identity provider
         * @description Redirects the browser to the provider, which redirects to `/console/callback`.
         */
        get: operations["startConsoleSignIn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/entitlements": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the entitlements of the signed-in user, or of a user by external id
         * @description With a user's access token, of that user. Without one, a secret client must send `external_user_id`.
         *     Combines all subscriptions with access: the highest tier and quota, all features, and the latest end.
         */
        get: operations["readOwnEntitlements"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/entitlements/{user_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a user's entitlements
         * @description Combines all subscriptions with access: the highest tier and quota, all features, and the latest end. With the
         *     access token of a user, only that user is found.
         */
        get: operations["readEntitlements"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read events
         * @description Events are in the order in which they were committed: no event appears before one that was already returned.
         *     Save `next_cursor` after processing a page. With `sort=-position`, the newest event is first; a page can be empty although
         *     `has_more` is true, because each request reads a limited part of the log. With `wait`, the request waits for the next event. With
         *     `Accept: text/event-stream`, the response is a stream that does not end: each event's `id` is a cursor, with which
         *     `Last-Event-ID` or `after` continues. `limit` and `wait` do not apply to it.
         */
        get: operations["readEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/events/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an event
         * @description The id is that of a list, of a stream, or the `webhook-id` of a webhook request.
         */
        get: operations["readEvent"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check the health
         * @description Returns the results of the checks that `perennial doctor` prints: of the databases, the keys, the background tasks, and
         *     of the data of this tenant. They run at most every 10 seconds.
         */
        get: operations["readHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/identity-providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List identity providers
         * @description Returns the providers whose tokens the tenant accepts, without client secrets.
         */
        get: operations["listIdentityProviders"];
        put?: never;
        /**
         * Add an identity provider
         * @description Users can sign in with the provider's tokens within a second. The service connects to public addresses only, for this
         *     provider; operators add others with `perennial provider add`.
         */
        post: operations["createIdentityProvider"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/identity-providers/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an identity provider
         * @description The client secret is not returned.
         */
        get: operations["readIdentityProvider"];
        /**
         * Update an identity provider
         * @description Changes only the fields in the request, within a second on all instances. Sessions stay. With another `endpoint`, the
         *     service connects to public addresses only.
         */
        put: operations["updateIdentityProvider"];
        post?: never;
        /**
         * Remove an identity provider
         * @description The service rejects its tokens within a second. With `end_sessions`, the sessions of users who signed in with it are
         *     revoked too, those of sign-ins in progress after 12 seconds.
         */
        delete: operations["deleteIdentityProvider"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/payment-accounts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List payment accounts
         * @description Returns the tenant's accounts, without their API keys and secrets.
         */
        get: operations["listPaymentAccounts"];
        put?: never;
        /**
         * Create a payment account
         * @description Then set the secret of its notifications with `rotate-secret`.
         */
        post: operations["createPaymentAccount"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/payment-accounts/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a payment account
         * @description The API key and the secret are not returned.
         */
        get: operations["readPaymentAccount"];
        /**
         * Update a payment account
         * @description Changes only the fields in the request.
         */
        put: operations["updatePaymentAccount"];
        post?: never;
        /**
         * Delete a payment account
         * @description No more notifications are accepted. Its API key and secrets are erased; subscriptions and payments stay. Pending
         *     commands (`pending_commands`) are given up, because they cannot be sent without the API key.
         */
        delete: operations["deletePaymentAccount"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/payment-accounts/{id}/rotate-secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Set or rotate the secret of a payment account
         * @description For 24 hours, notifications with the previous secret are accepted too. The one before is no longer accepted.
         */
        post: operations["rotatePaymentSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/payment-notifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List payment notifications
         * @description Notifications are kept for at least 90 days.
         */
        get: operations["listPaymentNotifications"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/payment-notifications/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a payment notification
         * @description The body that the provider sent is not returned, because it may contain personal data.
         */
        get: operations["readPaymentNotification"];
        put?: never;
        /**
         * Receive a payment notification
         * @description For payment providers: the webhook URL of the payment account `{id}`. The header `Stripe-Signature` or `X-Signature`
         *     must have a signature over the body with a secret of the account. A notification that changes nothing is accepted too.
         */
        post: operations["receivePaymentNotification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/payment-notifications/{id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Process a payment notification again
         * @description The stored notification is read again, with the account's current settings, and its object is compared with the
         *     provider's.
         */
        post: operations["replayPaymentNotification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/payments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List payments
         * @description The payments of all subscriptions. Results are paginated by cursor. With a user's access token, only payments for
         *     that user's subscriptions are listed. Sorted by `paid_at`, the list has only payments with a `paid_at`.
         */
        get: operations["listPayments"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/reports/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the changes behind a report
         * @description Each user's change that a figure counts, the newest day first: filter by `kind` and the parameters of the report. All
         *     currencies, unless one is chosen. A page can be empty although there are more.
         */
        get: operations["listReportChanges"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/reports/churn": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Report churn
         * @description The share of users and of MRR that was lost, by interval and currency. With `Accept: text/csv`, one row per currency and
         *     interval.
         */
        get: operations["reportChurn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/reports/cohorts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Report cohorts
         * @description Users by the month in which they first paid, and how many of them and how much of their MRR is left in each month since.
         *     With `Accept: text/csv`, one row per currency, cohort and month.
         */
        get: operations["reportCohorts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/reports/payments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Report payments
         * @description Collected, refunded, disputed, failed and pending payments, and late subscriptions, by interval and currency. With
         *     `Accept: text/csv`, one row per currency and interval.
         */
        get: operations["reportPayments"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/reports/revenue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Report recurring revenue
         * @description MRR and its movements by interval, in each currency. With `Accept: text/csv`, one row per currency and interval. A
         *     change is part of the report within seconds.
         */
        get: operations["reportRevenue"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/reports/trials": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Report trials
         * @description Trials that began, converted and were lost, by interval and by the month in which they began. All currencies together.
         *     With `Accept: text/csv`, one row per interval.
         */
        get: operations["reportTrials"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandbox/clock": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the sandbox clock
         * @description Returns the billing time of a sandbox and the real time. All tenants of the sandbox share the clock.
         */
        get: operations["readSandboxClock"];
        /**
         * Advance the sandbox clock
         * @description Moves the billing time forward, day by day, and applies everything that falls due. All tenants of the sandbox share the
         *     clock. Long steps take some seconds; a step continues if the connection is closed.
         */
        put: operations["advanceSandboxClock"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandbox/demo-data": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create demo data
         * @description Fills an empty tenant of a sandbox with three plans, 240 subscribers and 14 months of payments, and sets its lifecycle to
         *     managed.
         */
        post: operations["createDemoData"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/staff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List staff members
         * @description Returns everyone who can work with the tenant's data in the console, members of all tenants included.
         */
        get: operations["listStaff"];
        put?: never;
        /**
         * Invite a staff member
         * @description Creates a staff member of this tenant, and a link that signs the member in, once and within 10 minutes. Send the link to
         *     the person. A member who has not signed in yet can be invited again, with the same or another role.
         */
        post: operations["inviteStaffMember"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/staff/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Change the role of a staff member
         * @description Takes effect within a second, also in the member's current sessions.
         */
        put: operations["updateStaffMember"];
        post?: never;
        /**
         * Remove a staff member
         * @description Ends the member's sessions within a second. Events keep the member's id.
         */
        delete: operations["removeStaffMember"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/subscription-payments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a payment
         * @description Required: `subscription_id`, `amount` and `currency`. A `paid_at` in the future is rejected with 422
         *     (`inconsistent_dates`).
         *
         *     In managed billing, a completed payment in the subscription's currency adds its amount, less
         *     `refunded_amount`, to the credit. The credit then pays what is open or pending: an unpaid period, or
         *     the first period of a pending subscription. The rest stays credit for later periods.
         *
         *     Outside managed billing, a completed payment of more than 0 in the subscription's currency activates
         *     a past due or unpaid subscription, unless a payment provider manages it
         *     (`external_subscription_id`).
         */
        post: operations["createPayment"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/subscription-payments/{payment_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a payment
         * @description With a user's access token, only payments for that user's subscriptions are found.
         */
        get: operations["readPayment"];
        /**
         * Update a payment
         * @description Changes only the fields in the request. After a payment has settled, `amount`, `currency` and
         *     `subscription_id` cannot change (`payment_settled`). A `paid_at` in the future is rejected with 422
         *     (`inconsistent_dates`).
         *
         *     In managed billing, a payment that becomes completed adds its amount to the subscription's credit,
         *     which then pays what is open or pending. A refund takes credit; what the credit lacks is waived, and
         *     a period that has started stays. A dispute takes at once what is not refunded, even if the credit
         *     becomes negative; the subscription is then late. A dispute that is won returns the same amount, and
         *     one that is lost takes nothing more.
         *
         *     Outside managed billing, a payment that becomes completed activates a past due or unpaid
         *     subscription, unless a payment provider manages it. Refunds and disputes do not change the
         *     subscription.
         */
        put: operations["updatePayment"];
        post?: never;
        /**
         * Delete a payment
         * @description Only payments that have not settled can be deleted: `pending`, `failed` or `void`. They have no
         *     ledger entries. The payment is no longer found; its events are kept.
         */
        delete: operations["deletePayment"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/subscription-plans": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List plans
         * @description Results are paginated by cursor. Publishable clients and users see only active plans.
         */
        get: operations["listPlans"];
        put?: never;
        /**
         * Create a plan
         * @description Required: `name`, `slug`, `price` and `billing_cycle`. A response to an invalid body lists all
         *     errors.
         */
        post: operations["createPlan"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/subscription-plans/{slug}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a plan
         * @description By its slug, which is case-insensitive, or by its id. Publishable clients and users find only active plans, and users also
         *     the plans of their subscriptions.
         */
        get: operations["readPlan"];
        /**
         * Update a plan
         * @description Changes only the fields in the request. A new price or trial applies to new subscriptions
         *     only. `slug` and `currency` cannot change (`immutable_field`).
         */
        put: operations["updatePlan"];
        post?: never;
        /**
         * Delete a plan
         * @description The plan is no longer found, and its slug can be reused. Its events are kept. A plan with live
         *     subscriptions cannot be deleted; to stop new subscriptions, set `is_active` to false instead.
         */
        delete: operations["deletePlan"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/subscriptions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List subscriptions
         * @description Results are paginated by cursor. With a user's access token, only that user's subscriptions are
         *     listed. The filters match the values that responses show: a subscription past its `ends_at` is
         *     `expired`.
         *
         *     Subscriptions without `renews_at` sort after all others by `renews_at`. To find changes, filter by `updated_at` and let the
         *     ranges of two runs overlap by some minutes: the background task stores a change, such as an expiry, with the time at
         *     which it was due.
         */
        get: operations["listSubscriptions"];
        put?: never;
        /**
         * Create a subscription
         * @description Required: `user_id` or `external_user_id`, and `subscription_plan_id` or `subscription_plan_slug`. References
         *     to records that do not exist are reported together (`unknown_reference`). The plan supplies the billing cycle and the
         *     price; the first renewal is one cycle after the start. A subscription with an `ends_at` in the
         *     past is stored as `expired`. In managed billing, a subscription that is not free waits as `pending`
         *     for its payment; with the status `active` its first period is due at once, so the response may say
         *     `past_due`.
         */
        post: operations["createSubscription"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/subscriptions/counts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count subscriptions
         * @description By status, and by plan and status. At most 1,000 subscriptions of a plan and status are counted; `at_least` says that there
         *     may be more.
         */
        get: operations["countSubscriptions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/subscriptions/next-steps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Forecast subscriptions
         * @description Returns what happens next to each subscription and when, as in the timeline of its user. The forecast assumes that nothing
         *     is paid and no request is made.
         */
        get: operations["listNextSteps"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/subscriptions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a subscription
         * @description With a user's access token, only that user's subscriptions are found.
         */
        get: operations["readSubscription"];
        /**
         * Update a subscription
         * @description Changes the fields in the request and the fields that depend on them: `cancelled` sets `ends_at`
         *     to the next renewal unless the request sets it, reactivating a cancelled subscription clears
         *     `ends_at`, and a new plan changes the price and the billing cycle. `id`, `user_id`, `currency` and
         *     `created_at` cannot change (`immutable_field`).
         *
         *     In managed billing, everything that is due is applied first. A new plan or quantity charges or
         *     returns the difference for the rest of the period; a change that the credit does not pay for is
         *     rejected with `payment_required` and the amount due. `past_due` and `unpaid` cannot be requested:
         *     they follow from missing payments. `renews_at` is computed, and ignored in a request: `free_until` gives free time.
         *
         *     If a payment account with an API key runs the subscription, its payment provider gets a cancellation and its undoing as a
         *     command, which is sent until the provider acknowledges it. Stripe cancels at the `ends_at` of the request, or at the end of
         *     the paid period without one; Lemon Squeezy always at the end of the paid period. A change that makes the subscription
         *     `expired`, as for one that is past due, ends it at the provider. The subscription then follows what the provider reports.
         *     `?local=true` changes only the record.
         *
         *     With a user's access token (self-service, off by default), only `status` can change: to `cancelled`, and to
         *     `active` to undo a cancellation before `ends_at`. The undo restores the status and the `ends_at` from before it. Only
         *     publishable clients can send an access token here. The tenant must allow it (`self_service_disabled`), and the
         *     subscription must be the user's own (`subscription_not_found`).
         */
        put: operations["updateSubscription"];
        post?: never;
        /**
         * Delete a subscription
         * @description The subscription is no longer found and gives no access. Its payments and events are kept. To
         *     end a subscription without deleting it, set `status` to `cancelled` or `expired`.
         */
        delete: operations["deleteSubscription"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/subscriptions/{id}/ledger": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a subscription's ledger
         * @description Every movement of the credit of a managed subscription, and every stretch of free time. Entries are
         *     never changed or deleted. Results are paginated by cursor. With a user's access token, only that
         *     user's subscriptions are found.
         */
        get: operations["listLedgerEntries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/subscriptions/{id}/payments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a subscription's payments
         * @description Results are paginated by cursor. With a user's access token, only that user's subscriptions are
         *     found.
         */
        get: operations["listSubscriptionPayments"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/subscriptions/{id}/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Preview a change of a subscription
         * @description Takes the body of `PUT /subscriptions/{id}` and returns what that request would do and cost, without any
         *     effect. A lack of credit is not an error here: `amount_due` is what to pay first. The request then
         *     succeeds until `valid_until`: for an hour, unless something is due before. What was paid too much stays credit.
         */
        post: operations["previewSubscriptionUpdate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List users
         * @description Results are paginated by cursor. With the access token of a user, only that user is listed.
         */
        get: operations["listUsers"];
        put?: never;
        /**
         * Create a user in advance
         * @description Creates an account for a user who has not signed up yet. Required: `email`, `external_user_id` or both. The account is
         *     linked to the first identity that signs up with the email address, if the identity provider has verified it.
         */
        post: operations["createUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a user
         * @description With the access token of a user, only that user is found.
         */
        get: operations["readUser"];
        /**
         * Update a user
         * @description Changes only the fields in the request. The next sign-in replaces the email address by the one that the identity
         *     provider has verified.
         */
        put: operations["updateUser"];
        post?: never;
        /**
         * Delete a user
         * @description Revokes all sessions, expires all subscriptions and erases the personal data of the user, in one transaction: the email
         *     address, the external id, the metadata and the identities. Subscriptions and payments are kept. The same person can sign
         *     up again, as a new user.
         */
        delete: operations["deleteUser"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/{id}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Export a user
         * @description Returns everything that is stored about a user: identities, sessions, subscriptions with their ledgers, payments and all
         *     events, as `perennial user export` prints it. Requires the scopes `users:read`, `subscriptions:read`, `payments:read` and
         *     `events:read`. The export of a staff member is recorded as the event `staff.exported`.
         */
        post: operations["exportUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/{id}/identities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a user's identities
         * @description Returns with which accounts of which identity providers the user signs in.
         */
        get: operations["listUserIdentities"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/{id}/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a user's sessions
         * @description Returns the active sessions of a user, newest first: on which devices the user is signed in, and when each was last used.
         */
        get: operations["listUserSessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/{id}/timeline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Explain a user's subscriptions
         * @description Returns why each subscription has its status, what happens next and what fixes it, each as a sentence and as data; the past
         *     and the expected future as a lifeline; and the latest events. The forecast follows from the rules that change the
         *     subscription, and assumes that nothing is paid and no request is made. Requires the scopes `users:read` and
         *     `subscriptions:read`; payments and their events also `payments:read`. With the access token of a user, only that user is
         *     found. An erased user is found, without personal data.
         */
        get: operations["readTimeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhook-endpoints": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List webhook endpoints
         * @description Returns the tenant's endpoints, disabled ones included, without their secrets.
         */
        get: operations["listWebhookEndpoints"];
        put?: never;
        /**
         * Create a webhook endpoint
         * @description The endpoint receives every event that is committed after the response, and possibly some that were committed shortly
         *     before. The response has its `secret` too, which `rotate-secret` replaces.
         */
        post: operations["createWebhookEndpoint"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhook-endpoints/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a webhook endpoint
         * @description `failing_since` and `disabled_reason` show why events do not arrive. The secret is not returned.
         */
        get: operations["readWebhookEndpoint"];
        /**
         * Update a webhook endpoint
         * @description Changes only the fields in the request, within seconds. A disabled endpoint keeps its position in the event log: when it
         *     is enabled, it continues where it stopped.
         */
        put: operations["updateWebhookEndpoint"];
        post?: never;
        /**
         * Delete a webhook endpoint
         * @description No more events are sent, within seconds. To be able to continue later, set `status` to `disabled` instead.
         */
        delete: operations["deleteWebhookEndpoint"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhook-endpoints/{id}/attempts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List attempts
         * @description The attempts to deliver events to an endpoint, the newest first. They are kept for 30 days.
         */
        get: operations["listWebhookAttempts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhook-endpoints/{id}/enable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Enable a webhook endpoint
         * @description The endpoint continues with the first event that it has not received. Has no effect on an enabled endpoint.
         */
        post: operations["enableWebhookEndpoint"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhook-endpoints/{id}/replays": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send events again
         * @description Sends one event, or the recorded events of a time range, again, after those that are new. The endpoint must be enabled.
         *     Receivers recognize repeated events by `webhook-id`.
         */
        post: operations["createWebhookReplay"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhook-endpoints/{id}/rotate-secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate the secret of a webhook endpoint
         * @description For 24 hours, requests are signed with the previous secret too. The one before is no longer used.
         */
        post: operations["rotateWebhookSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhook-endpoints/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a test message
         * @description Sends a signed message of the type `webhook_endpoint.test` once and returns the attempt. A disabled endpoint can be
         *     tested too.
         */
        post: operations["testWebhookEndpoint"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface webhooks {
    "payment.created": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A payment was recorded. */
        post: operations["receivePaymentCreated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "payment.deleted": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A payment was deleted. */
        post: operations["receivePaymentDeleted"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "payment.updated": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A payment was updated. */
        post: operations["receivePaymentUpdated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "payment_account.created": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A payment account was created. */
        post: operations["receivePaymentAccountCreated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "payment_account.deleted": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A payment account was deleted. */
        post: operations["receivePaymentAccountDeleted"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "payment_account.secret_rotated": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A payment account received a new secret. The old one verifies notifications until it expires. */
        post: operations["receivePaymentAccountSecretRotated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "payment_account.updated": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A payment account's settings or API key changed. */
        post: operations["receivePaymentAccountUpdated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "plan.created": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A plan was created. */
        post: operations["receivePlanCreated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "plan.deleted": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A plan was deleted. */
        post: operations["receivePlanDeleted"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "plan.updated": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A plan was updated. */
        post: operations["receivePlanUpdated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "session.created": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A user signed in or signed up. */
        post: operations["receiveSessionCreated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "session.refresh_repeated": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description The previous refresh token of a session was accepted once more, 30 seconds to 10 minutes after its first use: a response was lost, or the token was stolen. */
        post: operations["receiveSessionRefreshRepeated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "session.revoked": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A session was revoked. The event's data has the reason. */
        post: operations["receiveSessionRevoked"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "subscription.created": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A subscription was created. */
        post: operations["receiveSubscriptionCreated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "subscription.deleted": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A subscription was deleted. */
        post: operations["receiveSubscriptionDeleted"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "subscription.ended": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A subscription was ended because its user's account was deleted. If it has an `external_subscription_id`, the payment provider keeps charging until it is canceled there. */
        post: operations["receiveSubscriptionEnded"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "subscription.expired": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A subscription reached its end, or was unpaid for too long. */
        post: operations["receiveSubscriptionExpired"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "subscription.past_due": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A subscription's next period started, and it is not paid. */
        post: operations["receiveSubscriptionPastDue"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "subscription.renewed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A subscription's next period started, and it is paid or free. */
        post: operations["receiveSubscriptionRenewed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "subscription.unpaid": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A subscription lost access because its payment was overdue for too long. */
        post: operations["receiveSubscriptionUnpaid"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "subscription.updated": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A subscription was updated. */
        post: operations["receiveSubscriptionUpdated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "user.claimed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A user who was created in advance signed up. */
        post: operations["receiveUserClaimed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "user.created": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A user was created, by sign-up or in advance by a server. */
        post: operations["receiveUserCreated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "user.email_changed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A user's email address changed at the identity provider. */
        post: operations["receiveUserEmailChanged"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "user.erased": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A user's personal data was erased. */
        post: operations["receiveUserErased"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "user.sessions_revoked": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description All sessions of a user were revoked, or all but one. The event's data has their number and the reason. */
        post: operations["receiveUserSessionsRevoked"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "user.updated": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A user's record was updated by a server. The event's data names the changed fields, not their values, which may be personal data. */
        post: operations["receiveUserUpdated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "webhook_endpoint.created": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A webhook endpoint was created. */
        post: operations["receiveWebhookEndpointCreated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "webhook_endpoint.deleted": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A webhook endpoint was deleted. */
        post: operations["receiveWebhookEndpointDeleted"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "webhook_endpoint.disabled": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A webhook endpoint was disabled: by a request, because it responded with 410, or because all attempts failed for five days. The event's data has the reason. */
        post: operations["receiveWebhookEndpointDisabled"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "webhook_endpoint.enabled": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A webhook endpoint was enabled. It continues where it stopped. */
        post: operations["receiveWebhookEndpointEnabled"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "webhook_endpoint.secret_rotated": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A webhook endpoint received a new secret. The old one signs too until it expires. */
        post: operations["receiveWebhookEndpointSecretRotated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "webhook_endpoint.updated": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** @description A webhook endpoint's settings changed. */
        post: operations["receiveWebhookEndpointUpdated"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface components {
    schemas: {
        /**
         * @description The new billing time, or how far to advance.
         * @example {
         *       "advance": "P1M"
         *     }
         */
        AdvanceSandboxClock: {
            /** @description How far to advance: an ISO 8601 duration, or a time span such as `2w` or `1y 15d`, with the units y, mo, w, d, h, m and s. */
            advance?: string | null;
            /** @description The new billing time: later than the present one, by ten years at most. Either this or `advance` is required. */
            now?: components["schemas"]["Timestamp"] | null;
        };
        /** @description The clock of a sandbox after it advanced, and what happened to the tenant's subscriptions. */
        AdvancedSandboxClock: components["schemas"]["SandboxClock"] & {
            /**
             * Format: int64
             * @description How many events were recorded.
             * @example 197
             */
            events: number;
            /**
             * Format: int64
             * @description How many subscriptions expired.
             * @example 2
             */
            expired: number;
            /**
             * Format: int64
             * @description How many subscriptions became past due.
             * @example 12
             */
            past_due: number;
            /**
             * Format: int64
             * @description How many periods were renewed.
             * @example 180
             */
            renewed: number;
            /**
             * Format: int64
             * @description How many subscriptions became unpaid.
             * @example 3
             */
            unpaid: number;
        };
        /**
         * @description An amount of money, exact. It cannot have more decimals than its currency.
         * @example 19.99
         */
        Amount: number | string;
        /**
         * @description How often a subscription renews.
         * @example monthly
         * @enum {string}
         */
        BillingCycle: "daily" | "weekly" | "monthly" | "quarterly" | "semiannual" | "yearly" | "lifetime";
        /**
         * @description BillingCycle, in any case and with aliases.
         * @example monthly
         */
        BillingCycleInput: components["schemas"]["BillingCycle"] | string;
        /**
         * @description One to 100 of these, separated by commas: values of BillingCycleInput.
         * @example monthly,yearly
         */
        BillingCycleList: string;
        /** @description A page on which a subscriber manages payment methods and invoices. */
        BillingPortalSession: {
            /**
             * @description The payment provider's page. It is valid for a short time and must not be stored.
             * @example https://billing.stripe.com/p/session/test_1042
             */
            url: string;
        };
        /**
         * @description One to 100 of these, separated by commas: `true` or `false`.
         * @example true
         */
        BooleanList: string;
        /**
         * @description One to 100 of these, separated by commas: kinds of changes.
         * @example churned,contraction
         */
        ChangeKindList: string;
        /** @description A payment page. */
        Checkout: {
            /**
             * Format: date-time
             * @description Until when the page can be used; null if it does not expire.
             * @example 2026-11-16T09:30:00.000000Z
             */
            expires_at: string | null;
            /**
             * @description The payment provider's page. Send the buyer there.
             * @example https://checkout.stripe.com/c/pay/cs_test_1042
             */
            url: string;
        };
        /** @description Churn in an interval. */
        ChurnInterval: {
            /** @description Lost with users who stopped paying. */
            churned: components["schemas"]["RecurringAmount"];
            /**
             * Format: int64
             * @description Users who stopped paying.
             * @example 2
             */
            churned_users: number;
            /** @description Lost with users who pay less. */
            contraction: components["schemas"]["RecurringAmount"];
            /** @description Added by users who pay more. */
            expansion: components["schemas"]["RecurringAmount"];
            /**
             * Format: date
             * @description The first day.
             * @example 2026-11-01
             */
            from: string;
            /**
             * @description Churned and contracted ÷ opening MRR; null if there was none.
             * @example 0.0310
             */
            gross_revenue_churn_rate: string | null;
            /**
             * @description The same minus expanded and reactivated MRR; null if there was none.
             * @example -0.0125
             */
            net_revenue_churn_rate: string | null;
            /** @description MRR at the start. */
            opening: components["schemas"]["RecurringAmount"];
            /**
             * Format: int64
             * @description Users who paid at the start.
             * @example 80
             */
            opening_users: number;
            /** @description Added by users who pay again. */
            reactivated: components["schemas"]["RecurringAmount"];
            /**
             * Format: date
             * @description The last day.
             * @example 2026-11-30
             */
            to: string;
            /**
             * @description Churned ÷ opening users; null if there were none.
             * @example 0.0250
             */
            user_churn_rate: string | null;
        };
        /** @description Churn over time. */
        ChurnReport: components["schemas"]["ReportFrame"] & {
            /** @description One item for each currency; they are never added. */
            currencies: components["schemas"]["CurrencyChurn"][];
        };
        /** @description A client: an application that calls the API. */
        Client: {
            /**
             * @description The networks that requests must come from; empty for any.
             * @example [
             *       "10.0.0.0/8"
             *     ]
             */
            allow_addresses: components["schemas"]["IpNetwork"][];
            /**
             * @description The web origins that may use a publishable client.
             * @example [
             *       "https://app.example.com"
             *     ]
             */
            allowed_origins: components["schemas"]["Origin"][];
            /**
             * Format: date-time
             * @description Creation time.
             * @example 2026-11-15T09:30:00.000000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the client was disabled; null for an enabled client.
             * @example null
             */
            disabled_at: string | null;
            /**
             * @description Id of the client. It is not the API key.
             * @example cli_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            id: string;
            /** @description Where the client is used. Cannot change. */
            kind: components["schemas"]["ClientKind"];
            /**
             * Format: int64
             * @description The number of valid API keys; 2 during the grace period of a rotation.
             * @example 1
             */
            live_values: number;
            /**
             * @description A display name.
             * @example Backend
             */
            name: string;
            /** @description What the client may do. */
            scopes: components["schemas"]["Scope"][];
        };
        /**
         * @description A client's id. It is not the API key. A UUID without the prefix is accepted too.
         * @example cli_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        ClientId: string;
        /**
         * @description `secret` for a server, `publishable` for a browser or an app.
         * @example secret
         * @enum {string}
         */
        ClientKind: "secret" | "publishable";
        /** @description A page of a list. */
        ClientPage: {
            /** @description The records of this page. */
            data: components["schemas"]["Client"][];
            /**
             * @description Whether there are more pages.
             * @example false
             */
            has_more: boolean;
            /**
             * @description The `cursor` of the next page; null on the last one.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description Users who first paid in a month. */
        Cohort: {
            /**
             * @description The currency (ISO 4217).
             * @example USD
             */
            currency: string;
            /**
             * Format: int64
             * @description The number of users.
             * @example 50
             */
            joined: number;
            /**
             * Format: date
             * @description The first day of the month.
             * @example 2026-06-01
             */
            month: string;
            /** @description The months from the first one on. */
            months: components["schemas"]["CohortMonth"][];
        };
        /** @description A cohort at the end of a month, or of the last day of the report. */
        CohortMonth: components["schemas"]["RecurringAmount"] & {
            /**
             * Format: date
             * @description The first day of the month.
             * @example 2026-11-01
             */
            month: string;
            /**
             * @description MRR ÷ MRR at the end of the first month; null if that is zero.
             * @example 1.0400
             */
            revenue_retention: string | null;
            /**
             * @description Users ÷ joined; null if the cohort is empty.
             * @example 0.8200
             */
            user_retention: string | null;
            /**
             * Format: int64
             * @description Users of the cohort who pay.
             * @example 41
             */
            users: number;
        };
        /** @description How long users stay, by the month in which they first paid. */
        CohortsReport: components["schemas"]["ReportFrame"] & {
            /** @description The cohorts that began in the period, oldest first. */
            cohorts: components["schemas"]["Cohort"][];
        };
        /**
         * @description OpenID Connect discovery document, limited to the fields that apply.
         * @example {
         *       "issuer": "https://billing.example.com",
         *       "jwks_uri": "https://billing.example.com/.well-known/jwks.json",
         *       "service_documentation": "https://billing.example.com/docs/"
         *     }
         */
        Configuration: {
            /**
             * Format: uri
             * @description The claim `iss` of access tokens.
             */
            issuer: string;
            /**
             * Format: uri
             * @description URL of the public keys.
             */
            jwks_uri: string;
            /**
             * Format: uri
             * @description URL of the documentation.
             */
            service_documentation: string;
        };
        /** @description The session of a staff member. */
        ConsoleSession: {
            /**
             * Format: date-time
             * @description When the session ends at the latest. It ends earlier after an hour without a request.
             * @example 2026-11-15T21:30:00.000000Z
             */
            expires_at: string;
            /**
             * @description `sandbox` or `live`.
             * @example sandbox
             */
            mode: string;
            /**
             * Format: date-time
             * @description The time of the service's clock, which can be ahead in a sandbox.
             * @example 2026-11-15T09:30:00.000000Z
             */
            now: string;
            staff_member: components["schemas"]["SignedInStaffMember"];
            /** @description The tenant whose data the session shows. */
            tenant: components["schemas"]["TenantName"];
            /** @description The tenants that the member can switch to, oldest first. */
            tenants: components["schemas"]["TenantName"][];
            /**
             * @description The version of the service.
             * @example 0.1.0
             */
            version: string;
        };
        /**
         * @description Whose portal is opened.
         * @example {
         *       "return_url": "https://example.com/account",
         *       "user_id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5"
         *     }
         */
        CreateBillingPortalSession: {
            /** @description The buyer's id in your system, instead of `user_id`. */
            external_user_id?: components["schemas"]["ExternalId"] | null;
            /** @description The payment account. Required if there are several to choose from. */
            payment_account_id?: components["schemas"]["PaymentAccountId"] | null;
            /** @description Where the portal's back link leads, if the payment provider supports it. */
            return_url?: components["schemas"]["Url"] | null;
            /** @description The buyer. Required, unless `external_user_id` or a user's access token is sent. */
            user_id?: components["schemas"]["UserId"] | null;
        };
        /**
         * @description What is bought, and by whom.
         * @example {
         *       "subscription_plan_slug": "pro",
         *       "success_url": "https://example.com/welcome",
         *       "user_id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5"
         *     }
         */
        CreateCheckout: {
            /** @description The buyer's id in your system, instead of `user_id`. */
            external_user_id?: components["schemas"]["ExternalId"] | null;
            /** @description The payment account. Required if there are several to choose from. */
            payment_account_id?: components["schemas"]["PaymentAccountId"] | null;
            /** @description The plan to buy. Must be active. Required, unless `subscription_plan_slug` is sent. */
            subscription_plan_id?: components["schemas"]["PlanId"] | null;
            /** @description The plan's slug, instead of `subscription_plan_id`; case-insensitive. */
            subscription_plan_slug?: components["schemas"]["Slug"] | null;
            /** @description Where the payment provider sends the buyer after the payment. */
            success_url: components["schemas"]["Url"];
            /** @description The buyer. Required, unless `external_user_id` or a user's access token is sent. */
            user_id?: components["schemas"]["UserId"] | null;
        };
        /**
         * @description The client to create.
         * @example {
         *       "name": "Backend",
         *       "scopes": [
         *         "subscriptions:read",
         *         "subscriptions:write"
         *       ]
         *     }
         */
        CreateClient: {
            /**
             * @description The networks that requests must come from; empty for any. Behind a proxy, the address is the proxy's unless the operator has set PERENNIAL_TRUSTED_PROXIES. Default: any.
             * @example [
             *       "10.0.0.0/8"
             *     ]
             */
            allow_addresses?: components["schemas"]["IpNetwork"][] | null;
            /**
             * @description The web origins that may use the client. Only for publishable clients. Default: none.
             * @example [
             *       "https://app.example.com"
             *     ]
             */
            allowed_origins?: components["schemas"]["Origin"][] | null;
            created_at?: components["schemas"]["Ignored"];
            disabled_at?: components["schemas"]["Ignored"];
            id?: components["schemas"]["Ignored"];
            /** @description Where the client is used. Cannot change. Default: `secret`. */
            kind?: components["schemas"]["ClientKind"] | null;
            live_values?: components["schemas"]["Ignored"];
            /** @description A display name: a single line. */
            name: string;
            /** @description What the client may do. The calling client must have each of these scopes itself. Default: all scopes of its kind that the calling client has, except those of clients, identity providers, staff, health and the sandbox. */
            scopes?: components["schemas"]["Scope"][] | null;
        };
        /**
         * @description The link to sign in with.
         * @example {
         *       "link": "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo"
         *     }
         */
        CreateConsoleSession: {
            /** @description The secret of a sign-in link: the part after `#link=`. */
            link: string;
        };
        /**
         * @description The provider to add.
         * @example {
         *       "audiences": [
         *         "my-product"
         *       ],
         *       "issuer": "https://id.example.com"
         *     }
         */
        CreateIdentityProvider: {
            /**
             * @description Also accept tokens that the provider issued for other products: required for `userinfo`. Default: false.
             * @example true
             */
            accept_any_audience?: boolean | null;
            /**
             * @description Also accept an audience in the `azp` claim. Default: false.
             * @example true
             */
            accept_azp?: boolean | null;
            /**
             * @description Also accept tokens bound to a key or certificate. The binding is not checked. Default: false.
             * @example true
             */
            accept_bound_tokens?: boolean | null;
            /**
             * @description Also accept ID tokens: the usual case for "Sign in with Google". Default: false.
             * @example true
             */
            accept_id_tokens?: boolean | null;
            /** @description Accepted audiences (the `aud` claim). At least one is required, unless `accept_any_audience` is true. */
            audiences?: string[] | null;
            /**
             * @description The client id: required for `introspection`.
             * @example perennial
             */
            client_id?: string | null;
            /**
             * @description The client secret: required for `introspection`. It is stored encrypted and not returned.
             * @example s3cr3t
             */
            client_secret?: string | null;
            created_at?: components["schemas"]["Ignored"];
            /** @description The endpoint that verifies tokens: required for `tokeninfo`; for `introspection`, if the discovery document has none. */
            endpoint?: components["schemas"]["Url"] | null;
            id?: components["schemas"]["Ignored"];
            /** @description Issuer URL: exactly the `iss` claim. Must be https in live mode, and resolve to a public address. Cannot change. */
            issuer: components["schemas"]["Url"];
            public_addresses_only?: components["schemas"]["Ignored"];
            /** @description How tokens are verified. Default: `jwt`. */
            verify?: components["schemas"]["VerifyMethod"] | null;
        };
        /**
         * @description The payment to create.
         * @example {
         *       "amount": 19.99,
         *       "currency": "USD",
         *       "status": "completed",
         *       "subscription_id": "sub_0192f0c1a2b37c4d8e5f60718293a4b5"
         *     }
         */
        CreatePayment: {
            /** @description The amount. Must not have more decimals than the currency. */
            amount: components["schemas"]["Amount"];
            created_at?: components["schemas"]["Ignored"];
            /** @description ISO 4217 code; case-insensitive. */
            currency: components["schemas"]["CurrencyCode"];
            /** @description The payment provider's id of the payment. Must be unique within the tenant. Cannot be a card number. */
            external_payment_id?: components["schemas"]["ExternalId"] | null;
            /**
             * @description Why the payment failed: a single line.
             * @example insufficient_funds
             */
            failure_reason?: string | null;
            id?: components["schemas"]["Ignored"];
            /** @description Pairs of strings to attach. */
            metadata?: components["schemas"]["MetadataChanges"] | null;
            /** @description When the payer paid, for example in imports. Must not be in the future. It has no effect on the subscription. If it is null, the service sets it when the payment settles. */
            paid_at?: components["schemas"]["Timestamp"] | null;
            period_ends_at?: components["schemas"]["Ignored"];
            period_starts_at?: components["schemas"]["Ignored"];
            /** @description The refunded amount. Only allowed with the status `partially_refunded`; must be more than 0 and less than the amount. In managed billing, that status requires it. */
            refunded_amount?: components["schemas"]["Amount"] | null;
            /** @description The status. Default: `pending`. */
            status?: components["schemas"]["PaymentStatusInput"] | null;
            /** @description The subscription it pays for. */
            subscription_id: components["schemas"]["SubscriptionId"];
            updated_at?: components["schemas"]["Ignored"];
        };
        /**
         * @description The account to create.
         * @example {
         *       "api_key": "rk_test_1042",
         *       "mode": "test",
         *       "provider": "stripe"
         *     }
         */
        CreatePaymentAccount: {
            /** @description An API key of the account. Required for `stripe`. Never returned. */
            api_key?: string | null;
            created_at?: components["schemas"]["Ignored"];
            /**
             * @description Whether a customer whom no user matches gets a new one. Otherwise the notification waits until a user matches. Default: true.
             * @example true
             */
            creates_users?: boolean | null;
            /**
             * @description A note for operators: a single line.
             * @example Shop
             */
            description?: string | null;
            /**
             * @description The provider's id of the account or store. Notifications that name another one are refused.
             * @example acct_1042
             */
            external_account_id?: string | null;
            has_api_key?: components["schemas"]["Ignored"];
            has_secret?: components["schemas"]["Ignored"];
            id?: components["schemas"]["Ignored"];
            last_heard_at?: components["schemas"]["Ignored"];
            last_reconciled_at?: components["schemas"]["Ignored"];
            /** @description Whether payments are real. Must be `test` in a sandbox. Cannot change. */
            mode: components["schemas"]["PaymentMode"];
            pending_commands?: components["schemas"]["Ignored"];
            /** @description The payment provider. Cannot change. */
            provider: components["schemas"]["PaymentProvider"];
            updated_at?: components["schemas"]["Ignored"];
        };
        /**
         * @description The plan to create.
         * @example {
         *       "billing_cycle": "monthly",
         *       "description": "For teams that ship every day.",
         *       "features": "SSO, Audit log, Priority support",
         *       "href": "https://example.com/plans/pro",
         *       "most_popular": true,
         *       "name": "Pro",
         *       "node_quota": 25,
         *       "price": 19.99,
         *       "product_id": "prod_1042",
         *       "slug": "pro",
         *       "tier": 2,
         *       "variants": [
         *         "var_1",
         *         "var_2"
         *       ]
         *     }
         */
        CreatePlan: {
            /** @description How often subscriptions renew. */
            billing_cycle: components["schemas"]["BillingCycleInput"];
            created_at?: components["schemas"]["Ignored"];
            /** @description ISO 4217 code; case-insensitive. Cannot change. Default: the tenant's `default_currency`. */
            currency?: components["schemas"]["CurrencyCode"] | null;
            /** @description Description for customers; may have several lines. */
            description?: string | null;
            feature_list?: components["schemas"]["Ignored"];
            /** @description The included features: a comma-separated list in one string, stored unchanged. */
            features?: string | null;
            /** @description Link to a page about the plan. Must be http or https, without user name and password. */
            href?: components["schemas"]["Url"] | null;
            id?: components["schemas"]["Ignored"];
            /**
             * @description Whether new subscriptions are allowed. Default: true.
             * @example true
             */
            is_active?: boolean | null;
            /** @description Pairs of strings to attach. */
            metadata?: components["schemas"]["MetadataChanges"] | null;
            /** @description Whether a pricing page should highlight the plan. Default: false. */
            most_popular?: boolean | null;
            /** @description Display name: a single line. */
            name: string;
            /**
             * Format: int32
             * @description Number of nodes a subscriber may run; -1 is unlimited. Default: 0.
             */
            node_quota?: number | null;
            /** @description Price of one billing cycle. Must not have more decimals than the currency. */
            price: components["schemas"]["Amount"];
            /** @description The product at the payment provider. */
            product_id?: components["schemas"]["ExternalId"] | null;
            /** @description The plan's name in URLs. Must be unique within the tenant, ignoring case. Cannot change. */
            slug: components["schemas"]["Slug"];
            /**
             * Format: int32
             * @description Rank among the tenant's plans; higher tiers include more. Default: 0.
             */
            tier?: number | null;
            /**
             * Format: int32
             * @description Length of the free trial in days; 0 is none. By default, a user gets a plan's trial once. Default: 0.
             * @example 14
             */
            trial_days?: number | null;
            updated_at?: components["schemas"]["Ignored"];
            /** @description The product's variants at the payment provider. */
            variants?: components["schemas"]["ExternalId"][] | null;
        };
        /**
         * @description The subscription to create.
         * @example {
         *       "subscription_plan_id": "plan_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "user_id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5"
         *     }
         */
        CreateSubscription: {
            amount_due?: components["schemas"]["Ignored"];
            /** @description How often the subscription renews. Default: the plan's. */
            billing_cycle?: components["schemas"]["BillingCycleInput"] | null;
            created_at?: components["schemas"]["Ignored"];
            credit?: components["schemas"]["Ignored"];
            currency?: components["schemas"]["Ignored"];
            current_period_ends_at?: components["schemas"]["Ignored"];
            current_period_starts_at?: components["schemas"]["Ignored"];
            /** @description End of access; must not be before `starts_at`. */
            ends_at?: components["schemas"]["Timestamp"] | null;
            /** @description The payment provider's id of the subscription. Must be unique within the tenant. Cannot be a card number. */
            external_subscription_id?: components["schemas"]["ExternalId"] | null;
            /** @description The subscriber's id in your system, instead of `user_id`. Cannot change. */
            external_user_id?: components["schemas"]["ExternalId"] | null;
            free_until?: components["schemas"]["Ignored"];
            id?: components["schemas"]["Ignored"];
            /**
             * @description `false` suspends a subscription that gives access, `true` lifts the suspension. If the request also has a `status`, that decides about access. Otherwise `true` is rejected if the status gives no access.
             * @example true
             */
            is_active?: boolean | null;
            lifecycle?: components["schemas"]["Ignored"];
            /** @description Pairs of strings to attach. */
            metadata?: components["schemas"]["MetadataChanges"] | null;
            paid_until?: components["schemas"]["Ignored"];
            /** @description Price of one unit for one billing cycle, in the plan's currency. Default: the plan's price. */
            price?: components["schemas"]["Amount"] | null;
            /**
             * @description How many units of the plan, such as seats. Default: 1.
             * @example 1
             */
            quantity?: number | null;
            /** @description The next renewal; must not be before `starts_at`. Default: one billing cycle after `starts_at`, or the end of the trial; none for lifetime subscriptions. */
            renews_at?: components["schemas"]["Timestamp"] | null;
            /** @description Start of access. Default: now. */
            starts_at?: components["schemas"]["Timestamp"] | null;
            /** @description The status. Default: `on_trial` if the plan has `trial_days` and the user has had no trial of it; else `active`. In managed billing, `active` only if the subscription is free, else `pending` until it is paid. */
            status?: components["schemas"]["SubscriptionStatusInput"] | null;
            /** @description The plan. Must be active. Required, unless `subscription_plan_slug` is sent. */
            subscription_plan_id?: components["schemas"]["PlanId"] | null;
            /** @description The plan's slug, instead of `subscription_plan_id`; case-insensitive. */
            subscription_plan_slug?: components["schemas"]["Slug"] | null;
            suspended?: components["schemas"]["Ignored"];
            updated_at?: components["schemas"]["Ignored"];
            /** @description The subscriber. Cannot change. Required, unless `external_user_id` is sent. */
            user_id?: components["schemas"]["UserId"] | null;
        };
        /**
         * @description The user to create: `email`, `external_user_id` or both.
         * @example {
         *       "email": "ada@example.com",
         *       "external_user_id": "customer-1042"
         *     }
         */
        CreateUser: {
            created_at?: components["schemas"]["Ignored"];
            /** @description The user's email address; case-insensitive. */
            email?: components["schemas"]["Email"] | null;
            /** @description The user's id in your system. Must be unique within the tenant. Cannot be a card number. Events keep it, so it should not be an email address. */
            external_user_id?: components["schemas"]["ExternalId"] | null;
            id?: components["schemas"]["Ignored"];
            /** @description Pairs of strings to attach. */
            metadata?: components["schemas"]["MetadataChanges"] | null;
            updated_at?: components["schemas"]["Ignored"];
        };
        /**
         * @description The endpoint to create.
         * @example {
         *       "event_types": [
         *         "subscription.*"
         *       ],
         *       "url": "https://example.com/webhooks"
         *     }
         */
        CreateWebhookEndpoint: {
            created_at?: components["schemas"]["Ignored"];
            /**
             * @description A note for operators: a single line.
             * @example Accounting
             */
            description?: string | null;
            disabled_at?: components["schemas"]["Ignored"];
            disabled_reason?: components["schemas"]["Ignored"];
            /** @description The types of events to send; empty means all. Default: all. */
            event_types?: components["schemas"]["EventTypePattern"][] | null;
            failing_since?: components["schemas"]["Ignored"];
            id?: components["schemas"]["Ignored"];
            /** @description The order of events. Default: `none`. */
            order?: components["schemas"]["DeliveryOrder"] | null;
            /** @description Whether the endpoint receives events. Default: `enabled`. */
            status?: components["schemas"]["WebhookEndpointStatus"] | null;
            updated_at?: components["schemas"]["Ignored"];
            /** @description Where events are sent. Must be https in live mode, and resolve to a public address. */
            url: components["schemas"]["Url"];
        };
        /**
         * @description The events to send again.
         * @example {
         *       "from": "2026-11-15T00:00:00Z"
         *     }
         */
        CreateWebhookReplay: {
            /** @description Send this event only. */
            event_id?: components["schemas"]["EventId"] | null;
            /**
             * @description The types of events to send; empty means those of the endpoint, or the one of the event.
             * @example [
             *       "subscription.*"
             *     ]
             */
            event_types?: components["schemas"]["EventTypePattern"][] | null;
            /** @description Send events that were recorded at or after this time. Required without `event_id`. */
            from?: components["schemas"]["Timestamp"] | null;
            /**
             * @description Only events whose attempts were given up. Default: false.
             * @example true
             */
            only_failed?: boolean | null;
            /** @description Send events that were recorded before this time. Default: now. */
            to?: components["schemas"]["Timestamp"] | null;
        };
        /** @description A client with its API key. */
        CreatedClient: components["schemas"]["Client"] & {
            /**
             * @description The API key: the value of the header `client-id`. It cannot be read again. Null if the response is replayed.
             * @example prn_sk_9UoWkMZVYw3M2g7rIhVHQJjXn0h0cUqYdYl2Vd7m3oA
             */
            client_id: string | null;
        };
        /** @description A webhook endpoint with its secret. */
        CreatedWebhookEndpoint: components["schemas"]["WebhookEndpoint"] & {
            /**
             * @description Verifies the header `webhook-signature`.
             * @example whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
             */
            secret: string;
        };
        /**
         * @description An identity provider's access token with the user's email address.
         * @example {
         *       "access_token": "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
         *       "email": "ada@example.com"
         *     }
         */
        Credentials: {
            /** @description The access token that the identity provider issued to the user. */
            access_token: string;
            /** @description The user's email address; case-insensitive. */
            email: components["schemas"]["Email"];
        };
        /** @description Churn in a currency. */
        CurrencyChurn: {
            /**
             * @description The currency (ISO 4217).
             * @example USD
             */
            currency: string;
            /** @description The intervals, oldest first. */
            intervals: components["schemas"]["ChurnInterval"][];
        };
        /**
         * @description An ISO 4217 code; case-insensitive.
         * @example USD
         */
        CurrencyCode: string;
        /**
         * @description One to 100 of these, separated by commas: ISO 4217 codes; case-insensitive.
         * @example USD
         */
        CurrencyCodeList: string;
        /** @description Payments in a currency. */
        CurrencyPayments: {
            /**
             * @description The currency (ISO 4217).
             * @example USD
             */
            currency: string;
            /** @description The intervals, oldest first. */
            intervals: components["schemas"]["PaymentInterval"][];
        };
        /** @description Recurring revenue in a currency. */
        CurrencyRevenue: {
            /** @description At the end of the last day. */
            closing: components["schemas"]["RevenueLevel"];
            /**
             * @description The currency (ISO 4217).
             * @example USD
             */
            currency: string;
            /**
             * @description Parts of `closing`.
             * @example {
             *       "past_due": {
             *         "arr": "239.88",
             *         "mrr": "19.99",
             *         "subscriptions": 1
             *       }
             *     }
             */
            includes: {
                [key: string]: components["schemas"]["StatusFigures"];
            };
            /** @description The intervals, oldest first. */
            intervals: components["schemas"]["RevenueInterval"][];
            /**
             * @description Subscriptions that are not part of it, by the reason: a status, or `free`, `lifetime`, `unknown_price`.
             * @example {
             *       "on_trial": {
             *         "arr": "479.76",
             *         "mrr": "39.98",
             *         "subscriptions": 2
             *       }
             *     }
             */
            not_counted: {
                [key: string]: components["schemas"]["StatusFigures"];
            };
            /** @description The plans on the last day. */
            plans: components["schemas"]["PlanRevenue"][];
        };
        /**
         * @description `none`: a failed event does not delay others. `subject`: it delays later events of its record. `strict`: it delays all later events.
         * @example strict
         * @enum {string}
         */
        DeliveryOrder: "none" | "subject" | "strict";
        /** @description The created demo data. */
        DemoData: {
            /**
             * @description How many payments were recorded.
             * @example 1714
             */
            payments: number;
            /**
             * @description How many plans were created.
             * @example 3
             */
            plans: number;
            /**
             * @description How many users with a subscription were created.
             * @example 240
             */
            subscribers: number;
        };
        /**
         * Format: email
         * @description An email address; case-insensitive.
         * @example ada@example.com
         */
        Email: string;
        /** @description What a user may do now. */
        Entitlements: {
            /**
             * @description Whether the user has access to anything.
             * @example true
             */
            active: boolean;
            /**
             * @description The features of all plans, without duplicates.
             * @example [
             *       "SSO",
             *       "Audit log"
             *     ]
             */
            features: string[];
            /**
             * Format: int32
             * @description How many nodes the user may run; -1 for unlimited, 0 without access.
             * @example 25
             */
            node_quota: number;
            /** @description The subscriptions with access, oldest first. */
            subscriptions: components["schemas"]["Grant"][];
            /**
             * Format: int32
             * @description The highest tier; 0 without access.
             * @example 2
             */
            tier: number;
            /**
             * Format: date-time
             * @description When the last access ends; null if it has no end, or without access.
             * @example null
             */
            until: string | null;
            /**
             * @description The user.
             * @example usr_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            user_id: string;
        };
        /**
         * @description An event: a change of a record.
         * @example {
         *       "actor": {
         *         "id": "cli_0192f0c1a2b37c4d8e5f60718293a4b5",
         *         "type": "client"
         *       },
         *       "data": {
         *         "status": "active"
         *       },
         *       "id": "evt_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "occurred_at": "2026-11-15T09:30:00.000000Z",
         *       "position": 1042,
         *       "previous": {
         *         "status": "on_trial"
         *       },
         *       "recorded_at": "2026-11-15T09:30:00.050000Z",
         *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "subject_id": "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "type": "subscription.updated"
         *     }
         */
        Event: {
            actor: components["schemas"]["EventActor"];
            /** @description The record after the change. */
            data: Record<string, never>;
            /** @description Id of the event. */
            id: string;
            /**
             * Format: date-time
             * @description When the change took effect. A late renewal has the time at which it was due.
             */
            occurred_at: string;
            /**
             * Format: int64
             * @description The place in the order of events, starting at 1.
             */
            position: number;
            /** @description The old values of the changed fields. */
            previous?: Record<string, never>;
            /**
             * Format: date-time
             * @description When the event received its position.
             */
            recorded_at: string;
            /** @description Id of the request that made the change. */
            request_id: string | null;
            /** @description Id of the changed record. */
            subject_id: string;
            /** @description The changed record and what happened to it. */
            type: string;
        };
        /** @description What made a change. */
        EventActor: {
            /**
             * @description Id of the client, user, staff member or payment account, or the name of the operator.
             * @example cli_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            id: string | null;
            /**
             * @description `client`: an API key; `user`: a user through a client; `staff`: a staff member in the console; `operator`: a
             *     command; `payment_account`: a payment provider; `system`: a background task.
             * @example client
             */
            type: string;
        };
        /**
         * @description An event's id. A UUID without the prefix is accepted too.
         * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        EventId: string;
        /** @description A part of a tenant's event log. */
        EventPage: {
            /** @description The events, in the order in which they were committed, or in the reverse order. */
            data: components["schemas"]["Event"][];
            /**
             * @description Whether there may be more events, so that the next request should not wait.
             * @example false
             */
            has_more: boolean;
            /**
             * @description The parameter `after` of the next request. It never expires, except with its events.
             * @example 6Xv3mQ1dTnWc0b2JpYk8sTIgMTA0Mg
             */
            next_cursor: string;
        };
        /**
         * @description A type of events, or all types of a record, such as `subscription.*`.
         * @example subscription.*
         */
        EventTypePattern: string;
        /**
         * @description One to 100 of these, separated by commas: values of EventTypePattern.
         * @example plan.created,subscription.*
         */
        EventTypePatternList: string;
        /**
         * @description An id in another system: a single line.
         * @example customer-1042
         */
        ExternalId: string;
        /**
         * @description One to 100 of these, separated by commas: ids in another system. An id that contains a comma cannot be found.
         * @example customer-1042
         */
        ExternalIdList: string;
        /** @description An entry of a problem's `errors`. */
        FieldError: {
            /**
             * @description The allowed values, where there are few.
             * @example [
             *       "monthly",
             *       "yearly"
             *     ]
             */
            allowed?: string[];
            /** @description The code of the violated rule. */
            code: components["schemas"]["ProblemCode"];
            /**
             * @description What is wrong and what is allowed.
             * @example "montly" is not a billing cycle; did you mean "monthly"?
             */
            message: string;
            /**
             * @description A JSON pointer into the body, or `?` and the name of a query parameter.
             * @example /billing_cycle
             */
            pointer: string;
        };
        /** @description A subscription with access. */
        Grant: {
            /**
             * Format: date-time
             * @description When the subscription ends.
             * @example null
             */
            ends_at: string | null;
            /**
             * @description The plan's features.
             * @example [
             *       "SSO",
             *       "Audit log"
             *     ]
             */
            features: string[];
            /**
             * @description The subscription.
             * @example sub_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            id: string;
            /**
             * Format: int32
             * @description The plan's quota.
             * @example 25
             */
            node_quota: number;
            /**
             * Format: date-time
             * @description When the subscription renews.
             * @example 2026-12-15T09:30:00.000000Z
             */
            renews_at: string | null;
            /**
             * @description The plan's slug.
             * @example pro
             */
            slug: string;
            /** @description The status of the subscription: one that gives access. */
            status: components["schemas"]["SubscriptionStatus"];
            /**
             * @description The plan.
             * @example plan_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            subscription_plan_id: string;
            /**
             * Format: int32
             * @description The plan's tier.
             * @example 2
             */
            tier: number;
        };
        /** @description The health of the service and of a tenant's data. */
        Health: {
            /**
             * Format: date-time
             * @description When the checks ran. A result is returned for up to 10 seconds.
             * @example 2026-11-15T09:30:00.000000Z
             */
            checked_at: string;
            /** @description The results of all checks. */
            checks: components["schemas"]["HealthCheck"][];
            /** @description The worst status of all checks. */
            status: components["schemas"]["HealthStatus"];
        };
        /** @description The result of one check. */
        HealthCheck: {
            /**
             * @description What was found.
             * @example background tasks are overdue by 312 s
             */
            detail: string;
            /**
             * @description The suggested action.
             * @example run `perennial serve` with PERENNIAL_WORKERS above 0, or `perennial work`
             */
            fix: string | null;
            /**
             * @description What is checked. Several results can have the same name.
             * @example worker
             */
            name: string;
            /**
             * @description The path of the page that explains the fix.
             * @example /docs/runbooks/late-worker
             */
            runbook: string | null;
            status: components["schemas"]["HealthStatus"];
        };
        /**
         * @description How serious the result of a check is.
         * @example ok
         * @enum {string}
         */
        HealthStatus: "ok" | "warning" | "failed";
        /** @description The identities of a user. */
        Identities: {
            /** @description Oldest first. Empty if the user has not signed up yet. */
            data: components["schemas"]["Identity"][];
        };
        /** @description An identity of a user at an identity provider. */
        Identity: {
            /**
             * Format: date-time
             * @description When the user first signed in with it.
             * @example 2026-11-15T09:30:00.000000Z
             */
            created_at: string;
            /**
             * @description The identity provider.
             * @example https://accounts.example.com
             */
            issuer: string;
            /**
             * @description The provider's id of the user.
             * @example 248289761001
             */
            subject: string;
        };
        /** @description An identity provider whose tokens the tenant accepts. */
        IdentityProvider: components["schemas"]["ProviderSettingsView"] & {
            /**
             * Format: date-time
             * @description Creation time.
             * @example 2026-11-15T09:30:00.000000Z
             */
            created_at: string;
            /**
             * @description Id of the provider.
             * @example idp_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            id: string;
        };
        /**
         * @description An identity provider's id. A UUID without the prefix is accepted too.
         * @example idp_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        IdentityProviderId: string;
        /** @description A page of a list. */
        IdentityProviderPage: {
            /** @description The records of this page. */
            data: components["schemas"]["IdentityProvider"][];
            /**
             * @description Whether there are more pages.
             * @example false
             */
            has_more: boolean;
            /**
             * @description The `cursor` of the next page; null on the last one.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description A field of the response that a request may contain. Its value is ignored. */
        Ignored: unknown;
        /**
         * @description The person to invite.
         * @example {
         *       "email": "ada@example.com",
         *       "role": "support"
         *     }
         */
        InviteStaffMember: {
            /** @description The email address of the person. */
            email: components["schemas"]["Email"];
            /** @description What the member may see and do. */
            role: components["schemas"]["StaffRole"];
        };
        /** @description An invited staff member. */
        InvitedStaffMember: components["schemas"]["StaffMember"] & {
            /**
             * @description The link that signs the member in, once and within 10 minutes. Null in the response to a retry.
             * @example https://billing.example.com/console/#link=MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo
             */
            link: string | null;
        };
        /**
         * @description An IP address, or a network such as `10.0.0.0/8`.
         * @example 10.0.0.0/8
         */
        IpNetwork: string;
        /**
         * @description The public keys that verify access tokens (RFC 7517).
         * @example {
         *       "keys": [
         *         {
         *           "alg": "EdDSA",
         *           "crv": "Ed25519",
         *           "kid": "0192f0c1a2b37c4d8e5f60718293a4b5",
         *           "kty": "OKP",
         *           "use": "sig",
         *           "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
         *         }
         *       ]
         *     }
         */
        JwkSet: {
            /** @description The current key, previous keys whose tokens are still valid, and the next key. */
            keys: Record<string, never>[];
        };
        /** @description Subscriptions whose payment was late. */
        LateFigures: {
            /** @description Those that ended. */
            lost: components["schemas"]["LateOutcome"];
            /** @description Those that became active again. */
            recovered: components["schemas"]["LateOutcome"];
            /** @description Those that became past_due or unpaid. */
            started: components["schemas"]["LateOutcome"];
        };
        /** @description Subscriptions with a late payment: their number, and their recurring amount. */
        LateOutcome: components["schemas"]["RecurringAmount"] & {
            /**
             * Format: int64
             * @description How many subscriptions.
             * @example 4
             */
            subscriptions: number;
        };
        /**
         * @description An entry of a subscription's ledger.
         * @example {
         *       "actor": "cli_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "amount": -19.99,
         *       "at": "2026-11-15T09:30:00.000000Z",
         *       "cause": "start",
         *       "credit_after": 0,
         *       "currency": "USD",
         *       "id": "led_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "payment_id": null,
         *       "period_ends_at": "2026-12-15T09:30:00.000000Z",
         *       "period_starts_at": "2026-11-15T09:30:00.000000Z",
         *       "quantity": 1,
         *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "subscription_plan_id": "plan_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "type": "period"
         *     }
         */
        LedgerEntry: {
            /** @description The client or the user who caused it; null if time did. */
            actor: string | null;
            /**
             * Format: decimal
             * @description Added to the credit; negative if taken from it.
             */
            amount: number;
            /**
             * Format: date-time
             * @description When it was posted.
             */
            at: string;
            /** @description Why the entry was posted. */
            cause: components["schemas"]["LedgerEntryCause"];
            /**
             * Format: decimal
             * @description The credit after this entry.
             */
            credit_after: number;
            /** @description The currency (ISO 4217). */
            currency: string;
            /** @description The entry's id; null in a preview. */
            id: string | null;
            /**
             * @description The payment that it belongs to.
             * @example pay_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            payment_id: string | null;
            /**
             * Format: date-time
             * @description End of that period; null for a lifetime.
             */
            period_ends_at: string | null;
            /**
             * Format: date-time
             * @description Start of the period that it covers or changes.
             */
            period_starts_at: string | null;
            /**
             * Format: int32
             * @description The quantity at that time.
             */
            quantity: number;
            /** @description The request that caused it; null if time did. */
            request_id: string | null;
            /** @description The plan at that time. */
            subscription_plan_id: string;
            /** @description The type: `payment` and `waiver` add to the credit, `refund` and `period` take from it, `change` does either, `extension` covers time without charge. */
            type: components["schemas"]["LedgerEntryType"];
        };
        /**
         * @description Why a ledger entry was posted.
         * @example dispute
         * @enum {string}
         */
        LedgerEntryCause: "payment" | "refund" | "dispute" | "dispute_won" | "start" | "renewal" | "late_payment" | "resume" | "reopen" | "change" | "waiver" | "trial" | "free_until" | "managed";
        /** @description A page of a list. */
        LedgerEntryPage: {
            /** @description The records of this page. */
            data: components["schemas"]["LedgerEntry"][];
            /**
             * @description Whether there are more pages.
             * @example false
             */
            has_more: boolean;
            /**
             * @description The `cursor` of the next page; null on the last one.
             * @example null
             */
            next_cursor: string | null;
        };
        /**
         * @description The type of a ledger entry.
         * @example period
         * @enum {string}
         */
        LedgerEntryType: "payment" | "refund" | "period" | "change" | "waiver" | "extension";
        /**
         * @description What changes a subscription over time.
         * @example provider
         * @enum {string}
         */
        Lifecycle: "recorded" | "managed" | "provider";
        /** @description The signed-in user and the session. */
        LoggedIn: {
            /**
             * @description Always true; the response is 401 otherwise.
             * @example true
             */
            logged_in: boolean;
            /** @description The session of the request. */
            session: components["schemas"]["Session"];
            /** @description The signed-in user. */
            user: components["schemas"]["SessionUser"];
        };
        /**
         * @description Pairs of strings.
         * @example {
         *       "order": "A-1042"
         *     }
         */
        Metadata: {
            [key: string]: string;
        };
        /**
         * @description Pairs of strings, at most 50. A key has 1 to 40 characters and a value up to 500. A value cannot be a card number. An update keeps the pairs that the request does not have, and null removes one. Events keep metadata, so do not put personal data into it.
         * @example {
         *       "order": "A-1042"
         *     }
         */
        MetadataChanges: {
            [key: string]: string | null;
        };
        /** @description Movements of one kind. */
        MovementFigures: components["schemas"]["RecurringAmount"] & {
            /**
             * Format: int64
             * @description How many users had such a movement, counted once per day.
             * @example 4
             */
            changes: number;
        };
        /**
         * @description A web origin: scheme, host and, unless it is the default, port.
         * @example https://app.example.com
         */
        Origin: string;
        /**
         * @description A payment.
         * @example {
         *       "amount": 19.99,
         *       "created_at": "2026-11-15T09:30:00.000000Z",
         *       "currency": "USD",
         *       "external_payment_id": "pi_42",
         *       "failure_reason": null,
         *       "id": "pay_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "metadata": {
         *         "order": "A-1042"
         *       },
         *       "paid_at": "2026-11-15T09:30:00.000000Z",
         *       "period_ends_at": "2026-12-15T09:30:00.000000Z",
         *       "period_starts_at": "2026-11-15T09:30:00.000000Z",
         *       "refunded_amount": 0,
         *       "status": "completed",
         *       "subscription_id": "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "updated_at": "2026-11-15T09:30:00.000000Z"
         *     }
         */
        Payment: {
            /**
             * Format: decimal
             * @description The amount, with all decimals of the currency.
             */
            amount: number;
            /**
             * Format: date-time
             * @description Creation time.
             */
            created_at: string;
            /** @description The currency (ISO 4217). */
            currency: string;
            /** @description The payment provider's id. */
            external_payment_id: string | null;
            /** @description Why the payment failed. */
            failure_reason: string | null;
            /** @description The payment's id. */
            id: string;
            /** @description Pairs of strings that clients attached. */
            metadata: components["schemas"]["Metadata"];
            /**
             * Format: date-time
             * @description When the payer paid; null until the payment settles, unless a client set it.
             */
            paid_at: string | null;
            /**
             * Format: date-time
             * @description End of the time that this payment paid for: `paid_until` of the subscription afterwards. Null if
             *     `period_starts_at` is null, and for a lifetime.
             */
            period_ends_at: string | null;
            /**
             * Format: date-time
             * @description Start of the time that this payment paid for when it completed: `paid_until` of the subscription
             *     before, or the start of its first period. Null if the payment stayed credit or the service did
             *     not manage the subscription. Refunds do not change it.
             */
            period_starts_at: string | null;
            /**
             * Format: decimal
             * @description The refunded amount; null if a part of unknown size was refunded.
             */
            refunded_amount: number | null;
            /** @description The status. */
            status: components["schemas"]["PaymentStatus"];
            /** @description The subscription it pays for. */
            subscription_id: string;
            /**
             * Format: date-time
             * @description Time of the last change.
             */
            updated_at: string;
        };
        /** @description A tenant's account with a payment provider. */
        PaymentAccount: {
            /**
             * Format: date-time
             * @description Creation time.
             * @example 2026-11-15T09:30:00.000000Z
             */
            created_at: string;
            /**
             * @description Whether a customer whom no user matches gets a new one. Otherwise the notification waits until a user matches.
             * @example true
             */
            creates_users: boolean;
            /**
             * @description A note for operators.
             * @example Shop
             */
            description: string | null;
            /**
             * @description The provider's id of the account or store.
             * @example acct_1042
             */
            external_account_id: string | null;
            /**
             * @description Whether an API key is stored.
             * @example true
             */
            has_api_key: boolean;
            /**
             * @description Whether a secret is stored. Without one, no notification is accepted.
             * @example true
             */
            has_secret: boolean;
            /**
             * @description Id of the account. Notifications are sent to `/payment-notifications/` and this id.
             * @example pac_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            id: string;
            /**
             * Format: date-time
             * @description When a notification was received; exact to a minute.
             * @example null
             */
            last_heard_at: string | null;
            /**
             * Format: date-time
             * @description When all records were compared with the provider's.
             * @example null
             */
            last_reconciled_at: string | null;
            /** @description Whether payments are real. */
            mode: components["schemas"]["PaymentMode"];
            /**
             * Format: int64
             * @description How many commands, such as cancellations, the provider has not acknowledged yet.
             * @example 0
             */
            pending_commands: number;
            /** @description The payment provider. */
            provider: components["schemas"]["PaymentProvider"];
            /**
             * Format: date-time
             * @description Time of the last change.
             * @example 2026-11-15T09:30:00.000000Z
             */
            updated_at: string;
        };
        /**
         * @description A payment account's id. A UUID without the prefix is accepted too.
         * @example pac_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        PaymentAccountId: string;
        /**
         * @description One to 100 of these, separated by commas: ids of payment accounts.
         * @example pac_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        PaymentAccountIdList: string;
        /** @description A page of a list. */
        PaymentAccountPage: {
            /** @description The records of this page. */
            data: components["schemas"]["PaymentAccount"][];
            /**
             * @description Whether there are more pages.
             * @example false
             */
            has_more: boolean;
            /**
             * @description The `cursor` of the next page; null on the last one.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description A number of payments, and their amount. */
        PaymentFigures: {
            /**
             * @description Their amount.
             * @example 1999.00
             */
            amount: string;
            /**
             * Format: int64
             * @description How many payments.
             * @example 100
             */
            payments: number;
        };
        /**
         * @description A payment's id. A UUID without the prefix is accepted too.
         * @example pay_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        PaymentId: string;
        /** @description Payments in an interval. */
        PaymentInterval: {
            /** @description Received. */
            collected: components["schemas"]["PaymentFigures"];
            /** @description Demanded back by payers' banks. */
            disputed: components["schemas"]["PaymentFigures"];
            /** @description Not received. */
            failed: components["schemas"]["PaymentFigures"];
            /**
             * Format: date
             * @description The first day.
             * @example 2026-11-01
             */
            from: string;
            /** @description Subscriptions whose payment was late. */
            late: components["schemas"]["LateFigures"];
            /**
             * @description Collected minus refunded and disputed.
             * @example 1980.01
             */
            net: string;
            /** @description Not decided yet. */
            pending: components["schemas"]["PaymentFigures"];
            /** @description Returned. */
            refunded: components["schemas"]["PaymentFigures"];
            /**
             * Format: date
             * @description The last day.
             * @example 2026-11-30
             */
            to: string;
            /**
             * Format: int64
             * @description Payments of which a part of unknown size was returned.
             * @example 0
             */
            unknown_refunds: number;
        };
        /**
         * @description Whether payments are real.
         * @example test
         * @enum {string}
         */
        PaymentMode: "test" | "live";
        /** @description A notification of a payment provider. */
        PaymentNotification: {
            /**
             * Format: int32
             * @description Failed attempts to process it.
             * @example 0
             */
            attempts: number;
            /**
             * Format: date-time
             * @description When it was received.
             * @example 2026-11-15T09:30:00.000000Z
             */
            created_at: string;
            /**
             * @description The provider's id of the event.
             * @example evt_1042
             */
            event_id: string;
            /**
             * @description Id of the notification.
             * @example pnt_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            id: string;
            /**
             * Format: date-time
             * @description When it is processed again.
             * @example null
             */
            next_attempt_at: string | null;
            /**
             * @description The provider's id of the object.
             * @example sub_1042
             */
            object_id: string | null;
            /**
             * @description Kind of the provider's object that may have changed, such as `subscription` or `invoice`.
             * @example subscription
             */
            object_type: string | null;
            /**
             * @description The account that it was sent to.
             * @example pac_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            payment_account_id: string;
            /**
             * @description Why the notification is ignored, waiting, failed or refused.
             * @example null
             */
            reason: string | null;
            /** @description What has become of the notification. */
            state: components["schemas"]["PaymentNotificationState"];
            /**
             * @description The provider's type of the event; empty if the notification could not be read.
             * @example customer.subscription.updated
             */
            type: string;
        };
        /**
         * @description A payment notification's id. A UUID without the prefix is accepted too.
         * @example pnt_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        PaymentNotificationId: string;
        /** @description A page of a list. */
        PaymentNotificationPage: {
            /** @description The records of this page. */
            data: components["schemas"]["PaymentNotification"][];
            /**
             * @description Whether there are more pages.
             * @example false
             */
            has_more: boolean;
            /**
             * @description The `cursor` of the next page; null on the last one.
             * @example null
             */
            next_cursor: string | null;
        };
        /**
         * @description `new`: not processed yet. `done`: processed. `ignored`: changes no record. `waiting`: for a user or a plan. `failed`: could not be read. `refused`: for another mode or store.
         * @example ignored
         * @enum {string}
         */
        PaymentNotificationState: "new" | "done" | "ignored" | "waiting" | "failed" | "refused";
        /**
         * @description One to 100 of these, separated by commas: values of PaymentNotificationState.
         * @example failed,refused
         */
        PaymentNotificationStateList: string;
        /** @description A page of a list. */
        PaymentPage: {
            /** @description The records of this page. */
            data: components["schemas"]["Payment"][];
            /**
             * @description Whether there are more pages.
             * @example false
             */
            has_more: boolean;
            /**
             * @description The `cursor` of the next page; null on the last one.
             * @example null
             */
            next_cursor: string | null;
        };
        /**
         * @description A payment provider.
         * @example stripe
         * @enum {string}
         */
        PaymentProvider: "stripe" | "lemonsqueezy";
        /** @description The result of rotating a payment account's secret. */
        PaymentSecret: {
            /**
             * Format: date-time
             * @description Until when notifications with the previous secret are accepted.
             * @example null
             */
            previous_secret_expires_at: string | null;
            /**
             * @description The secret that was generated; null if the request has one.
             * @example 5f0c4d8e2a6b4c1f9d7e3b8a1c2d4e6f
             */
            secret: string | null;
        };
        /**
         * @description The status of a payment.
         * @example failed
         * @enum {string}
         */
        PaymentStatus: "pending" | "completed" | "failed" | "partially_refunded" | "refunded" | "disputed" | "void";
        /**
         * @description PaymentStatus, in any case and with aliases.
         * @example failed
         */
        PaymentStatusInput: components["schemas"]["PaymentStatus"] | string;
        /**
         * @description One to 100 of these, separated by commas: values of PaymentStatusInput.
         * @example refunded,disputed
         */
        PaymentStatusList: string;
        /** @description Payments over time. */
        PaymentsReport: components["schemas"]["ReportFrame"] & {
            /** @description One item for each currency; they are never added. */
            currencies: components["schemas"]["CurrencyPayments"][];
        };
        /**
         * @description A plan.
         * @example {
         *       "billing_cycle": "monthly",
         *       "created_at": "2026-11-15T09:30:00.000000Z",
         *       "currency": "USD",
         *       "description": "For teams that ship every day.",
         *       "feature_list": [
         *         "SSO",
         *         "Audit log",
         *         "Priority support"
         *       ],
         *       "features": "SSO, Audit log, Priority support",
         *       "href": "https://example.com/plans/pro",
         *       "id": "plan_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "is_active": true,
         *       "metadata": {
         *         "order": "A-1042"
         *       },
         *       "most_popular": true,
         *       "name": "Pro",
         *       "node_quota": 25,
         *       "price": 19.99,
         *       "product_id": "prod_1042",
         *       "slug": "pro",
         *       "tier": 2,
         *       "trial_days": 0,
         *       "updated_at": "2026-11-15T09:30:00.000000Z",
         *       "variants": [
         *         "var_1",
         *         "var_2"
         *       ]
         *     }
         */
        Plan: {
            /** @description How often subscriptions renew. */
            billing_cycle: components["schemas"]["BillingCycle"];
            /**
             * Format: date-time
             * @description Creation time.
             */
            created_at: string;
            /** @description The currency of the price (ISO 4217). */
            currency: string;
            /** @description Description for customers. */
            description: string | null;
            /** @description The items of `features`, trimmed and without empty ones. */
            feature_list: string[];
            /** @description The included features: a comma-separated list in one string, as sent. */
            features: string | null;
            /**
             * Format: uri
             * @description Link to a page about the plan.
             */
            href: string | null;
            /** @description The plan's id. */
            id: string;
            /** @description Whether new subscriptions are allowed. */
            is_active: boolean;
            /** @description Pairs of strings that clients attached. */
            metadata: components["schemas"]["Metadata"];
            /** @description Whether a pricing page should highlight the plan. */
            most_popular: boolean;
            /** @description Display name. */
            name: string;
            /**
             * Format: int32
             * @description Number of nodes a subscriber may run; -1 is unlimited.
             */
            node_quota: number;
            /**
             * Format: decimal
             * @description Price of one billing cycle, with all decimals of the currency.
             */
            price: number;
            /** @description The product at the payment provider. */
            product_id: string | null;
            /** @description The plan's name in URLs. */
            slug: string;
            /**
             * Format: int32
             * @description Rank among the tenant's plans; higher tiers include more.
             */
            tier: number;
            /**
             * Format: int32
             * @description Length of the free trial in days; 0 is none.
             */
            trial_days: number;
            /**
             * Format: date-time
             * @description Time of the last change.
             */
            updated_at: string;
            /** @description The product's variants at the payment provider. */
            variants: string[];
        };
        /**
         * @description A plan's id. A UUID without the prefix is accepted too.
         * @example plan_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        PlanId: string;
        /**
         * @description One to 100 of these, separated by commas: ids of plans.
         * @example plan_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        PlanIdList: string;
        /** @description A page of a list. */
        PlanPage: {
            /** @description The records of this page. */
            data: components["schemas"]["Plan"][];
            /**
             * @description Whether there are more pages.
             * @example false
             */
            has_more: boolean;
            /**
             * @description The `cursor` of the next page; null on the last one.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description Recurring revenue of a plan. */
        PlanRevenue: components["schemas"]["RecurringAmount"] & {
            /**
             * @description The plan, which may be deleted.
             * @example plan_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            subscription_plan_id: string;
            /**
             * @description The plan's slug.
             * @example pro
             */
            subscription_plan_slug: string;
            /**
             * Format: int64
             * @description How many subscriptions count.
             * @example 100
             */
            subscriptions: number;
            /**
             * Format: int64
             * @description How many users pay for it. A user with two billing cycles of a plan counts twice.
             * @example 80
             */
            users: number;
        };
        /** @description The number of a plan's subscriptions with a status. */
        PlanStatusCount: {
            /**
             * @description Whether there may be more than `count`.
             * @example false
             */
            at_least: boolean;
            /**
             * Format: int64
             * @description The number of subscriptions, up to 1,000.
             * @example 42
             */
            count: number;
            /** @description The status, as responses show it. */
            status: components["schemas"]["SubscriptionStatus"];
            /**
             * @description The plan, which may be deleted.
             * @example plan_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            subscription_plan_id: string;
            /**
             * @description The plan's slug.
             * @example pro
             */
            subscription_plan_slug: string;
        };
        /** @description A problem document (RFC 9457). */
        Problem: {
            /**
             * @description With `invalid_transition`: the statuses that the record can change to.
             * @example [
             *       "active",
             *       "cancelled"
             *     ]
             */
            allowed?: string[];
            /**
             * Format: decimal
             * @description With `payment_required`: the amount to pay before the request can succeed.
             * @example 19.99
             */
            amount_due?: number;
            /** @description A stable code for programs. */
            code: components["schemas"]["ProblemCode"];
            /**
             * @description With `payment_required`: the currency of `amount_due`.
             * @example USD
             */
            currency?: string;
            /**
             * @description The cause of this particular problem.
             * @example /billing_cycle: "montly" is not a billing cycle; did you mean "monthly"?
             */
            detail: string;
            /** @description Every invalid field or parameter. */
            errors?: components["schemas"]["FieldError"][];
            /**
             * @description With `duplicate_external_id`: the id of the other record.
             * @example sub_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            existing_id?: string;
            /**
             * @description The path of the request.
             * @example /subscription-plans
             */
            instance: string;
            /**
             * Format: int64
             * @description With `plan_in_use`: the number of live subscriptions to the plan; 100 means 100 or more.
             * @example 3
             */
            live_subscriptions?: number;
            /**
             * @description The request's id, also in the header X-Request-Id and in the operator's log.
             * @example req_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            request_id: string;
            /**
             * Format: int32
             * @description The HTTP status.
             * @example 422
             */
            status: number;
            /**
             * @description A short summary, the same for every problem with this code.
             * @example Unknown value
             */
            title: string;
            /**
             * Format: uri
             * @description The page of this instance that documents the code.
             * @example https://billing.example.com/docs/errors/unknown_value
             */
            type: string;
            /**
             * Format: date-time
             * @description With `payment_required`: until when a payment of `amount_due` suffices.
             * @example 2026-11-15T10:30:00.000000Z
             */
            valid_until?: string;
        };
        /**
         * @description A stable code for programs, documented under `/docs/errors/`.
         * @example invalid_parameter
         * @enum {string}
         */
        ProblemCode: "malformed_json" | "invalid_request" | "invalid_parameter" | "invalid_cursor" | "invalid_idempotency_key" | "invalid_client" | "invalid_token" | "invalid_grant" | "invalid_signature" | "invalid_staff_session" | "invalid_sign_in_link" | "payment_required" | "address_not_allowed" | "cross_site_request" | "insufficient_scope" | "email_mismatch" | "email_unverified" | "not_for_users" | "not_your_account" | "origin_not_allowed" | "reauthentication_required" | "self_service_disabled" | "sandbox_only" | "secret_client_in_browser" | "not_found" | "plan_not_found" | "subscription_not_found" | "payment_not_found" | "user_not_found" | "event_not_found" | "webhook_endpoint_not_found" | "payment_account_not_found" | "payment_notification_not_found" | "client_not_found" | "identity_provider_not_found" | "staff_member_not_found" | "session_not_found" | "account_not_found" | "method_not_allowed" | "request_timeout" | "slug_taken" | "plan_in_use" | "duplicate_external_id" | "free_time_not_possible" | "invalid_transition" | "payment_settled" | "staff_change_not_allowed" | "account_exists" | "email_in_use" | "client_disabled" | "own_client" | "duplicate_provider" | "sandbox_busy" | "sandbox_not_empty" | "idempotency_in_progress" | "cursor_from_another_history" | "events_removed" | "precondition_failed" | "payload_too_large" | "unsupported_media_type" | "validation_failed" | "amount_scale_invalid" | "blank" | "currency_mismatch" | "immutable_field" | "idempotency_key_reused" | "inconsistent_dates" | "inconsistent_status" | "invalid_format" | "invalid_id" | "out_of_range" | "plan_inactive" | "required" | "too_long" | "too_many" | "unknown_field" | "unknown_value" | "unknown_reference" | "url_not_allowed" | "wrong_type" | "misdirected_request" | "rate_limited" | "internal" | "payment_provider_failed" | "overloaded" | "unavailable";
        /** @description [`ProviderReport`] as JSON. */
        ProviderReportJson: {
            /**
             * @description Commands that they have not acknowledged.
             * @example []
             */
            payment_commands: Record<string, never>[];
            /**
             * @description Notifications that are waiting, failed or refused.
             * @example []
             */
            payment_notifications: Record<string, never>[];
            /**
             * @description Their objects that the records follow, with differences.
             * @example []
             */
            payment_objects: Record<string, never>[];
        };
        /** @description The settings of a provider, as events have them too. */
        ProviderSettingsView: {
            /**
             * @description Whether tokens that the provider issued for other products are accepted too, as `userinfo` does.
             * @example false
             */
            accept_any_audience: boolean;
            /**
             * @description Whether an audience in the `azp` claim is accepted.
             * @example false
             */
            accept_azp: boolean;
            /**
             * @description Whether tokens bound to a key or certificate are accepted. The binding is not checked.
             * @example false
             */
            accept_bound_tokens: boolean;
            /**
             * @description Whether ID tokens are accepted.
             * @example false
             */
            accept_id_tokens: boolean;
            /**
             * @description Accepted audiences (the `aud` claim).
             * @example [
             *       "my-product"
             *     ]
             */
            audiences: string[];
            /**
             * @description The client id for introspection.
             * @example null
             */
            client_id: string | null;
            /**
             * @description The endpoint that verifies tokens, if it is not discovered.
             * @example null
             */
            endpoint: string | null;
            /**
             * Format: uri
             * @description Issuer URL (the `iss` claim).
             * @example https://id.example.com
             */
            issuer: string;
            /**
             * @description Whether the service connects to public addresses only: true if an API client has set a URL of the provider.
             * @example true
             */
            public_addresses_only: boolean;
            /** @description How tokens are verified. */
            verify: components["schemas"]["VerifyMethod"];
        };
        /** @description The response to a payment provider. */
        ReceivedNotification: {
            /**
             * @description Id of the notification; of the first one, if it was sent before.
             * @example pnt_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            id: string;
        };
        /** @description A recurring amount: exact per year, and rounded per month. */
        RecurringAmount: {
            /**
             * @description Per year, exact.
             * @example 23988.00
             */
            arr: string;
            /**
             * @description Per month: a twelfth of `arr`, rounded to the currency's minor unit.
             * @example 1999.00
             */
            mrr: string;
        };
        /**
         * @description A refresh token.
         * @example {
         *       "refresh_token": "prn_rt_AQGS8MGisz"
         *     }
         */
        RefreshToken: {
            /** @description The most recent refresh token of the session. */
            refresh_token: string;
        };
        /** @description A change of a user that a report counts. */
        ReportChange: components["schemas"]["RecurringAmount"] & {
            /**
             * @description The currency (ISO 4217).
             * @example USD
             */
            currency: string;
            /**
             * Format: date
             * @description The day, in UTC.
             * @example 2026-11-15
             */
            day: string;
            /**
             * @description What the change is: a movement of revenue, or what happened to a trial or a late payment.
             * @example churned
             */
            kind: string;
            /**
             * Format: int64
             * @description How many more subscriptions the figure counts, negative if fewer.
             * @example -1
             */
            subscriptions: number;
            /**
             * @description The user.
             * @example usr_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            user_id: string;
        };
        /** @description A page of a list. */
        ReportChangePage: {
            /** @description The records of this page. */
            data: components["schemas"]["ReportChange"][];
            /**
             * @description Whether there are more pages.
             * @example false
             */
            has_more: boolean;
            /**
             * @description The `cursor` of the next page; null on the last one.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description What a report covers. */
        ReportFrame: {
            /**
             * Format: date-time
             * @description The time of the report.
             * @example 2026-11-15T09:30:00.000000Z
             */
            as_of: string;
            /**
             * @description What each figure means, and what it leaves out.
             * @example {
             *       "expansion": "Added MRR of users who already paid."
             *     }
             */
            definitions: {
                [key: string]: string;
            };
            /**
             * Format: date
             * @description The first day, in UTC.
             * @example 2025-12-01
             */
            from: string;
            /**
             * @description The length of the intervals.
             * @example month
             */
            interval: string;
            /**
             * Format: date
             * @description The last day, in UTC.
             * @example 2026-11-15
             */
            to: string;
        };
        /** @description Recurring revenue in an interval. */
        RevenueInterval: {
            /** @description At the end of the last day. */
            closing: components["schemas"]["RevenueLevel"];
            /**
             * Format: date
             * @description The first day.
             * @example 2026-11-01
             */
            from: string;
            /**
             * @description What changed, by kind: `new`, `expansion`, `contraction`, `churned`, `reactivated`, `imported`, `correction` and
             *     `transferred`. Their sum is the difference of opening and closing.
             * @example {
             *       "new": {
             *         "arr": "479.76",
             *         "changes": 2,
             *         "mrr": "39.98"
             *       }
             *     }
             */
            movements: {
                [key: string]: components["schemas"]["MovementFigures"];
            };
            /** @description At the start of the first day. */
            opening: components["schemas"]["RevenueLevel"];
            /**
             * Format: date
             * @description The last day.
             * @example 2026-11-30
             */
            to: string;
        };
        /** @description Recurring revenue at the end of a day. */
        RevenueLevel: components["schemas"]["RecurringAmount"] & {
            /**
             * @description MRR without cancelled subscriptions.
             * @example 1899.00
             */
            committed_mrr: string;
            /**
             * Format: int64
             * @description How many subscriptions count.
             * @example 100
             */
            subscriptions: number;
            /**
             * Format: int64
             * @description How many users pay.
             * @example 80
             */
            users: number;
        };
        /** @description Recurring revenue over time. */
        RevenueReport: components["schemas"]["ReportFrame"] & {
            /** @description One item for each currency; they are never added. */
            currencies: components["schemas"]["CurrencyRevenue"][];
        };
        /**
         * @description The result of revoking sessions.
         * @example {
         *       "revoked": 1,
         *       "success": true
         *     }
         */
        Revoked: {
            /**
             * Format: int64
             * @description Number of revoked sessions.
             */
            revoked: number;
            /** @description Always true. */
            success: boolean;
        };
        /**
         * @description How long the previous key works. The object can be empty.
         * @example {
         *       "grace_period_seconds": 3600
         *     }
         */
        RotateApiKey: {
            /** @description How long the previous key works, in seconds. 0 revokes it at once. Default: 86400, a day. */
            grace_period_seconds?: number | null;
        };
        /**
         * @description The new secret.
         * @example {
         *       "secret": "whsec_1042"
         *     }
         */
        RotatePaymentSecret: {
            /** @description The secret that signs notifications. Required for `stripe`, which issues it. Otherwise it is generated if it is absent. */
            secret?: string | null;
        };
        /** @description A rotated API key. */
        RotatedApiKey: {
            /**
             * @description The new API key: the value of the header `client-id`. It cannot be read again.
             * @example prn_sk_9UoWkMZVYw3M2g7rIhVHQJjXn0h0cUqYdYl2Vd7m3oA
             */
            client_id: string;
            /**
             * @description Id of the client.
             * @example cli_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            id: string;
            /**
             * Format: date-time
             * @description Until when the previous key works.
             * @example 2026-11-16T09:30:00.000000Z
             */
            old_value_expires_at: string;
        };
        /** @description The clock of a sandbox. */
        SandboxClock: {
            /**
             * Format: date-time
             * @description The billing time, which subscriptions, payments and access use.
             * @example 2026-12-15T09:30:00.000000Z
             */
            now: string;
            /**
             * Format: date-time
             * @description The real time, which sessions and tokens use.
             * @example 2026-11-15T09:30:00.000000Z
             */
            real_time: string;
        };
        /**
         * @description A permission of a client.
         * @example plans:write
         * @enum {string}
         */
        Scope: "auth" | "plans:read" | "plans:write" | "subscriptions:read" | "subscriptions:write" | "payments:read" | "payments:write" | "users:read" | "users:write" | "events:read" | "webhooks:read" | "webhooks:write" | "payment_accounts:read" | "payment_accounts:write" | "reports:read" | "clients:read" | "clients:write" | "identity_providers:read" | "identity_providers:write" | "staff:read" | "staff:write" | "health:read" | "sandbox:write";
        /**
         * @description A session of a user on one device.
         * @example {
         *       "client_id": "cli_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "created_at": "2026-11-15T09:30:00.000000Z",
         *       "current": true,
         *       "expires_at": "2026-11-29T09:30:00.000000Z",
         *       "id": "ses_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "ip": "203.0.113.7",
         *       "issuer": "https://accounts.example.com",
         *       "last_used_at": "2026-11-15T09:30:00.000000Z",
         *       "user_agent": "Mozilla/5.0"
         *     }
         */
        Session: {
            /** @description The client that created the session. */
            client_id: string;
            /**
             * Format: date-time
             * @description When the user signed in.
             */
            created_at: string;
            /** @description Whether this is the session of the request. */
            current: boolean;
            /**
             * Format: date-time
             * @description When the session expires, unless it is refreshed.
             */
            expires_at: string;
            /** @description The session's id. */
            id: string;
            /** @description The IP address at sign-in. */
            ip: string;
            /** @description The identity provider that verified the user. */
            issuer: string;
            /**
             * Format: date-time
             * @description When the session was last used, to the minute.
             */
            last_used_at: string;
            /** @description The `User-Agent` header at sign-in. */
            user_agent: string | null;
        };
        /**
         * @description A session's id. A UUID without the prefix is accepted too.
         * @example ses_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        SessionId: string;
        /** @description The signed-in user of a session. `GET /users/{id}` has the metadata too. */
        SessionUser: {
            /**
             * Format: date-time
             * @description When the user was created.
             * @example 2026-11-15T09:30:00.000000Z
             */
            created_at: string;
            /**
             * @description Email address as it was entered; null for a user without one.
             * @example ada@example.com
             */
            email: string | null;
            /**
             * @description The user's id in your system.
             * @example customer-1042
             */
            external_user_id: string | null;
            /**
             * @description Id of the user.
             * @example usr_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            id: string;
        };
        /** @description The active sessions of a user. */
        Sessions: {
            /** @description Active sessions, newest first; at most 1,000. */
            data: components["schemas"]["Session"][];
        };
        /** @description How staff members can sign in. */
        SignInOptions: {
            /** @description The identity providers to choose from. Without one, staff members sign in with links. */
            identity_providers: components["schemas"]["SignInProvider"][];
        };
        /** @description An identity provider of staff members. */
        SignInProvider: {
            /**
             * @description For the path `/console/sign-in/{provider}`.
             * @example openid
             */
            id: string;
            /**
             * @description The host of the provider.
             * @example login.example.com
             */
            name: string;
        };
        /** @description The staff member who is signed in. */
        SignedInStaffMember: {
            /**
             * @description The member's email address; null if the sign-in link was created without one.
             * @example ada@example.com
             */
            email: string | null;
            /**
             * @description The member's id.
             * @example stf_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            id: string;
            /** @description The member's role. */
            role: components["schemas"]["StaffRole"];
            /**
             * @description What the member may do.
             * @example [
             *       "users:read",
             *       "subscriptions:read"
             *     ]
             */
            scopes: string[];
        };
        /**
         * @description A plan's name in URLs; case-insensitive.
         * @example pro
         */
        Slug: string;
        /**
         * @description One to 100 of these, separated by commas: slugs; case-insensitive.
         * @example pro
         */
        SlugList: string;
        /**
         * @description A staff member's id. A UUID without the prefix is accepted too.
         * @example stf_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        StaffId: string;
        /** @description The staff members of a tenant. */
        StaffList: {
            /** @description All members, oldest first. */
            data: components["schemas"]["StaffMember"][];
        };
        /** @description A staff member. */
        StaffMember: {
            /**
             * @description Whether the member can work with all tenants. Such a member can only be changed with `perennial staff`.
             * @example false
             */
            all_tenants: boolean;
            /**
             * Format: date-time
             * @description When the member was invited.
             * @example 2026-11-15T09:30:00.000000Z
             */
            created_at: string;
            /**
             * @description The member's email address; null if the sign-in link was created without one.
             * @example ada@example.com
             */
            email: string | null;
            /**
             * @description The member's id.
             * @example stf_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            id: string;
            /**
             * Format: date-time
             * @description When the member last signed in; null before the first time.
             * @example null
             */
            last_signed_in_at: string | null;
            /** @description What the member may see and do. */
            role: components["schemas"]["StaffRole"];
            /**
             * Format: date-time
             * @description Time of the last change.
             * @example 2026-11-15T09:30:00.000000Z
             */
            updated_at: string;
        };
        /**
         * @description What a staff member may see and do.
         * @example finance
         * @enum {string}
         */
        StaffRole: "viewer" | "support" | "finance" | "admin";
        /** @description The number of subscriptions with a status. */
        StatusCount: {
            /**
             * @description Whether there may be more: a plan has more subscriptions with this status than are counted.
             * @example false
             */
            at_least: boolean;
            /**
             * Format: int64
             * @description The number of subscriptions.
             * @example 42
             */
            count: number;
            /** @description The status, as responses show it. */
            status: components["schemas"]["SubscriptionStatus"];
        };
        /** @description A number of subscriptions, and their amount. */
        StatusFigures: components["schemas"]["RecurringAmount"] & {
            /**
             * Format: int64
             * @description How many subscriptions.
             * @example 3
             */
            subscriptions: number;
        };
        /**
         * @description A subscription.
         * @example {
         *       "amount_due": 0,
         *       "billing_cycle": "monthly",
         *       "created_at": "2026-11-15T09:30:00.000000Z",
         *       "credit": 0,
         *       "currency": "USD",
         *       "current_period_ends_at": "2026-12-15T09:30:00.000000Z",
         *       "current_period_starts_at": "2026-11-15T09:30:00.000000Z",
         *       "ends_at": null,
         *       "external_subscription_id": null,
         *       "external_user_id": "customer-1042",
         *       "free_until": null,
         *       "id": "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "is_active": true,
         *       "lifecycle": "managed",
         *       "metadata": {
         *         "order": "A-1042"
         *       },
         *       "paid_until": "2026-12-15T09:30:00.000000Z",
         *       "price": 19.99,
         *       "quantity": 1,
         *       "renews_at": "2026-12-15T09:30:00.000000Z",
         *       "starts_at": "2026-11-15T09:30:00.000000Z",
         *       "status": "active",
         *       "subscription_plan_id": "plan_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "subscription_plan_slug": "pro",
         *       "suspended": false,
         *       "updated_at": "2026-11-15T09:30:00.000000Z",
         *       "user_id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5"
         *     }
         */
        Subscription: {
            /**
             * Format: decimal
             * @description Managed billing: to pay now to be active.
             */
            amount_due: number | null;
            /** @description How often the subscription renews. */
            billing_cycle: components["schemas"]["BillingCycle"];
            /**
             * Format: date-time
             * @description Creation time.
             */
            created_at: string;
            /**
             * Format: decimal
             * @description Managed billing: money received and not used. Negative only while a payment is disputed.
             */
            credit: number | null;
            /** @description The currency of the price (ISO 4217); null if the price is. */
            currency: string | null;
            /**
             * Format: date-time
             * @description Managed billing: end of the running period.
             */
            current_period_ends_at: string | null;
            /**
             * Format: date-time
             * @description Managed billing: start of the running period, whether paid, free or unpaid.
             */
            current_period_starts_at: string | null;
            /**
             * Format: date-time
             * @description End of access.
             */
            ends_at: string | null;
            /** @description The payment provider's id, if a provider manages the subscription. */
            external_subscription_id: string | null;
            /** @description The subscriber's id in your system, if the user has one. */
            external_user_id: string | null;
            /**
             * Format: date-time
             * @description Managed billing: until when free time was given last.
             */
            free_until: string | null;
            /** @description The subscription's id. */
            id: string;
            /**
             * @description Whether the user has access now: the status gives access, `starts_at` has passed, `ends_at`
             *     has not, and the subscription is not suspended.
             */
            is_active: boolean;
            /** @description What changes the subscription over time: the client's requests (`recorded`), this service (`managed`), or the payment provider of `external_subscription_id` (`provider`). */
            lifecycle: components["schemas"]["Lifecycle"];
            /** @description Pairs of strings that clients attached. */
            metadata: components["schemas"]["Metadata"];
            /**
             * Format: date-time
             * @description Managed billing: `renews_at` plus each whole period that the credit pays at the current price. Null
             *     while pending, for free subscriptions and for paid lifetimes.
             */
            paid_until: string | null;
            /**
             * Format: decimal
             * @description Price of one unit for one billing cycle: the plan's price when the subscription was created or switched to it, or a price that was set. Null if the billing cycle differs from the plan's and no price was set.
             */
            price: number | null;
            /**
             * Format: int32
             * @description How many units of the plan, such as seats.
             */
            quantity: number;
            /**
             * Format: date-time
             * @description The next renewal. In managed billing, the end of the covered time: an unpaid period starts here.
             */
            renews_at: string | null;
            /**
             * Format: date-time
             * @description Start of access.
             */
            starts_at: string;
            /** @description The current status; `expired` from `ends_at` on. */
            status: components["schemas"]["SubscriptionStatus"];
            /** @description The plan. */
            subscription_plan_id: string;
            /** @description The plan's slug. */
            subscription_plan_slug: string;
            /** @description Whether access is withheld regardless of the status; set by `is_active: false`. */
            suspended: boolean;
            /**
             * Format: date-time
             * @description Time of the last change.
             */
            updated_at: string;
            /** @description The subscriber. */
            user_id: string;
        };
        /** @description The numbers of subscriptions. */
        SubscriptionCounts: {
            /** @description One item for each plan and status that any subscription has. */
            by_plan: components["schemas"]["PlanStatusCount"][];
            /** @description One item for each status that any subscription has. */
            by_status: components["schemas"]["StatusCount"][];
        };
        /**
         * @description A subscription's id. A UUID without the prefix is accepted too.
         * @example sub_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        SubscriptionId: string;
        /**
         * @description One to 100 of these, separated by commas: ids of subscriptions.
         * @example sub_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        SubscriptionIdList: string;
        /** @description What happens next to some subscriptions. */
        SubscriptionNextSteps: {
            /** @description In the order of ids. Subscriptions that do not exist are missing. */
            data: components["schemas"]["SubscriptionSteps"][];
        };
        /** @description A page of a list. */
        SubscriptionPage: {
            /** @description The records of this page. */
            data: components["schemas"]["Subscription"][];
            /**
             * @description Whether there are more pages.
             * @example false
             */
            has_more: boolean;
            /**
             * @description The `cursor` of the next page; null on the last one.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description What a change would do and cost. */
        SubscriptionPreview: {
            /**
             * Format: decimal
             * @description The amount to pay before the change; 0 if it would succeed now.
             * @example 19.99
             */
            amount_due: number;
            /**
             * Format: date-time
             * @description The time of the preview.
             * @example 2026-11-15T09:30:00.000000Z
             */
            at: string;
            /** @description The ledger entries that the change, and the payment of `amount_due`, would post. */
            ledger: components["schemas"]["LedgerEntry"][];
            /** @description The subscription after the change. If `amount_due` is more than 0, as if it had been paid. */
            subscription: components["schemas"]["Subscription"];
            /**
             * Format: date-time
             * @description Until when a payment of `amount_due` suffices for the same request; null if nothing is due.
             * @example null
             */
            valid_until: string | null;
        };
        /**
         * @description The status of a subscription.
         * @example active
         * @enum {string}
         */
        SubscriptionStatus: "pending" | "on_trial" | "active" | "paused" | "past_due" | "unpaid" | "cancelled" | "expired";
        /**
         * @description SubscriptionStatus, in any case and with aliases.
         * @example active
         */
        SubscriptionStatusInput: components["schemas"]["SubscriptionStatus"] | string;
        /**
         * @description One to 100 of these, separated by commas: values of SubscriptionStatusInput.
         * @example active,past_due
         */
        SubscriptionStatusList: string;
        /** @description What happens next to a subscription. */
        SubscriptionSteps: {
            /** @description At least one step, in the order in which they happen. */
            next: components["schemas"]["TimelineStep"][];
            /**
             * @description The subscription.
             * @example sub_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            subscription_id: string;
        };
        /** @description A subscription: its status in words, and its past, present and future. */
        SubscriptionTimeline: {
            /**
             * Format: date-time
             * @description When the subscription was deleted.
             * @example null
             */
            deleted_at: string | null;
            /** @description What makes it active or keeps it so. Empty if nothing is wrong. */
            fixes: components["schemas"]["TimelineFix"][];
            /**
             * @description The subscription's id.
             * @example sub_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            id: string;
            /**
             * @description Whether the user has access now.
             * @example true
             */
            is_active: boolean;
            /** @description What happens next. Empty for a deleted subscription. */
            next: components["schemas"]["TimelineStep"][];
            /** @description The 50 latest payments, newest first. Null if the client lacks the scope `payments:read`. */
            payments: components["schemas"]["TimelinePayment"][] | null;
            /** @description The lifeline, oldest first, from the oldest of its 200 latest events to 12 months ahead. */
            segments: components["schemas"]["TimelineSegment"][];
            /**
             * @description The status, since when, and why.
             * @example Past due since 2026-11-12 09:30: the period from 2026-11-12 09:30 costs 19.99 USD and is not paid.
             */
            sentence: string;
            /** @description The current status; `expired` from `ends_at` on. */
            status: components["schemas"]["SubscriptionStatus"];
            /**
             * @description The plan's slug.
             * @example pro
             */
            subscription_plan_slug: string;
        };
        /**
         * @description A tenant's id. A UUID without the prefix is accepted too.
         * @example ten_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        TenantId: string;
        /** @description A tenant and its name. */
        TenantName: {
            /**
             * @description The tenant's id.
             * @example ten_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            id: string;
            /**
             * @description The tenant's name.
             * @example default
             */
            name: string;
        };
        /**
         * @description One to 100 of these, separated by commas: tiers.
         * @example 1,2
         */
        TierList: string;
        /** @description What is known about a user's subscriptions. Sentences are in English, with times in UTC. */
        Timeline: {
            /**
             * Format: date-time
             * @description The time that the sentences refer to. In a sandbox, that of its clock.
             * @example 2026-11-15T09:30:00.000000Z
             */
            as_of: string;
            /** @description The 100 latest events of the user, the subscriptions and their payments, newest first. */
            entries: components["schemas"]["TimelineEntry"][];
            /**
             * Format: date-time
             * @description When the user's personal data was erased.
             * @example null
             */
            erased_at: string | null;
            /**
             * @description Whether there are earlier events.
             * @example false
             */
            has_more: boolean;
            /** @description The 100 latest subscriptions, newest first, deleted ones too. */
            subscriptions: components["schemas"]["SubscriptionTimeline"][];
            /**
             * @description The user.
             * @example usr_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            user_id: string;
        };
        /** @description An event in words. */
        TimelineEntry: {
            actor: components["schemas"]["EventActor"];
            /**
             * Format: date-time
             * @description When the change took effect.
             * @example 2026-11-15T09:30:00.000000Z
             */
            at: string;
            /**
             * @description The name of the client that made the change, also on behalf of a user.
             * @example backend
             */
            client_name: string | null;
            /**
             * @description Id of the request that made the change.
             * @example req_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            request_id: string | null;
            /**
             * @description What happened, and which fields changed.
             * @example Subscription became past due: status active → past_due.
             */
            sentence: string;
            /**
             * @description The email address of the staff member who made the change.
             * @example null
             */
            staff_email: string | null;
            /**
             * @description Id of the changed record.
             * @example sub_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            subject_id: string;
            /**
             * @description The type of the event.
             * @example subscription.past_due
             */
            type: string;
        };
        /**
         * @description Something that fixes or prevents a problem of a subscription.
         * @example {
         *       "action": "record_payment",
         *       "amount": 19.99,
         *       "currency": "USD",
         *       "request": {
         *         "body": {
         *           "amount": 19.99,
         *           "currency": "USD",
         *           "status": "completed",
         *           "subscription_id": "sub_0192f0c1a2b37c4d8e5f60718293a4b5"
         *         },
         *         "method": "POST",
         *         "path": "/subscription-payments"
         *       },
         *       "sentence": "A completed payment of 19.99 USD or more makes it active."
         *     }
         */
        TimelineFix: {
            /**
             * @description `record_payment`, `resolve_dispute`, `resume`, `undo_cancellation`, `reopen`, `set_status`, `set_renewal`,
             *     `remove_end`, `lift_suspension`, `set_price`, or `wait_for_provider`. More may follow.
             */
            action: string;
            /**
             * Format: decimal
             * @description The amount to pay; null if nothing is paid.
             */
            amount: number | null;
            /** @description The currency of `amount` (ISO 4217). */
            currency: string | null;
            /** @description The request that does it. Absent if it is done elsewhere. */
            request?: components["schemas"]["TimelineRequest"];
            /** @description The same in words. */
            sentence: string;
        };
        /** @description A payment on the lifeline. */
        TimelinePayment: {
            /**
             * Format: decimal
             * @description The amount, with all decimals of the currency.
             * @example 19.99
             */
            amount: number;
            /**
             * Format: date-time
             * @description When the payer paid, or when the payment was recorded.
             * @example 2026-11-15T09:30:00.000000Z
             */
            at: string;
            /**
             * @description The currency (ISO 4217).
             * @example USD
             */
            currency: string;
            /**
             * @description The payment's id.
             * @example pay_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            id: string;
            /** @description The status. */
            status: components["schemas"]["PaymentStatus"];
        };
        /**
         * @description A request of this API.
         * @example {
         *       "body": {
         *         "status": "active"
         *       },
         *       "method": "PUT",
         *       "path": "/subscriptions/sub_0192f0c1a2b37c4d8e5f60718293a4b5"
         *     }
         */
        TimelineRequest: {
            /** @description The JSON body; null if you choose its values. */
            body: Record<string, never> | null;
            /** @description The HTTP method. */
            method: string;
            /** @description The path. A part in braces is for you to fill in. */
            path: string;
        };
        /** @description A span of time with one status. */
        TimelineSegment: {
            /**
             * Format: date-time
             * @description Start of the span.
             * @example 2026-11-12T09:30:00.000000Z
             */
            from: string;
            /**
             * @description Whether it is a forecast: what happens without a payment or a request.
             * @example false
             */
            future: boolean;
            /**
             * @description Whether the user has access in this span.
             * @example true
             */
            is_active: boolean;
            /**
             * @description Why the span starts; null for the past.
             * @example Access ends on 2026-11-19 09:30 unless 19.99 USD is paid.
             */
            sentence: string | null;
            /** @description The status in this span. */
            status: components["schemas"]["SubscriptionStatus"];
            /**
             * Format: date-time
             * @description End of the span, at which the next one starts; null if no end is known.
             * @example 2026-11-19T09:30:00.000000Z
             */
            to: string | null;
        };
        /** @description Something that happens next. */
        TimelineStep: {
            /**
             * Format: date-time
             * @description When it happens; null if a payment or a request decides. In the past if it is due and not applied yet.
             * @example 2026-11-19T09:30:00.000000Z
             */
            at: string | null;
            /**
             * @description The same in words.
             * @example Access ends on 2026-11-19 09:30 unless 19.99 USD is paid.
             */
            sentence: string;
            /** @description The status afterwards. */
            status: components["schemas"]["SubscriptionStatus"];
        };
        /**
         * Format: date-time
         * @description An RFC 3339 timestamp with an offset, from 1970-01-01T00:00:00Z to 9999-12-31T23:59:59Z. Digits after the microseconds are dropped. The last 26 hours of 9999 are one instant.
         * @example 2026-11-15T09:30:00Z
         */
        Timestamp: string;
        /**
         * @description The tokens of a session, and its user.
         * @example {
         *       "access_token": "eyJ0eXAiOiJhdCtqd3QiLCJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ1c3JfMDE5MiJ9.c2lnbmF0dXJl",
         *       "auth_id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "expires_at": "2026-11-15T09:45:00.000000Z",
         *       "expires_in": 900,
         *       "refresh_expires_at": "2026-11-29T09:30:00.000000Z",
         *       "refresh_token": "prn_rt_AQGS8MGisz",
         *       "session_id": "ses_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "token_type": "Bearer",
         *       "user": {
         *         "created_at": "2026-11-15T09:30:00.000000Z",
         *         "email": "ada@example.com",
         *         "external_user_id": null,
         *         "id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5"
         *       }
         *     }
         */
        Tokens: {
            /** @description A JWT, to send as `Authorization: Bearer`. */
            access_token: string;
            /** @description The user's id; the access token's claim `sub`. */
            auth_id: string;
            /**
             * Format: date-time
             * @description When the access token expires.
             */
            expires_at: string;
            /**
             * Format: int64
             * @description Lifetime of the access token in seconds.
             */
            expires_in: number;
            /**
             * Format: date-time
             * @description When the refresh token expires.
             */
            refresh_expires_at: string;
            /** @description An opaque token that can be exchanged once for new tokens. Keep the most recent one. */
            refresh_token: string;
            /** @description The session's id; the access token's claim `sid`. */
            session_id: string;
            /** @description Always `Bearer`. */
            token_type: string;
            /** @description The signed-in user. */
            user: components["schemas"]["SessionUser"];
        };
        /** @description Trials that began in a month. */
        TrialCohort: components["schemas"]["TrialOutcomes"] & {
            /**
             * Format: date
             * @description The first day of the month.
             * @example 2026-11-01
             */
            month: string;
            /**
             * Format: int64
             * @description Trials that still run or wait for a payment.
             * @example 7
             */
            undecided: number;
        };
        /** @description Trials in an interval. */
        TrialInterval: components["schemas"]["TrialOutcomes"] & {
            /**
             * Format: date
             * @description The first day.
             * @example 2026-11-01
             */
            from: string;
            /**
             * Format: date
             * @description The last day.
             * @example 2026-11-30
             */
            to: string;
        };
        /** @description What happened to trials. */
        TrialOutcomes: {
            /**
             * @description Converted ÷ (converted + lost); null if no trial ended.
             * @example 0.6364
             */
            conversion_rate: string | null;
            /**
             * Format: int64
             * @description Trials that became active subscriptions.
             * @example 21
             */
            converted: number;
            /**
             * Format: int64
             * @description Trials that ended without one.
             * @example 12
             */
            lost: number;
            /**
             * Format: int64
             * @description Trials that began.
             * @example 40
             */
            started: number;
        };
        /** @description Trials over time. */
        TrialsReport: components["schemas"]["ReportFrame"] & {
            /** @description Trials by the month in which they began. */
            cohorts: components["schemas"]["TrialCohort"][];
            /** @description The intervals, oldest first: trials by what happened in the interval. */
            intervals: components["schemas"]["TrialInterval"][];
        };
        /**
         * @description The fields to change; others stay. A list replaces the current one. A record that GET returned can be sent back.
         * @example {
         *       "allow_addresses": [
         *         "10.0.0.0/8"
         *       ],
         *       "name": "Backend"
         *     }
         */
        UpdateClient: {
            /** @description The networks that requests must come from; empty for any. Behind a proxy, the address is the proxy's unless the operator has set PERENNIAL_TRUSTED_PROXIES. */
            allow_addresses?: components["schemas"]["IpNetwork"][];
            /**
             * @description The web origins that may use the client. Only for publishable clients.
             * @example [
             *       "https://app.example.com"
             *     ]
             */
            allowed_origins?: components["schemas"]["Origin"][];
            /** @description Creation time. Cannot change. */
            created_at?: components["schemas"]["Timestamp"];
            disabled_at?: components["schemas"]["Ignored"];
            /** @description The client's id. Cannot change. */
            id?: components["schemas"]["ClientId"];
            /** @description Where the client is used. Cannot change. */
            kind?: components["schemas"]["ClientKind"];
            live_values?: components["schemas"]["Ignored"];
            /** @description A display name: a single line. */
            name?: string;
            /**
             * @description What the client may do. The calling client must have each of these scopes itself.
             * @example [
             *       "subscriptions:read"
             *     ]
             */
            scopes?: components["schemas"]["Scope"][];
        };
        /**
         * @description The tenant to work with.
         * @example {
         *       "tenant_id": "ten_0192f0c1a2b37c4d8e5f60718293a4b5"
         *     }
         */
        UpdateConsoleSession: {
            /** @description The tenant to work with. */
            tenant_id: components["schemas"]["TenantId"];
        };
        /**
         * @description The fields to change; others stay. Null clears a nullable field. A record that GET returned can be sent back.
         * @example {
         *       "audiences": [
         *         "my-product",
         *         "my-app"
         *       ]
         *     }
         */
        UpdateIdentityProvider: {
            /**
             * @description Also accept tokens that the provider issued for other products: required for `userinfo`.
             * @example true
             */
            accept_any_audience?: boolean;
            /**
             * @description Also accept an audience in the `azp` claim.
             * @example true
             */
            accept_azp?: boolean;
            /**
             * @description Also accept tokens bound to a key or certificate. The binding is not checked.
             * @example true
             */
            accept_bound_tokens?: boolean;
            /**
             * @description Also accept ID tokens: the usual case for "Sign in with Google".
             * @example true
             */
            accept_id_tokens?: boolean;
            /** @description Accepted audiences (the `aud` claim). */
            audiences?: string[];
            /**
             * @description The client id: required for `introspection`.
             * @example perennial
             */
            client_id?: string | null;
            /**
             * @description The client secret: required for `introspection`. It is stored encrypted and not returned. Absent keeps the current one.
             * @example s3cr3t
             */
            client_secret?: string | null;
            /** @description Creation time. Cannot change. */
            created_at?: components["schemas"]["Timestamp"];
            /** @description The endpoint that verifies tokens: required for `tokeninfo`; for `introspection`, if the discovery document has none. */
            endpoint?: components["schemas"]["Url"] | null;
            /** @description The provider's id. Cannot change. */
            id?: components["schemas"]["IdentityProviderId"];
            /** @description Issuer URL: exactly the `iss` claim. Must be https in live mode, and resolve to a public address. Cannot change. */
            issuer?: components["schemas"]["Url"];
            public_addresses_only?: components["schemas"]["Ignored"];
            /** @description How tokens are verified. */
            verify?: components["schemas"]["VerifyMethod"];
        };
        /**
         * @description The fields to change; others stay. Null clears a nullable field. A record that GET returned can be sent back.
         * @example {
         *       "status": "completed"
         *     }
         */
        UpdatePayment: {
            /** @description The amount. Must not have more decimals than the currency. */
            amount?: components["schemas"]["Amount"];
            /** @description Creation time. Cannot change. */
            created_at?: components["schemas"]["Timestamp"];
            /** @description ISO 4217 code; case-insensitive. A change keeps the number, which must not have more decimals than the new currency. */
            currency?: components["schemas"]["CurrencyCode"];
            /** @description The payment provider's id of the payment. Must be unique within the tenant. Cannot be a card number. */
            external_payment_id?: components["schemas"]["ExternalId"] | null;
            /**
             * @description Why the payment failed: a single line.
             * @example insufficient_funds
             */
            failure_reason?: string | null;
            /** @description The payment's id. Cannot change. */
            id?: components["schemas"]["PaymentId"];
            /** @description Pairs of strings to attach. */
            metadata?: components["schemas"]["MetadataChanges"] | null;
            /** @description When the payer paid, for example in imports. Must not be in the future. It has no effect on the subscription. If it is null, the service sets it when the payment settles. */
            paid_at?: components["schemas"]["Timestamp"] | null;
            period_ends_at?: components["schemas"]["Ignored"];
            period_starts_at?: components["schemas"]["Ignored"];
            /** @description The refunded amount. Only allowed with the status `partially_refunded`; must be more than 0 and less than the amount. In managed billing, that status requires it. */
            refunded_amount?: components["schemas"]["Amount"] | null;
            /** @description The status. */
            status?: components["schemas"]["PaymentStatusInput"];
            /** @description The subscription it pays for. */
            subscription_id?: components["schemas"]["SubscriptionId"];
            updated_at?: components["schemas"]["Ignored"];
        };
        /**
         * @description The fields to change; others stay. Null clears a nullable field. A record that GET returned can be sent back.
         * @example {
         *       "description": "Shop"
         *     }
         */
        UpdatePaymentAccount: {
            /**
             * @description An API key of the account. Required for `stripe`. Never returned.
             * @example rk_test_1042
             */
            api_key?: string | null;
            /** @description Creation time. Cannot change. */
            created_at?: components["schemas"]["Timestamp"];
            /**
             * @description Whether a customer whom no user matches gets a new one. Otherwise the notification waits until a user matches.
             * @example true
             */
            creates_users?: boolean;
            /** @description A note for operators: a single line. */
            description?: string | null;
            /**
             * @description The provider's id of the account or store. Notifications that name another one are refused.
             * @example acct_1042
             */
            external_account_id?: string | null;
            has_api_key?: components["schemas"]["Ignored"];
            has_secret?: components["schemas"]["Ignored"];
            /** @description The account's id. Cannot change. */
            id?: components["schemas"]["PaymentAccountId"];
            last_heard_at?: components["schemas"]["Ignored"];
            last_reconciled_at?: components["schemas"]["Ignored"];
            /** @description Whether payments are real. Must be `test` in a sandbox. Cannot change. */
            mode?: components["schemas"]["PaymentMode"];
            pending_commands?: components["schemas"]["Ignored"];
            /** @description The payment provider. Cannot change. */
            provider?: components["schemas"]["PaymentProvider"];
            updated_at?: components["schemas"]["Ignored"];
        };
        /**
         * @description The fields to change; others stay. Null clears a nullable field. A record that GET returned can be sent back.
         * @example {
         *       "most_popular": false,
         *       "price": 24.99
         *     }
         */
        UpdatePlan: {
            /** @description How often subscriptions renew. */
            billing_cycle?: components["schemas"]["BillingCycleInput"];
            /** @description Creation time. Cannot change. */
            created_at?: components["schemas"]["Timestamp"];
            /** @description ISO 4217 code; case-insensitive. Cannot change. */
            currency?: components["schemas"]["CurrencyCode"];
            /**
             * @description Description for customers; may have several lines.
             * @example For teams that ship every day.
             */
            description?: string | null;
            feature_list?: components["schemas"]["Ignored"];
            /**
             * @description The included features: a comma-separated list in one string, stored unchanged.
             * @example SSO, Audit log, Priority support
             */
            features?: string | null;
            /** @description Link to a page about the plan. Must be http or https, without user name and password. */
            href?: components["schemas"]["Url"] | null;
            /** @description The plan's id. Cannot change. */
            id?: components["schemas"]["PlanId"];
            /**
             * @description Whether new subscriptions are allowed.
             * @example true
             */
            is_active?: boolean;
            /** @description Pairs of strings to attach. */
            metadata?: components["schemas"]["MetadataChanges"] | null;
            /** @description Whether a pricing page should highlight the plan. */
            most_popular?: boolean;
            /**
             * @description Display name: a single line.
             * @example Pro
             */
            name?: string;
            /**
             * Format: int32
             * @description Number of nodes a subscriber may run; -1 is unlimited.
             * @example 25
             */
            node_quota?: number;
            /** @description Price of one billing cycle. Must not have more decimals than the currency. A change applies to new subscriptions only. */
            price?: components["schemas"]["Amount"];
            /** @description The product at the payment provider. */
            product_id?: components["schemas"]["ExternalId"] | null;
            /** @description The plan's name in URLs. Must be unique within the tenant, ignoring case. Cannot change. */
            slug?: components["schemas"]["Slug"];
            /**
             * Format: int32
             * @description Rank among the tenant's plans; higher tiers include more.
             * @example 2
             */
            tier?: number;
            /**
             * Format: int32
             * @description Length of the free trial in days; 0 is none. By default, a user gets a plan's trial once. A change applies to new subscriptions only.
             * @example 14
             */
            trial_days?: number;
            updated_at?: components["schemas"]["Ignored"];
            /**
             * @description The product's variants at the payment provider.
             * @example [
             *       "var_1",
             *       "var_2"
             *     ]
             */
            variants?: components["schemas"]["ExternalId"][];
        };
        /**
         * @description The role to set. A record that GET returned can be sent back.
         * @example {
         *       "role": "viewer"
         *     }
         */
        UpdateStaffMember: {
            all_tenants?: components["schemas"]["Ignored"];
            /** @description When the member was invited. Cannot change. */
            created_at?: components["schemas"]["Timestamp"];
            /** @description The email address. Cannot change. */
            email?: components["schemas"]["Email"] | null;
            /** @description The member's id. Cannot change. */
            id?: components["schemas"]["StaffId"];
            last_signed_in_at?: components["schemas"]["Ignored"];
            link?: components["schemas"]["Ignored"];
            /** @description What the member may see and do. */
            role?: components["schemas"]["StaffRole"];
            updated_at?: components["schemas"]["Ignored"];
        };
        /**
         * @description The fields to change; others stay. Null clears a nullable field. A record that GET returned can be sent back.
         * @example {
         *       "status": "cancelled"
         *     }
         */
        UpdateSubscription: {
            amount_due?: components["schemas"]["Ignored"];
            /** @description How often the subscription renews. */
            billing_cycle?: components["schemas"]["BillingCycleInput"];
            /** @description Creation time. Cannot change. */
            created_at?: components["schemas"]["Timestamp"];
            credit?: components["schemas"]["Ignored"];
            /** @description The currency of the price. Cannot change. */
            currency?: components["schemas"]["CurrencyCode"] | null;
            current_period_ends_at?: components["schemas"]["Ignored"];
            current_period_starts_at?: components["schemas"]["Ignored"];
            /** @description End of access; must not be before `starts_at`. */
            ends_at?: components["schemas"]["Timestamp"] | null;
            /** @description The payment provider's id of the subscription. Must be unique within the tenant. Cannot be a card number. */
            external_subscription_id?: components["schemas"]["ExternalId"] | null;
            /** @description The subscriber's id in your system, instead of `user_id`. Cannot change. */
            external_user_id?: components["schemas"]["ExternalId"] | null;
            /** @description Managed billing: gives free time up to this date, which must be later than the covered time. Ends lateness and forgives debt. */
            free_until?: components["schemas"]["Timestamp"] | null;
            /** @description The subscription's id. Cannot change. */
            id?: components["schemas"]["SubscriptionId"];
            /**
             * @description `false` suspends a subscription that gives access, `true` lifts the suspension. If the request also has a `status`, that decides about access. Otherwise `true` is rejected if the status gives no access.
             * @example true
             */
            is_active?: boolean;
            lifecycle?: components["schemas"]["Ignored"];
            /** @description Pairs of strings to attach. */
            metadata?: components["schemas"]["MetadataChanges"] | null;
            paid_until?: components["schemas"]["Ignored"];
            /** @description Price of one unit for one billing cycle, in the plan's currency. Null takes the plan's current price. In managed billing, a new price applies from the next period that is not paid yet. */
            price?: components["schemas"]["Amount"] | null;
            /**
             * @description How many units of the plan, such as seats.
             * @example 1
             */
            quantity?: number;
            /** @description The next renewal; must not be before `starts_at`. In managed billing, the service computes it and ignores this field; `free_until` gives free time. */
            renews_at?: components["schemas"]["Timestamp"] | null;
            /** @description Start of access. */
            starts_at?: components["schemas"]["Timestamp"];
            /** @description The status. */
            status?: components["schemas"]["SubscriptionStatusInput"];
            /** @description The plan. Must be active. */
            subscription_plan_id?: components["schemas"]["PlanId"];
            /** @description The plan's slug, instead of `subscription_plan_id`; case-insensitive. */
            subscription_plan_slug?: components["schemas"]["Slug"];
            suspended?: components["schemas"]["Ignored"];
            updated_at?: components["schemas"]["Ignored"];
            /** @description The subscriber. Cannot change. */
            user_id?: components["schemas"]["UserId"];
        };
        /**
         * @description The fields to change; others stay. Null clears a nullable field. A record that GET returned can be sent back.
         * @example {
         *       "external_user_id": "customer-1042"
         *     }
         */
        UpdateUser: {
            /** @description Creation time. Cannot change. */
            created_at?: components["schemas"]["Timestamp"];
            /** @description The user's email address; case-insensitive. */
            email?: components["schemas"]["Email"] | null;
            /** @description The user's id in your system. Must be unique within the tenant. Cannot be a card number. Events keep it, so it should not be an email address. */
            external_user_id?: components["schemas"]["ExternalId"] | null;
            /** @description The user's id. Cannot change. */
            id?: components["schemas"]["UserId"];
            /** @description Pairs of strings to attach. */
            metadata?: components["schemas"]["MetadataChanges"] | null;
            updated_at?: components["schemas"]["Ignored"];
        };
        /**
         * @description The fields to change; others stay. Null clears a nullable field. A record that GET returned can be sent back.
         * @example {
         *       "order": "subject"
         *     }
         */
        UpdateWebhookEndpoint: {
            /** @description Creation time. Cannot change. */
            created_at?: components["schemas"]["Timestamp"];
            /**
             * @description A note for operators: a single line.
             * @example Accounting
             */
            description?: string | null;
            disabled_at?: components["schemas"]["Ignored"];
            disabled_reason?: components["schemas"]["Ignored"];
            /**
             * @description The types of events to send; empty means all.
             * @example [
             *       "subscription.*"
             *     ]
             */
            event_types?: components["schemas"]["EventTypePattern"][];
            failing_since?: components["schemas"]["Ignored"];
            /** @description The endpoint's id. Cannot change. */
            id?: components["schemas"]["WebhookEndpointId"];
            /** @description The order of events. */
            order?: components["schemas"]["DeliveryOrder"];
            /** @description Whether the endpoint receives events. */
            status?: components["schemas"]["WebhookEndpointStatus"];
            updated_at?: components["schemas"]["Ignored"];
            /** @description Where events are sent. Must be https in live mode, and resolve to a public address. */
            url?: components["schemas"]["Url"];
        };
        /**
         * Format: uri
         * @description An http or https URL without user name and password.
         * @example https://example.com/plans/pro
         */
        Url: string;
        /**
         * @description A user.
         * @example {
         *       "created_at": "2026-11-15T09:30:00.000000Z",
         *       "email": "ada@example.com",
         *       "external_user_id": "customer-1042",
         *       "id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5",
         *       "metadata": {
         *         "order": "A-1042"
         *       },
         *       "updated_at": "2026-11-15T09:30:00.000000Z"
         *     }
         */
        User: {
            /**
             * Format: date-time
             * @description When the user was created.
             */
            created_at: string;
            /** @description Email address as it was entered; null for a user without one. */
            email: string | null;
            /** @description The user's id in your system. Can be sent wherever a request takes `user_id`. */
            external_user_id: string | null;
            /** @description Id of the user. */
            id: string;
            /** @description Pairs of strings that clients attached. */
            metadata: components["schemas"]["Metadata"];
            /**
             * Format: date-time
             * @description Time of the last change.
             */
            updated_at: string;
        };
        /** @description Everything that is stored about a user. `perennial user show --json` prints a part of it. */
        UserExport: components["schemas"]["ProviderReportJson"] & {
            /**
             * @description Oldest first.
             * @example [
             *       {
             *         "data": {},
             *         "kind": "user.created"
             *       }
             *     ]
             */
            events?: Record<string, never>[];
            /**
             * @description The user's identities at identity providers.
             * @example [
             *       {
             *         "issuer": "https://accounts.example.com",
             *         "subject": "248289761001"
             *       }
             *     ]
             */
            identities: Record<string, never>[];
            /**
             * @description With `deleted_at` of each.
             * @example [
             *       {
             *         "id": "pay_0192f0c1a2b37c4d8e5f60718293a4b5",
             *         "status": "completed"
             *       }
             *     ]
             */
            payments: Record<string, never>[];
            /**
             * @description With those that have ended and are not deleted yet.
             * @example [
             *       {
             *         "id": "ses_0192f0c1a2b37c4d8e5f60718293a4b5",
             *         "ip": "203.0.113.7"
             *       }
             *     ]
             */
            sessions: Record<string, never>[];
            /**
             * @description With the ledger and `deleted_at` of each.
             * @example [
             *       {
             *         "id": "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
             *         "status": "active"
             *       }
             *     ]
             */
            subscriptions: Record<string, never>[];
            user: components["schemas"]["User"];
        };
        /**
         * @description A user's id. A UUID without the prefix is accepted too.
         * @example usr_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        UserId: string;
        /**
         * @description One to 100 of these, separated by commas: ids of users.
         * @example usr_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        UserIdList: string;
        /** @description A page of a list. */
        UserPage: {
            /** @description The records of this page. */
            data: components["schemas"]["User"][];
            /**
             * @description Whether there are more pages.
             * @example false
             */
            has_more: boolean;
            /**
             * @description The `cursor` of the next page; null on the last one.
             * @example null
             */
            next_cursor: string | null;
        };
        /**
         * @description `jwt`: with the provider's published keys. The others are by a request to the provider.
         * @example tokeninfo
         * @enum {string}
         */
        VerifyMethod: "jwt" | "introspection" | "tokeninfo" | "userinfo";
        /** @description An attempt to deliver an event. */
        WebhookAttempt: {
            /**
             * Format: int32
             * @description 1 for the first attempt.
             * @example 1
             */
            attempt: number;
            /**
             * Format: date-time
             * @description When the attempt was made.
             * @example 2026-11-15T09:30:00.000000Z
             */
            created_at: string;
            /**
             * Format: int32
             * @description Milliseconds until the end of the response.
             * @example 42
             */
            duration_ms: number;
            /**
             * @description Why there was no response.
             * @example null
             */
            error: string | null;
            /**
             * @description The event, and the header `webhook-id`.
             * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            event_id: string;
            /**
             * @description Type of the event.
             * @example subscription.updated
             */
            event_type: string;
            /**
             * @description Whether the response had a 2xx status.
             * @example true
             */
            is_success: boolean;
            /**
             * Format: int32
             * @description The HTTP status; null without a response.
             * @example 200
             */
            status_code: number | null;
        };
        /** @description A page of a list. */
        WebhookAttemptPage: {
            /** @description The records of this page. */
            data: components["schemas"]["WebhookAttempt"][];
            /**
             * @description Whether there are more pages.
             * @example false
             */
            has_more: boolean;
            /**
             * @description The `cursor` of the next page; null on the last one.
             * @example null
             */
            next_cursor: string | null;
        };
        /** @description A webhook endpoint. */
        WebhookEndpoint: {
            /**
             * Format: date-time
             * @description Creation time.
             * @example 2026-11-15T09:30:00.000000Z
             */
            created_at: string;
            /**
             * @description A note for operators.
             * @example Accounting
             */
            description: string | null;
            /**
             * Format: date-time
             * @description When the endpoint was disabled.
             * @example null
             */
            disabled_at: string | null;
            /**
             * @description Why the endpoint was disabled: `request`, `gone` (it responded with 410) or `failures` (all attempts failed for
             *     five days).
             * @example null
             */
            disabled_reason: string | null;
            /**
             * @description The types of events to send; empty means all.
             * @example [
             *       "subscription.*"
             *     ]
             */
            event_types: components["schemas"]["EventTypePattern"][];
            /**
             * Format: date-time
             * @description Since when all attempts have failed; null after a success.
             * @example null
             */
            failing_since: string | null;
            /**
             * @description Id of the endpoint.
             * @example whe_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            id: string;
            /** @description The order of events. */
            order: components["schemas"]["DeliveryOrder"];
            /** @description Whether the endpoint receives events. */
            status: components["schemas"]["WebhookEndpointStatus"];
            /**
             * Format: date-time
             * @description Time of the last change.
             * @example 2026-11-15T09:30:00.000000Z
             */
            updated_at: string;
            /**
             * Format: uri
             * @description Where events are sent.
             * @example https://example.com/webhooks
             */
            url: string;
        };
        /**
         * @description A webhook endpoint's id. A UUID without the prefix is accepted too.
         * @example whe_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        WebhookEndpointId: string;
        /** @description A page of a list. */
        WebhookEndpointPage: {
            /** @description The records of this page. */
            data: components["schemas"]["WebhookEndpoint"][];
            /**
             * @description Whether there are more pages.
             * @example false
             */
            has_more: boolean;
            /**
             * @description The `cursor` of the next page; null on the last one.
             * @example null
             */
            next_cursor: string | null;
        };
        /**
         * @description Whether a webhook endpoint receives events.
         * @example enabled
         * @enum {string}
         */
        WebhookEndpointStatus: "enabled" | "disabled";
        /** @description The body of a request to a webhook endpoint. */
        WebhookEvent: {
            data: components["schemas"]["Event"];
            /**
             * Format: date-time
             * @description When the event occurred.
             * @example 2026-11-15T09:30:00.000000Z
             */
            timestamp: string;
            /**
             * @description The type of the event.
             * @example subscription.updated
             */
            type: string;
        };
        /** @description A replay of events. */
        WebhookReplay: {
            /**
             * Format: int64
             * @description Events after this position of the log are sent.
             * @example 1041
             */
            after_position: number;
            /**
             * Format: date-time
             * @description Creation time.
             * @example 2026-11-15T09:30:00.000000Z
             */
            created_at: string;
            /**
             * @description The types of events to send; empty means those of the endpoint.
             * @example [
             *       "subscription.*"
             *     ]
             */
            event_types: components["schemas"]["EventTypePattern"][];
            /**
             * @description Id of the replay.
             * @example whr_0192f0c1a2b37c4d8e5f60718293a4b5
             */
            id: string;
            /**
             * Format: int64
             * @description The last position to send.
             * @example 2042
             */
            last_position: number;
            /**
             * @description Whether only events are sent whose attempts were given up.
             * @example false
             */
            only_failed: boolean;
        };
        /** @description The secret of a webhook endpoint. */
        WebhookSecret: {
            /**
             * Format: date-time
             * @description Until when requests are also signed with the previous secret.
             * @example null
             */
            previous_secret_expires_at: string | null;
            /**
             * @description Verifies the header `webhook-signature`.
             * @example whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
             */
            secret: string;
        };
    };
    responses: {
        /**
         * @description Invalid request: the body (`malformed_json`), a query parameter (`invalid_parameter`,
         *     `invalid_cursor`) or a header (`invalid_idempotency_key`, `invalid_request`).
         */
        BadRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "malformed_json",
                 *       "detail": "the body is not a JSON object: trailing comma at line 1 column 16",
                 *       "instance": "/subscription-plans",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 400,
                 *       "title": "Malformed JSON",
                 *       "type": "https://billing.example.com/docs/errors/malformed_json"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The client. */
        Client: {
            headers: {
                ETag: components["headers"]["ETag"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Client"];
            };
        };
        /** @description The client is disabled (`client_disabled`). */
        ClientDisabled: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "client_disabled",
                 *       "detail": "client cli_0192f0c1a2b37c4d8e5f60718293a4b5 is disabled and cannot be changed",
                 *       "instance": "/clients/cli_0192f0c1a2b37c4d8e5f60718293a4b5/rotate",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 409,
                 *       "title": "Client disabled",
                 *       "type": "https://billing.example.com/docs/errors/client_disabled"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description There is no such client (`client_not_found`). */
        ClientNotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "client_not_found",
                 *       "detail": "no client has this id: cli_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "instance": "/clients/cli_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 404,
                 *       "title": "Client not found",
                 *       "type": "https://billing.example.com/docs/errors/client_not_found"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The current entitlements of the user. */
        Entitlements: {
            headers: {
                ETag: components["headers"]["ETag"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Entitlements"];
            };
        };
        /**
         * @description Not allowed for this client (`insufficient_scope`, `secret_client_in_browser`, `origin_not_allowed`,
         *     `address_not_allowed`), for this user (`not_for_users`, `not_your_account`, `reauthentication_required`,
         *     `email_mismatch`, `email_unverified`) or for a page of another site (`cross_site_request`).
         */
        Forbidden: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "insufficient_scope",
                 *       "detail": "requires the scope plans:write, which this client does not have",
                 *       "instance": "/subscription-plans",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 403,
                 *       "title": "Insufficient scope",
                 *       "type": "https://billing.example.com/docs/errors/insufficient_scope"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description A request with the same key is in progress (`idempotency_in_progress`). */
        IdempotencyInProgress: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "idempotency_in_progress",
                 *       "detail": "a request with this Idempotency-Key is still running; retry later",
                 *       "instance": "/subscription-payments",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 409,
                 *       "title": "Request in progress",
                 *       "type": "https://billing.example.com/docs/errors/idempotency_in_progress"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The provider. */
        IdentityProvider: {
            headers: {
                ETag: components["headers"]["ETag"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["IdentityProvider"];
            };
        };
        /** @description There is no such provider (`identity_provider_not_found`). */
        IdentityProviderNotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "identity_provider_not_found",
                 *       "detail": "no identity provider has this id: idp_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "instance": "/identity-providers/idp_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 404,
                 *       "title": "Identity provider not found",
                 *       "type": "https://billing.example.com/docs/errors/identity_provider_not_found"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Internal error (`internal`). */
        Internal: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "internal",
                 *       "detail": "the service failed unexpectedly; the operator can find the cause by the request id",
                 *       "instance": "/subscription-plans",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 500,
                 *       "title": "Internal error",
                 *       "type": "https://billing.example.com/docs/errors/internal"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Invalid request (`invalid_request`). */
        InvalidRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "invalid_request",
                 *       "detail": "an HTTP/1.1 request must have exactly one Host header",
                 *       "instance": "/subscription-plans",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 400,
                 *       "title": "Invalid HTTP request",
                 *       "type": "https://billing.example.com/docs/errors/invalid_request"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The header Host names a host that this service does not serve (`misdirected_request`). */
        MisdirectedRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "misdirected_request",
                 *       "detail": "the Host header does not name this service; use its public URL, or have the operator add the host to PERENNIAL_ALLOWED_HOSTS",
                 *       "instance": "/subscription-plans",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 421,
                 *       "title": "Unknown host",
                 *       "type": "https://billing.example.com/docs/errors/misdirected_request"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Deleted. */
        NoContent: {
            headers: {
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description The response that you have is current (If-None-Match). */
        NotModified: {
            headers: {
                ETag: components["headers"]["ETag"];
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description The body is larger than 64 KiB (`payload_too_large`). */
        PayloadTooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "payload_too_large",
                 *       "detail": "the body must have at most 65536 bytes",
                 *       "instance": "/subscription-plans",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 413,
                 *       "title": "Payload too large",
                 *       "type": "https://billing.example.com/docs/errors/payload_too_large"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The payment. */
        Payment: {
            headers: {
                ETag: components["headers"]["ETag"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Payment"];
            };
        };
        /** @description The account. */
        PaymentAccount: {
            headers: {
                ETag: components["headers"]["ETag"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["PaymentAccount"];
            };
        };
        /** @description There is no such account (`payment_account_not_found`). */
        PaymentAccountNotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "payment_account_not_found",
                 *       "detail": "no payment account has this id: pac_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "instance": "/payment-accounts/pac_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 404,
                 *       "title": "Payment account not found",
                 *       "type": "https://billing.example.com/docs/errors/payment_account_not_found"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description No payment has this id (`payment_not_found`). */
        PaymentNotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "payment_not_found",
                 *       "detail": "no payment has this id: pay_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "instance": "/subscription-payments/pay_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 404,
                 *       "title": "Payment not found",
                 *       "type": "https://billing.example.com/docs/errors/payment_not_found"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The payment provider rejected the request (`payment_provider_failed`). */
        PaymentProviderFailed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "payment_provider_failed",
                 *       "detail": "the payment provider did not fulfill the request: the API rejects the request (status 400)",
                 *       "instance": "/checkouts",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 502,
                 *       "title": "Payment provider failed",
                 *       "type": "https://billing.example.com/docs/errors/payment_provider_failed"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The plan. */
        Plan: {
            headers: {
                ETag: components["headers"]["ETag"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Plan"];
            };
        };
        /** @description There is no such plan (`plan_not_found`). */
        PlanNotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "plan_not_found",
                 *       "detail": "no plan has this slug: premium",
                 *       "instance": "/subscription-plans/premium",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 404,
                 *       "title": "Plan not found",
                 *       "type": "https://billing.example.com/docs/errors/plan_not_found"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The record no longer has the ETag sent in If-Match (`precondition_failed`). */
        PreconditionFailed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "precondition_failed",
                 *       "detail": "the record has changed since the ETag in If-Match was read; read it again",
                 *       "instance": "/subscription-plans/pro",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 412,
                 *       "title": "Precondition failed",
                 *       "type": "https://billing.example.com/docs/errors/precondition_failed"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /**
         * @description Too many requests from this client or IP address (`rate_limited`). See the headers RateLimit and
         *     Retry-After.
         */
        RateLimited: {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "rate_limited",
                 *       "detail": "more than 1000 requests per second from this client; retry after the seconds in Retry-After",
                 *       "instance": "/subscription-plans",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 429,
                 *       "title": "Rate limit exceeded",
                 *       "type": "https://billing.example.com/docs/errors/rate_limited"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body did not arrive in time (`request_timeout`). */
        RequestTimeout: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "request_timeout",
                 *       "detail": "the body must arrive within 10 seconds",
                 *       "instance": "/subscription-plans",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 408,
                 *       "title": "Request timeout",
                 *       "type": "https://billing.example.com/docs/errors/request_timeout"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The number of revoked sessions. */
        Revoked: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Revoked"];
            };
        };
        /** @description Service unavailable (`unavailable`) or overloaded (`overloaded`). See the header Retry-After. */
        ServiceUnavailable: {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "unavailable",
                 *       "detail": "the database is unavailable; retry later",
                 *       "instance": "/subscriptions",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 503,
                 *       "title": "Service unavailable",
                 *       "type": "https://billing.example.com/docs/errors/unavailable"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The member is the caller, or a member of all tenants (`staff_change_not_allowed`). */
        StaffChangeNotAllowed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "staff_change_not_allowed",
                 *       "detail": "you cannot change or remove yourself; ask another admin",
                 *       "instance": "/staff/stf_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 409,
                 *       "title": "Staff change not allowed",
                 *       "type": "https://billing.example.com/docs/errors/staff_change_not_allowed"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description There is no such staff member (`staff_member_not_found`). */
        StaffMemberNotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "staff_member_not_found",
                 *       "detail": "no staff member has this id: stf_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "instance": "/staff/stf_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 404,
                 *       "title": "Staff member not found",
                 *       "type": "https://billing.example.com/docs/errors/staff_member_not_found"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The subscription. */
        Subscription: {
            headers: {
                ETag: components["headers"]["ETag"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Subscription"];
            };
        };
        /** @description No subscription has this id (`subscription_not_found`). */
        SubscriptionNotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "subscription_not_found",
                 *       "detail": "no subscription has this id: sub_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "instance": "/subscriptions/sub_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 404,
                 *       "title": "Subscription not found",
                 *       "type": "https://billing.example.com/docs/errors/subscription_not_found"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /**
         * @description Invalid client (`invalid_client`), access token (`invalid_token`), refresh token (`invalid_grant`) or cookie of a staff
         *     member (`invalid_staff_session`).
         */
        Unauthorized: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "invalid_client",
                 *       "detail": "the client-id header must be sent once, with the key of an enabled client",
                 *       "instance": "/subscription-plans",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 401,
                 *       "title": "Invalid client",
                 *       "type": "https://billing.example.com/docs/errors/invalid_client"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body has fields, but this endpoint takes none (`unknown_field`). */
        UnknownField: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "unknown_field",
                 *       "detail": "/variant: is not a field of this request; did you mean \"variants\"?",
                 *       "errors": [
                 *         {
                 *           "code": "unknown_field",
                 *           "message": "is not a field of this request; did you mean \"variants\"?",
                 *           "pointer": "/variant"
                 *         }
                 *       ],
                 *       "instance": "/subscription-plans",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 422,
                 *       "title": "Unknown field",
                 *       "type": "https://billing.example.com/docs/errors/unknown_field"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /**
         * @description Some fields are invalid (`validation_failed`, or the code of the error if there is only one; `errors` lists
         *     all of them), or the Idempotency-Key was used with another body (`idempotency_key_reused`).
         */
        UnprocessableEntity: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "validation_failed",
                 *       "detail": "3 fields are invalid; see errors",
                 *       "errors": [
                 *         {
                 *           "code": "invalid_format",
                 *           "message": "\"free\" is not a decimal number",
                 *           "pointer": "/price"
                 *         },
                 *         {
                 *           "code": "required",
                 *           "message": "is required",
                 *           "pointer": "/name"
                 *         },
                 *         {
                 *           "code": "out_of_range",
                 *           "message": "must be from 0 to 1000",
                 *           "pointer": "/tier"
                 *         }
                 *       ],
                 *       "instance": "/subscription-plans",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 422,
                 *       "title": "Validation failed",
                 *       "type": "https://billing.example.com/docs/errors/validation_failed"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The Content-Type is not `application/json` (`unsupported_media_type`). */
        UnsupportedMediaType: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "unsupported_media_type",
                 *       "detail": "send the header Content-Type: application/json and no content encoding",
                 *       "instance": "/subscription-plans",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 415,
                 *       "title": "Unsupported media type",
                 *       "type": "https://billing.example.com/docs/errors/unsupported_media_type"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The user. */
        User: {
            headers: {
                ETag: components["headers"]["ETag"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["User"];
            };
        };
        /** @description There is no such user (`user_not_found`). */
        UserNotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "user_not_found",
                 *       "detail": "no user has the id usr_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "instance": "/users/usr_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 404,
                 *       "title": "User not found",
                 *       "type": "https://billing.example.com/docs/errors/user_not_found"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The endpoint. */
        WebhookEndpoint: {
            headers: {
                ETag: components["headers"]["ETag"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["WebhookEndpoint"];
            };
        };
        /** @description There is no such endpoint (`webhook_endpoint_not_found`). */
        WebhookEndpointNotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": "webhook_endpoint_not_found",
                 *       "detail": "no webhook endpoint has this id: whe_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "instance": "/webhook-endpoints/whe_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *       "status": 404,
                 *       "title": "Webhook endpoint not found",
                 *       "type": "https://billing.example.com/docs/errors/webhook_endpoint_not_found"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The endpoint does not want events any more. It is disabled. */
        WebhookGone: {
            headers: {
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description The endpoint is overloaded. Requests pause for the time in `Retry-After`, up to an hour. */
        WebhookPaused: {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description The endpoint has received the event. A redirect, another status or no response within 15 seconds is a failure, and the event is sent again. */
        WebhookReceived: {
            headers: {
                [name: string]: unknown;
            };
            content?: never;
        };
    };
    parameters: {
        /** @description Only subscriptions with this billing cycle. */
        BillingCycle: components["schemas"]["BillingCycleInput"];
        /** @description The client's id. */
        ClientId: components["schemas"]["ClientId"];
        /** @description Only after this time. */
        CreatedAtGt: components["schemas"]["Timestamp"];
        /** @description Only at or after this time. */
        CreatedAtGte: components["schemas"]["Timestamp"];
        /** @description Only before this time. */
        CreatedAtLt: components["schemas"]["Timestamp"];
        /** @description Only at or before this time. */
        CreatedAtLte: components["schemas"]["Timestamp"];
        /** @description Only this currency (ISO 4217). Default: each currency by itself. */
        Currency: components["schemas"]["CurrencyCode"];
        /** @description The `next_cursor` of the previous page. Filters and sort order must be the same. */
        Cursor: string;
        /**
         * @description The first day, in UTC. Default: the first day of the month eleven months before `to`.
         * @example 2026-11-15
         */
        From: string;
        /**
         * @description Identifies the request. A retry with the same key within 24 hours returns the same response (with
         *     `Idempotency-Replayed: true`) and creates nothing.
         * @example 5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11
         */
        IdempotencyKey: string;
        /** @description The provider's id. */
        IdentityProviderId: components["schemas"]["IdentityProviderId"];
        /**
         * @description The ETag that the record must have, else the request fails with 412.
         * @example *
         */
        IfMatch: string;
        /**
         * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
         * @example "3q2-7w"
         */
        IfNoneMatch: string;
        /**
         * @description The length of the intervals, in UTC. A week starts on Monday. Default: `month`.
         * @example month
         */
        Interval: "day" | "week" | "month" | "quarter" | "year";
        /**
         * @description The maximum number of records on a page. Default: 50.
         * @example 50
         */
        Limit: number;
        /** @description The account's id. */
        PaymentAccountId: components["schemas"]["PaymentAccountId"];
        /** @description The payment's id. */
        PaymentId: components["schemas"]["PaymentId"];
        /** @description The notification's id. */
        PaymentNotificationId: components["schemas"]["PaymentNotificationId"];
        /** @description Only plans with this slug, also deleted ones. */
        Plan: components["schemas"]["Slug"];
        /** @description The plan's slug; case-insensitive. */
        Slug: components["schemas"]["Slug"];
        /**
         * @description `created_at` (default) or `-created_at` for newest first.
         * @example -created_at
         */
        Sort: "created_at" | "-created_at";
        /** @description The staff member's id. */
        StaffId: components["schemas"]["StaffId"];
        /** @description The subscription's id. */
        SubscriptionId: components["schemas"]["SubscriptionId"];
        /**
         * @description The last day, in UTC. Default: today.
         * @example 2026-11-15
         */
        To: string;
        /** @description The user's id. */
        UserId: components["schemas"]["UserId"];
        /** @description The endpoint's id. */
        WebhookEndpointId: components["schemas"]["WebhookEndpointId"];
        /**
         * @description The event's id, the same in each attempt.
         * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
         */
        WebhookId: string;
        /**
         * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
         * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
         */
        WebhookSignature: string;
        /**
         * @description When the attempt was made, in Unix seconds.
         * @example 1763199000
         */
        WebhookTimestamp: number;
        /**
         * @description The user's IP address, sent by a secret client for its user. It is stored with the session, and limits of
         *     sign-ins apply to it. From a publishable client, it is ignored. Trusted proxies append their clients.
         * @example 203.0.113.7
         */
        XForwardedFor: string;
    };
    requestBodies: {
        /** @description The event. [Event types](/docs/reference/events) has an example of each type. */
        WebhookEvent: {
            content: {
                /**
                 * @example {
                 *       "data": {
                 *         "actor": {
                 *           "id": "cli_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *           "type": "client"
                 *         },
                 *         "data": {
                 *           "status": "active"
                 *         },
                 *         "id": "evt_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *         "occurred_at": "2026-11-15T09:30:00.000000Z",
                 *         "position": 1042,
                 *         "previous": {
                 *           "status": "on_trial"
                 *         },
                 *         "recorded_at": "2026-11-15T09:30:00.050000Z",
                 *         "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *         "subject_id": "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
                 *         "type": "subscription.updated"
                 *       },
                 *       "timestamp": "2026-11-15T09:30:00.000000Z",
                 *       "type": "subscription.updated"
                 *     }
                 */
                "application/json": components["schemas"]["WebhookEvent"];
            };
        };
    };
    headers: {
        /** @description `no-store`, or how long the response may be cached. */
        "Cache-Control": string;
        /** @description The entity tag of the response. */
        ETag: string;
        /** @description `true` if this is the stored response to an earlier request with the same Idempotency-Key. */
        "Idempotency-Replayed": string;
        /** @description The path of the created record. */
        Location: string;
        /** @description The requests left (`r`) and the seconds until the whole quota is available (`t`). */
        RateLimit: string;
        /** @description The quota (`q`) and its window in seconds (`w`). */
        "RateLimit-Policy": string;
        /** @description The number of seconds to wait before a retry. */
        "Retry-After": number;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    readSigningKeys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The public keys. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JwkSet"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readOpenidConfiguration: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The configuration. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Configuration"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deleteMyAccount: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the signed-in user. */
                auth_id: components["schemas"]["UserId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: components["responses"]["NoContent"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    refreshToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The refresh token. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["RefreshToken"];
            };
        };
        responses: {
            /** @description The session's next tokens. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tokens"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    signIn: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The user's IP address, sent by a secret client for its user. It is stored with the session, and limits of
                 *     sign-ins apply to it. From a publishable client, it is ignored. Trusted proxies append their clients.
                 * @example 203.0.113.7
                 */
                "x-forwarded-for"?: components["parameters"]["XForwardedFor"];
            };
            path?: never;
            cookie?: never;
        };
        /** @description The identity provider's token and the user's email address. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["Credentials"];
            };
        };
        responses: {
            /** @description The tokens of a new session. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tokens"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description No account exists for this identity (`account_not_found`). */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    signUp: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The user's IP address, sent by a secret client for its user. It is stored with the session, and limits of
                 *     sign-ins apply to it. From a publishable client, it is ignored. Trusted proxies append their clients.
                 * @example 203.0.113.7
                 */
                "x-forwarded-for"?: components["parameters"]["XForwardedFor"];
            };
            path?: never;
            cookie?: never;
        };
        /** @description The identity provider's token and the user's email address. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["Credentials"];
            };
        };
        responses: {
            /** @description The tokens of the first session. */
            201: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tokens"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            /** @description The user already has an account (`account_exists`), or another account has the email address (`email_in_use`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listSessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The sessions. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sessions"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    signOut: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Revoked"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnknownField"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    revokeAllSessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Revoked"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnknownField"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    revokeOtherSessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Revoked"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnknownField"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    revokeSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The session's id. */
                id: components["schemas"]["SessionId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The session was revoked. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description The user has no active session with this id (`session_not_found`). */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    checkSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The user is signed in. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoggedIn"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnknownField"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createBillingPortalSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Whose portal is opened. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateBillingPortalSession"];
            };
        };
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BillingPortalSession"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            502: components["responses"]["PaymentProviderFailed"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createCheckout: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description Identifies the request. A retry with the same key within 24 hours returns the same response (with
                 *     `Idempotency-Replayed: true`) and creates nothing.
                 * @example 5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11
                 */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        /** @description What is bought, and by whom. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateCheckout"];
            };
        };
        responses: {
            /** @description The checkout. */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Checkout"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            502: components["responses"]["PaymentProviderFailed"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listClients: {
        parameters: {
            query?: {
                /**
                 * @description The maximum number of records on a page. Default: 50.
                 * @example 50
                 */
                limit?: components["parameters"]["Limit"];
                /** @description The `next_cursor` of the previous page. Filters and sort order must be the same. */
                cursor?: components["parameters"]["Cursor"];
                /**
                 * @description `created_at` (default) or `-created_at` for newest first.
                 * @example -created_at
                 */
                sort?: components["parameters"]["Sort"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of clients. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClientPage"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createClient: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description Identifies the request. A retry with the same key within 24 hours returns the same response (with
                 *     `Idempotency-Replayed: true`) and creates nothing.
                 * @example 5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11
                 */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        /** @description The client to create. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateClient"];
            };
        };
        responses: {
            /** @description The created client, with its API key. */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedClient"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["IdempotencyInProgress"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readClient: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path: {
                /** @description The client's id. */
                id: components["parameters"]["ClientId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Client"];
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["ClientNotFound"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    updateClient: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag that the record must have, else the request fails with 412.
                 * @example *
                 */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The client's id. */
                id: components["parameters"]["ClientId"];
            };
            cookie?: never;
        };
        /** @description The fields to change. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateClient"];
            };
        };
        responses: {
            200: components["responses"]["Client"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["ClientNotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["ClientDisabled"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    disableClient: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag that the record must have, else the request fails with 412.
                 * @example *
                 */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The client's id. */
                id: components["parameters"]["ClientId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Disabled. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["ClientNotFound"];
            /** @description The client is disabled already (`client_disabled`), or it is the calling client (`own_client`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            412: components["responses"]["PreconditionFailed"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    rotateClient: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The client's id. */
                id: components["parameters"]["ClientId"];
            };
            cookie?: never;
        };
        /** @description How long the previous key works. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["RotateApiKey"];
            };
        };
        responses: {
            /** @description The new API key. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RotatedApiKey"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["ClientNotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["ClientDisabled"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    completeConsoleSignIn: {
        parameters: {
            query?: {
                /**
                 * @description The authorization code.
                 * @example SplxlOBeZQQYbYS6WxSbIA
                 */
                code?: string;
                /**
                 * @description The state of the sign-in.
                 * @example af0ifjsldkj
                 */
                state?: string;
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description To the console. */
            303: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["InvalidRequest"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readConsoleSession: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConsoleSession"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    updateConsoleSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The tenant to work with. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateConsoleSession"];
            };
        };
        responses: {
            /** @description The session. The header `Set-Cookie` has its new cookie. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConsoleSession"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createConsoleSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The link to sign in with. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateConsoleSession"];
            };
        };
        responses: {
            /** @description The session. The header `Set-Cookie` has its cookie. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConsoleSession"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            /** @description The link is unknown, used or expired (`invalid_sign_in_link`). */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description A page of another site sent the request (`cross_site_request`). */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deleteConsoleSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Signed out. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnknownField"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listSignInOptions: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The options. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignInOptions"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["InvalidRequest"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    startConsoleSignIn: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path: {
                /**
                 * @description An id of `GET /console/sign-in`.
                 * @example openid
                 */
                provider: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description To the provider, or to the console if the provider is unavailable. */
            303: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["InvalidRequest"];
            /** @description There is no such provider (`not_found`). */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readOwnEntitlements: {
        parameters: {
            query?: {
                /** @description The user's id in your system. With an access token, it must be that user's. */
                external_user_id?: components["schemas"]["ExternalId"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Entitlements"];
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["UserNotFound"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readEntitlements: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path: {
                /** @description The user's id. */
                user_id: components["schemas"]["UserId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Entitlements"];
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["UserNotFound"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readEvents: {
        parameters: {
            query?: {
                /**
                 * @description Continue after this cursor: the `next_cursor` of an earlier page of the same order, with any filters, or `now` for new events only. By default, the list starts with the oldest event.
                 * @example now
                 */
                after?: string;
                /**
                 * @description `position` (default) or `-position`, which starts with the newest event and is not for streams or `wait`.
                 * @example -position
                 */
                sort?: "position" | "-position";
                /** @description Only events of these types. */
                types?: components["schemas"]["EventTypePatternList"];
                /**
                 * @description Only events about this record.
                 * @example sub_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                subject_id?: string;
                /**
                 * @description How long to wait for an event if there is none, in seconds.
                 * @example 25
                 */
                wait?: number;
                /**
                 * @description The maximum number of records on a page. Default: 50.
                 * @example 50
                 */
                limit?: components["parameters"]["Limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of events, or a stream. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventPage"];
                    /**
                     * @example id: 6Xv3…
                     *     event: plan.created
                     *     data: {…}
                     */
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description The log was restored after the cursor was issued (`cursor_from_another_history`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Events after the cursor were removed (`events_removed`). */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readEvent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The event's id. */
                id: components["schemas"]["EventId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The event. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Event"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no such event, or it was removed at the end of its retention (`event_not_found`). */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readHealth: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The results, also if checks failed. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listIdentityProviders: {
        parameters: {
            query?: {
                /**
                 * @description The maximum number of records on a page. Default: 50.
                 * @example 50
                 */
                limit?: components["parameters"]["Limit"];
                /** @description The `next_cursor` of the previous page. Filters and sort order must be the same. */
                cursor?: components["parameters"]["Cursor"];
                /**
                 * @description `created_at` (default) or `-created_at` for newest first.
                 * @example -created_at
                 */
                sort?: components["parameters"]["Sort"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of providers. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IdentityProviderPage"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createIdentityProvider: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description Identifies the request. A retry with the same key within 24 hours returns the same response (with
                 *     `Idempotency-Replayed: true`) and creates nothing.
                 * @example 5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11
                 */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        /** @description The provider to add. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateIdentityProvider"];
            };
        };
        responses: {
            /** @description The provider. */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IdentityProvider"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            /** @description The tenant has such a provider (`duplicate_provider`), or a request with the same key is in progress (`idempotency_in_progress`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readIdentityProvider: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path: {
                /** @description The provider's id. */
                id: components["parameters"]["IdentityProviderId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["IdentityProvider"];
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["IdentityProviderNotFound"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    updateIdentityProvider: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag that the record must have, else the request fails with 412.
                 * @example *
                 */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The provider's id. */
                id: components["parameters"]["IdentityProviderId"];
            };
            cookie?: never;
        };
        /** @description The fields to change. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateIdentityProvider"];
            };
        };
        responses: {
            200: components["responses"]["IdentityProvider"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["IdentityProviderNotFound"];
            408: components["responses"]["RequestTimeout"];
            /** @description The tenant has another provider of tokens that do not name their issuer (`duplicate_provider`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deleteIdentityProvider: {
        parameters: {
            query: {
                /**
                 * @description Whether to end the sessions of users who signed in with this provider.
                 * @example true
                 */
                end_sessions: boolean;
            };
            header?: {
                /**
                 * @description The ETag that the record must have, else the request fails with 412.
                 * @example *
                 */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The provider's id. */
                id: components["parameters"]["IdentityProviderId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["IdentityProviderNotFound"];
            412: components["responses"]["PreconditionFailed"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listPaymentAccounts: {
        parameters: {
            query?: {
                /**
                 * @description The maximum number of records on a page. Default: 50.
                 * @example 50
                 */
                limit?: components["parameters"]["Limit"];
                /** @description The `next_cursor` of the previous page. Filters and sort order must be the same. */
                cursor?: components["parameters"]["Cursor"];
                /**
                 * @description `created_at` (default) or `-created_at` for newest first.
                 * @example -created_at
                 */
                sort?: components["parameters"]["Sort"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of accounts. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PaymentAccountPage"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createPaymentAccount: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description Identifies the request. A retry with the same key within 24 hours returns the same response (with
                 *     `Idempotency-Replayed: true`) and creates nothing.
                 * @example 5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11
                 */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        /** @description The account to create. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreatePaymentAccount"];
            };
        };
        responses: {
            /** @description The created account. */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PaymentAccount"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["IdempotencyInProgress"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readPaymentAccount: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path: {
                /** @description The account's id. */
                id: components["parameters"]["PaymentAccountId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["PaymentAccount"];
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["PaymentAccountNotFound"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    updatePaymentAccount: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag that the record must have, else the request fails with 412.
                 * @example *
                 */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The account's id. */
                id: components["parameters"]["PaymentAccountId"];
            };
            cookie?: never;
        };
        /** @description The fields to change. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdatePaymentAccount"];
            };
        };
        responses: {
            200: components["responses"]["PaymentAccount"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["PaymentAccountNotFound"];
            408: components["responses"]["RequestTimeout"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deletePaymentAccount: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag that the record must have, else the request fails with 412.
                 * @example *
                 */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The account's id. */
                id: components["parameters"]["PaymentAccountId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: components["responses"]["NoContent"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["PaymentAccountNotFound"];
            412: components["responses"]["PreconditionFailed"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    rotatePaymentSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The account's id. */
                id: components["parameters"]["PaymentAccountId"];
            };
            cookie?: never;
        };
        /** @description The new secret. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["RotatePaymentSecret"];
            };
        };
        responses: {
            /** @description The new secret, if it was generated. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PaymentSecret"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["PaymentAccountNotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listPaymentNotifications: {
        parameters: {
            query?: {
                /**
                 * @description The maximum number of records on a page. Default: 50.
                 * @example 50
                 */
                limit?: components["parameters"]["Limit"];
                /** @description The `next_cursor` of the previous page. Filters and sort order must be the same. */
                cursor?: components["parameters"]["Cursor"];
                /**
                 * @description `created_at` (default) or `-created_at` for newest first.
                 * @example -created_at
                 */
                sort?: components["parameters"]["Sort"];
                /** @description Only notifications to these accounts. */
                payment_account_id?: components["schemas"]["PaymentAccountIdList"];
                /** @description Only notifications in these states. */
                state?: components["schemas"]["PaymentNotificationStateList"];
                /**
                 * @description Only notifications of these types of the provider.
                 * @example invoice.paid
                 */
                type?: components["schemas"]["ExternalIdList"];
                /**
                 * @description Only notifications about the provider's objects with these ids.
                 * @example sub_1042
                 */
                object_id?: components["schemas"]["ExternalIdList"];
                /** @description Only at or after this time. */
                "created_at[gte]"?: components["parameters"]["CreatedAtGte"];
                /** @description Only after this time. */
                "created_at[gt]"?: components["parameters"]["CreatedAtGt"];
                /** @description Only before this time. */
                "created_at[lt]"?: components["parameters"]["CreatedAtLt"];
                /** @description Only at or before this time. */
                "created_at[lte]"?: components["parameters"]["CreatedAtLte"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of notifications. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PaymentNotificationPage"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readPaymentNotification: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path: {
                /** @description The notification's id. */
                id: components["parameters"]["PaymentNotificationId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The notification. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PaymentNotification"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no such notification (`payment_notification_not_found`). */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    receivePaymentNotification: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The account's id. */
                id: components["parameters"]["PaymentAccountId"];
            };
            cookie?: never;
        };
        /** @description The provider's event, up to 1 MiB. */
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "id": "evt_1042",
                 *       "object": "event",
                 *       "type": "invoice.paid"
                 *     }
                 */
                "application/json": unknown;
            };
        };
        responses: {
            /** @description The notification is stored. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReceivedNotification"];
                };
            };
            400: components["responses"]["InvalidRequest"];
            /** @description The signature is missing, invalid or too old (`invalid_signature`). */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            404: components["responses"]["PaymentAccountNotFound"];
            408: components["responses"]["RequestTimeout"];
            /** @description The body is larger than 1 MiB (`payload_too_large`). */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    replayPaymentNotification: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The notification's id. */
                id: components["parameters"]["PaymentNotificationId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The notification. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PaymentNotification"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no such notification (`payment_notification_not_found`), or its account was deleted (`payment_account_not_found`). */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnknownField"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listPayments: {
        parameters: {
            query?: {
                /**
                 * @description The maximum number of records on a page. Default: 50.
                 * @example 50
                 */
                limit?: components["parameters"]["Limit"];
                /** @description The `next_cursor` of the previous page. Filters and sort order must be the same. */
                cursor?: components["parameters"]["Cursor"];
                /**
                 * @description `created_at` (default) or `paid_at`; with a leading `-` in descending order. With a range of `paid_at`, the default is `paid_at`, and no other field is allowed.
                 * @example -created_at
                 */
                sort?: "created_at" | "-created_at" | "paid_at" | "-paid_at";
                /** @description Only payments for these subscriptions. */
                subscription_id?: components["schemas"]["SubscriptionIdList"];
                /** @description Only payments for subscriptions of these users. */
                user_id?: components["schemas"]["UserIdList"];
                /**
                 * @description Only payments for subscriptions of the users with these ids in your system.
                 * @example customer-1042
                 */
                external_user_id?: components["schemas"]["ExternalIdList"];
                /** @description Only payments with these statuses. */
                status?: components["schemas"]["PaymentStatusList"];
                /**
                 * @description Only the payments with these ids at the payment provider.
                 * @example pi_42
                 */
                external_payment_id?: components["schemas"]["ExternalIdList"];
                /** @description Only payments in these currencies. */
                currency?: components["schemas"]["CurrencyCodeList"];
                /** @description Only at or after this time. */
                "created_at[gte]"?: components["parameters"]["CreatedAtGte"];
                /** @description Only after this time. */
                "created_at[gt]"?: components["parameters"]["CreatedAtGt"];
                /** @description Only before this time. */
                "created_at[lt]"?: components["parameters"]["CreatedAtLt"];
                /** @description Only at or before this time. */
                "created_at[lte]"?: components["parameters"]["CreatedAtLte"];
                /** @description Only at or after this time. */
                "paid_at[gte]"?: components["schemas"]["Timestamp"];
                /** @description Only after this time. */
                "paid_at[gt]"?: components["schemas"]["Timestamp"];
                /** @description Only before this time. */
                "paid_at[lt]"?: components["schemas"]["Timestamp"];
                /** @description Only at or before this time. */
                "paid_at[lte]"?: components["schemas"]["Timestamp"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of payments, or as CSV up to 10,000 rows. The header `Link` of CSV has the next page. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PaymentPage"];
                    /**
                     * @example id,subscription_id,…,updated_at
                     *     pay_0192f0c1a2b37c4d8e5f60718293a4b5,…
                     */
                    "text/csv": string;
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listReportChanges: {
        parameters: {
            query?: {
                /**
                 * @description The first day, in UTC. Default: the first day of the month eleven months before `to`.
                 * @example 2026-11-15
                 */
                from?: components["parameters"]["From"];
                /**
                 * @description The last day, in UTC. Default: today.
                 * @example 2026-11-15
                 */
                to?: components["parameters"]["To"];
                /**
                 * @description The length of the intervals, in UTC. A week starts on Monday. Default: `month`.
                 * @example month
                 */
                interval?: components["parameters"]["Interval"];
                /** @description Only this currency (ISO 4217). Default: each currency by itself. */
                currency?: components["parameters"]["Currency"];
                /** @description Only plans with this slug, also deleted ones. */
                plan?: components["parameters"]["Plan"];
                /** @description Only subscriptions with this billing cycle. */
                billing_cycle?: components["parameters"]["BillingCycle"];
                /** @description Only changes of these kinds: `new`, `expansion`, `contraction`, `churned`, `reactivated`, `imported`, `correction`, `transferred`, `trial_started`, `trial_converted`, `trial_lost`, `late_started`, `late_recovered`, `late_lost`. Default: all movements. */
                kind?: components["schemas"]["ChangeKindList"];
                /**
                 * @description Only what happened to trials and late payments that began in the month of this day.
                 * @example 2026-11-15
                 */
                started_month?: string;
                /**
                 * @description The maximum number of records on a page. Default: 50.
                 * @example 50
                 */
                limit?: components["parameters"]["Limit"];
                /** @description The `next_cursor` of the previous page. Filters and sort order must be the same. */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of changes. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReportChangePage"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    reportChurn: {
        parameters: {
            query?: {
                /**
                 * @description The first day, in UTC. Default: the first day of the month eleven months before `to`.
                 * @example 2026-11-15
                 */
                from?: components["parameters"]["From"];
                /**
                 * @description The last day, in UTC. Default: today.
                 * @example 2026-11-15
                 */
                to?: components["parameters"]["To"];
                /**
                 * @description The length of the intervals, in UTC. A week starts on Monday. Default: `month`.
                 * @example month
                 */
                interval?: components["parameters"]["Interval"];
                /** @description Only this currency (ISO 4217). Default: each currency by itself. */
                currency?: components["parameters"]["Currency"];
                /** @description Only plans with this slug, also deleted ones. */
                plan?: components["parameters"]["Plan"];
                /** @description Only subscriptions with this billing cycle. */
                billing_cycle?: components["parameters"]["BillingCycle"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The report. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "as_of": "2026-11-15T09:30:00.000000Z",
                     *       "currencies": [
                     *         {
                     *           "currency": "USD",
                     *           "intervals": [
                     *             {
                     *               "churned": {
                     *                 "arr": "-479.76",
                     *                 "mrr": "-39.98"
                     *               },
                     *               "churned_users": 2,
                     *               "contraction": {
                     *                 "arr": "0.00",
                     *                 "mrr": "0.00"
                     *               },
                     *               "expansion": {
                     *                 "arr": "239.88",
                     *                 "mrr": "19.99"
                     *               },
                     *               "from": "2026-11-01",
                     *               "gross_revenue_churn_rate": "0.0200",
                     *               "net_revenue_churn_rate": "0.0100",
                     *               "opening": {
                     *                 "arr": "23988.00",
                     *                 "mrr": "1999.00"
                     *               },
                     *               "opening_users": 80,
                     *               "reactivated": {
                     *                 "arr": "0.00",
                     *                 "mrr": "0.00"
                     *               },
                     *               "to": "2026-11-15",
                     *               "user_churn_rate": "0.0250"
                     *             }
                     *           ]
                     *         }
                     *       ],
                     *       "definitions": {
                     *         "user_churn_rate": "Users who churned in the interval ÷ users who paid at its start."
                     *       },
                     *       "from": "2026-11-01",
                     *       "interval": "month",
                     *       "to": "2026-11-15"
                     *     }
                     */
                    "application/json": components["schemas"]["ChurnReport"];
                    /**
                     * @example currency,from,to,opening_users,…
                     *     USD,2026-11-01,2026-11-15,80,…
                     */
                    "text/csv": string;
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    reportCohorts: {
        parameters: {
            query?: {
                /**
                 * @description The first day, in UTC. Default: the first day of the month eleven months before `to`.
                 * @example 2026-11-15
                 */
                from?: components["parameters"]["From"];
                /**
                 * @description The last day, in UTC. Default: today.
                 * @example 2026-11-15
                 */
                to?: components["parameters"]["To"];
                /**
                 * @description The length of the intervals, in UTC. A week starts on Monday. Default: `month`.
                 * @example month
                 */
                interval?: components["parameters"]["Interval"];
                /** @description Only this currency (ISO 4217). Default: each currency by itself. */
                currency?: components["parameters"]["Currency"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The report. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "as_of": "2026-11-15T09:30:00.000000Z",
                     *       "cohorts": [
                     *         {
                     *           "currency": "USD",
                     *           "joined": 50,
                     *           "month": "2026-11-01",
                     *           "months": [
                     *             {
                     *               "arr": "11754.12",
                     *               "month": "2026-11-01",
                     *               "mrr": "979.51",
                     *               "revenue_retention": "1.0000",
                     *               "user_retention": "0.9800",
                     *               "users": 49
                     *             }
                     *           ]
                     *         }
                     *       ],
                     *       "definitions": {
                     *         "joined": "The number of users in the cohort."
                     *       },
                     *       "from": "2026-11-01",
                     *       "interval": "month",
                     *       "to": "2026-11-15"
                     *     }
                     */
                    "application/json": components["schemas"]["CohortsReport"];
                    /**
                     * @example currency,cohort,joined,…
                     *     USD,2026-11-01,50,…
                     */
                    "text/csv": string;
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    reportPayments: {
        parameters: {
            query?: {
                /**
                 * @description The first day, in UTC. Default: the first day of the month eleven months before `to`.
                 * @example 2026-11-15
                 */
                from?: components["parameters"]["From"];
                /**
                 * @description The last day, in UTC. Default: today.
                 * @example 2026-11-15
                 */
                to?: components["parameters"]["To"];
                /**
                 * @description The length of the intervals, in UTC. A week starts on Monday. Default: `month`.
                 * @example month
                 */
                interval?: components["parameters"]["Interval"];
                /** @description Only this currency (ISO 4217). Default: each currency by itself. */
                currency?: components["parameters"]["Currency"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The report. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "as_of": "2026-11-15T09:30:00.000000Z",
                     *       "currencies": [
                     *         {
                     *           "currency": "USD",
                     *           "intervals": [
                     *             {
                     *               "collected": {
                     *                 "amount": "1999.00",
                     *                 "payments": 100
                     *               },
                     *               "disputed": {
                     *                 "amount": "0.00",
                     *                 "payments": 0
                     *               },
                     *               "failed": {
                     *                 "amount": "59.97",
                     *                 "payments": 3
                     *               },
                     *               "from": "2026-11-01",
                     *               "late": {
                     *                 "lost": {
                     *                   "arr": "0.00",
                     *                   "mrr": "0.00",
                     *                   "subscriptions": 0
                     *                 },
                     *                 "recovered": {
                     *                   "arr": "719.64",
                     *                   "mrr": "59.97",
                     *                   "subscriptions": 3
                     *                 },
                     *                 "started": {
                     *                   "arr": "959.52",
                     *                   "mrr": "79.96",
                     *                   "subscriptions": 4
                     *                 }
                     *               },
                     *               "net": "1979.01",
                     *               "pending": {
                     *                 "amount": "0.00",
                     *                 "payments": 0
                     *               },
                     *               "refunded": {
                     *                 "amount": "19.99",
                     *                 "payments": 1
                     *               },
                     *               "to": "2026-11-15",
                     *               "unknown_refunds": 0
                     *             }
                     *           ]
                     *         }
                     *       ],
                     *       "definitions": {
                     *         "net": "Collected minus refunded and disputed."
                     *       },
                     *       "from": "2026-11-01",
                     *       "interval": "month",
                     *       "to": "2026-11-15"
                     *     }
                     */
                    "application/json": components["schemas"]["PaymentsReport"];
                    /**
                     * @example currency,from,to,collected,…
                     *     USD,2026-11-01,2026-11-15,1999.00,…
                     */
                    "text/csv": string;
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    reportRevenue: {
        parameters: {
            query?: {
                /**
                 * @description The first day, in UTC. Default: the first day of the month eleven months before `to`.
                 * @example 2026-11-15
                 */
                from?: components["parameters"]["From"];
                /**
                 * @description The last day, in UTC. Default: today.
                 * @example 2026-11-15
                 */
                to?: components["parameters"]["To"];
                /**
                 * @description The length of the intervals, in UTC. A week starts on Monday. Default: `month`.
                 * @example month
                 */
                interval?: components["parameters"]["Interval"];
                /** @description Only this currency (ISO 4217). Default: each currency by itself. */
                currency?: components["parameters"]["Currency"];
                /** @description Only plans with this slug, also deleted ones. */
                plan?: components["parameters"]["Plan"];
                /** @description Only subscriptions with this billing cycle. */
                billing_cycle?: components["parameters"]["BillingCycle"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The report. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "as_of": "2026-11-15T09:30:00.000000Z",
                     *       "currencies": [
                     *         {
                     *           "closing": {
                     *             "arr": "23988.00",
                     *             "committed_mrr": "1979.01",
                     *             "mrr": "1999.00",
                     *             "subscriptions": 100,
                     *             "users": 80
                     *           },
                     *           "currency": "USD",
                     *           "includes": {
                     *             "past_due": {
                     *               "arr": "239.88",
                     *               "mrr": "19.99",
                     *               "subscriptions": 1
                     *             }
                     *           },
                     *           "intervals": [
                     *             {
                     *               "closing": {
                     *                 "arr": "23988.00",
                     *                 "committed_mrr": "1979.01",
                     *                 "mrr": "1999.00",
                     *                 "subscriptions": 100,
                     *                 "users": 80
                     *               },
                     *               "from": "2026-11-01",
                     *               "movements": {
                     *                 "new": {
                     *                   "arr": "479.76",
                     *                   "changes": 2,
                     *                   "mrr": "39.98"
                     *                 }
                     *               },
                     *               "opening": {
                     *                 "arr": "23508.24",
                     *                 "committed_mrr": "1939.03",
                     *                 "mrr": "1959.02",
                     *                 "subscriptions": 98,
                     *                 "users": 78
                     *               },
                     *               "to": "2026-11-15"
                     *             }
                     *           ],
                     *           "not_counted": {
                     *             "on_trial": {
                     *               "arr": "479.76",
                     *               "mrr": "39.98",
                     *               "subscriptions": 2
                     *             }
                     *           },
                     *           "plans": [
                     *             {
                     *               "arr": "23988.00",
                     *               "mrr": "1999.00",
                     *               "subscription_plan_id": "plan_0192f0c1a2b37c4d8e5f60718293a4b5",
                     *               "subscription_plan_slug": "pro",
                     *               "subscriptions": 100,
                     *               "users": 80
                     *             }
                     *           ]
                     *         }
                     *       ],
                     *       "definitions": {
                     *         "new": "MRR of users who pay for the first time in this currency."
                     *       },
                     *       "from": "2026-11-01",
                     *       "interval": "month",
                     *       "to": "2026-11-15"
                     *     }
                     */
                    "application/json": components["schemas"]["RevenueReport"];
                    /**
                     * @example currency,from,to,opening_mrr,…
                     *     USD,2026-11-01,2026-11-15,1959.02,…
                     */
                    "text/csv": string;
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    reportTrials: {
        parameters: {
            query?: {
                /**
                 * @description The first day, in UTC. Default: the first day of the month eleven months before `to`.
                 * @example 2026-11-15
                 */
                from?: components["parameters"]["From"];
                /**
                 * @description The last day, in UTC. Default: today.
                 * @example 2026-11-15
                 */
                to?: components["parameters"]["To"];
                /**
                 * @description The length of the intervals, in UTC. A week starts on Monday. Default: `month`.
                 * @example month
                 */
                interval?: components["parameters"]["Interval"];
                /** @description Only this currency (ISO 4217). Default: each currency by itself. */
                currency?: components["parameters"]["Currency"];
                /** @description Only plans with this slug, also deleted ones. */
                plan?: components["parameters"]["Plan"];
                /** @description Only subscriptions with this billing cycle. */
                billing_cycle?: components["parameters"]["BillingCycle"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The report. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "as_of": "2026-11-15T09:30:00.000000Z",
                     *       "cohorts": [
                     *         {
                     *           "conversion_rate": "0.6923",
                     *           "converted": 9,
                     *           "lost": 4,
                     *           "month": "2026-11-01",
                     *           "started": 40,
                     *           "undecided": 27
                     *         }
                     *       ],
                     *       "definitions": {
                     *         "started": "Trials that began in the interval."
                     *       },
                     *       "from": "2026-11-01",
                     *       "interval": "month",
                     *       "intervals": [
                     *         {
                     *           "conversion_rate": "0.6364",
                     *           "converted": 21,
                     *           "from": "2026-11-01",
                     *           "lost": 12,
                     *           "started": 40,
                     *           "to": "2026-11-15"
                     *         }
                     *       ],
                     *       "to": "2026-11-15"
                     *     }
                     */
                    "application/json": components["schemas"]["TrialsReport"];
                    /**
                     * @example from,to,started,converted,lost,conversion_rate
                     *     2026-11-01,2026-11-15,40,21,12,0.6364
                     */
                    "text/csv": string;
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readSandboxClock: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The clock. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxClock"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    advanceSandboxClock: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The new billing time. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["AdvanceSandboxClock"];
            };
        };
        responses: {
            /** @description The clock, and what happened to the tenant's subscriptions. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdvancedSandboxClock"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            /** @description Another change of the sandbox is running (`sandbox_busy`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createDemoData: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The number of created records. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DemoData"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            /** @description The tenant has data (`sandbox_not_empty`), or another change of the sandbox is running (`sandbox_busy`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnknownField"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listStaff: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All staff members. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StaffList"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    inviteStaffMember: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description Identifies the request. A retry with the same key within 24 hours returns the same response (with
                 *     `Idempotency-Replayed: true`) and creates nothing.
                 * @example 5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11
                 */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        /** @description The person to invite. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["InviteStaffMember"];
            };
        };
        responses: {
            /** @description The staff member, with the sign-in link. */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InvitedStaffMember"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            /** @description The person is a staff member already and has signed in (`email_in_use`), or a request with the same key is in progress (`idempotency_in_progress`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    updateStaffMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The staff member's id. */
                id: components["parameters"]["StaffId"];
            };
            cookie?: never;
        };
        /** @description The role to set. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateStaffMember"];
            };
        };
        responses: {
            /** @description The staff member. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StaffMember"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["StaffMemberNotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["StaffChangeNotAllowed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    removeStaffMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The staff member's id. */
                id: components["parameters"]["StaffId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["StaffMemberNotFound"];
            409: components["responses"]["StaffChangeNotAllowed"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createPayment: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description Identifies the request. A retry with the same key within 24 hours returns the same response (with
                 *     `Idempotency-Replayed: true`) and creates nothing.
                 * @example 5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11
                 */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        /** @description The payment to create. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreatePayment"];
            };
        };
        responses: {
            /** @description The created payment. */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Payment"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            /** @description Another payment has this external id (`duplicate_external_id`), or a request with the same key is in progress (`idempotency_in_progress`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readPayment: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path: {
                /** @description The payment's id. */
                payment_id: components["parameters"]["PaymentId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Payment"];
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["PaymentNotFound"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    updatePayment: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag that the record must have, else the request fails with 412.
                 * @example *
                 */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The payment's id. */
                payment_id: components["parameters"]["PaymentId"];
            };
            cookie?: never;
        };
        /** @description The fields to change. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdatePayment"];
            };
        };
        responses: {
            200: components["responses"]["Payment"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["PaymentNotFound"];
            408: components["responses"]["RequestTimeout"];
            /** @description The status transition is not allowed (`invalid_transition`), the payment has settled (`payment_settled`), or another payment has this external id (`duplicate_external_id`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deletePayment: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag that the record must have, else the request fails with 412.
                 * @example *
                 */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The payment's id. */
                payment_id: components["parameters"]["PaymentId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: components["responses"]["NoContent"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["PaymentNotFound"];
            /** @description The payment has settled (`payment_settled`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            412: components["responses"]["PreconditionFailed"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listPlans: {
        parameters: {
            query?: {
                /**
                 * @description The maximum number of records on a page. Default: 50.
                 * @example 50
                 */
                limit?: components["parameters"]["Limit"];
                /** @description The `next_cursor` of the previous page. Filters and sort order must be the same. */
                cursor?: components["parameters"]["Cursor"];
                /**
                 * @description `created_at` (default) or `tier`; with a leading `-` in descending order.
                 * @example -created_at
                 */
                sort?: "created_at" | "-created_at" | "tier" | "-tier";
                /** @description Only plans that allow new subscriptions (`true`), or do not (`false`). */
                is_active?: components["schemas"]["BooleanList"];
                /** @description Only plans of these tiers. */
                tier?: components["schemas"]["TierList"];
                /** @description Only plans with these billing cycles. */
                billing_cycle?: components["schemas"]["BillingCycleList"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of plans. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlanPage"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createPlan: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description Identifies the request. A retry with the same key within 24 hours returns the same response (with
                 *     `Idempotency-Replayed: true`) and creates nothing.
                 * @example 5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11
                 */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        /** @description The plan to create. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreatePlan"];
            };
        };
        responses: {
            /** @description The created plan. */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            /** @description Another plan has this slug (`slug_taken`), or a request with the same key is in progress (`idempotency_in_progress`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readPlan: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path: {
                /** @description The plan's slug, case-insensitive, or its id. */
                slug: components["schemas"]["Slug"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Plan"];
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["PlanNotFound"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    updatePlan: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag that the record must have, else the request fails with 412.
                 * @example *
                 */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The plan's slug; case-insensitive. */
                slug: components["parameters"]["Slug"];
            };
            cookie?: never;
        };
        /** @description The fields to change. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdatePlan"];
            };
        };
        responses: {
            200: components["responses"]["Plan"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["PlanNotFound"];
            408: components["responses"]["RequestTimeout"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deletePlan: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag that the record must have, else the request fails with 412.
                 * @example *
                 */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The plan's slug; case-insensitive. */
                slug: components["parameters"]["Slug"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: components["responses"]["NoContent"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["PlanNotFound"];
            /** @description The plan has live subscriptions (`plan_in_use`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            412: components["responses"]["PreconditionFailed"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listSubscriptions: {
        parameters: {
            query?: {
                /**
                 * @description The maximum number of records on a page. Default: 50.
                 * @example 50
                 */
                limit?: components["parameters"]["Limit"];
                /** @description The `next_cursor` of the previous page. Filters and sort order must be the same. */
                cursor?: components["parameters"]["Cursor"];
                /**
                 * @description `created_at` (default), `renews_at` or `updated_at`; with a leading `-` in descending order. With a range of `updated_at`, the default is `updated_at`, and no other field is allowed.
                 * @example -created_at
                 */
                sort?: "created_at" | "-created_at" | "renews_at" | "-renews_at" | "updated_at" | "-updated_at";
                /** @description Only subscriptions of these users. */
                user_id?: components["schemas"]["UserIdList"];
                /**
                 * @description Only subscriptions of the users with these ids in your system.
                 * @example customer-1042
                 */
                external_user_id?: components["schemas"]["ExternalIdList"];
                /** @description Only subscriptions to these plans. */
                subscription_plan_id?: components["schemas"]["PlanIdList"];
                /** @description Only subscriptions to the plans with these slugs. */
                subscription_plan_slug?: components["schemas"]["SlugList"];
                /** @description Only subscriptions with these statuses. */
                status?: components["schemas"]["SubscriptionStatusList"];
                /** @description Only subscriptions with these billing cycles. */
                billing_cycle?: components["schemas"]["BillingCycleList"];
                /** @description Only subscriptions that give access now (`true`), or do not (`false`). */
                is_active?: components["schemas"]["BooleanList"];
                /** @description Only subscriptions that are suspended (`true`), or are not (`false`). */
                suspended?: components["schemas"]["BooleanList"];
                /**
                 * @description Only subscriptions with these external ids.
                 * @example sub_42
                 */
                external_subscription_id?: components["schemas"]["ExternalIdList"];
                /** @description Only at or after this time. */
                "created_at[gte]"?: components["parameters"]["CreatedAtGte"];
                /** @description Only after this time. */
                "created_at[gt]"?: components["parameters"]["CreatedAtGt"];
                /** @description Only before this time. */
                "created_at[lt]"?: components["parameters"]["CreatedAtLt"];
                /** @description Only at or before this time. */
                "created_at[lte]"?: components["parameters"]["CreatedAtLte"];
                /** @description Only at or after this time. */
                "updated_at[gte]"?: components["schemas"]["Timestamp"];
                /** @description Only after this time. */
                "updated_at[gt]"?: components["schemas"]["Timestamp"];
                /** @description Only before this time. */
                "updated_at[lt]"?: components["schemas"]["Timestamp"];
                /** @description Only at or before this time. */
                "updated_at[lte]"?: components["schemas"]["Timestamp"];
                /** @description Only at or after this time. */
                "renews_at[gte]"?: components["schemas"]["Timestamp"];
                /** @description Only after this time. */
                "renews_at[gt]"?: components["schemas"]["Timestamp"];
                /** @description Only before this time. */
                "renews_at[lt]"?: components["schemas"]["Timestamp"];
                /** @description Only at or before this time. */
                "renews_at[lte]"?: components["schemas"]["Timestamp"];
                /** @description Only at or after this time. */
                "ends_at[gte]"?: components["schemas"]["Timestamp"];
                /** @description Only after this time. */
                "ends_at[gt]"?: components["schemas"]["Timestamp"];
                /** @description Only before this time. */
                "ends_at[lt]"?: components["schemas"]["Timestamp"];
                /** @description Only at or before this time. */
                "ends_at[lte]"?: components["schemas"]["Timestamp"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of subscriptions, or as CSV up to 10,000 rows. The header `Link` of CSV has the next page. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SubscriptionPage"];
                    /**
                     * @example id,user_id,…,updated_at
                     *     sub_0192f0c1a2b37c4d8e5f60718293a4b5,…
                     */
                    "text/csv": string;
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createSubscription: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description Identifies the request. A retry with the same key within 24 hours returns the same response (with
                 *     `Idempotency-Replayed: true`) and creates nothing.
                 * @example 5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11
                 */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        /** @description The subscription to create. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateSubscription"];
            };
        };
        responses: {
            /** @description The created subscription. */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Subscription"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            /** @description Another subscription has this external id (`duplicate_external_id`), or a request with the same key is in progress (`idempotency_in_progress`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    countSubscriptions: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The numbers of subscriptions. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SubscriptionCounts"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listNextSteps: {
        parameters: {
            query: {
                /** @description The subscriptions, up to 100. */
                subscription_id: components["schemas"]["SubscriptionIdList"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The next steps. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SubscriptionNextSteps"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readSubscription: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path: {
                /** @description The subscription's id. */
                id: components["parameters"]["SubscriptionId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Subscription"];
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["SubscriptionNotFound"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    updateSubscription: {
        parameters: {
            query?: {
                /**
                 * @description `true` changes only the record and tells the payment provider nothing. Default: `false`. Not for users.
                 * @example true
                 */
                local?: boolean;
            };
            header?: {
                /**
                 * @description The ETag that the record must have, else the request fails with 412.
                 * @example *
                 */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The subscription's id. */
                id: components["parameters"]["SubscriptionId"];
            };
            cookie?: never;
        };
        /** @description The fields to change. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateSubscription"];
            };
        };
        responses: {
            200: components["responses"]["Subscription"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            /** @description The credit does not pay for the change (`payment_required`). */
            402: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Not allowed for users: the tenant does not allow self-service (`self_service_disabled`), or the request changes more than users can (`not_for_users`). Or not allowed for this client (`insufficient_scope`, `secret_client_in_browser`, `origin_not_allowed`, `address_not_allowed`). */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            404: components["responses"]["SubscriptionNotFound"];
            408: components["responses"]["RequestTimeout"];
            /** @description The status transition is not allowed (`invalid_transition`), another subscription has this external id (`duplicate_external_id`), or free time is not possible (`free_time_not_possible`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deleteSubscription: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag that the record must have, else the request fails with 412.
                 * @example *
                 */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The subscription's id. */
                id: components["parameters"]["SubscriptionId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: components["responses"]["NoContent"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["SubscriptionNotFound"];
            412: components["responses"]["PreconditionFailed"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listLedgerEntries: {
        parameters: {
            query?: {
                /**
                 * @description The maximum number of records on a page. Default: 50.
                 * @example 50
                 */
                limit?: components["parameters"]["Limit"];
                /** @description The `next_cursor` of the previous page. Filters and sort order must be the same. */
                cursor?: components["parameters"]["Cursor"];
                /**
                 * @description `created_at` (default) or `-created_at` for newest first.
                 * @example -created_at
                 */
                sort?: components["parameters"]["Sort"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path: {
                /** @description The subscription's id. */
                id: components["parameters"]["SubscriptionId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of ledger entries. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LedgerEntryPage"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["SubscriptionNotFound"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listSubscriptionPayments: {
        parameters: {
            query?: {
                /**
                 * @description The maximum number of records on a page. Default: 50.
                 * @example 50
                 */
                limit?: components["parameters"]["Limit"];
                /** @description The `next_cursor` of the previous page. Filters and sort order must be the same. */
                cursor?: components["parameters"]["Cursor"];
                /**
                 * @description `created_at` (default) or `-created_at` for newest first.
                 * @example -created_at
                 */
                sort?: components["parameters"]["Sort"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path: {
                /** @description The subscription's id. */
                id: components["parameters"]["SubscriptionId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of payments. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PaymentPage"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["SubscriptionNotFound"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    previewSubscriptionUpdate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The subscription's id. */
                id: components["parameters"]["SubscriptionId"];
            };
            cookie?: never;
        };
        /** @description The fields to change. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateSubscription"];
            };
        };
        responses: {
            /** @description What the change would do and cost. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SubscriptionPreview"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["SubscriptionNotFound"];
            408: components["responses"]["RequestTimeout"];
            /** @description The status transition is not allowed (`invalid_transition`), or free time is not possible (`free_time_not_possible`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listUsers: {
        parameters: {
            query?: {
                /**
                 * @description The maximum number of records on a page. Default: 50.
                 * @example 50
                 */
                limit?: components["parameters"]["Limit"];
                /** @description The `next_cursor` of the previous page. Filters and sort order must be the same. */
                cursor?: components["parameters"]["Cursor"];
                /**
                 * @description `created_at` (default), `-created_at` for newest first, or `email`. With `email_prefix`, the default is `email`, and no other order is allowed.
                 * @example -created_at
                 */
                sort?: "created_at" | "-created_at" | "email";
                /** @description Only the user with this email address; case-insensitive. */
                email?: components["schemas"]["Email"];
                /**
                 * @description Only users whose email address starts with this; case-insensitive. The list is then sorted by email address.
                 * @example ada@
                 */
                email_prefix?: string;
                /** @description Only these users. */
                user_id?: components["schemas"]["UserIdList"];
                /**
                 * @description Only users with these ids in your system.
                 * @example customer-1042
                 */
                external_user_id?: components["schemas"]["ExternalIdList"];
                /** @description Only at or after this time. */
                "created_at[gte]"?: components["parameters"]["CreatedAtGte"];
                /** @description Only after this time. */
                "created_at[gt]"?: components["parameters"]["CreatedAtGt"];
                /** @description Only before this time. */
                "created_at[lt]"?: components["parameters"]["CreatedAtLt"];
                /** @description Only at or before this time. */
                "created_at[lte]"?: components["parameters"]["CreatedAtLte"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of users, or as CSV up to 10,000 rows. The header `Link` of CSV has the next page. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserPage"];
                    /**
                     * @example id,external_user_id,…,updated_at
                     *     usr_0192f0c1a2b37c4d8e5f60718293a4b5,…
                     */
                    "text/csv": string;
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createUser: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description Identifies the request. A retry with the same key within 24 hours returns the same response (with
                 *     `Idempotency-Replayed: true`) and creates nothing.
                 * @example 5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11
                 */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        /** @description The user to create. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateUser"];
            };
        };
        responses: {
            /** @description The created user. */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["User"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            /** @description Another user has this email address (`email_in_use`) or external id (`duplicate_external_id`), or a request with the same key is in progress (`idempotency_in_progress`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readUser: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path: {
                /** @description The user's id. */
                id: components["parameters"]["UserId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["User"];
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["UserNotFound"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    updateUser: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag that the record must have, else the request fails with 412.
                 * @example *
                 */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The user's id. */
                id: components["parameters"]["UserId"];
            };
            cookie?: never;
        };
        /** @description The fields to change. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateUser"];
            };
        };
        responses: {
            200: components["responses"]["User"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["UserNotFound"];
            408: components["responses"]["RequestTimeout"];
            /** @description Another user has this email address (`email_in_use`) or external id (`duplicate_external_id`). */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deleteUser: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag that the record must have, else the request fails with 412.
                 * @example *
                 */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The user's id. */
                id: components["parameters"]["UserId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: components["responses"]["NoContent"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["UserNotFound"];
            412: components["responses"]["PreconditionFailed"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    exportUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The user's id. */
                id: components["parameters"]["UserId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The user's data. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserExport"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["UserNotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnknownField"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listUserIdentities: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path: {
                /** @description The user's id. */
                id: components["parameters"]["UserId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The identities. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identities"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["UserNotFound"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listUserSessions: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path: {
                /** @description The user's id. */
                id: components["parameters"]["UserId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The sessions. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sessions"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["UserNotFound"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readTimeline: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The user's id. */
                id: components["parameters"]["UserId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The timeline. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Timeline"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["UserNotFound"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listWebhookEndpoints: {
        parameters: {
            query?: {
                /**
                 * @description The maximum number of records on a page. Default: 50.
                 * @example 50
                 */
                limit?: components["parameters"]["Limit"];
                /** @description The `next_cursor` of the previous page. Filters and sort order must be the same. */
                cursor?: components["parameters"]["Cursor"];
                /**
                 * @description `created_at` (default) or `-created_at` for newest first.
                 * @example -created_at
                 */
                sort?: components["parameters"]["Sort"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of endpoints. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookEndpointPage"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createWebhookEndpoint: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description Identifies the request. A retry with the same key within 24 hours returns the same response (with
                 *     `Idempotency-Replayed: true`) and creates nothing.
                 * @example 5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11
                 */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        /** @description The endpoint to create. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateWebhookEndpoint"];
            };
        };
        responses: {
            /** @description The created endpoint, with its `secret`. */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedWebhookEndpoint"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["IdempotencyInProgress"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readWebhookEndpoint: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path: {
                /** @description The endpoint's id. */
                id: components["parameters"]["WebhookEndpointId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["WebhookEndpoint"];
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["WebhookEndpointNotFound"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    updateWebhookEndpoint: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag that the record must have, else the request fails with 412.
                 * @example *
                 */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The endpoint's id. */
                id: components["parameters"]["WebhookEndpointId"];
            };
            cookie?: never;
        };
        /** @description The fields to change. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateWebhookEndpoint"];
            };
        };
        responses: {
            200: components["responses"]["WebhookEndpoint"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["WebhookEndpointNotFound"];
            408: components["responses"]["RequestTimeout"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deleteWebhookEndpoint: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The ETag that the record must have, else the request fails with 412.
                 * @example *
                 */
                "If-Match"?: components["parameters"]["IfMatch"];
            };
            path: {
                /** @description The endpoint's id. */
                id: components["parameters"]["WebhookEndpointId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: components["responses"]["NoContent"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["WebhookEndpointNotFound"];
            412: components["responses"]["PreconditionFailed"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listWebhookAttempts: {
        parameters: {
            query?: {
                /**
                 * @description The maximum number of records on a page. Default: 50.
                 * @example 50
                 */
                limit?: components["parameters"]["Limit"];
                /** @description The `next_cursor` of the previous page. Filters and sort order must be the same. */
                cursor?: components["parameters"]["Cursor"];
            };
            header?: {
                /**
                 * @description The ETag of the response that you have. If it is still current, the response is 304 without a body.
                 * @example "3q2-7w"
                 */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path: {
                /** @description The endpoint's id. */
                id: components["parameters"]["WebhookEndpointId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of attempts. */
            200: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookAttemptPage"];
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["WebhookEndpointNotFound"];
            421: components["responses"]["MisdirectedRequest"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    enableWebhookEndpoint: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The endpoint's id. */
                id: components["parameters"]["WebhookEndpointId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The endpoint. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookEndpoint"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["WebhookEndpointNotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnknownField"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createWebhookReplay: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description Identifies the request. A retry with the same key within 24 hours returns the same response (with
                 *     `Idempotency-Replayed: true`) and creates nothing.
                 * @example 5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11
                 */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                /** @description The endpoint's id. */
                id: components["parameters"]["WebhookEndpointId"];
            };
            cookie?: never;
        };
        /** @description The events to send again. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateWebhookReplay"];
            };
        };
        responses: {
            /** @description The replay has started. */
            201: {
                headers: {
                    ETag: components["headers"]["ETag"];
                    "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookReplay"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["WebhookEndpointNotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["IdempotencyInProgress"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    rotateWebhookSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The endpoint's id. */
                id: components["parameters"]["WebhookEndpointId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The new secret. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookSecret"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["WebhookEndpointNotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnknownField"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    testWebhookEndpoint: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The endpoint's id. */
                id: components["parameters"]["WebhookEndpointId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The attempt, successful or not. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookAttempt"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["WebhookEndpointNotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            421: components["responses"]["MisdirectedRequest"];
            422: components["responses"]["UnknownField"];
            429: components["responses"]["RateLimited"];
            500: components["responses"]["Internal"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    receivePaymentCreated: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receivePaymentDeleted: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receivePaymentUpdated: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receivePaymentAccountCreated: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receivePaymentAccountDeleted: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receivePaymentAccountSecretRotated: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receivePaymentAccountUpdated: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receivePlanCreated: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receivePlanDeleted: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receivePlanUpdated: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveSessionCreated: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveSessionRefreshRepeated: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveSessionRevoked: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveSubscriptionCreated: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveSubscriptionDeleted: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveSubscriptionEnded: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveSubscriptionExpired: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveSubscriptionPastDue: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveSubscriptionRenewed: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveSubscriptionUnpaid: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveSubscriptionUpdated: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveUserClaimed: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveUserCreated: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveUserEmailChanged: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveUserErased: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveUserSessionsRevoked: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveUserUpdated: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveWebhookEndpointCreated: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveWebhookEndpointDeleted: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveWebhookEndpointDisabled: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveWebhookEndpointEnabled: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveWebhookEndpointSecretRotated: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
    receiveWebhookEndpointUpdated: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description The event's id, the same in each attempt.
                 * @example evt_0192f0c1a2b37c4d8e5f60718293a4b5
                 */
                "webhook-id": components["parameters"]["WebhookId"];
                /**
                 * @description When the attempt was made, in Unix seconds.
                 * @example 1763199000
                 */
                "webhook-timestamp": components["parameters"]["WebhookTimestamp"];
                /**
                 * @description Signatures by [Standard Webhooks](https://www.standardwebhooks.com), separated by spaces: `v1,` and the base64 text of an HMAC-SHA256.
                 * @example v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
                 */
                "webhook-signature": components["parameters"]["WebhookSignature"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["WebhookEvent"];
        responses: {
            410: components["responses"]["WebhookGone"];
            429: components["responses"]["WebhookPaused"];
            503: components["responses"]["WebhookPaused"];
            "2XX": components["responses"]["WebhookReceived"];
        };
    };
}
