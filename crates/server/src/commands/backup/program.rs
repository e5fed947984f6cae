//! PostgreSQL's own programs, on a database of ours.

use std::process::Command;

use anyhow::{Context, bail};
use secrecy::{ExposeSecret, SecretString};

use crate::commands::dev::program_path;

/// One of PostgreSQL's own programs, on a database. A password goes by the environment, where nobody else on the machine
/// can read it.
pub fn program(name: &str, url: &SecretString) -> anyhow::Result<Command> {
    let mut command = Command::new(program_path(name)?);
    let (url, password) = without_password(url.expose_secret())?;
    if let Some(password) = password {
        command.env("PGPASSWORD", password);
    }
    command.arg("--dbname").arg(url);
    Ok(command)
}

/// An address without its password, and the password. There may be several hosts, or none.
fn without_password(url: &str) -> anyhow::Result<(String, Option<String>)> {
    let (scheme, rest) = url.split_once("//").context("an address has //")?;
    if rest.contains("password=") {
        bail!("give the database's password as postgres://user:password@…, not as a parameter");
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let Some((user, hosts)) = authority.rsplit_once('@') else {
        return Ok((url.to_owned(), None));
    };
    let (user, password) = match user.split_once(':') {
        Some((user, password)) => (user, Some(percent_decoded(password))),
        None => (user, None),
    };
    Ok((format!("{scheme}//{user}@{hosts}{path}"), password))
}

fn percent_decoded(text: &str) -> String {
    let plain = text
        .replace('+', "%2B")
        .replace('=', "%3D")
        .replace('&', "%26");
    url::form_urlencoded::parse(plain.as_bytes())
        .next()
        .map(|(name, _)| name.into_owned())
        .unwrap_or_default()
}

/// Runs it to its end; what it says is told if it fails.
pub fn run(mut command: Command, name: &str) -> anyhow::Result<()> {
    let output = command
        .output()
        .with_context(|| format!("{name} cannot be run"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    bail!("{name} failed:\n{}", said.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_left_in_an_address() {
        for (url, left, password) in [
            (
                "postgres://u:p%40ss+w=&d@h/db?sslmode=require",
                "postgres://u@h/db?sslmode=require",
                Some("p@ss+w=&d"),
            ),
            (
                "postgres://u:secret@h1:5432,h2:5433/db",
                "postgres://u@h1:5432,h2:5433/db",
                Some("secret"),
            ),
            (
                "postgres://u:secret@/db?host=/run/postgresql",
                "postgres://u@/db?host=/run/postgresql",
                Some("secret"),
            ),
            ("postgres://u@h/db", "postgres://u@h/db", None),
            ("postgres://h/db", "postgres://h/db", None),
        ] {
            let (found, secret) = without_password(url).unwrap();
            assert_eq!(
                (found.as_str(), secret.as_deref()),
                (left, password),
                "{url}"
            );
        }
        assert!(without_password("postgres://h/db?user=u&password=secret").is_err());
    }
}
