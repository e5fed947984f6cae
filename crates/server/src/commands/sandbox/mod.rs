//! `perennial sandbox`: what only a sandbox can do.

use anyhow::bail;
use clap::Subcommand;
use jiff::SignedDuration;
use perennial_domain::Email;
use secrecy::ExposeSecret;

use super::prepare;
use crate::{config::Mode, providers::Sandbox};

mod clock;

/// Try things out.
#[derive(Debug, Subcommand)]
pub enum SandboxCommand {
    /// Print an access token that sign-up and sign-in accept, in place of an identity provider's
    #[command(after_help = "Example:
  TOKEN=$(perennial sandbox token ada@example.com)
  curl $URL/authentication/sign-up -H \"client-id: $CLIENT_ID\" \\
    --json \"{\\\"access_token\\\":\\\"$TOKEN\\\",\\\"email\\\":\\\"ada@example.com\\\"}\"")]
    Token {
        /// Whom it proves; the same address is always the same user
        email: Email,
        /// For how many minutes it is good
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(i64).range(1..=1440))]
        minutes: i64,
    },
    /// See and move the time that subscriptions live in
    #[command(subcommand)]
    Clock(clock::ClockCommand),
}

impl SandboxCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, mode) = prepare::open().await?;
        if mode != Mode::Sandbox {
            bail!(
                "this is a {mode} database; only a sandbox is its own identity provider (see `perennial provider add`) \
                 and has a clock that can be moved"
            );
        }
        let (email, minutes) = match self {
            Self::Clock(command) => return command.run(&db).await,
            Self::Token { email, minutes } => (email, minutes),
        };
        let home = db.home()?.connection().await?;
        let sandbox = Sandbox::of(&prepare::master_key(&home, mode).await?)?;
        let lasts = SignedDuration::from_mins(minutes);
        let token = sandbox.token(&email, prepare::operator().now, lasts);
        println!("{}", token.expose_secret());
        Ok(())
    }
}
