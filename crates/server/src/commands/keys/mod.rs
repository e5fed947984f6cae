//! `perennial keys`: the master key, and the keys that sign access tokens.

use anyhow::bail;
use clap::Subcommand;
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;
use serde_json::json;

use super::{
    bootstrap,
    terminal::{eprint_wrapped, print_wrapped},
    text_table::Listing,
};
use crate::{
    auth::tokens::{self, KeyRotation, SigningAlgorithm, table},
    config::MasterKey,
    db::PooledConnection,
    randomness::Randomness,
};

mod rewrap;
mod rewrap_payments_sql;
mod rewrap_sql;

#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Print a new master key for PERENNIAL_MASTER_KEY or PERENNIAL_MASTER_KEY_FILE
    GenerateMaster,
    /// List the keys that sign access tokens
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Create a new signing key for access tokens and retire the old ones
    ///
    /// The new key is published immediately at /.well-known/jwks.json. It starts to sign after a
    /// delay, so that services that verify access tokens have loaded it by then. Old keys are
    /// accepted until their last token has expired.
    #[command(after_help = "Examples:
  perennial keys rotate
  perennial keys rotate --algorithm ES256
  perennial keys rotate --refuse-old

Use --refuse-old after a leak: it invalidates all access tokens, and each
session gets a new one at its next refresh.")]
    Rotate {
        /// EdDSA, or ES256 for services that cannot verify EdDSA
        #[arg(long, default_value_t = SigningAlgorithm::EdDsa)]
        algorithm: SigningAlgorithm,
        /// Seconds until the new key starts to sign
        #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(i64).range(0..=86_400))]
        after: i64,
        /// Sign with the new key immediately and refuse tokens signed by older keys
        #[arg(long, conflicts_with = "after")]
        refuse_old: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Replace the master key: put PERENNIAL_MASTER_KEY into use instead of the previous key
    ///
    /// Run it when every instance has been restarted with PERENNIAL_MASTER_KEY set to the new key and
    /// PERENNIAL_MASTER_KEY_PREVIOUS to the old one. All instances change to the new key within a second,
    /// and then everything that the old key protects is protected by the new one. Requests are served
    /// meanwhile, and no user is signed out. If the command is interrupted, run it again.
    #[command(after_help = "Examples:
  perennial keys rewrap --status    what still needs the previous key
  perennial keys rewrap

After a leak, also run `perennial session revoke --all --yes` and
`perennial keys rotate --refuse-old`; see /docs/runbooks/leaked-master-key.")]
    Rewrap {
        /// Print what still needs the previous key, and change nothing
        #[arg(long)]
        status: bool,
    },
}

impl KeysCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::GenerateMaster => {
                let master = MasterKey::generate(Randomness).to_text();
                println!("{}", master.expose_secret());
                eprint_wrapped(
                    "Store it separately from the database and keep a copy: data encrypted with it cannot be read without it.",
                );
                Ok(())
            }
            Self::List { json } => {
                let (db, _) = bootstrap::open().await?;
                list(&db.home()?.connection().await?, json).await
            }
            Self::Rotate {
                algorithm,
                after,
                refuse_old,
                json,
            } => {
                let rotation = KeyRotation {
                    after: SignedDuration::from_secs(if refuse_old { 0 } else { after }),
                    refuse_old,
                };
                rotate(algorithm, rotation, json).await
            }
            Self::Rewrap { status } => rewrap::run(status).await,
        }
    }
}

async fn rotate(
    algorithm: SigningAlgorithm,
    rotation: KeyRotation,
    json: bool,
) -> anyhow::Result<()> {
    let (db, mode) = bootstrap::open().await?;
    let mut home = db.home()?.connection().await?;
    let keys = bootstrap::derived_keys(&home, mode).await?;
    let context = bootstrap::system_context();
    let (id, signs_from) =
        tokens::rotate_signing_key(&mut home, context, &keys, algorithm, rotation).await?;
    let id = id.simple();
    if json {
        let object = json!({"id": id.to_string(), "signs_from": signs_from.to_string()});
        println!("{object}");
    } else if rotation.refuse_old {
        print_wrapped(&format!(
            "created key {id}, which signs immediately; tokens signed by older keys are refused within a second"
        ));
    } else {
        print_wrapped(&format!(
            "created key {id}, which signs from {signs_from:.0}; older keys are retired after that"
        ));
    }
    Ok(())
}

async fn list(home: &PooledConnection, json: bool) -> anyhow::Result<()> {
    let keys = table::list(home).await?;
    if keys.is_empty() && !json {
        bail!("there is no signing key yet; `perennial serve` creates the first one");
    }
    let now = bootstrap::system_context().now;
    let signing = keys.iter().rev().find(|key| key.validity.can_sign(now));
    let signing = signing.map(|key| key.id);
    let mut list = Listing::new(
        ["ID", "ALGORITHM", "STATE", "SIGNS FROM", "ACCEPTED UNTIL"],
        json,
    );
    for key in &keys {
        let validity = &key.validity;
        let state = if signing == Some(key.id) {
            "signs"
        } else if !validity.is_accepted(now) {
            "refused"
        } else if validity.signs_from > now {
            "published"
        } else {
            "accepted"
        };
        let format_to_second = |instant: Timestamp| format!("{instant:.0}");
        let (id, algorithm) = (key.id.simple().to_string(), key.algorithm.as_str());
        let object = json!({
            "id": id,
            "algorithm": algorithm,
            "state": state,
            "created_at": key.created_at.to_string(),
            "signs_from": validity.signs_from.to_string(),
            "accepted_until": validity.accepted_until.map(|until| until.to_string()),
        });
        let until = validity
            .accepted_until
            .map_or_else(String::new, format_to_second);
        let signs_from = format_to_second(validity.signs_from);
        list.add([&id, algorithm, state, &signs_from, &until], &object);
    }
    list.print();
    Ok(())
}
