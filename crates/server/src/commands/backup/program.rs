//! Runs PostgreSQL's client programs, such as `pg_dump`, on a database.

use std::process::Command;

use anyhow::{Context, anyhow, bail};
use secrecy::{ExposeSecret, SecretString};

use crate::commands::dev::program_path;

/// Returns a command that runs a PostgreSQL program on a database. The password is passed in the
/// environment, because other users can see command lines.
pub fn postgres_command(name: &str, url: &SecretString) -> anyhow::Result<Command> {
    let program = program_path(name).map_err(|_| {
        anyhow!(
            "cannot find PostgreSQL's {name}; install its client programs (Debian: apt install \
             postgresql-client), or use the image's target `backup`"
        )
    })?;
    let mut command = Command::new(program);
    let (url, password) = split_password(url.expose_secret())?;
    if let Some(password) = password {
        command.env("PGPASSWORD", password);
    }
    command.arg("--dbname").arg(url);
    Ok(command)
}

/// Splits the password off a URL, which may have several hosts or none.
fn split_password(url: &str) -> anyhow::Result<(String, Option<String>)> {
    let (scheme, rest) = url.split_once("//").context("the database URL has no //")?;
    if rest.contains("password=") {
        bail!("the password must be part of the URL (postgres://user:password@…), not a parameter");
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let Some((credentials, hosts)) = authority.rsplit_once('@') else {
        return Ok((url.to_owned(), None));
    };
    let (user, password) = match credentials.split_once(':') {
        Some((user, password)) => (user, Some(percent_decode(password))),
        None => (credentials, None),
    };
    Ok((format!("{scheme}//{user}@{hosts}{path}"), password))
}

fn percent_decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8_lossy()
        .into_owned()
}

/// Runs a command to completion. The error contains the command's standard error.
pub fn run(mut command: Command, name: &str) -> anyhow::Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    bail!("{name} failed:\n{}", stderr.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_password_leaves_no_password_in_the_url() {
        for (url, expected_url, expected_password) in [
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
            let (remaining, password) = split_password(url).unwrap();
            assert_eq!(
                (remaining.as_str(), password.as_deref()),
                (expected_url, expected_password),
                "{url}"
            );
        }
        assert!(split_password("postgres://h/db?user=u&password=secret").is_err());
    }
}
