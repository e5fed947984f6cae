//! `perennial backup`, `restore` and `verify`.
//!
//! `ROWS` sets the number of rows; `just prove backup-drill` uses 1,000,000.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use crate::harness::{
    database::Database,
    env_number,
    process::{Variables, run, run_err, run_ok, sandbox},
    unique_name,
};

/// A folder that is removed with this value.
struct BackupDir(PathBuf);

impl BackupDir {
    fn new() -> Self {
        Self(Path::new("/var/tmp").join(unique_name("perennial-backup-")))
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for BackupDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Inserts rows into the tables that can become large.
async fn insert_rows(database: &Database, rows: u32) {
    let quarter = rows / 4;
    let sql = format!(
        "INSERT INTO subscription_plans (tenant_id, id, slug, name, variants, price_minor, currency, billing_cycle,
            node_quota, most_popular, tier, is_active, created_at, updated_at)
         SELECT tenant_id, md5('p')::uuid, 'pro', 'Pro ünd “more”', '{{a,\"b c\"}}', 1999, 'USD', 'monthly', 0, false, 0, true,
            now(), now() FROM tenants;
         INSERT INTO users (tenant_id, id, email, email_key, created_at, updated_at)
         SELECT tenant_id, md5('u' || n)::uuid, n || '@example.com', n || '@example.com', now(), now() FROM tenants,
            generate_series(1, {quarter}) AS n;
         ANALYZE users;
         INSERT INTO subscriptions (tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle, billing_cycle,
            status, suspended, starts_at, renews_at, anchor, due_at, created_at, updated_at)
         SELECT tenant_id, md5('s' || n)::uuid, md5('u' || n)::uuid, md5('p')::uuid, 1999, 'USD', 'monthly', 'monthly', 'active',
            false, now(), now() + n * interval '1 second', now(), 'infinity', now(), now() FROM tenants, generate_series(1, {quarter}) AS n;
         ANALYZE subscriptions;
         INSERT INTO subscription_payments (tenant_id, id, subscription_id, amount_minor, currency, status, refunded_minor,
            created_at, updated_at)
         SELECT tenant_id, md5('y' || n)::uuid, md5('s' || n)::uuid, n, 'USD', 'completed', 0, now(), now() FROM tenants,
            generate_series(1, {quarter}) AS n;
         INSERT INTO events (tenant_id, at, id, kind, subject_id, data)
         SELECT tenant_id, now() + n * interval '1 minute', md5('e' || n)::uuid, 'plan.updated', md5('p')::uuid,
            jsonb_build_object('n', n, 'text', 'x\\u00fc') FROM tenants, generate_series(1, {quarter}) AS n"
    );
    database.connect().await.batch_execute(&sql).await.unwrap();
}

fn variables(database: &Database) -> Variables {
    sandbox(&database.url)
}

#[tokio::test]
async fn restored_backup_equals_the_original() {
    let rows: u32 = env_number("ROWS").unwrap_or(8_000);
    let (database, other) = (Database::create().await, Database::empty().await);
    insert_rows(&database, rows).await;
    let folder = BackupDir::new();

    let started = Instant::now();
    let output = run_ok(&variables(&database), &["backup", folder.text()]);
    println!("{:.1?}: {output}", started.elapsed());
    assert!(
        output.contains("The master key is not included"),
        "{output}"
    );
    let again = run_err(&variables(&database), &["backup", folder.text()]);
    assert!(again.contains("already exists"), "{again}");

    // A restore needs an empty database.
    let full = run_err(&variables(&database), &["restore", folder.text()]);
    assert!(full.contains("is not empty"), "{full}");
    let output = run_ok(&variables(&other), &["restore", "--dry-run", folder.text()]);
    assert!(output.starts_with("would restore"), "{output}");

    let started = Instant::now();
    let output = run_ok(&variables(&other), &["restore", folder.text()]);
    println!("{:.1?}: {output}", started.elapsed());
    assert!(output.contains("identical to the backup"), "{output}");
    run_ok(&variables(&other), &["verify", folder.text()]);
    run_ok(&variables(&database), &["verify", folder.text()]);

    assert_damaged_dumps_are_rejected(&folder).await;

    // Verification finds a changed amount, a changed event and an additional row.
    let client = other.connect().await;
    for (change, table) in [
        (
            "UPDATE subscription_payments SET amount_minor = amount_minor + 1 WHERE id = md5('y7')::uuid",
            "subscription_payments",
        ),
        (
            "UPDATE events SET data = '{}' WHERE id = md5('e9')::uuid",
            "events",
        ),
        (
            "INSERT INTO users (tenant_id, id, email, email_key, created_at, updated_at) SELECT tenant_id, gen_random_uuid(), 'x@y', 'x@y', now(), now() FROM tenants",
            "users",
        ),
    ] {
        client.batch_execute(change).await.unwrap();
        let output = run(&variables(&other), &["verify", folder.text()]);
        assert_eq!(output.status.code(), Some(1));
        let output = String::from_utf8(output.stdout).unwrap();
        assert!(output.contains(&format!("home.{table}:")), "{output}");
    }

    // A backup without manifest is incomplete.
    fs::remove_file(folder.0.join("manifest.json")).unwrap();
    let incomplete = run_err(&variables(&other), &["restore", folder.text()]);
    assert!(
        incomplete.contains("this is not a backup, or an incomplete one"),
        "{incomplete}"
    );
}

/// Asserts that truncated, altered and missing dumps are rejected. Leaves the backup unchanged.
async fn assert_damaged_dumps_are_rejected(folder: &BackupDir) {
    let empty = Database::empty().await;
    let assert_rejected = |expected: &str| {
        for arguments in [&["restore", "--dry-run"][..], &["restore"], &["verify"]] {
            let output = run_err(&variables(&empty), &[arguments, &[folder.text()]].concat());
            assert!(output.contains(expected), "{arguments:?}: {output}");
            assert!(
                output.contains("use another copy of this backup"),
                "{output}"
            );
        }
    };
    let dump = folder.0.join("home.dump");
    let whole = fs::read(&dump).unwrap();
    fs::write(&dump, &whole[..whole.len() / 2]).unwrap();
    assert_rejected(&format!(
        "it has {} bytes instead of {}",
        whole.len() / 2,
        whole.len()
    ));
    let mut altered = whole.clone();
    let middle = altered.len() / 2;
    altered[middle] ^= 1;
    fs::write(&dump, &altered).unwrap();
    assert_rejected("its content has changed");
    fs::remove_file(&dump).unwrap();
    assert_rejected("cannot read");
    fs::write(&dump, &whole).unwrap();

    // Without hashes, the dump cannot be checked.
    let path = folder.0.join("manifest.json");
    let original = fs::read_to_string(&path).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_str(&original).unwrap();
    assert!(
        manifest["dumps"]
            .as_object_mut()
            .unwrap()
            .remove("home")
            .is_some()
    );
    fs::write(&path, manifest.to_string()).unwrap();
    assert_rejected("manifest.json has no hash of ");
    fs::write(&path, original).unwrap();
}
