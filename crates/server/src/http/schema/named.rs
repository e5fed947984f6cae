//! Schemas that fields and parameters refer to by name, under `components/schemas`.
//!
//! An enum has its own values only. Requests accept them in any case, and aliases: those fields refer to
//! the schema with the suffix `Input`, and filters to the one with the suffix `List`.

use std::sync::LazyLock;

use perennial_domain::{
    BillingCycle, ClientKind, Currency, DeliveryOrder, EndpointStatus, EntryCause, EntryType, Href,
    LifecycleKind, MovementKind, NotificationState, OutcomeKind, PaymentMode, PaymentProvider,
    PaymentStatus, Scope, StaffRole, SubscriptionStatus,
};
use serde_json::json;
use utoipa::openapi::{
    Components, KnownFormat, Ref, RefOr, SchemaFormat,
    schema::{Object, ObjectBuilder, OneOfBuilder, RefBuilder, Schema, SchemaType, Type},
};

use super::{
    amount_output,
    pattern::{self, anchored},
    single_line,
};
use crate::http::{metadata_field, problem::Code};

/// A schema of the document, by its name.
pub struct NamedSchema {
    pub name: &'static str,
    build: fn() -> RefOr<Schema>,
}

impl NamedSchema {
    /// Refers to the schema from a field with this description.
    pub fn reference(&self, description: &str) -> Ref {
        RefBuilder::new()
            .ref_location_from_schema_name(self.name)
            .description(Some(description))
            .build()
    }
}

/// Adds all named schemas to the document.
pub fn add_to(components: &mut Components) {
    for schema in ALL {
        let name = schema.name.to_owned();
        components.schemas.insert(name, (schema.build)());
    }
}

macro_rules! named_schemas {
    ($($constant:ident $name:literal $build:expr;)*) => {
        $(pub const $constant: NamedSchema = NamedSchema { name: $name, build: || $build };)*

        const ALL: &[&NamedSchema] = &[$(&$constant,)*];
    };
}

