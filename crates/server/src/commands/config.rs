//! `perennial config`: shows and checks the configuration.

use anyhow::Context;
use clap::Subcommand;
use serde_json::json;
use url::Url;

use super::{security_warnings, text_table::Listing};
use crate::{
    config::{Config, EnvReader, reference},
    db,
};

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every setting, its effective value and where the value comes from; secrets are hidden
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
                        Some(value) if key == "DATABASE_URL" => &mask_database_url(value),
                        Some(value) if key.ends_with("_ENDPOINT") => &mask_user_info(value),
                        Some(value) if setting.var.secret && !value.is_empty() => "(secret)",
                        Some(value) => value,
                        None => "",
                    };
                    let origin = setting.origin.to_string();
                    let object = json!({"key": key, "value": value, "from": origin});
                    list.add([key, value, &origin], &object);
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
                for warning in security_warnings::check_config(&config) {
                    let advice = warning.advice().unwrap_or_default();
                    eprintln!("! {}; {advice}", warning.detail);
                }
                println!("the configuration is valid");
            }
            Self::Reference => print!("{}", reference()),
        }
        Ok(())
    }
}

/// The parameters of a database URL that are printed. The values of all others are hidden.
const PRINTED_PARAMS: &[&str] = &[
    "sslmode",
    "sslrootcert",
    "application_name",
    "connect_timeout",
    "target_session_attrs",
    "options",
    "host",
    "hostaddr",
    "port",
    "user",
    "dbname",
];

/// Hides the password and every parameter that could contain one. Hides the whole URL if its parts are
/// in doubt, as after a password with unescaped characters.
fn mask_database_url(url: &str) -> String {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let Some(mut masked) = mask_base(base) else {
        return "(secret)".to_owned();
    };
    let params = query.split('&').filter(|param| !param.is_empty());
    for (index, param) in params.enumerate() {
        masked.push(if index == 0 { '?' } else { '&' });
        match param.split_once('=') {
            Some((name, _)) if PRINTED_PARAMS.contains(&name) => masked += param,
            Some((name, _)) => masked += &format!("{name}=***"),
            None => masked += "***",
        }
    }
    masked
}

fn mask_base(base: &str) -> Option<String> {
    let mut url = Url::parse(base).ok()?;
    let is_clear = url.has_host() && url.fragment().is_none() && !url.path().contains(['@', ':']);
    if !is_clear {
        return None;
    }
    if url.password().is_some() {
        url.set_password(Some("***")).ok()?;
    }
    Some(url.into())
}

/// Hides user name, password and query of a URL.
fn mask_user_info(url: &str) -> String {
    match Url::parse(url) {
        Ok(parsed) if parsed.username().is_empty() && parsed.query().is_none() => url.to_owned(),
        Ok(mut parsed) => {
            parsed.set_query(None);
            let hidden = parsed.set_username("***").and(parsed.set_password(None));
            hidden.map_or("(secret)".to_owned(), |()| parsed.into())
        }
        Err(_) => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_url_is_printed_without_password() {
        for (url, expected) in [
            ("postgres://u@h:1/x", "postgres://u@h:1/x"),
            ("postgres://u:hunter2@h/x", "postgres://u:***@h/x"),
            (
                "postgres://h/x?sslmode=require&password=hunter2",
                "postgres://h/x?sslmode=require&password=***",
            ),
            (
                "postgres://h/x?PASSWORD=hunter2&unknown=hunter2",
                "postgres://h/x?PASSWORD=***&unknown=***",
            ),
            // Passwords that should have been escaped.
            ("postgres://u:12?hunter2@h/x", "postgres://u:12?***"),
            ("postgres://u:12#hunter2@h/x", "(secret)"),
            ("postgres://u:12/hunter2@h/x", "(secret)"),
            ("postgres://u:hunter2/3@h/x", "(secret)"),
            ("host=h password=hunter2", "(secret)"),
        ] {
            assert_eq!(mask_database_url(url), expected);
        }
    }

    #[test]
    fn collector_url_is_printed_without_user_info() {
        let plain = "http://127.0.0.1:4318";
        assert_eq!(mask_user_info(plain), plain);
        for secret in ["https://u:hunter2@h/v1", "https://h/v1?key=hunter2"] {
            assert!(!mask_user_info(secret).contains("hunter2"));
        }
    }
}
