//! `perennial keys`: the master key, and the keys that sign access tokens.

use anyhow::bail;
use clap::Subcommand;
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;
use serde_json::json;

use super::{
    prepare,
    screen::{note, say},
    table::Table,
};
use crate::{
    callers::tokens::{
        self, Algorithm, Rotation,
        table::{self, Listed},
    },
    config::MasterKey,
    db::Connection,
    randomness::Randomness,
};

/// Make, list and rotate keys.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Print a new master key, for PERENNIAL_MASTER_KEY or the file of PERENNIAL_MASTER_KEY_FILE
    GenerateMaster,
    /// List the keys that sign access tokens
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Make a new key that signs access tokens, and let the old ones run out
    ///
    /// The new key is published at once, at /.well-known/jwks.json, and signs after a while, so that other services
    /// that verify our tokens have seen it by then. Old keys are accepted until their last token has ended.
    #[command(after_help = "Examples:
  perennial keys rotate
  perennial keys rotate --algorithm ES256
  perennial keys rotate --refuse-old

The last is for after a leak: access tokens are refused, and everybody's next
refresh brings a new one.")]
    Rotate {
        /// EdDSA, or ES256 for services that cannot verify it
        #[arg(long, default_value_t = Algorithm::EdDsa)]
        algorithm: Algorithm,
        /// After how many seconds the new key begins to sign
        #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(i64).range(0..=86_400))]
        after: i64,
        /// Sign with the new key at once, and refuse all that the old ones have signed
        #[arg(long, conflicts_with = "after")]
        refuse_old: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

impl KeysCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::GenerateMaster => {
                let master = MasterKey::generate(Randomness).to_text();
                println!("{}", master.expose_secret());
                note(
                    "Keep it apart from the database, and keep a copy: what is encrypted under it cannot be read without it.",
                );
                Ok(())
            }
            Self::List { json } => {
                let (db, _) = prepare::open().await?;
                list(&db.home()?.connection().await?, json).await
            }
            Self::Rotate {
                algorithm,
                after,
                refuse_old,
                json,
            } => {
                let rotation = Rotation {
                    after: SignedDuration::from_secs(if refuse_old { 0 } else { after }),
                    refuse_old,
                };
                rotate(algorithm, rotation, json).await
            }
        }
    }
}

async fn rotate(algorithm: Algorithm, rotation: Rotation, json: bool) -> anyhow::Result<()> {
    let (db, mode) = prepare::open().await?;
    let mut home = db.home()?.connection().await?;
    let sealing = prepare::sealing_key(&home, mode).await?;
    let operator = prepare::operator();
    let rotated = tokens::rotate(&mut home, operator, &sealing, algorithm, rotation).await?;
    let (id, signs_from) = (rotated.0.simple(), rotated.1);
    if json {
        let shown = json!({"id": id.to_string(), "signs_from": signs_from.to_string()});
        println!("{shown}");
    } else if rotation.refuse_old {
        say(&format!(
            "made the key {id}, which signs from now on; what older keys have signed is refused within a second"
        ));
    } else {
        say(&format!(
            "made the key {id}, which signs from {signs_from:.0} on; older ones run out after that"
        ));
    }
    Ok(())
}

async fn list(home: &Connection, json: bool) -> anyhow::Result<()> {
    let all = table::list(home).await?;
    if all.is_empty() && !json {
        bail!("there is no key yet; `perennial serve` makes the first one");
    }
    let now = prepare::operator().now;
    let signing = all.iter().rev().find(|key| key.times.signs(now));
    let signing = signing.map(|key| key.id);
    let mut shown = Table::new(["ID", "ALGORITHM", "STATE", "SIGNS FROM", "ACCEPTED UNTIL"]);
    for key in &all {
        let Listed {
            id,
            algorithm,
            created_at,
            times,
        } = key;
        let state = if signing == Some(*id) {
            "signs"
        } else if !times.accepts(now) {
            "refused"
        } else if times.signs_from > now {
            "published"
        } else {
            "accepted"
        };
        let text = |instant: Timestamp| format!("{instant:.0}");
        let id = id.simple().to_string();
        if json {
            let key = json!({
                "id": id,
                "algorithm": algorithm.as_str(),
                "state": state,
                "created_at": created_at.to_string(),
                "signs_from": times.signs_from.to_string(),
                "accepted_until": times.accepted_until.map(|until| until.to_string()),
            });
            println!("{key}");
        } else {
            let until = times.accepted_until.map_or_else(String::new, text);
            let row = [
                &id,
                algorithm.as_str(),
                state,
                &text(times.signs_from),
                &until,
            ];
            shown.add_row(row);
        }
    }
    if !json {
        shown.print();
    }
    Ok(())
}