named_schemas! {
    AMOUNT "Amount" amount();
    BILLING_CYCLE "BillingCycle" string_enum("How often a subscription renews.", &billing_cycles().values);
    BILLING_CYCLE_INPUT "BillingCycleInput" input(&BILLING_CYCLE, &billing_cycles());
    BILLING_CYCLE_LIST "BillingCycleList" list("values of BillingCycleInput", &billing_cycles().pattern(), "monthly,yearly");
    BOOLEAN_LIST "BooleanList" list("`true` or `false`", "true|false", "true");
    CHANGE_KIND_LIST "ChangeKindList" list("kinds of changes", &pattern::any_case(change_kinds()), "churned,contraction");
    CLIENT_ID "ClientId" id("A client's id. It is not the API key.", "cli");
    CLIENT_KIND "ClientKind" string_enum("`secret` for a server, `publishable` for a browser or an app.", &ClientKind::ALL.map(ClientKind::as_str));
    CURRENCY_CODE "CurrencyCode" text("An ISO 4217 code; case-insensitive.", &CURRENCY_PATTERN, "USD").into();
    CURRENCY_CODE_LIST "CurrencyCodeList" list("ISO 4217 codes; case-insensitive", &CURRENCY_PATTERN, "USD");
    DELIVERY_ORDER "DeliveryOrder" string_enum("`none`: a failed event does not delay others. `subject`: it delays later events of its record. `strict`: it delays all later events.",
        &DeliveryOrder::ALL.map(DeliveryOrder::as_str));
    EMAIL "Email" email();
    EVENT_TYPE_PATTERN "EventTypePattern" text("A type of events, or all types of a record, such as `subscription.*`.",
        &pattern::event_types(), "subscription.*").into();
    EVENT_TYPE_PATTERN_LIST "EventTypePatternList" list("values of EventTypePattern", &pattern::event_types(), "plan.created,subscription.*");
    EXTERNAL_ID "ExternalId" single_line("An id in another system: a single line.", 255, "customer-1042").into();
    EXTERNAL_ID_LIST "ExternalIdList" list("ids in another system. An id that contains a comma cannot be found",
        &pattern::listed_line(), "customer-1042");
    IDENTITY_PROVIDER_ID "IdentityProviderId" id("An identity provider's id.", "idp");
    IGNORED "Ignored" ObjectBuilder::new().schema_type(SchemaType::AnyValue)
        .description(Some("A field of the response that a request may contain. Its value is ignored.")).into();
    IP_NETWORK "IpNetwork" single_line("An IP address, or a network such as `10.0.0.0/8`.", 300, "10.0.0.0/8").into();
    LEDGER_ENTRY_CAUSE "LedgerEntryCause" string_enum("Why a ledger entry was posted.", &EntryCause::ALL.map(EntryCause::as_str));
    LEDGER_ENTRY_TYPE "LedgerEntryType" string_enum("The type of a ledger entry.", &EntryType::ALL.map(EntryType::as_str));
    LIFECYCLE "Lifecycle" string_enum("What changes a subscription over time.", &LifecycleKind::ALL.map(LifecycleKind::as_str));
    METADATA "Metadata" metadata_field::metadata_schema();
    METADATA_CHANGES "MetadataChanges" metadata_field::changes_schema();
    ORIGIN "Origin" single_line("A web origin: scheme, host and, unless it is the default, port.", 300, "https://app.example.com").into();
    PAYMENT_ACCOUNT_ID "PaymentAccountId" id("A payment account's id.", "pac");
    PAYMENT_ACCOUNT_ID_LIST "PaymentAccountIdList" id_list("ids of payment accounts", "pac");
    PAYMENT_ID "PaymentId" id("A payment's id.", "pay");
    PAYMENT_MODE "PaymentMode" string_enum("Whether payments are real.", &PaymentMode::ALL.map(PaymentMode::as_str));
    PAYMENT_NOTIFICATION_ID "PaymentNotificationId" id("A payment notification's id.", "pnt");
    PAYMENT_NOTIFICATION_STATE "PaymentNotificationState" string_enum("`new`: not processed yet. `done`: processed. `ignored`: changes no record. `waiting`: for a user or a plan. `failed`: could not be read. `refused`: for another mode or store.",
        &NotificationState::ALL.map(NotificationState::as_str));
    PAYMENT_NOTIFICATION_STATE_LIST "PaymentNotificationStateList" list("values of PaymentNotificationState", &notification_states().pattern(), "failed,refused");
    PAYMENT_PROVIDER "PaymentProvider" string_enum("A payment provider.", &PaymentProvider::ALL.map(PaymentProvider::as_str));
    PAYMENT_STATUS "PaymentStatus" string_enum("The status of a payment.", &payment_statuses().values);
    PAYMENT_STATUS_INPUT "PaymentStatusInput" input(&PAYMENT_STATUS, &payment_statuses());
    PAYMENT_STATUS_LIST "PaymentStatusList" list("values of PaymentStatusInput", &payment_statuses().pattern(), "refunded,disputed");
    PLAN_ID "PlanId" id("A plan's id.", "plan");
    PLAN_ID_LIST "PlanIdList" id_list("ids of plans", "plan");
    PROBLEM_CODE "ProblemCode" string_enum("A stable code for programs, documented under `/docs/errors/`.",
        &Code::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>());
    SCOPE "Scope" string_enum("A permission of a client.", &Scope::ALL.map(Scope::as_str));
    SESSION_ID "SessionId" id("A session's id.", "ses");
    SLUG "Slug" text("A plan's name in URLs; case-insensitive.", &pattern::slug(), "pro").into();
    SLUG_LIST "SlugList" list("slugs; case-insensitive", &pattern::slug(), "pro");
    STAFF_ID "StaffId" id("A staff member's id.", "stf");
    STAFF_ROLE "StaffRole" string_enum("What a staff member may see and do.", &StaffRole::ALL.map(StaffRole::as_str));
    SUBSCRIPTION_ID "SubscriptionId" id("A subscription's id.", "sub");
    SUBSCRIPTION_ID_LIST "SubscriptionIdList" id_list("ids of subscriptions", "sub");
    SUBSCRIPTION_STATUS "SubscriptionStatus" string_enum("The status of a subscription.", &subscription_statuses().values);
    SUBSCRIPTION_STATUS_INPUT "SubscriptionStatusInput" input(&SUBSCRIPTION_STATUS, &subscription_statuses());
    SUBSCRIPTION_STATUS_LIST "SubscriptionStatusList" list("values of SubscriptionStatusInput", &subscription_statuses().pattern(), "active,past_due");
    TENANT_ID "TenantId" id("A tenant's id.", "ten");
    TIER_LIST "TierList" list("tiers", "[+-]?[0-9]+", "1,2");
    TIMESTAMP "Timestamp" timestamp();
    URL "Url" url();
    VERIFY_METHOD "VerifyMethod" string_enum("`jwt`: with the provider's published keys. The others are by a request to the provider.",
        &["jwt", "introspection", "tokeninfo", "userinfo"]);
    EVENT_ID "EventId" id("An event's id.", "evt");
    WEBHOOK_ENDPOINT_ID "WebhookEndpointId" id("A webhook endpoint's id.", "whe");
    WEBHOOK_ENDPOINT_STATUS "WebhookEndpointStatus" string_enum("Whether a webhook endpoint receives events.", &EndpointStatus::ALL.map(EndpointStatus::as_str));
    USER_ID "UserId" id("A user's id.", "usr");
    USER_ID_LIST "UserIdList" id_list("ids of users", "usr");
}

