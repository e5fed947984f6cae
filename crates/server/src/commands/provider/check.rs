//! `perennial provider check`: fetches a provider's published metadata and verifies a token.

use std::io::Read;

use anyhow::Context;
use serde_json::json;

use crate::{
    commands::bootstrap,
    crypto::DerivedKeys,
    http::outbound::AddressGuard,
    identity_providers::{
        DiscoveryTiming, Identity, IdentityProvider, IdentityVerifier, ProviderKey,
        ProviderMetadata, TokenError,
    },
};

/// Fetches the provider's metadata, verifies the token in `token_file` (`-` for stdin) if given, and
/// prints the result.
pub(super) async fn check(
    provider: IdentityProvider,
    keys: DerivedKeys,
    guard: AddressGuard,
    token_file: Option<&str>,
    json: bool,
) -> anyhow::Result<()> {
    let verifier = IdentityVerifier::new(DiscoveryTiming::default(), keys, None, guard)?;
    let metadata = verifier.metadata(&provider).await?;
    let identity = match token_file {
        None => None,
        Some(file) => {
            let token = read_file_or_stdin(file).with_context(|| format!("--token {file}"))?;
            let now = bootstrap::system_context().now;
            let accepted = [provider.clone()];
            Some(verifier.verify(&accepted, token.trim(), now).await)
        }
    };
    if json {
        println!("{}", to_json(&provider, &metadata, identity.as_ref()));
    } else {
        print(&provider, &metadata, identity.as_ref());
    }
    match identity {
        Some(Err(error)) => Err(error.into()),
        _ => Ok(()),
    }
}

fn print(
    provider: &IdentityProvider,
    metadata: &ProviderMetadata,
    identity: Option<&Result<Identity, TokenError>>,
) {
    println!("issuer: {}, reachable", provider.issuer);
    println!("verify: {}", provider.verify.as_str());
    println!("audiences: {}", provider.audiences.join(" "));
    println!("accepts: {}", accepted_tokens(provider));
    for key in &metadata.keys {
        let algorithm = key.algorithm.map(|algorithm| format!("{algorithm:?}"));
        println!("key: {} {}", key.id, algorithm.unwrap_or_default());
    }
    match &metadata.userinfo_endpoint {
        Some(endpoint) => println!("userinfo: {endpoint}, for tokens without an email address"),
        None => println!("userinfo: none; tokens must contain the email address"),
    }
    if let Some(Ok(identity)) = identity {
        println!("token: valid, subject {}", identity.subject);
        if let Some(at) = identity.authenticated_at {
            println!("authenticated: {at}");
        }
        match (&identity.email, identity.email_verified) {
            (None, _) => println!("email: none, so the token cannot be used to sign up"),
            (Some(email), true) => println!("email: {email}, verified"),
            (Some(email), false) => println!("email: {email}, not verified, so it is not accepted"),
        }
    }
}

/// Describes the accepted tokens with the flags that the provider was added with.
fn accepted_tokens(provider: &IdentityProvider) -> String {
    match provider.accept.flags() {
        flags if flags.is_empty() => "access tokens".to_owned(),
        flags => format!("access tokens, {flags}"),
    }
}

fn to_json(
    provider: &IdentityProvider,
    metadata: &ProviderMetadata,
    identity: Option<&Result<Identity, TokenError>>,
) -> serde_json::Value {
    let key_json =
        |key: &ProviderKey| json!({"kid": key.id, "alg": key.algorithm.map(|a| format!("{a:?}"))});
    let keys: Vec<_> = metadata.keys.iter().map(key_json).collect();
    let token = identity.map(|identity| match identity {
        Ok(identity) => json!({
            "subject": identity.subject,
            "email": identity.email,
            "email_verified": identity.email_verified,
            "authenticated_at": identity.authenticated_at.map(|at| at.to_string()),
        }),
        Err(error) => json!({"refused": error.to_string()}),
    });
    json!({
        "issuer": provider.issuer,
        "audiences": provider.audiences,
        "verify": provider.verify.as_str(),
        "accept_id_tokens": provider.accept.id_tokens,
        "accept_bound_tokens": provider.accept.bound_tokens,
        "accept_azp": provider.accept.azp,
        "keys": keys,
        "userinfo_endpoint": metadata.userinfo_endpoint,
        "token": token,
    })
}

fn read_file_or_stdin(file: &str) -> std::io::Result<String> {
    if file == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        Ok(text)
    } else {
        std::fs::read_to_string(file)
    }
}
