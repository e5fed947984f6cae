//! Request fields of identity providers: their schema and parsing.

use perennial_domain::{Href, IdentityProviderId, Rule, SingleLine, ValidationError};
use serde_json::{json, value::RawValue};
use utoipa::openapi::{
    RefOr,
    schema::{ArrayBuilder, Schema},
};

use super::{
    provider_settings::{ClientSecret, ProviderSettings, VerifyMethod},
    view::COMPUTED,
};
use crate::{
    http::{
        json::{BodyFields, ValueError, boolean, exact, list, text, timestamp},
        problem::Problem,
        request_schema::{RequestField, request_body},
        schema::{self, named},
    },
    identity_providers::{AcceptedTokens, TokenVerification, table::StoredProvider},
};

const MAX_AUDIENCES: usize = 100;

const FIELDS: &[RequestField] = &[
    RequestField::required("issuer", || {
        let description = "Issuer URL: exactly the `iss` claim. Must be https in live mode, and resolve to a public address. \
                           Cannot change.";
        named::URL.reference(description).into()
    }),
    RequestField::with_default("verify", || {
        named::VERIFY_METHOD
            .reference("How tokens are verified.")
            .into()
    })
    .create_note("Default: `jwt`."),
    RequestField::with_default("audiences", audiences)
        .create_note("At least one is required, unless `accept_any_audience` is true."),
    RequestField::nullable("endpoint", || {
        let description = "The endpoint that verifies tokens: required for `tokeninfo`; for `introspection`, if the discovery \
                           document has none.";
        named::URL.reference(description).into()
    }),
    RequestField::nullable("client_id", || {
        schema::single_line("The client id: required for `introspection`.", 255, "perennial").into()
    }),
    RequestField::nullable("client_secret", || {
        let description = "The client secret: required for `introspection`. It is stored encrypted and not returned.";
        schema::single_line(description, 1_000, "s3cr3t").into()
    })
    .update_note("Absent keeps the current one."),
    RequestField::with_default("accept_any_audience", || {
        schema::boolean("Also accept tokens that the provider issued for other products: required for `userinfo`.").into()
    })
    .create_note("Default: false."),
    RequestField::with_default("accept_id_tokens", || {
        schema::boolean("Also accept ID tokens: the usual case for \"Sign in with Google\".").into()
    })
    .create_note("Default: false."),
    RequestField::with_default("accept_bound_tokens", || {
        let description = "Also accept tokens bound to a key or certificate. The binding is not checked.";
        schema::boolean(description).into()
    })
    .create_note("Default: false."),
    RequestField::with_default("accept_azp", || {
        schema::boolean("Also accept an audience in the `azp` claim.").into()
    })
    .create_note("Default: false."),
    RequestField::generated("id", || {
        named::IDENTITY_PROVIDER_ID
            .reference("The provider's id. Cannot change.")
            .into()
    }),
    RequestField::generated("created_at", || {
        named::TIMESTAMP
            .reference("Creation time. Cannot change.")
            .into()
    }),
];

fn audiences() -> RefOr<Schema> {
    let item = "The `aud` claim of tokens for your product: a single line.";
    ArrayBuilder::new()
        .items(schema::single_line(item, 255, "my-product"))
        .max_items(Some(MAX_AUDIENCES))
        .description(Some("Accepted audiences (the `aud` claim)."))
        .examples([json!(["my-product"])])
        .into()
}

request_body!(
    CreateIdentityProvider,
    create_schema(FIELDS, COMPUTED),
    "The provider to add.",
    {"issuer": "https://id.example.com", "audiences": ["my-product"]}
);

request_body!(
    UpdateIdentityProvider,
    update_schema(FIELDS, COMPUTED),
    "The fields to change; others stay. Null clears a nullable field. A record that GET returned can be sent back.",
    {"audiences": ["my-product", "my-app"]}
);

fn lines(raw: &RawValue) -> Result<Vec<String>, ValueError> {
    let items: Vec<SingleLine<255>> = list(text)(raw)?;
    if items.len() > MAX_AUDIENCES {
        let message = format!(
            "must have at most {MAX_AUDIENCES} items, not {}",
            items.len()
        );
        return Err(ValidationError::new(Rule::TooMany, message).into());
    }
    Ok(items.iter().map(ToString::to_string).collect())
}

fn url(raw: &RawValue) -> Result<String, ValueError> {
    text::<Href>(raw).map(|url| url.as_str().to_owned())
}