/// The texts that stand for an enum in requests, in any case.
struct EnumTexts {
    values: Vec<&'static str>,
    aliases: Vec<&'static str>,
}

impl EnumTexts {
    fn new<T>(values: impl Into<Vec<&'static str>>, aliases: &[(&'static str, T)]) -> Self {
        Self {
            values: values.into(),
            aliases: aliases.iter().map(|(alias, _)| *alias).collect(),
        }
    }

    fn pattern(&self) -> String {
        pattern::any_case(self.values.iter().chain(&self.aliases).copied())
    }
}

fn billing_cycles() -> EnumTexts {
    let values = BillingCycle::ALL.map(BillingCycle::as_str);
    EnumTexts::new(values, &BillingCycle::ALIASES)
}

/// Returns the kinds of changes that reports count.
pub fn change_kinds() -> impl Iterator<Item = &'static str> {
    let movements = MovementKind::ALL.map(MovementKind::as_str);
    let outcomes = OutcomeKind::ALL.map(OutcomeKind::as_str);
    movements.into_iter().chain(outcomes)
}

fn notification_states() -> EnumTexts {
    let values = NotificationState::ALL.map(NotificationState::as_str);
    EnumTexts::new(values, &NotificationState::ALIASES)
}

fn payment_statuses() -> EnumTexts {
    let values = PaymentStatus::ALL.map(PaymentStatus::as_str);
    EnumTexts::new(values, &PaymentStatus::ALIASES)
}

fn subscription_statuses() -> EnumTexts {
    let values = SubscriptionStatus::ALL.map(SubscriptionStatus::as_str);
    EnumTexts::new(values, &SubscriptionStatus::ALIASES)
}

/// Matches the codes that `Currency` accepts. There is no list of them to read, so all words of three letters
/// are tried.
static CURRENCY_PATTERN: LazyLock<String> = LazyLock::new(|| {
    let pairs = ('A'..='Z').flat_map(|first| ('A'..='Z').map(move |second| (first, second)));
    let words =
        pairs.flat_map(|(first, second)| ('A'..='Z').map(move |third| [first, second, third]));
    let codes = words.filter(|word| Currency::from_code(&String::from_iter(word)).is_some());
    pattern::any_case_of_three_letters(codes)
});

