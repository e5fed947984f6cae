//! Request fields of payment accounts: their schema and parsing.

use perennial_domain::{
    AsciiToken, PaymentAccount, PaymentAccountDetails, PaymentAccountId, PaymentMode,
    PaymentProvider, ValidationError,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{json, value::RawValue};
use utoipa::openapi::{
    RefOr,
    schema::{ObjectBuilder, Schema, Type},
};

use super::view::COMPUTED;
use crate::{
    config::Mode,
    http::{
        json::{BodyFields, ValueError, boolean, exact, text, timestamp},
        problem::{Code, Problem, ProblemFieldError},
        request_schema::{RequestField, request_body},
        schema::{self, named},
    },
};

const MAX_KEY_LENGTH: usize = 255;

const FIELDS: &[RequestField] = &[
    RequestField::required("provider", || {
        named::PAYMENT_PROVIDER
            .reference("The payment provider. Cannot change.")
            .into()
    }),
    RequestField::required("mode", || {
        named::PAYMENT_MODE
            .reference("Whether payments are real. Must be `test` in a sandbox. Cannot change.")
            .into()
    }),
    RequestField::nullable("description", || {
        schema::single_line("A note for operators: a single line.", 200, "Shop").into()
    }),
    RequestField::nullable("external_account_id", || {
        let description = "The provider's id of the account or store. Notifications that name another one are refused.";
        token(description, "acct_1042")
    }),
    RequestField::with_default("creates_users", || {
        let description = "Whether a customer whom no user matches gets a new one. Otherwise the notification waits until a user matches.";
        schema::boolean(description).into()
    })
    .create_note("Default: true."),
    RequestField::nullable("api_key", || {
        let description = "An API key of the account. Required for `stripe`. Never returned.";
        token(description, "rk_test_1042")
    }),
    RequestField::generated("id", || {
        named::PAYMENT_ACCOUNT_ID
            .reference("The account's id. Cannot change.")
            .into()
    }),
    RequestField::generated("created_at", || {
        named::TIMESTAMP
            .reference("Creation time. Cannot change.")
            .into()
    }),
];

const SECRET_FIELDS: &[RequestField] = &[RequestField::nullable("secret", || {
    let description = "The secret that signs notifications. Required for `stripe`, which issues it. Otherwise it is \
        generated if it is absent.";
    token(description, "whsec_1042")
})];

/// Describes visible ASCII characters.
fn token(description: &str, example: &str) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(MAX_KEY_LENGTH))
        .pattern(Some("^[!-~]+$"))
        .description(Some(description))
        .examples([json!(example)])
        .into()
}

request_body!(
    CreatePaymentAccount,
    create_schema(FIELDS, COMPUTED),
    "The account to create.",
    {"provider": "stripe", "mode": "test", "api_key": "rk_test_1042"}
);

request_body!(
    UpdatePaymentAccount,
    update_schema(FIELDS, COMPUTED),
    "The fields to change; others stay. Null clears a nullable field. A record that GET returned can be sent back.",
    {"description": "Shop"}
);

request_body!(
    RotatePaymentSecret,
    create_schema(SECRET_FIELDS, &[]),
    "The new secret.",
    {"secret": "whsec_1042"}
);

/// The fields of a new account.
#[derive(Debug)]
pub struct NewPaymentAccount {
    pub provider: PaymentProvider,
    pub mode: PaymentMode,
    pub details: PaymentAccountDetails,
    pub api_key: Option<SecretString>,
}

/// The changes of an account.
#[derive(Debug)]
pub struct PaymentAccountChanges {
    pub details: PaymentAccountDetails,
    pub api_key: ApiKeyChange,
}

/// What an update does with the API key.
#[derive(Debug)]
pub enum ApiKeyChange {
    Keep,
    Remove,
    Replace(SecretString),
}

/// Parses a key or secret: visible ASCII characters. Errors do not contain it.
fn secret_text(raw: &RawValue) -> Result<SecretString, ValueError> {
    let token: AsciiToken<MAX_KEY_LENGTH> = text(raw)?;
    Ok(token.as_str().into())
}

fn field_error(field: &str, error: ValidationError) -> ProblemFieldError {
    ProblemFieldError::new(format!("/{field}"), Code::from(error.rule), error.message)
}

fn missing(field: &str, provider: PaymentProvider) -> ProblemFieldError {
    let message = format!("is required for {provider}");
    ProblemFieldError::new(format!("/{field}"), Code::Required, message)
}

