//! The guide `docs/how-to/connect-an-identity-provider.md`: its commands work, and accept the tokens that
//! it shows.

use jiff::Timestamp;
use perennial::identity_providers::AcceptedTokens;
use serde_json::{Value, json};

use super::token_kinds::Fixture;
use crate::{
    architecture::crate_path,
    harness::{
        database::Database,
        identity_provider::{IssuerBehavior, OpenIdProvider},
        process::{perennial, run_ok, sandbox},
    },
};

/// The sections whose commands are for `accounts.example.com`.
const FIRST_SECTIONS: [&str; 2] = ["Add the provider", "Test a token"];

/// A code block of the guide, with the heading above it.
struct CodeBlock {
    heading: String,
    language: String,
    text: String,
}

fn code_blocks() -> Vec<CodeBlock> {
    let path = crate_path("../../docs/how-to/connect-an-identity-provider.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let mut blocks = Vec::new();
    let (mut heading, mut open) = (String::new(), None::<CodeBlock>);
    for line in guide.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text += line;
                block.text += "\n";
            }
            (None, Some(language)) => {
                open = Some(CodeBlock {
                    heading: heading.clone(),
                    language: language.to_owned(),
                    text: String::new(),
                });
            }
            (None, None) => {
                if let Some((_, title)) = line.split_once("# ") {
                    title.clone_into(&mut heading);
                }
            }
        }
    }
    blocks
}

/// Returns the arguments of each `perennial` command, after the program's name.
fn commands(block: &CodeBlock) -> Vec<Vec<String>> {
    let joined = block.text.replace("\\\n", " ");
    let lines = joined
        .lines()
        .filter_map(|line| line.strip_prefix("$ perennial "));
    lines
        .map(|line| line.split_whitespace().map(str::to_owned).collect())
        .collect()
}

/// `accounts.example.com` of the guide is the local provider.
#[tokio::test]
async fn first_commands_of_the_guide_add_and_check_a_provider() {
    let provider = OpenIdProvider::start().await;
    let database = Database::create().await;
    let variables = sandbox(&database.url);
    let mut checked = 0;
    let is_first = |block: &CodeBlock| FIRST_SECTIONS.contains(&block.heading.as_str());
    for block in code_blocks().into_iter().filter(is_first) {
        for arguments in commands(&block) {
            let token = arguments.iter().any(|argument| argument == "--token");
            let arguments: Vec<String> = arguments
                .iter()
                .take_while(|argument| *argument != "<")
                .map(|argument| argument.replace("https://accounts.example.com", &provider.issuer))
                .collect();
            let mut command = perennial();
            command.args(&arguments).envs(&variables);
            if token {
                let options = json!({"sub": "1048-77", "email": "ada@example.com", "email_verified": true,
                    "audience": "my-product", "alg": "EdDSA", "in_token": true});
                let file =
                    std::env::temp_dir().join(format!("perennial-guide-{}", std::process::id()));
                std::fs::write(&file, provider.mint(options).await).unwrap();
                command.stdin(std::fs::File::open(&file).unwrap());
                std::fs::remove_file(&file).unwrap();
            }
            let output = command.output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(
                output.status.success(),
                "{arguments:?}: {text} {}",
                String::from_utf8_lossy(&output.stderr)
            );
            // Each printed line starts as in the guide.
            for line in block.text.lines() {
                let label = line.split_once(':').map(|(label, _)| label);
                let is_shown = label.is_some_and(|label| label.chars().all(char::is_alphabetic));
                if is_shown && !line.starts_with('$') {
                    let label = format!("{}:", label.unwrap());
                    assert!(
                        arguments[1] == "add" || text.contains(&label),
                        "{label} is not in {text}"
                    );
                }
            }
            checked += 1;
        }
    }
    assert_eq!(checked, 3);
}

/// Runs the command of each provider's section, and verifies the token of the same section with the
/// audiences and flags that it stored. The flags must be needed.
#[tokio::test]
async fn commands_for_each_provider_accept_the_token_that_the_guide_shows() {
    let database = Database::create().await;
    let variables = sandbox(&database.url);
    let connection = database.connect().await;
    let fixture = Fixture::new().await;
    let mut stored: Option<Value> = None;
    let mut sections = Vec::new();
    for block in code_blocks() {
        match block.language.as_str() {
            "console" if !FIRST_SECTIONS.contains(&block.heading.as_str()) => {
                for arguments in commands(&block) {
                    connection
                        .execute("DELETE FROM identity_providers", &[])
                        .await
                        .unwrap();
                    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                    run_ok(&variables, &arguments);
                    let listed = run_ok(&variables, &["provider", "list", "--json"]);
                    stored = Some(serde_json::from_str(&listed).unwrap());
                }
            }
            "json" => {
                let stored = stored.take().expect("a command above the token");
                let shown: Value = serde_json::from_str(&block.text).unwrap();
                assert_eq!(shown["iss"], stored["issuer"], "{}", block.heading);
                let now = Timestamp::now().as_second();
                let mut claims = shown.clone();
                claims["iss"] = json!(fixture.issuer.issuer);
                (claims["iat"], claims["exp"]) = (json!(now), json!(now + 300));
                for absent in ["email", "email_verified", "aud"] {
                    if shown.get(absent).is_none() {
                        claims[absent] = Value::Null;
                    }
                }
                let userinfo = json!({"sub": shown["sub"], "email": "ada@example.com", "email_verified": true});
                let keys = fixture.issuer.keys.clone();
                fixture.issuer.set_behavior(IssuerBehavior::Userinfo(
                    keys,
                    200,
                    userinfo.to_string(),
                ));
                let token = fixture.issuer.token_of_type(Some("JWT"), &claims);
                let flag = |name: &str| stored[name] == true;
                let accept = AcceptedTokens {
                    id_tokens: flag("accept_id_tokens"),
                    bound_tokens: flag("accept_bound_tokens"),
                    azp: flag("accept_azp"),
                };
                let audiences = stored["audiences"].as_array().unwrap().iter();
                let audiences: Vec<&str> = audiences
                    .map(|audience| audience.as_str().unwrap())
                    .collect();
                let identity = fixture.verify(&audiences, accept, &token).await;
                let identity =
                    identity.unwrap_or_else(|error| panic!("{}: {error}", block.heading));
                assert_eq!(
                    identity.email.as_deref(),
                    Some("ada@example.com"),
                    "{}",
                    block.heading
                );
                assert!(identity.email_verified, "{}", block.heading);
                let default = AcceptedTokens::default();
                let without_flags = fixture.verify(&audiences, default, &token).await;
                assert_eq!(
                    without_flags.is_ok(),
                    accept == default,
                    "{}: {without_flags:?}",
                    block.heading
                );
                sections.push(block.heading);
            }
            _ => {}
        }
    }
    assert_eq!(
        sections,
        [
            "Google",
            "Microsoft Entra",
            "Apple",
            "Auth0",
            "Keycloak",
            "Clerk",
            "Clerk",
            "Supabase"
        ]
    );
}
