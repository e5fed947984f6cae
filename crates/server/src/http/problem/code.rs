//! The table of problem codes: each with its HTTP status and title.
//!
//! A problem's `type` is the URL of its page under `/docs/errors/`: `docs/errors/<code>.md`, which says what
//! the code means, with a sample response and the fix.

use axum::http::StatusCode;
use perennial_domain::Rule;

macro_rules! codes {
    ($($name:ident $code:literal $status:ident $title:literal;)*) => {
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
        }
    };
}

codes! {
    MalformedJson "malformed_json" BAD_REQUEST "Malformed JSON";
    InvalidRequest "invalid_request" BAD_REQUEST "Invalid HTTP request";
    InvalidParameter "invalid_parameter" BAD_REQUEST "Invalid query parameter";
    InvalidCursor "invalid_cursor" BAD_REQUEST "Invalid cursor";
    InvalidIdempotencyKey "invalid_idempotency_key" BAD_REQUEST "Invalid Idempotency-Key";
    InvalidClient "invalid_client" UNAUTHORIZED "Invalid client";
    InvalidToken "invalid_token" UNAUTHORIZED "Invalid access token";
    InvalidGrant "invalid_grant" UNAUTHORIZED "Invalid refresh token";
    InvalidSignature "invalid_signature" UNAUTHORIZED "Invalid signature";
    InvalidStaffSession "invalid_staff_session" UNAUTHORIZED "Invalid staff session";
    InvalidSignInLink "invalid_sign_in_link" UNAUTHORIZED "Invalid sign-in link";
    PaymentRequired "payment_required" PAYMENT_REQUIRED "Payment required";
    AddressNotAllowed "address_not_allowed" FORBIDDEN "IP address not allowed";
    CrossSiteRequest "cross_site_request" FORBIDDEN "Cross-site request";
    InsufficientScope "insufficient_scope" FORBIDDEN "Insufficient scope";
    EmailMismatch "email_mismatch" FORBIDDEN "Email address mismatch";
    EmailUnverified "email_unverified" FORBIDDEN "Email address not verified";
    NotForUsers "not_for_users" FORBIDDEN "Not available to users";
    NotYourAccount "not_your_account" FORBIDDEN "Not your account";
    OriginNotAllowed "origin_not_allowed" FORBIDDEN "Origin not allowed";
    ReauthenticationRequired "reauthentication_required" FORBIDDEN "Reauthentication required";
    SelfServiceDisabled "self_service_disabled" FORBIDDEN "Self-service not enabled";
    SandboxOnly "sandbox_only" FORBIDDEN "Sandbox only";
    SecretClientInBrowser "secret_client_in_browser" FORBIDDEN "Secret client used in a browser";
    NotFound "not_found" NOT_FOUND "Endpoint not found";
    PlanNotFound "plan_not_found" NOT_FOUND "Plan not found";
    SubscriptionNotFound "subscription_not_found" NOT_FOUND "Subscription not found";
    PaymentNotFound "payment_not_found" NOT_FOUND "Payment not found";
    UserNotFound "user_not_found" NOT_FOUND "User not found";
    EventNotFound "event_not_found" NOT_FOUND "Event not found";
    WebhookEndpointNotFound "webhook_endpoint_not_found" NOT_FOUND "Webhook endpoint not found";
    PaymentAccountNotFound "payment_account_not_found" NOT_FOUND "Payment account not found";
    PaymentNotificationNotFound "payment_notification_not_found" NOT_FOUND "Payment notification not found";
    ClientNotFound "client_not_found" NOT_FOUND "Client not found";
    IdentityProviderNotFound "identity_provider_not_found" NOT_FOUND "Identity provider not found";
    StaffMemberNotFound "staff_member_not_found" NOT_FOUND "Staff member not found";
    SessionNotFound "session_not_found" NOT_FOUND "Session not found";
    AccountNotFound "account_not_found" NOT_FOUND "Account not found";
    MethodNotAllowed "method_not_allowed" METHOD_NOT_ALLOWED "Method not allowed";
    RequestTimeout "request_timeout" REQUEST_TIMEOUT "Request timeout";
    SlugTaken "slug_taken" CONFLICT "Slug already taken";
    PlanInUse "plan_in_use" CONFLICT "Plan in use";
    DuplicateExternalId "duplicate_external_id" CONFLICT "Duplicate external id";
    FreeTimeNotPossible "free_time_not_possible" CONFLICT "Free time not possible";
    InvalidTransition "invalid_transition" CONFLICT "Status change not allowed";
    PaymentSettled "payment_settled" CONFLICT "Payment already settled";
    StaffChangeNotAllowed "staff_change_not_allowed" CONFLICT "Staff change not allowed";
    AccountExists "account_exists" CONFLICT "Account already exists";
    EmailInUse "email_in_use" CONFLICT "Email address in use";
    ClientDisabled "client_disabled" CONFLICT "Client disabled";
    OwnClient "own_client" CONFLICT "Own client";
    DuplicateProvider "duplicate_provider" CONFLICT "Duplicate identity provider";
    SandboxBusy "sandbox_busy" CONFLICT "Sandbox busy";
    SandboxNotEmpty "sandbox_not_empty" CONFLICT "Sandbox not empty";
    IdempotencyInProgress "idempotency_in_progress" CONFLICT "Request in progress";
    CursorFromAnotherHistory "cursor_from_another_history" CONFLICT "Cursor from another history";
    EventsRemoved "events_removed" GONE "Events removed";
    PreconditionFailed "precondition_failed" PRECONDITION_FAILED "Precondition failed";
    PayloadTooLarge "payload_too_large" PAYLOAD_TOO_LARGE "Payload too large";
    UnsupportedMediaType "unsupported_media_type" UNSUPPORTED_MEDIA_TYPE "Unsupported media type";
    ValidationFailed "validation_failed" UNPROCESSABLE_ENTITY "Validation failed";
    AmountScaleInvalid "amount_scale_invalid" UNPROCESSABLE_ENTITY "Too many decimal places";
    Blank "blank" UNPROCESSABLE_ENTITY "Blank field";
    CurrencyMismatch "currency_mismatch" UNPROCESSABLE_ENTITY "Currency mismatch";
    ImmutableField "immutable_field" UNPROCESSABLE_ENTITY "Immutable field";
    IdempotencyKeyReused "idempotency_key_reused" UNPROCESSABLE_ENTITY "Idempotency-Key reused";
    InconsistentDates "inconsistent_dates" UNPROCESSABLE_ENTITY "Inconsistent dates";
    InconsistentStatus "inconsistent_status" UNPROCESSABLE_ENTITY "Field conflicts with status";
    InvalidFormat "invalid_format" UNPROCESSABLE_ENTITY "Invalid format";
    InvalidId "invalid_id" UNPROCESSABLE_ENTITY "Invalid id";
    OutOfRange "out_of_range" UNPROCESSABLE_ENTITY "Number out of range";
    PlanInactive "plan_inactive" UNPROCESSABLE_ENTITY "Plan inactive";
    Required "required" UNPROCESSABLE_ENTITY "Required field missing";
    TooLong "too_long" UNPROCESSABLE_ENTITY "Text too long";
    TooMany "too_many" UNPROCESSABLE_ENTITY "Too many items";
    UnknownField "unknown_field" UNPROCESSABLE_ENTITY "Unknown field";
    UnknownValue "unknown_value" UNPROCESSABLE_ENTITY "Unknown value";
    UnknownReference "unknown_reference" UNPROCESSABLE_ENTITY "Referenced record not found";
    UrlNotAllowed "url_not_allowed" UNPROCESSABLE_ENTITY "URL not allowed";
    WrongType "wrong_type" UNPROCESSABLE_ENTITY "Wrong type";
    MisdirectedRequest "misdirected_request" MISDIRECTED_REQUEST "Unknown host";
    RateLimited "rate_limited" TOO_MANY_REQUESTS "Rate limit exceeded";
    Internal "internal" INTERNAL_SERVER_ERROR "Internal error";
    PaymentProviderFailed "payment_provider_failed" BAD_GATEWAY "Payment provider failed";
    Overloaded "overloaded" SERVICE_UNAVAILABLE "Overloaded";
    Unavailable "unavailable" SERVICE_UNAVAILABLE "Service unavailable";
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
