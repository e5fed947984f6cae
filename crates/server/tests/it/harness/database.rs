//! A database per test, cloned from a template that was migrated once.

use std::process::Command;

use sha2::{Digest, Sha256};
use tokio_postgres::{Client, NoTls};

use super::process::perennial;

/// The server that holds the tests' databases; `tools/postgres` finds or starts one.
fn server() -> String {
    std::env::var("TEST_DATABASE_URL")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned())
}

/// The same server, another database.
fn url_of(name: &str) -> String {
    let server = server();
    let (base, _) = server.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}

/// A session, for looking behind the service's back.
pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A database of one's own; dropped with this value.
pub struct Database {
    name: String,
    pub url: String,
}

impl Database {
    /// Migrated, in sandbox mode.
    pub async fn create() -> Self {
        let template = template().await;
        Self::make(&format!("TEMPLATE {template}")).await
    }

    /// With nothing in it.
    pub async fn empty() -> Self {
        Self::make("").await
    }

    async fn make(how: &str) -> Self {
        let random: [u8; 8] = perennial::randomness::Randomness.bytes();
        let name = format!("perennial_test_{:016x}", u64::from_le_bytes(random));
        let admin = connect(&server()).await;
        admin
            .batch_execute(&format!("CREATE DATABASE {name} {how}"))
            .await
            .unwrap();
        Self {
            url: url_of(&name),
            name,
        }
    }

    pub async fn connect(&self) -> Client {
        connect(&self.url).await
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let _ = Command::new("psql")
            .args(["-qX", "-d", &server(), "-c", &drop])
            .output();
    }
}

/// The name of the migrated template, made by whichever test comes first. Its name holds a hash of
/// the migrations, so that a change makes a new one.
async fn template() -> String {
    let mut hash = Sha256::new();
    for migration in perennial::db::migrate::MIGRATIONS {
        hash.update(migration.text());
    }
    let hash: u64 = u64::from_be_bytes(hash.finalize()[..8].try_into().unwrap());
    let name = format!("perennial_template_{hash:016x}");
    let admin = connect(&server()).await;
    admin
        .batch_execute("SELECT pg_advisory_lock(7246)")
        .await
        .unwrap();
    let exists = admin
        .query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[&name])
        .await
        .unwrap();
    if exists.is_none() {
        let draft = format!("{name}_draft");
        admin
            .batch_execute(&format!("DROP DATABASE IF EXISTS {draft}"))
            .await
            .unwrap();
        admin
            .batch_execute(&format!("CREATE DATABASE {draft}"))
            .await
            .unwrap();
        let migrated = perennial()
            .arg("migrate")
            .env("DATABASE_URL", url_of(&draft))
            .env("PERENNIAL_MODE", "sandbox")
            .output()
            .unwrap();
        assert!(
            migrated.status.success(),
            "{}",
            String::from_utf8_lossy(&migrated.stderr)
        );
        admin
            .batch_execute(&format!("ALTER DATABASE {draft} RENAME TO {name}"))
            .await
            .unwrap();
    }
    name
}
