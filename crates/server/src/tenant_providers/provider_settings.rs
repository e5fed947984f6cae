//! The settings of an identity provider as requests and commands state them, and their rules.

use perennial_domain::{FieldError, Href, Rule, ValidationError};
use secrecy::{ExposeSecret, SecretString};

use super::invalid;
use crate::{
    config::Mode,
    crypto::{DerivedKeys, SealedSecret},
    identity_providers::{AcceptedTokens, IdentityProvider, TokenVerification},
};

perennial_domain::string_enum! {
    /// How a provider's tokens are verified.
    pub enum VerifyMethod: "a verification method" {
        /// As JWTs, with the provider's published keys.
        Jwt = "jwt",
        /// By the provider's introspection endpoint.
        Introspection = "introspection",
        /// By the provider's token-info endpoint.
        Tokeninfo = "tokeninfo",
        /// By the provider's userinfo endpoint.
        Userinfo = "userinfo",
    }
}

/// The settings of a provider.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    pub issuer: String,
    pub audiences: Vec<String>,
    pub verify: VerifyMethod,
    pub endpoint: Option<String>,
    pub client_id: Option<String>,
    pub client_secret: ClientSecret,
    /// Confirms that tokens for other products are accepted, which only `userinfo` does.
    pub accept_any_audience: bool,
    pub accept: AcceptedTokens,
    /// Whether requests reach public addresses only.
    pub is_guarded: bool,
}

/// The client secret of an introspection.
#[derive(Debug, Clone)]
pub enum ClientSecret {
    None,
    /// In plain text.
    New(SecretString),
    /// As stored.
    Stored(SealedSecret),
}

impl ProviderSettings {
    /// Returns whether there is a secret to encrypt.
    pub fn needs_keys(&self) -> bool {
        matches!(self.client_secret, ClientSecret::New(_))
    }

    /// Returns the provider that the settings describe, or all errors by field. `keys` encrypt a new secret.
    pub fn into_provider(
        self,
        mode: Mode,
        keys: Option<&DerivedKeys>,
    ) -> Result<IdentityProvider, Vec<FieldError>> {
        let errors = self.errors(mode);
        if !errors.is_empty() {
            return Err(errors);
        }
        let Self {
            issuer,
            audiences,
            endpoint,
            client_id,
            client_secret,
            accept,
            is_guarded,
            ..
        } = self;
        let verify = match (self.verify, endpoint, client_id) {
            (VerifyMethod::Introspection, endpoint, Some(client_id)) => {
                let secret = match (client_secret, keys) {
                    (ClientSecret::New(secret), Some(keys)) => {
                        keys.seal(secret.expose_secret(), &issuer)
                    }
                    (ClientSecret::Stored(secret), _) => secret,
                    _ => return Err(vec![missing_secret()]),
                };
                TokenVerification::Introspection {
                    endpoint,
                    client_id,
                    secret,
                }
            }
            (VerifyMethod::Tokeninfo, Some(endpoint), _) => {
                TokenVerification::Tokeninfo { endpoint }
            }
            (VerifyMethod::Userinfo, ..) => TokenVerification::Userinfo,
            _ => TokenVerification::Jwt,
        };
        Ok(IdentityProvider {
            issuer,
            audiences,
            verify,
            accept,
            is_guarded,
        })
    }

    fn errors(&self, mode: Mode) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let url = |field, url: &str| check_url(url, mode).err().map(|error| (field, error));
        errors.extend(url("issuer", &self.issuer));
        errors.extend({ self.endpoint.as_deref() }.and_then(|text| url("endpoint", text)));
        let is_introspection = self.verify == VerifyMethod::Introspection;
        let is_tokeninfo = self.verify == VerifyMethod::Tokeninfo;
        let mut push = |field, rule, message: &str| errors.push(invalid(field, rule, message));
        if self.endpoint.is_some() && !is_introspection && !is_tokeninfo {
            let message = "requires the verification introspection or tokeninfo; other endpoints are discovered from the issuer";
            push("endpoint", Rule::InvalidFormat, message);
        }
        if is_tokeninfo && self.endpoint.is_none() {
            push("endpoint", Rule::Required, "is required for tokeninfo");
        }
        let has_secret = !matches!(self.client_secret, ClientSecret::None);
        for (field, is_present) in [
            ("client_id", self.client_id.is_some()),
            ("client_secret", has_secret),
        ] {
            if is_present && !is_introspection {
                push(
                    field,
                    Rule::InvalidFormat,
                    "requires the verification introspection",
                );
            } else if !is_present && is_introspection {
                push(field, Rule::Required, "is required for introspection");
            }
        }
        let is_userinfo = self.verify == VerifyMethod::Userinfo;
        if self.accept_any_audience != is_userinfo {
            let message =
                "must be true for userinfo, which does not report an audience, and false otherwise";
            push("accept_any_audience", Rule::InvalidFormat, message);
        }
        if self.audiences.is_empty() != is_userinfo {
            let (rule, message) = if is_userinfo {
                (
                    Rule::InvalidFormat,
                    "must be empty for userinfo, which does not report an audience",
                )
            } else {
                (
                    Rule::Required,
                    "at least one audience is required, unless any audience is accepted",
                )
            };
            push("audiences", rule, message);
        }
        if self.accept.azp && is_userinfo {
            let message = "has no effect if any audience is accepted";
            push("accept_azp", Rule::InvalidFormat, message);
        }
        let is_blank = |audience: &String| audience.trim().is_empty();
        if self.audiences.iter().any(is_blank) {
            push("audiences", Rule::Blank, "must not be blank");
        }
        errors
    }
}

fn missing_secret() -> FieldError {
    invalid(
        "client_secret",
        Rule::Required,
        "is required for introspection",
    )
}

/// Checks that a URL is valid for an issuer or an endpoint.
fn check_url(url: &str, mode: Mode) -> Result<(), ValidationError> {
    url.parse::<Href>()?;
    let invalid = |message: &str| Err(ValidationError::new(Rule::InvalidFormat, message));
    if url.contains(['?', '#']) {
        return invalid("must not have a query or a fragment");
    }
    if mode == Mode::Live && !url.starts_with("https://") {
        return invalid("must start with https:// in live mode");
    }
    Ok(())
}
