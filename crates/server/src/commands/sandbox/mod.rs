//! `perennial sandbox`: test tokens and a simulated clock, in sandbox mode only.

use anyhow::bail;
use clap::Subcommand;
use jiff::SignedDuration;
use perennial_domain::Email;
use secrecy::ExposeSecret;

use super::bootstrap;
use crate::{config::Mode, identity_providers::SandboxProvider};

mod clock;

#[derive(Debug, Subcommand)]
pub enum SandboxCommand {
    /// Print an access token that sign-up and sign-in accept instead of an identity provider's
    /// token
    #[command(after_help = "Example:
  TOKEN=$(perennial sandbox token ada@example.com)
  curl $URL/authentication/sign-up -H \"client-id: $CLIENT_ID\" \\
    --json \"{\\\"access_token\\\":\\\"$TOKEN\\\",\\\"email\\\":\\\"ada@example.com\\\"}\"")]
    Token {
        /// The user's email address; the same address always identifies the same user
        email: Email,
        /// Minutes until the token expires
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(i64).range(1..=1440))]
        minutes: i64,
    },
    /// Show and move the billing clock
    #[command(subcommand)]
    Clock(clock::ClockCommand),
}

impl SandboxCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, mode) = bootstrap::open().await?;
        if mode != Mode::Sandbox {
            bail!(
                "this database is in {mode} mode; test tokens and the billing clock require sandbox mode \
                 (for real tokens, see `perennial provider add`)"
            );
        }
        let (email, minutes) = match self {
            Self::Clock(command) => return command.run(&db).await,
            Self::Token { email, minutes } => (email, minutes),
        };
        let home = db.home()?.connection().await?;
        let provider = SandboxProvider::new(&bootstrap::derived_keys(&home, mode).await?)?;
        let lifetime = SignedDuration::from_mins(minutes);
        let token = provider.issue_token(&email, bootstrap::system_context().now, lifetime)?;
        println!("{}", token.expose_secret());
        Ok(())
    }
}
