//! `perennial provider check`: what a provider publishes, and whom a token of its proves.

use std::io::Read;

use anyhow::Context;
use serde_json::json;

use crate::{
    commands::prepare,
    keys::SealingKey,
    providers::{Identity, Key, Patience, Provider, Providers, Published, Refusal},
};

/// Asks the provider, holds the token against it if there is one, and says what came of it.
pub(super) async fn check(
    provider: Provider,
    sealing: SealingKey,
    token: Option<&str>,
    json: bool,
) -> anyhow::Result<()> {
    let providers = Providers::new(Patience::default(), sealing, None)?;
    let published = providers.published(&provider.issuer).await?;
    let identity = match token {
        None => None,
        Some(file) => {
            let token = read(file).with_context(|| format!("--token {file}"))?;
            let now = prepare::operator().now;
            let listed = [provider.clone()];
            Some(providers.verify(&listed, token.trim(), now).await)
        }
    };
    if json {
        println!("{}", in_json(&provider, &published, identity.as_ref()));
    } else {
        in_words(&provider, &published, identity.as_ref());
    }
    match identity {
        Some(Err(refusal)) => Err(refusal.into()),
        _ => Ok(()),
    }
}

fn in_words(
    provider: &Provider,
    published: &Published,
    identity: Option<&Result<Identity, Refusal>>,
) {
    println!("issuer: {}, answers", provider.issuer);
    println!("verify: {}", provider.verify.as_str());
    println!("audiences: {}", provider.audiences.join(" "));
    for key in &published.keys {
        let algorithm = key.algorithm.map(|algorithm| format!("{algorithm:?}"));
        println!("key: {} {}", key.id, algorithm.unwrap_or_default());
    }
    match &published.userinfo_endpoint {
        Some(endpoint) => println!("userinfo: {endpoint}, for tokens that carry no e-mail address"),
        None => println!("userinfo: none; tokens must carry the e-mail address"),
    }
    if let Some(Ok(identity)) = identity {
        println!("the token proves: subject {}", identity.subject);
        match (&identity.email, identity.email_verified) {
            (None, _) => println!("e-mail: none, so nobody could sign up with it"),
            (Some(email), true) => println!("e-mail: {email}, verified"),
            (Some(email), false) => println!("e-mail: {email}, not verified, and so not accepted"),
        }
    }
}

fn in_json(
    provider: &Provider,
    published: &Published,
    identity: Option<&Result<Identity, Refusal>>,
) -> serde_json::Value {
    let shown = |key: &Key| json!({"kid": key.id, "alg": key.algorithm.map(|a| format!("{a:?}"))});
    let keys: Vec<_> = published.keys.iter().map(shown).collect();
    let token = identity.map(|identity| match identity {
        Ok(identity) => json!({
            "subject": identity.subject,
            "email": identity.email,
            "email_verified": identity.email_verified,
        }),
        Err(refusal) => json!({"refused": refusal.to_string()}),
    });
    json!({
        "issuer": provider.issuer,
        "audiences": provider.audiences,
        "verify": provider.verify.as_str(),
        "keys": keys,
        "userinfo_endpoint": published.userinfo_endpoint,
        "token": token,
    })
}

fn read(file: &str) -> std::io::Result<String> {
    if file == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        Ok(text)
    } else {
        std::fs::read_to_string(file)
    }
}