fn text(description: &str, pattern: &str, example: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(anchored(pattern)))
        .description(Some(description))
        .examples([json!(example)])
        .build()
}

/// Describes a string with one of these values. The example is the third value, or the first if there are
/// fewer than three.
fn string_enum(description: &str, values: &[&'static str]) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(values.iter().copied()))
        .description(Some(description))
        .examples(values.get(2).or(values.first()).map(|value| json!(value)))
        .into()
}

/// Describes a value of an enum in a request: one of its values, or one of them or of its aliases in any case.
fn input(schema: &NamedSchema, texts: &EnumTexts) -> RefOr<Schema> {
    let EnumTexts { values, aliases } = texts;
    let description = format!(
        "A value of {} with capital letters, or an alias in any case: {}.",
        schema.name,
        aliases.join(", ")
    );
    // Not the values themselves, so that one of both matches.
    let pattern = format!("(?!({})$){}", values.join("|"), texts.pattern());
    let any_case = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(anchored(&pattern)))
        .description(Some(description));
    OneOfBuilder::new()
        .item(Ref::from_schema_name(schema.name))
        .item(any_case)
        .description(Some(format!(
            "{}, in any case and with aliases.",
            schema.name
        )))
        .examples(values.get(2).or(values.first()).map(|value| json!(value)))
        .into()
}

/// Describes a comma-separated list of texts that match the pattern `item`.
fn list(items: &str, item: &str, example: &str) -> RefOr<Schema> {
    let description = format!("One to 100 of these, separated by commas: {items}.");
    text(&description, &pattern::comma_separated(item), example).into()
}

fn id_list(items: &str, prefix: &str) -> RefOr<Schema> {
    list(items, &pattern::id(prefix), &sample_id(prefix))
}

fn sample_id(prefix: &str) -> String {
    format!("{prefix}_0192f0c1a2b37c4d8e5f60718293a4b5")
}

fn id(description: &str, prefix: &str) -> RefOr<Schema> {
    let description = format!("{description} A UUID without the prefix is accepted too.");
    text(&description, &pattern::id(prefix), &sample_id(prefix)).into()
}

fn timestamp() -> RefOr<Schema> {
    let description = "An RFC 3339 timestamp with an offset, from 1970-01-01T00:00:00Z to 9999-12-31T23:59:59Z. \
                       Digits after the microseconds are dropped. The last 26 hours of 9999 are one instant.";
    let mut timestamp = text(description, &pattern::timestamp(), "2026-11-15T09:30:00Z");
    timestamp.format = Some(SchemaFormat::KnownFormat(KnownFormat::DateTime));
    timestamp.into()
}

fn email() -> RefOr<Schema> {
    let description = "An email address; case-insensitive.";
    let mut email = text(description, &pattern::email(), "ada@example.com");
    email.format = Some(SchemaFormat::KnownFormat(KnownFormat::Email));
    email.max_length = Some(254);
    email.into()
}

fn url() -> RefOr<Schema> {
    let description = "An http or https URL without user name and password.";
    let mut url = text(
        description,
        &pattern::url(),
        "https://example.com/plans/pro",
    );
    url.format = Some(SchemaFormat::Custom("uri".to_owned()));
    url.max_length = Some(Href::MAX);
    url.into()
}

/// Describes an amount in a request: a number, or a string with a number.
fn amount() -> RefOr<Schema> {
    // The maximum of a currency without decimal places; others have a lower one.
    let mut number = amount_output("A number.");
    number.maximum = Some(perennial_domain::MAX_MINOR_UNITS.into());
    let description = "A string, for languages whose numbers are floats.";
    let mut string = text(description, &pattern::decimal(), "19.99");
    string.format = Some(SchemaFormat::Custom("decimal".to_owned()));
    OneOfBuilder::new()
        .item(number)
        .item(string)
        .description(Some(
            "An amount of money, exact. It cannot have more decimals than its currency.",
        ))
        .examples([json!(19.99)])
        .into()
}
