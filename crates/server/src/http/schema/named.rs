//! Schemas that fields and parameters refer to by name, under `components/schemas`.
//!
//! An enum has its own values only. Requests accept them in any case, and aliases: those fields refer to
//! the schema with the suffix `Input`.

use std::sync::LazyLock;

use perennial_domain::{
    BillingCycle, Currency, EntryCause, EntryType, Href, LifecycleKind, PaymentStatus,
    SubscriptionStatus,
};
use serde_json::json;
use utoipa::openapi::{
    Components, KnownFormat, Ref, RefOr, SchemaFormat,
    schema::{Object, ObjectBuilder, OneOfBuilder, RefBuilder, Schema, SchemaType, Type},
};

use super::{
    amount_output,
    pattern::{self, anchored},
};
use crate::http::problem::Code;

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
    BILLING_CYCLE "BillingCycle" string_enum("How often a subscription renews.", &BillingCycle::ALL.map(BillingCycle::as_str));
    BILLING_CYCLE_INPUT "BillingCycleInput" input(&BILLING_CYCLE, &BillingCycle::ALL.map(BillingCycle::as_str),
        &BillingCycle::ALIASES.map(|(alias, _)| alias));
    CURRENCY_CODE "CurrencyCode" text("An ISO 4217 code; case-insensitive.", &CURRENCY_PATTERN, "USD").into();
    EMAIL "Email" email();
    IGNORED "Ignored" ObjectBuilder::new().schema_type(SchemaType::AnyValue)
        .description(Some("A field of the response that a request may contain. Its value is ignored.")).into();
    LEDGER_ENTRY_CAUSE "LedgerEntryCause" string_enum("Why a ledger entry was posted.", &EntryCause::ALL.map(EntryCause::as_str));
    LEDGER_ENTRY_TYPE "LedgerEntryType" string_enum("The type of a ledger entry.", &EntryType::ALL.map(EntryType::as_str));
    LIFECYCLE "Lifecycle" string_enum("What changes a subscription over time.", &LifecycleKind::ALL.map(LifecycleKind::as_str));
    PAYMENT_ID "PaymentId" id("A payment's id.", "pay");
    PAYMENT_STATUS "PaymentStatus" string_enum("The status of a payment.", &PaymentStatus::ALL.map(PaymentStatus::as_str));
    PAYMENT_STATUS_INPUT "PaymentStatusInput" input(&PAYMENT_STATUS, &PaymentStatus::ALL.map(PaymentStatus::as_str),
        &PaymentStatus::ALIASES.map(|(alias, _)| alias));
    PLAN_ID "PlanId" id("A plan's id.", "plan");
    PROBLEM_CODE "ProblemCode" string_enum("A stable code for programs, documented under `/docs/errors/`.",
        &Code::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>());
    SESSION_ID "SessionId" id("A session's id.", "ses");
    SLUG "Slug" text("A plan's name in URLs; case-insensitive.", "[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "pro").into();
    SUBSCRIPTION_ID "SubscriptionId" id("A subscription's id.", "sub");
    SUBSCRIPTION_STATUS "SubscriptionStatus" string_enum("The status of a subscription.",
        &SubscriptionStatus::ALL.map(SubscriptionStatus::as_str));
    SUBSCRIPTION_STATUS_INPUT "SubscriptionStatusInput" input(&SUBSCRIPTION_STATUS,
        &SubscriptionStatus::ALL.map(SubscriptionStatus::as_str), &SubscriptionStatus::ALIASES.map(|(alias, _)| alias));
    TIMESTAMP "Timestamp" timestamp();
    URL "Url" url();
    USER_ID "UserId" id("A user's id.", "usr");
}

/// Matches the codes that `Currency` accepts. There is no list of them to read, so all words of three letters
/// are tried.
static CURRENCY_PATTERN: LazyLock<String> = LazyLock::new(|| {
    let mut groups = Vec::new();
    let mut code = String::with_capacity(3);
    for first in 'A'..='Z' {
        let mut rests = Vec::new();
        for second in 'A'..='Z' {
            for third in 'A'..='Z' {
                code.clear();
                code.extend([first, second, third]);
                if Currency::from_code(&code).is_some() {
                    rests.push(String::from_iter([second, third]));
                }
            }
        }
        if !rests.is_empty() {
            let first = pattern::any_case([first.to_string().as_str()]);
            let rests = pattern::any_case(rests.iter().map(String::as_str));
            groups.push(format!("{first}{rests}"));
        }
    }
    format!("({})", groups.join("|"))
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
fn input(schema: &NamedSchema, values: &[&'static str], aliases: &[&'static str]) -> RefOr<Schema> {
    let words = pattern::any_case(values.iter().chain(aliases).copied());
    let description = format!(
        "A value of {} with capital letters, or an alias in any case: {}.",
        schema.name,
        aliases.join(", ")
    );
    // Not the values themselves, so that one of both matches.
    let pattern = anchored(&format!("(?!({})$){words}", values.join("|")));
    let any_case = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(pattern))
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

fn id(description: &str, prefix: &str) -> RefOr<Schema> {
    let description = format!("{description} A UUID without the prefix is accepted too.");
    let example = format!("{prefix}_0192f0c1a2b37c4d8e5f60718293a4b5");
    text(&description, &pattern::id(prefix), &example).into()
}

fn timestamp() -> RefOr<Schema> {
    let description = "An RFC 3339 timestamp with an offset, from 1970-01-01T00:00:00Z to 9999-12-30T22:00:00Z. \
                       Digits after the microseconds are dropped.";
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
