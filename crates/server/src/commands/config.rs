//! `perennial config`: shows and checks the configuration.

use anyhow::Context;
use clap::Subcommand;
use serde_json::json;

use super::text_table::Listing;
use crate::{
    config::{Config, EnvReader, reference},
    db,
};

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every setting, its value and where the value comes from; secrets are hidden
    Show {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Report every invalid setting; exits with 1 if there is one
    Check,
    /// Print the reference of all settings in Markdown
    Reference,
}

impl ConfigCommand {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Show { json } => {
                let mut reader = EnvReader::from_env();
                // The reader collects the errors, which are printed after the settings.
                let _ = Config::read(&mut reader);
                let mut list = Listing::new(["KEY", "VALUE", "FROM"], json);
                for setting in &reader.settings {
                    let key = setting.var.name;
                    let value = match &setting.value {
                        Some(value) if key == "DATABASE_URL" => &mask_password(value),
                        Some(value) if setting.var.secret && !value.is_empty() => "(secret)",
                        Some(value) => value,
                        None => "",
                    };
                    let origin = setting.origin.to_string();
                    let object = json!({"key": key, "value": value, "from": origin});
                    list.add([key, value, &origin], object);
                }
                list.print();
                for error in &reader.errors {
                    eprintln!("! {error}");
                }
            }
            Self::Check => {
                let config = Config::from_env()?;
                for (cell, url) in db::cell_urls(&config.database) {
                    db::ConnectOptions::parse(url)
                        .with_context(|| format!("database of cell {cell}"))?;
                }
                println!("the configuration is valid");
            }
            Self::Reference => print!("{}", reference()),
        }
        Ok(())
    }
}

fn mask_password(url: &str) -> String {
    let Ok(mut parsed) = url::Url::parse(url) else {
        return "(secret)".to_owned();
    };
    if parsed.password().is_some() {
        let _ = parsed.set_password(Some("***"));
    }
    parsed.into()
}
