//! A database per test, cloned from a migrated template.

use std::process::Command;

use perennial::db::migrate::MIGRATIONS;
use sha2::{Digest, Sha256};
use tokio_postgres::{Client, NoTls};

use super::{block_on, process::perennial, unique_name};

/// The URL of the PostgreSQL server; `tools/postgres` finds or starts one.
fn server_url() -> String {
    std::env::var("TEST_DATABASE_URL")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned())
}

/// The URL of another database on the same server.
fn database_url(name: &str) -> String {
    let server = server_url();
    let (base, _) = server.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}

/// Opens a connection that does not go through the service.
pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A database that is dropped with this value.
pub struct Database {
    name: String,
    pub url: String,
}

impl Database {
    /// Creates a migrated database in sandbox mode.
    pub async fn create() -> Self {
        let template = template().await;
        // Copies the prepared caches of the catalog too, so that connections start faster.
        Self::create_with(&format!("TEMPLATE {template} STRATEGY FILE_COPY")).await
    }

    /// Creates a database without tables.
    pub async fn empty() -> Self {
        Self::create_with("").await
    }

    /// Creates a database with further options of CREATE DATABASE.
    pub async fn create_with(options: &str) -> Self {
        let name = unique_name("perennial_test_");
        let admin = connect(&server_url()).await;
        admin
            .batch_execute(&format!("CREATE DATABASE {name} {options}"))
            .await
            .unwrap();
        Self {
            url: database_url(&name),
            name,
        }
    }

    /// Returns all rows as `pg_dump` writes them.
    pub fn dump(&self) -> String {
        let mut command = Command::new("pg_dump");
        let output = command.args(["--data-only", "-d", &self.url]).output();
        let output = output.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub async fn connect(&self) -> Client {
        connect(&self.url).await
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        block_on(async {
            let _ = connect(&server_url()).await.batch_execute(&drop).await;
        });
    }
}

/// Returns the name of the migrated template database. The first test creates it. Its name contains
/// a hash of the migrations, so that changed migrations get a new template.
async fn template() -> String {
    let mut hash = Sha256::new();
    for migration in MIGRATIONS {
        hash.update(migration.text);
    }
    let hash: u64 = u64::from_be_bytes(hash.finalize()[..8].try_into().unwrap());
    let name = format!("perennial_template_{hash:016x}");
    let admin = connect(&server_url()).await;
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
        let output = perennial()
            .arg("migrate")
            .env("DATABASE_URL", database_url(&draft))
            .env("PERENNIAL_MODE", "sandbox")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        admin
            .batch_execute(&format!("ALTER DATABASE {draft} RENAME TO {name}"))
            .await
            .unwrap();
    }
    name
}