fn line(raw: &RawValue) -> Result<String, ValueError> {
    text::<SingleLine<255>>(raw).map(|line| line.to_string())
}

fn secret(raw: &RawValue) -> Result<ClientSecret, ValueError> {
    let secret: SingleLine<1_000> = text(raw)?;
    Ok(ClientSecret::New(secret.to_string().into()))
}

/// Parses the body of a create request, or returns all field errors.
pub(super) fn parse_create(mut fields: BodyFields) -> Result<ProviderSettings, Problem> {
    fields.read_only(COMPUTED);
    fields.read_only(&["id", "created_at"]);
    let issuer = fields.required("issuer", url);
    let verify = fields.with_default("verify", exact, VerifyMethod::Jwt);
    let audiences = fields.or_default("audiences", lines);
    let endpoint = fields.optional("endpoint", url);
    let client_id = fields.optional("client_id", line);
    let client_secret = fields.with_default("client_secret", secret, ClientSecret::None);
    let accept_any_audience = fields.or_default("accept_any_audience", boolean);
    let id_tokens = fields.or_default("accept_id_tokens", boolean);
    let bound_tokens = fields.or_default("accept_bound_tokens", boolean);
    let azp = fields.or_default("accept_azp", boolean);
    fields.finish(|| {
        Some(ProviderSettings {
            issuer: issuer?,
            audiences: audiences?,
            verify: verify?,
            endpoint: endpoint?,
            client_id: client_id?,
            client_secret: client_secret?,
            accept_any_audience: accept_any_audience?,
            accept: AcceptedTokens {
                id_tokens: id_tokens?,
                bound_tokens: bound_tokens?,
                azp: azp?,
            },
            is_guarded: true,
        })
    })
}

/// Returns the settings with the changes of an update request, or all field errors.
pub(super) fn parse_update(
    mut fields: BodyFields,
    current: &StoredProvider,
) -> Result<ProviderSettings, Problem> {
    let provider = &current.provider;
    let (method, current_id, current_secret) = match &provider.verify {
        TokenVerification::Jwt => (VerifyMethod::Jwt, None, ClientSecret::None),
        TokenVerification::Tokeninfo { .. } => (VerifyMethod::Tokeninfo, None, ClientSecret::None),
        TokenVerification::Userinfo => (VerifyMethod::Userinfo, None, ClientSecret::None),
        TokenVerification::Introspection {
            client_id, secret, ..
        } => (
            VerifyMethod::Introspection,
            Some(client_id.clone()),
            ClientSecret::Stored(secret.clone()),
        ),
    };
    fields.read_only(COMPUTED);
    fields.immutable::<IdentityProviderId>("id", text, &current.id);
    fields.immutable("created_at", timestamp, &current.created_at);
    fields.immutable("issuer", url, &provider.issuer);
    let verify = fields.or_current("verify", exact, method);
    let audiences = fields.or_current("audiences", lines, provider.audiences.clone());
    let current_endpoint = provider.verify.endpoint().map(str::to_owned);
    let endpoint = fields.or_current_nullable("endpoint", url, current_endpoint.clone());
    let client_id = fields.or_current_nullable("client_id", line, current_id);
    let client_secret = fields.or_current_nullable("client_secret", secret, Some(current_secret));
    let is_userinfo = method == VerifyMethod::Userinfo;
    let accept_any_audience = fields.or_current("accept_any_audience", boolean, is_userinfo);
    let accept = provider.accept;
    let id_tokens = fields.or_current("accept_id_tokens", boolean, accept.id_tokens);
    let bound_tokens = fields.or_current("accept_bound_tokens", boolean, accept.bound_tokens);
    let azp = fields.or_current("accept_azp", boolean, accept.azp);
    fields.finish(|| {
        let endpoint = endpoint?;
        Some(ProviderSettings {
            issuer: provider.issuer.clone(),
            audiences: audiences?,
            verify: verify?,
            client_id: client_id?,
            client_secret: client_secret?.unwrap_or(ClientSecret::None),
            accept_any_audience: accept_any_audience?,
            accept: AcceptedTokens {
                id_tokens: id_tokens?,
                bound_tokens: bound_tokens?,
                azp: azp?,
            },
            is_guarded: provider.is_guarded || endpoint != current_endpoint,
            endpoint,
        })
    })
}
