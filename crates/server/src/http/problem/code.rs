//! Every code that an error can carry, in one table: its status, its title, and what the error
//! reference says of it. A problem's `type` links to that page.

use axum::http::StatusCode;
use perennial_domain::Rule;

macro_rules! codes {
    ($($name:ident $word:literal $status:ident $title:literal: $meaning:literal;)*) => {
        /// What went wrong, as a stable word.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {$(#[doc = $title] $name,)*}

        impl Code {
            /// All of them, in the order of the reference.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word that a program matches on.
            pub const fn as_str(self) -> &'static str {
                match self {$(Self::$name => $word,)*}
            }

            /// The status that it is answered with.
            pub const fn status(self) -> StatusCode {
                match self {$(Self::$name => StatusCode::$status,)*}
            }

            /// A few words for a person.
            pub const fn title(self) -> &'static str {
                match self {$(Self::$name => $title,)*}
            }

            /// What it means and what to do about it.
            pub const fn meaning(self) -> &'static str {
                match self {$(Self::$name => $meaning,)*}
            }
        }
    };
}

codes! {
    MalformedJson "malformed_json" BAD_REQUEST "The body is not a JSON object":
        "The body could not be read as one JSON object in UTF-8. Comments, trailing commas, a byte order mark, \
         a second document and duplicate keys are not JSON. The detail says where reading stopped.";
    InvalidRequest "invalid_request" BAD_REQUEST "Not a proper HTTP request":
        "HTTP/1.1 wants the header Host, exactly once. What is no HTTP at all, or has more than 100 headers or 32 KiB of \
         them, is answered with a bare 400, 414 or 431.";
    InvalidParameter "invalid_parameter" BAD_REQUEST "A parameter in the URL is not right":
        "The query has a parameter that this endpoint does not know, that stands twice, or whose value is not \
         allowed. `errors` lists every one of them.";
    InvalidCursor "invalid_cursor" BAD_REQUEST "The cursor is not of this list":
        "A cursor goes on with one list: the same client's tenant, the same endpoint, filters and order. This one was \
         altered, or belongs to another list. Begin again without a cursor.";
    InvalidIdempotencyKey "invalid_idempotency_key" BAD_REQUEST "The Idempotency-Key is not right":
        "The header Idempotency-Key takes 1 to 255 printable ASCII characters and stands once. A random UUID is a good one.";
    InvalidClient "invalid_client" UNAUTHORIZED "The client is not known":
        "Every request names its client in the header client-id. It is missing, sent twice, unknown, expired \
         or switched off; which of these is not told. An operator makes one with `perennial client create`.";
    InvalidToken "invalid_token" UNAUTHORIZED "The token is not accepted":
        "The access token is missing, altered, expired, meant for somebody else, or its session has ended; which of these is \
         not told. At sign-in and sign-up it is the identity provider's token: an operator learns what is wrong with one by \
         `perennial provider check --token`. Elsewhere it is ours, sent as `Authorization: Bearer`: get another by \
         refresh-token, or by signing in again.";
    InvalidGrant "invalid_grant" UNAUTHORIZED "The refresh token is not accepted":
        "The refresh token is unknown, expired, another client's, or its session has ended; which of these is not told. A refresh \
         token is used once: keep the one that comes with each answer. One that was used up long ago counts as stolen, and \
         ends its session. The user signs in again.";
    AddressNotAllowed "address_not_allowed" FORBIDDEN "Not from this address":
        "The client may only be used from the addresses that it was made with, and this request comes from \
         another. x-forwarded-for counts only as far as proxies wrote it that the operator trusts.";
    InsufficientScope "insufficient_scope" FORBIDDEN "The client may not do this":
        "The client is known, but its kind or its scopes do not cover this endpoint. The detail names the scope. \
         A publishable client can be read by anybody and so never gets more than reading what is public.";
    EmailMismatch "email_mismatch" FORBIDDEN "The e-mail address is another one":
        "The token proves who the user is, but the identity provider has another e-mail address for that user than the request. \
         The address is a claim to be checked: send the one that the user has at the provider.";
    EmailUnverified "email_unverified" FORBIDDEN "Nobody vouches for the e-mail address":
        "The identity provider says no e-mail address for this user, or does not say that it has verified it. Ask the \
         provider for the scopes `openid email`, and have the user confirm the address there.";
    NotForUsers "not_for_users" FORBIDDEN "Users do not do this":
        "The request carries a user's access token, and this endpoint is for servers that call for themselves. Send it \
         without the header Authorization.";
    NotYourAccount "not_your_account" FORBIDDEN "Not the bearer's own account":
        "Users delete their own account only: the id in the path is that of the bearer's user, `auth_id` in the answer to the \
         sign-in. Whether there is another user with the id is not told.";
    OriginNotAllowed "origin_not_allowed" FORBIDDEN "Not from this web page":
        "A browser sent this request from a page whose origin is not among the client's allowed origins. An \
         operator adds it with `perennial client create --allowed-origin`.";
    ReauthenticationRequired "reauthentication_required" FORBIDDEN "Sign in again first":
        "This tenant lets users delete their account only shortly after a sign-in, so that a device left lying about cannot. \
         Have the user sign in again, and send the new access token.";
    SecretClientInBrowser "secret_client_in_browser" FORBIDDEN "A secret client id has left the server":
        "The request comes from a browser but carries the client-id of a secret client. Whoever can open the \
         page can read that id. Rotate it now (`perennial client rotate`) and use a publishable client in \
         browsers and apps.";
    NotFound "not_found" NOT_FOUND "There is nothing here":
        "No endpoint has this path. All paths are listed in /openapi.json and shown at /docs.";
    PlanNotFound "plan_not_found" NOT_FOUND "There is no such plan":
        "No plan of this tenant has this slug, or it has been deleted. Publishable clients see active plans only.";
    SubscriptionNotFound "subscription_not_found" NOT_FOUND "There is no such subscription":
        "No subscription of this tenant has this id, or it has been deleted. On behalf of a user, only that user's are seen.";
    PaymentNotFound "payment_not_found" NOT_FOUND "There is no such payment":
        "No payment of this tenant has this id, or it has been deleted. On behalf of a user, only those for that user's \
         subscriptions are seen.";
    UserNotFound "user_not_found" NOT_FOUND "There is no such user":
        "No user of this tenant has this id.";
    AccountNotFound "account_not_found" NOT_FOUND "Nobody has signed up with this identity":
        "The token is good, but the user that it proves has no account here yet: sign up first. Accounts are bound to the \
         identity at the provider, not to the e-mail address.";
    MethodNotAllowed "method_not_allowed" METHOD_NOT_ALLOWED "Not with this method":
        "The path exists, but not with this method. The header Allow lists those that do.";
    RequestTimeout "request_timeout" REQUEST_TIMEOUT "The body took too long":
        "The header arrived, but the body did not in time. Nothing was changed; send the request again.";
    SlugTaken "slug_taken" CONFLICT "The slug is taken":
        "Another plan of this tenant has this slug; upper and lower case count as the same. Choose another, or \
         change the existing plan.";
    PlanInUse "plan_in_use" CONFLICT "The plan has live subscriptions":
        "A plan can be deleted once no live subscription points at it; `live_subscriptions` says how many do. To stop new \
         subscriptions only, set `is_active` to false.";
    DuplicateExternalId "duplicate_external_id" CONFLICT "The provider's id is taken":
        "Another record of this tenant has this `external_subscription_id` or `external_payment_id`; `existing_id` says which. \
         Change that one, or delete it first.";
    InvalidTransition "invalid_transition" CONFLICT "It cannot become that from here":
        "A status leads to certain others and not to all; `allowed` lists those that this record can go to from where it stands. \
         What is expired becomes active only together with a `renews_at` or `ends_at` in the future.";
    PaymentSettled "payment_settled" CONFLICT "Money has come":
        "Once a payment is completed, its amount, its currency and its subscription are a matter of record: they cannot be \
         changed, and the payment cannot be deleted. Record a refund by its status instead.";
    AccountExists "account_exists" CONFLICT "This identity has an account already":
        "The user has signed up before, perhaps by a request whose answer was lost: sign in instead.";
    EmailInUse "email_in_use" CONFLICT "The e-mail address belongs to another account":
        "Another account of this tenant has this e-mail address; upper and lower case count as the same. A user who comes by \
         another identity provider than before is another account until the address is free.";
    IdempotencyInProgress "idempotency_in_progress" CONFLICT "The first request is still running":
        "Another request with this Idempotency-Key has not been answered yet. Ask again with the same key after the \
         seconds in the header Retry-After: then you get its answer, or it is done now.";
    PreconditionFailed "precondition_failed" PRECONDITION_FAILED "The record has changed":
        "The request said by If-Match which state of the record it was meant for, and that is not its state any more. \
         Read the record, decide again, and send its new ETag.";
    PayloadTooLarge "payload_too_large" PAYLOAD_TOO_LARGE "The body is too large":
        "A request's body may have 64 KiB at most.";
    UnsupportedMediaType "unsupported_media_type" UNSUPPORTED_MEDIA_TYPE "The body is not declared as JSON":
        "Send the header `Content-Type: application/json`, with no content encoding.";
    ValidationFailed "validation_failed" UNPROCESSABLE_ENTITY "Some fields are not right":
        "Several fields break different rules. `errors` lists every one of them: a JSON pointer to the field, \
         the code of the rule, a sentence, and the allowed values where there are few.";
    AmountScaleInvalid "amount_scale_invalid" UNPROCESSABLE_ENTITY "Too many decimals":
        "The amount has more decimals than its currency: USD has 2, JPY 0, KWD 3. Amounts are never rounded.";
    Blank "blank" UNPROCESSABLE_ENTITY "A field is blank":
        "The field needs at least one character that is not white space.";
    ImmutableField "immutable_field" UNPROCESSABLE_ENTITY "A field never changes":
        "The field is fixed when the record is made. Sending the value that it has is fine; sending another is not.";
    IdempotencyKeyReused "idempotency_key_reused" UNPROCESSABLE_ENTITY "The Idempotency-Key stands for another request":
        "This key was used within the last 24 hours with another body. A key stands for one request; use a new one for a \
         new request.";
    InconsistentDates "inconsistent_dates" UNPROCESSABLE_ENTITY "Dates that cannot be":
        "A subscription renews and ends at or after its begin, and a lifetime one does not renew. The message says which date \
         is wrong.";
    InconsistentStatus "inconsistent_status" UNPROCESSABLE_ENTITY "Does not go with the status":
        "The field says something that the status rules out: that a subscription gives access whose status gives none, that an \
         expired one ends in the future, that money was given back which never came. Change the status, or leave the field out.";
    InvalidFormat "invalid_format" UNPROCESSABLE_ENTITY "A field is not in its form":
        "The value is not written as the field wants it; the message says how it should look.";
    InvalidId "invalid_id" UNPROCESSABLE_ENTITY "Not an identifier of this kind":
        "Identifiers have a prefix that says what they identify and 32 hexadecimal digits, such as \
         plan_01920000000070008000000000000001. A bare UUID is understood too.";
    OutOfRange "out_of_range" UNPROCESSABLE_ENTITY "A number is out of range":
        "The message says the smallest and the largest allowed value.";
    PlanInactive "plan_inactive" UNPROCESSABLE_ENTITY "The plan is not offered any more":
        "The plan's `is_active` is false: those who have it keep it, and nobody else can take it.";
    Required "required" UNPROCESSABLE_ENTITY "A field is missing":
        "The field must be there, and not null.";
    TooLong "too_long" UNPROCESSABLE_ENTITY "A text is too long":
        "Length is counted in characters; the message says how many are allowed.";
    TooMany "too_many" UNPROCESSABLE_ENTITY "A list is too long":
        "The message says how many items are allowed.";
    UnknownField "unknown_field" UNPROCESSABLE_ENTITY "A field is not known":
        "The body has a field that this endpoint does not know. It is refused instead of ignored, because a \
         misspelt field that is ignored changes nothing and says nothing. The message suggests the nearest.";
    UnknownValue "unknown_value" UNPROCESSABLE_ENTITY "Not one of the allowed values":
        "The field takes one of a set of words. `allowed` lists them, and the message suggests the nearest.";
    UnknownReference "unknown_reference" UNPROCESSABLE_ENTITY "There is nothing with this id":
        "The field names a user, a plan or a subscription of this tenant, and there is none with this id, or it has been deleted.";
    WrongType "wrong_type" UNPROCESSABLE_ENTITY "A field has the wrong type":
        "The message says which JSON type the field has.";
    RateLimited "rate_limited" TOO_MANY_REQUESTS "Too many requests":
        "This client, or this address, sends more requests per second than it may. The header RateLimit-Policy says how \
         many (`q`) in how many seconds (`w`), RateLimit how many are left (`r`). Nothing was done; try again after \
         the seconds in the header Retry-After.";
    Internal "internal" INTERNAL_SERVER_ERROR "We made a mistake":
        "Something went wrong in the service itself. The operator finds the cause in the log under the request id.";
    Overloaded "overloaded" SERVICE_UNAVAILABLE "Too much at once":
        "More requests arrive than the service can do in time, and so some are turned away at once, before anything \
         was done for them. Try again after the seconds in the header Retry-After, and later each time.";
    Unavailable "unavailable" SERVICE_UNAVAILABLE "Not right now":
        "The database cannot be reached, or did not answer in time. Nothing is known to have changed; try again after the \
         seconds in the header Retry-After.";
}

impl From<Rule> for Code {
    fn from(rule: Rule) -> Self {
        match rule {
            Rule::AmountScaleInvalid => Self::AmountScaleInvalid,
            Rule::Blank => Self::Blank,
            Rule::InconsistentDates => Self::InconsistentDates,
            Rule::InconsistentStatus => Self::InconsistentStatus,
            Rule::InvalidFormat => Self::InvalidFormat,
            Rule::InvalidId => Self::InvalidId,
            Rule::OutOfRange => Self::OutOfRange,
            Rule::PlanInactive => Self::PlanInactive,
            Rule::TooLong => Self::TooLong,
            Rule::TooMany => Self::TooMany,
            Rule::UnknownValue => Self::UnknownValue,
        }
    }
}
