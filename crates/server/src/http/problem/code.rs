//! The table of problem codes: each with its HTTP status, title and description.
//!
//! A problem's `type` is the URL of its page under `/docs/errors/`, which is built from this table.

use axum::http::StatusCode;
use perennial_domain::Rule;

macro_rules! codes {
    ($($name:ident $code:literal $status:ident $title:literal: $meaning:literal;)*) => {
        /// The stable, machine-readable code of a problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {$(#[doc = $title] $name,)*}

        impl Code {
            /// All codes, in the order of the error reference.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            pub const fn as_str(self) -> &'static str {
                match self {$(Self::$name => $code,)*}
            }

            pub const fn status(self) -> StatusCode {
                match self {$(Self::$name => StatusCode::$status,)*}
            }

            pub const fn title(self) -> &'static str {
                match self {$(Self::$name => $title,)*}
            }

            /// Returns what the code means and how to resolve the problem. Backticks mark literal text.
            pub const fn meaning(self) -> &'static str {
                match self {$(Self::$name => $meaning,)*}
            }
        }
    };
}

codes! {
    MalformedJson "malformed_json" BAD_REQUEST "Malformed JSON":
        "The request body is not a single JSON object in UTF-8. Comments, trailing commas, a byte order mark, a second \
         document and duplicate keys are not allowed. The detail gives the position of the error.";
    InvalidRequest "invalid_request" BAD_REQUEST "Invalid HTTP request":
        "An HTTP/1.1 request must have exactly one Host header. A request that is not valid HTTP, or that has more than 100 \
         headers or 32 KiB of headers, gets a 400, 414 or 431 response without a body.";
    InvalidParameter "invalid_parameter" BAD_REQUEST "Invalid query parameter":
        "The query string has a parameter that is unknown, repeated, or has an invalid value. `errors` lists every such \
         parameter.";
    InvalidCursor "invalid_cursor" BAD_REQUEST "Invalid cursor":
        "A cursor is valid only for the list that returned it: the same tenant, endpoint, filters and sort order. This \
         cursor was altered or belongs to another list. Start again without a cursor.";
    InvalidIdempotencyKey "invalid_idempotency_key" BAD_REQUEST "Invalid Idempotency-Key":
        "The header Idempotency-Key must be sent at most once and have 1 to 255 printable ASCII characters, for example a \
         random UUID.";
    InvalidClient "invalid_client" UNAUTHORIZED "Invalid client":
        "Every request must send the header client-id exactly once, with the id of an enabled client. The id is missing, \
         repeated, unknown, expired or disabled; the response does not say which. Create a client with \
         `perennial client create`.";
    InvalidToken "invalid_token" UNAUTHORIZED "Invalid access token":
        "The access token is missing, altered, expired, issued for another audience, or its session has ended; the response \
         does not say which. At sign-in and sign-up the token comes from the identity provider: run \
         `perennial provider check --token` to find out why it is rejected. All other endpoints take a token issued by this \
         service, sent as `Authorization: Bearer`: refresh it or sign in again.";
    InvalidGrant "invalid_grant" UNAUTHORIZED "Invalid refresh token":
        "The refresh token is unknown, expired, issued to another client, or its session has ended; the response does not \
         say which. A refresh token can be used once: store the new one from every response. Reuse of an old token is \
         treated as theft and ends the session. The user must sign in again.";
    PaymentRequired "payment_required" PAYMENT_REQUIRED "Payment required":
        "The subscription's credit does not pay for this change, and nothing was changed. `amount_due` is the amount to pay \
         first. Record a completed payment of it, then send the request again within a day. To ask for the amount without \
         changing anything, use POST /subscriptions/{id}/preview.";
    AddressNotAllowed "address_not_allowed" FORBIDDEN "IP address not allowed":
        "The client can be used only from the IP addresses configured for it, and this request comes from another one. \
         x-forwarded-for is used only as far as it was written by trusted proxies.";
    InsufficientScope "insufficient_scope" FORBIDDEN "Insufficient scope":
        "The client's kind or scopes do not allow this operation. The detail names the required scope. A publishable client \
         is visible to anyone and is limited to public data and the signed-in user's own data.";
    EmailMismatch "email_mismatch" FORBIDDEN "Email address mismatch":
        "The token is valid, but the identity provider has a different email address for this user than the request. Send \
         the address that the user has at the provider.";
    EmailUnverified "email_unverified" FORBIDDEN "Email address not verified":
        "The identity provider returned no email address for this user, or did not confirm that it is verified. Request the \
         scopes `openid email` from the provider, and have the user confirm the address there.";
    NotForUsers "not_for_users" FORBIDDEN "Not available to users":
        "The request carries a user's access token, but only servers can call this endpoint. Send it without the header \
         Authorization.";
    NotYourAccount "not_your_account" FORBIDDEN "Not your account":
        "Users can delete only their own account: the id in the path must be the `auth_id` that sign-in returned. The \
         response does not say whether another user has this id.";
    OriginNotAllowed "origin_not_allowed" FORBIDDEN "Origin not allowed":
        "The request was sent by a web page whose origin is not one of the client's allowed origins. Set them with \
         `perennial client create --allowed-origin`.";
    ReauthenticationRequired "reauthentication_required" FORBIDDEN "Reauthentication required":
        "This tenant requires that a user has authenticated recently before deleting their account: at the identity \
         provider, by the time in its token. Have the user authenticate there again, sign in with the new token, and send \
         the new access token.";
    SecretClientInBrowser "secret_client_in_browser" FORBIDDEN "Secret client used in a browser":
        "The request was sent by a browser with the client-id of a secret client, so anyone who can open the page can read \
         the id. Rotate it now (`perennial client rotate`) and use a publishable client in browsers and apps.";
    NotFound "not_found" NOT_FOUND "Endpoint not found":
        "No endpoint has this path. /openapi.json and /docs list all paths.";
    PlanNotFound "plan_not_found" NOT_FOUND "Plan not found":
        "The tenant has no plan with this slug, or the plan was deleted. Publishable clients and users see active plans only.";
    SubscriptionNotFound "subscription_not_found" NOT_FOUND "Subscription not found":
        "The tenant has no subscription with this id, or it was deleted. Requests on behalf of a user find only that user's \
         subscriptions.";
    PaymentNotFound "payment_not_found" NOT_FOUND "Payment not found":
        "The tenant has no payment with this id, or it was deleted. Requests on behalf of a user find only payments for that \
         user's subscriptions.";
    UserNotFound "user_not_found" NOT_FOUND "User not found":
        "The tenant has no user with this id.";
    SessionNotFound "session_not_found" NOT_FOUND "Session not found":
        "The signed-in user has no active session with this id. It has ended or expired, or belongs to another user.";
    AccountNotFound "account_not_found" NOT_FOUND "Account not found":
        "The token is valid, but its user has no account yet: sign up first. An account is linked to the identity at the \
         provider, not to the email address.";
    MethodNotAllowed "method_not_allowed" METHOD_NOT_ALLOWED "Method not allowed":
        "The path does not support this method. The header Allow lists the supported methods.";
    RequestTimeout "request_timeout" REQUEST_TIMEOUT "Request timeout":
        "The request body did not arrive in time. Nothing was changed; send the request again.";
    SlugTaken "slug_taken" CONFLICT "Slug already taken":
        "Another plan of this tenant has this slug. Slugs are case-insensitive. Choose another slug, or update the existing \
         plan.";
    PlanInUse "plan_in_use" CONFLICT "Plan in use":
        "A plan cannot be deleted while it has live subscriptions; `live_subscriptions` gives their number. To stop new \
         subscriptions only, set `is_active` to false.";
    DuplicateExternalId "duplicate_external_id" CONFLICT "Duplicate external id":
        "Another record of this tenant has this `external_subscription_id` or `external_payment_id`; `existing_id` is its \
         id. Update that record, or delete it first.";
    InvalidTransition "invalid_transition" CONFLICT "Status change not allowed":
        "The record cannot change from its current status to the requested one; `allowed` lists the statuses it can change \
         to. An expired subscription becomes active only together with a `renews_at` or `ends_at` in the future.";
    PaymentSettled "payment_settled" CONFLICT "Payment already settled":
        "The amount, currency and subscription of a completed payment cannot be changed, and the payment cannot be deleted. \
         To record a refund, change its status.";
    AccountExists "account_exists" CONFLICT "Account already exists":
        "The user has already signed up, possibly with a request whose response was lost: sign in instead.";
    EmailInUse "email_in_use" CONFLICT "Email address in use":
        "Another account of this tenant has this email address. Email addresses are case-insensitive. A user who switches \
         to another identity provider gets a new account only after the address is free.";
    IdempotencyInProgress "idempotency_in_progress" CONFLICT "Request in progress":
        "Another request with this Idempotency-Key is still running. Retry with the same key after the number of seconds in \
         the header Retry-After.";
    PreconditionFailed "precondition_failed" PRECONDITION_FAILED "Precondition failed":
        "The record has changed since the ETag sent in If-Match was read. Read the record again, and send the new ETag.";
    PayloadTooLarge "payload_too_large" PAYLOAD_TOO_LARGE "Payload too large":
        "A request body can have at most 64 KiB.";
    UnsupportedMediaType "unsupported_media_type" UNSUPPORTED_MEDIA_TYPE "Unsupported media type":
        "Send the header `Content-Type: application/json` and no content encoding.";
    ValidationFailed "validation_failed" UNPROCESSABLE_ENTITY "Validation failed":
        "Several fields are invalid for different reasons. `errors` lists every one of them: a JSON pointer to the field, a \
         code, a message, and the allowed values where there are few.";
    AmountScaleInvalid "amount_scale_invalid" UNPROCESSABLE_ENTITY "Too many decimal places":
        "The amount has more decimal places than its currency: USD has 2, JPY 0, KWD 3. Amounts are never rounded.";
    Blank "blank" UNPROCESSABLE_ENTITY "Blank field":
        "The field must have at least one character that is not whitespace.";
    CurrencyMismatch "currency_mismatch" UNPROCESSABLE_ENTITY "Currency mismatch":
        "A managed subscription keeps its currency, because its credit is in it. Choose a plan in the same currency, or \
         create another subscription.";
    ImmutableField "immutable_field" UNPROCESSABLE_ENTITY "Immutable field":
        "The field cannot be changed after creation. Omit it, or send its current value.";
    IdempotencyKeyReused "idempotency_key_reused" UNPROCESSABLE_ENTITY "Idempotency-Key reused":
        "This key was used within the last 24 hours with a different body. Use a new key for each new request.";
    InconsistentDates "inconsistent_dates" UNPROCESSABLE_ENTITY "Inconsistent dates":
        "`renews_at` and `ends_at` cannot be before `starts_at`, and a lifetime subscription has no `renews_at`. The message \
         names the invalid date.";
    InconsistentStatus "inconsistent_status" UNPROCESSABLE_ENTITY "Field conflicts with status":
        "The value contradicts the status, for example `is_active` true with a status that gives no access, an expired \
         subscription with a future `ends_at`, or a refund of a payment that was never completed. Change the status, or omit \
         the field.";
    InvalidFormat "invalid_format" UNPROCESSABLE_ENTITY "Invalid format":
        "The value does not have the field's format; the message describes the expected format.";
    InvalidId "invalid_id" UNPROCESSABLE_ENTITY "Invalid id":
        "An id is a type prefix and 32 hexadecimal digits, such as plan_01920000000070008000000000000001. A UUID without a \
         prefix is accepted too.";
    OutOfRange "out_of_range" UNPROCESSABLE_ENTITY "Number out of range":
        "The message gives the minimum and maximum.";
    PlanInactive "plan_inactive" UNPROCESSABLE_ENTITY "Plan inactive":
        "The plan's `is_active` is false: existing subscriptions keep it, but it cannot be used for new ones.";
    Required "required" UNPROCESSABLE_ENTITY "Required field missing":
        "The field must be present and cannot be null.";
    TooLong "too_long" UNPROCESSABLE_ENTITY "Text too long":
        "Length is counted in characters; the message gives the maximum.";
    TooMany "too_many" UNPROCESSABLE_ENTITY "Too many items":
        "The message gives the maximum number of items.";
    UnknownField "unknown_field" UNPROCESSABLE_ENTITY "Unknown field":
        "The request body has a field that this endpoint does not know. Unknown fields are rejected so that typos do not go \
         unnoticed. The message suggests the closest known field.";
    UnknownValue "unknown_value" UNPROCESSABLE_ENTITY "Unknown value":
        "The value is not one of those allowed. `allowed` lists them, and the message suggests the closest one.";
    UnknownReference "unknown_reference" UNPROCESSABLE_ENTITY "Referenced record not found":
        "The field must be the id of an existing user, plan or subscription of this tenant.";
    WrongType "wrong_type" UNPROCESSABLE_ENTITY "Wrong type":
        "The message names the JSON type that the field must have.";
    MisdirectedRequest "misdirected_request" MISDIRECTED_REQUEST "Unknown host":
        "The header Host names a host that this service does not serve, so the request was rejected without looking at it. \
         Send requests to the service's public URL. Operators can allow further host names, such as that of a container, \
         with `PERENNIAL_ALLOWED_HOSTS`.";
    RateLimited "rate_limited" TOO_MANY_REQUESTS "Rate limit exceeded":
        "This client or IP address has sent too many requests. The header RateLimit-Policy gives the quota (`q`) and its \
         window in seconds (`w`), RateLimit the requests left (`r`). Nothing was changed; retry after the number of seconds \
         in the header Retry-After.";
    Internal "internal" INTERNAL_SERVER_ERROR "Internal error":
        "The service failed unexpectedly. The operator can find the cause in the log by the request id.";
    Overloaded "overloaded" SERVICE_UNAVAILABLE "Overloaded":
        "The service receives more requests than it can handle and rejected this one before doing any work. Retry after the \
         number of seconds in the header Retry-After, with increasing delays.";
    Unavailable "unavailable" SERVICE_UNAVAILABLE "Service unavailable":
        "The database or an identity provider cannot be reached or did not respond in time. A write may or may not have \
         been applied. Retry after the number of seconds in the header Retry-After, with the same Idempotency-Key.";
}

impl From<Rule> for Code {
    fn from(rule: Rule) -> Self {
        match rule {
            Rule::AmountScaleInvalid => Self::AmountScaleInvalid,
            Rule::Blank => Self::Blank,
            Rule::CurrencyMismatch => Self::CurrencyMismatch,
            Rule::InconsistentDates => Self::InconsistentDates,
            Rule::InconsistentStatus => Self::InconsistentStatus,
            Rule::InvalidFormat => Self::InvalidFormat,
            Rule::InvalidId => Self::InvalidId,
            Rule::OutOfRange => Self::OutOfRange,
            Rule::PlanInactive => Self::PlanInactive,
            Rule::Required => Self::Required,
            Rule::TooLong => Self::TooLong,
            Rule::TooMany => Self::TooMany,
            Rule::UnknownValue => Self::UnknownValue,
        }
    }
}
