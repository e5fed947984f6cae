//! `perennial config`: which value won, and is it right?

use anyhow::Context;
use clap::Subcommand;
use serde_json::json;

use super::table::Table;
use crate::{
    config::{Config, Reader, reference},
    db,
};

/// Show and check the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every key, its value and where that came from (secrets are not shown)
    Show {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Say everything that is wrong; exit with 1 if anything is
    Check,
    /// Print the reference of all keys in Markdown
    Reference,
}

impl ConfigCommand {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Show { json } => {
                let mut reader = Reader::of_environment();
                let _ = Config::read(&mut reader);
                let mut table = Table::new(["KEY", "VALUE", "FROM"]);
                for setting in &reader.settings {
                    let value = match &setting.value {
                        Some(value) if setting.key.name == "DATABASE_URL" => {
                            &without_password(value)
                        }
                        Some(value) if setting.key.secret && !value.is_empty() => "(secret)",
                        Some(value) => value,
                        None => "",
                    };
                    let origin = setting.origin.to_string();
                    if json {
                        println!(
                            "{}",
                            json!({"key": setting.key.name, "value": value, "from": origin})
                        );
                    }
                    table.add_row([setting.key.name, value, &origin]);
                }
                if !json {
                    table.print();
                }
                for error in &reader.errors {
                    eprintln!("! {error}");
                }
            }
            Self::Check => {
                let config = Config::from_environment()?;
                for (cell, url) in db::addresses(&config.database) {
                    db::Address::parse(url)
                        .with_context(|| format!("the database of the cell {cell}"))?;
                }
                println!("the configuration is right");
            }
            Self::Reference => print!("{}", reference()),
        }
        Ok(())
    }
}

/// Where a database is, and as whom it is asked; the password is nobody's business.
fn without_password(url: &str) -> String {
    let Ok(mut parsed) = url::Url::parse(url) else {
        return "(secret)".to_owned();
    };
    if parsed.password().is_some() {
        let _ = parsed.set_password(Some("***"));
    }
    parsed.into()
}
