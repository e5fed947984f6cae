//! The kinds of tokens that a provider issues, and which of them a tenant accepts.
//!
//! A provider signs access tokens, ID tokens, logout tokens and security events with the same keys,
//! and some providers put the same audience into all of them. A signature alone does not make a
//! token an access token. `docs/decisions/0009` explains the rules.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use super::TokenError;

/// The tokens that a provider may use beyond access tokens for one of its audiences. By default none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AcceptedTokens {
    pub id_tokens: bool,
    /// Tokens bound to a key or certificate. The binding is not checked.
    pub bound_tokens: bool,
    /// The claim `azp`, or `client_id` of an introspection response, counts as an audience.
    pub azp: bool,
}

impl AcceptedTokens {
    /// Returns the flags of `perennial provider add` that were used, separated by spaces.
    pub fn flags(self) -> String {
        let flags = [
            (self.id_tokens, "--accept-id-tokens"),
            (self.bound_tokens, "--accept-bound-tokens"),
            (self.azp, "--accept-azp"),
        ];
        let used = flags.iter().filter(|(is_used, _)| *is_used);
        used.map(|(_, flag)| *flag).collect::<Vec<_>>().join(" ")
    }
}

/// The claims that show a token's kind, in a JWT or in an introspection response.
#[derive(Deserialize)]
pub(super) struct TokenKindClaims {
    /// Keycloak: `Bearer`, `ID`, `Refresh`, `Offline` or `Logout`.
    typ: Option<Value>,
    /// Amazon Cognito: `access` or `id`. Ory Hydra: `access_token` or `refresh_token`.
    token_use: Option<Value>,
    /// Introspection: `Bearer` or `DPoP`; some providers have `refresh_token`.
    token_type: Option<Value>,
    /// Security events (RFC 8417), such as logout tokens.
    events: Option<IgnoredAny>,
    /// The key or certificate that the token is bound to (RFC 7800).
    cnf: Option<IgnoredAny>,
    nonce: Option<IgnoredAny>,
    at_hash: Option<IgnoredAny>,
    c_hash: Option<IgnoredAny>,
    s_hash: Option<IgnoredAny>,
    scope: Option<IgnoredAny>,
    /// The scopes of a token of Microsoft Entra or Okta.
    scp: Option<IgnoredAny>,
}

/// The kind that the header field `typ` of a JWT states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderType {
    /// None, or `JWT`, which every kind can have.
    Unspecific,
    /// `at+jwt` (RFC 9068).
    AccessToken,
}

impl HeaderType {
    /// Parses the header field `typ`. Rejects every explicit type (RFC 8725, section 3.11) except
    /// that of access tokens.
    pub(super) fn parse(typ: Option<&str>) -> Result<Self, TokenError> {
        let typ = typ.unwrap_or_default().to_ascii_lowercase();
        match typ.strip_prefix("application/").unwrap_or(&typ) {
            "at+jwt" => Ok(Self::AccessToken),
            "logout+jwt" => Err(never_accepted("logout token")),
            "secevent+jwt" => Err(never_accepted("security event token")),
            other if other.ends_with("+jwt") => Err(TokenError::invalid(
                "not an access token according to its header field typ; cannot be accepted",
            )),
            _ => Ok(Self::Unspecific),
        }
    }
}

impl TokenKindClaims {
    /// Checks that tokens of this kind are accepted. `is_for_its_client` tells that the only
    /// audience of a JWT is the client that requested it, as in ID tokens.
    pub(super) fn check(
        &self,
        accepted: AcceptedTokens,
        header: HeaderType,
        is_for_its_client: bool,
    ) -> Result<(), TokenError> {
        if self.events.is_some() || is_one_of(self.typ.as_ref(), &["logout"]) {
            return Err(never_accepted("logout token or security event token"));
        }
        if self.is_refresh_token() {
            return Err(never_accepted("refresh token"));
        }
        if !accepted.id_tokens && self.is_id_token(header, is_for_its_client) {
            return Err(TokenError::invalid(
                "an ID token; send the access token, or add the provider with --accept-id-tokens",
            ));
        }
        let is_bound = self.cnf.is_some() || is_one_of(self.token_type.as_ref(), &["dpop"]);
        if !accepted.bound_tokens && is_bound {
            return Err(TokenError::invalid(
                "bound to a key or certificate (claim cnf); send a bearer token, or add the provider with \
                 --accept-bound-tokens, which does not check the binding",
            ));
        }
        Ok(())
    }

    fn is_refresh_token(&self) -> bool {
        is_one_of(self.typ.as_ref(), &["refresh", "offline"])
            || is_one_of(self.token_use.as_ref(), &["refresh", "refresh_token"])
            || is_one_of(self.token_type.as_ref(), &["refresh", "refresh_token"])
    }

    /// Returns whether the token says that it is an ID token, or has the form of one and nothing
    /// that only access tokens have.
    fn is_id_token(&self, header: HeaderType, is_for_its_client: bool) -> bool {
        let (typ, token_use) = (self.typ.as_ref(), self.token_use.as_ref());
        if is_one_of(typ, &["id"]) || is_one_of(token_use, &["id", "id_token"]) {
            return true;
        }
        let is_access_token = header == HeaderType::AccessToken
            || self.scope.is_some()
            || self.scp.is_some()
            || is_one_of(typ, &["bearer"])
            || is_one_of(token_use, &["access", "access_token"]);
        let has_id_token_claim = [&self.nonce, &self.at_hash, &self.c_hash, &self.s_hash]
            .into_iter()
            .any(Option::is_some);
        !is_access_token && (has_id_token_claim || is_for_its_client)
    }
}

/// Returns whether the claim is one of these strings, ignoring case.
fn is_one_of(claim: Option<&Value>, names: &[&str]) -> bool {
    let text = claim.and_then(Value::as_str);
    text.is_some_and(|text| names.iter().any(|name| name.eq_ignore_ascii_case(text)))
}

fn never_accepted(kind: &str) -> TokenError {
    TokenError::invalid(format!("a {kind}, which is never accepted"))
}