/// Parses the body of a create request, or returns all field errors. `instance_mode` is that of the service.
pub fn parse_create(
    mut fields: BodyFields,
    instance_mode: Mode,
) -> Result<NewPaymentAccount, Problem> {
    fields.read_only(COMPUTED);
    fields.read_only(&["id", "created_at"]);
    let provider = fields.required("provider", exact);
    let mode = fields.required("mode", exact);
    let description = fields.optional("description", text);
    let external_account_id = fields.optional("external_account_id", text);
    let creates_users = fields.with_default("creates_users", boolean, true);
    let api_key = fields.optional("api_key", secret_text);
    let account = fields.finish(|| {
        Some(NewPaymentAccount {
            provider: provider?,
            mode: mode?,
            details: PaymentAccountDetails {
                description: description?,
                external_account_id: external_account_id?,
                creates_users: creates_users?,
            },
            api_key: api_key?,
        })
    })?;
    let (provider, mode) = (account.provider, account.mode);
    let mut errors = Vec::new();
    if (instance_mode, mode) == (Mode::Sandbox, PaymentMode::Live) {
        let message = "must be \"test\": a sandbox takes no real payments";
        errors.push(ProblemFieldError::new(
            "/mode".to_owned(),
            Code::UnknownValue,
            message,
        ));
    }
    errors.extend(api_key_error(provider, mode, account.api_key.as_ref()));
    if errors.is_empty() {
        Ok(account)
    } else {
        Err(Problem::fields(errors))
    }
}

/// Returns the error of an API key that an account cannot have, or must have.
fn api_key_error(
    provider: PaymentProvider,
    mode: PaymentMode,
    api_key: Option<&SecretString>,
) -> Option<ProblemFieldError> {
    match api_key {
        Some(key) => provider
            .check_api_key(mode, key.expose_secret())
            .err()
            .map(|error| field_error("api_key", error)),
        None if provider.requires_api_key() => Some(missing("api_key", provider)),
        None => None,
    }
}

/// Returns the changes of an update request, or all field errors.
pub(super) fn parse_update(
    mut fields: BodyFields,
    current: &PaymentAccount,
) -> Result<PaymentAccountChanges, Problem> {
    fields.read_only(COMPUTED);
    fields.immutable::<PaymentAccountId>("id", text, &current.id);
    fields.immutable("created_at", timestamp, &current.created_at);
    fields.immutable("provider", exact, &current.provider);
    fields.immutable("mode", exact, &current.mode);
    let (provider, mode) = (current.provider, current.mode);
    let current = current.details.clone();
    let description = fields.or_current_nullable("description", text, current.description);
    let external_account_id =
        fields.or_current_nullable("external_account_id", text, current.external_account_id);
    let creates_users = fields.or_current("creates_users", boolean, current.creates_users);
    let api_key = fields.if_present_nullable("api_key", secret_text);
    let changes = fields.finish(|| {
        Some(PaymentAccountChanges {
            details: PaymentAccountDetails {
                description: description?,
                external_account_id: external_account_id?,
                creates_users: creates_users?,
            },
            api_key: match api_key? {
                None => ApiKeyChange::Keep,
                Some(None) => ApiKeyChange::Remove,
                Some(Some(key)) => ApiKeyChange::Replace(key),
            },
        })
    })?;
    let error = match &changes.api_key {
        ApiKeyChange::Keep => None,
        ApiKeyChange::Remove => api_key_error(provider, mode, None),
        ApiKeyChange::Replace(key) => api_key_error(provider, mode, Some(key)),
    };
    match error {
        Some(error) => Err(Problem::fields(vec![error])),
        None => Ok(changes),
    }
}

/// Parses the body of a request with a secret. Returns `None` if a secret is to be generated.
pub fn parse_secret(
    mut fields: BodyFields,
    provider: PaymentProvider,
) -> Result<Option<SecretString>, Problem> {
    let secret = fields.optional("secret", secret_text);
    let secret = fields.finish(|| secret)?;
    let error = match &secret {
        Some(secret) => provider
            .check_secret(secret.expose_secret())
            .err()
            .map(|error| field_error("secret", error)),
        None if provider.issues_secrets() => Some(missing("secret", provider)),
        None => None,
    };
    match error {
        Some(error) => Err(Problem::fields(vec![error])),
        None => Ok(secret),
    }
}
