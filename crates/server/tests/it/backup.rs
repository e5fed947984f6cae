//! `perennial backup`, `restore` and `verify`: what was there is there again, row for row.
//!
//! `ROWS` says how many rows there are; `just backup-drill` takes 1,000,000.

use std::{fs, path::PathBuf, time::Instant};

use crate::harness::{
    database::Database,
    process::{Variables, run, run_err, run_ok, sandbox},
};

/// A folder of one's own, removed with this value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let random: [u8; 8] = perennial::randomness::Randomness.bytes();
        let name = format!("perennial-backup-{:016x}", u64::from_le_bytes(random));
        Self(std::path::Path::new("/var/tmp").join(name))
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// So many rows, in the tables that become large.
async fn fill(database: &Database, rows: u32) {
    let quarter = rows / 4;
    let sql = format!(
        "INSERT INTO subscription_plans (tenant_id, id, slug, name, variants, price_minor, currency, billing_cycle,
            node_quota, most_popular, tier, is_active, created_at, updated_at)
         SELECT tenant_id, md5('p')::uuid, 'pro', 'Pro ünd “more”', '{{a,\"b c\"}}', 1999, 'USD', 'monthly', 0, false, 0, true,
            now(), now() FROM tenants;
         INSERT INTO users (tenant_id, id, email, email_key, created_at)
         SELECT tenant_id, md5('u' || n)::uuid, n || '@example.com', n || '@example.com', now() FROM tenants,
            generate_series(1, {quarter}) AS n;
         ANALYZE users;
         INSERT INTO subscriptions (tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle, billing_cycle,
            status, suspended, starts_at, renews_at, anchor, created_at, updated_at)
         SELECT tenant_id, md5('s' || n)::uuid, md5('u' || n)::uuid, md5('p')::uuid, 1999, 'USD', 'monthly', 'monthly', 'active',
            false, now(), now() + n * interval '1 second', now(), now(), now() FROM tenants, generate_series(1, {quarter}) AS n;
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

fn on(database: &Database) -> Variables {
    sandbox(&database.url)
}

#[tokio::test]
async fn a_backup_is_restored_row_for_row_alone() {
    let rows = std::env::var("ROWS").ok();
    let rows: u32 = rows.map_or(8_000, |rows| rows.parse().unwrap());
    let (database, other) = (Database::create().await, Database::empty().await);
    fill(&database, rows).await;
    let folder = Folder::new();

    let begun = Instant::now();
    let said = run_ok(&on(&database), &["backup", folder.text()]);
    println!("{:.1?}: {said}", begun.elapsed());
    assert!(said.contains("The master key is not in it"), "{said}");
    let again = run_err(&on(&database), &["backup", folder.text()]);
    assert!(again.contains("is there already"), "{again}");

    // Only into what is empty; and only said, if so asked.
    let full = run_err(&on(&database), &["restore", folder.text()]);
    assert!(full.contains("is not empty"), "{full}");
    let said = run_ok(&on(&other), &["restore", "--dry-run", folder.text()]);
    assert!(said.starts_with("would restore"), "{said}");

    let begun = Instant::now();
    let said = run_ok(&on(&other), &["restore", folder.text()]);
    println!("{:.1?}: {said}", begun.elapsed());
    assert!(said.contains("each as in the backup"), "{said}");
    run_ok(&on(&other), &["verify", folder.text()]);
    run_ok(&on(&database), &["verify", folder.text()]);

    damaged_dumps_are_noticed(&folder).await;

    // One cent, one event, one row more: each is noticed.
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
            "INSERT INTO users (tenant_id, id, email, email_key, created_at) SELECT tenant_id, gen_random_uuid(), 'x@y', 'x@y', now() FROM tenants",
            "users",
        ),
    ] {
        client.batch_execute(change).await.unwrap();
        let output = run(&on(&other), &["verify", folder.text()]);
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(&format!("home.{table}:")), "{said}");
    }

    // One that was cut off is no backup.
    fs::remove_file(folder.0.join("manifest.json")).unwrap();
    let cut = run_err(&on(&other), &["restore", folder.text()]);
    assert!(cut.contains("no backup, or one that was cut off"), "{cut}");
}

/// A dump that a disk or a copy has damaged is noticed before anything is done with it. The folder is left as it was.
async fn damaged_dumps_are_noticed(folder: &Folder) {
    let empty = Database::empty().await;
    let refused = |expected: &str| {
        for arguments in [&["restore", "--dry-run"][..], &["restore"], &["verify"]] {
            let said = run_err(&on(&empty), &[arguments, &[folder.text()]].concat());
            assert!(said.contains(expected), "{arguments:?}: {said}");
            assert!(said.contains("use another copy of this backup"), "{said}");
        }
    };
    let dump = folder.0.join("home.dump");
    let whole = fs::read(&dump).unwrap();
    fs::write(&dump, &whole[..whole.len() / 2]).unwrap();
    refused(&format!(
        "it has {} bytes, and had {} when it was written",
        whole.len() / 2,
        whole.len()
    ));
    let mut altered = whole.clone();
    let middle = altered.len() / 2;
    altered[middle] ^= 1;
    fs::write(&dump, &altered).unwrap();
    refused("its content has changed since it was written");
    fs::remove_file(&dump).unwrap();
    refused("cannot be read");
    fs::write(&dump, &whole).unwrap();

    // A manifest of before that was written down is read, and says that it cannot tell.
    let path = folder.0.join("manifest.json");
    let kept = fs::read_to_string(&path).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_str(&kept).unwrap();
    assert!(manifest.as_object_mut().unwrap().remove("dumps").is_some());
    fs::write(&path, manifest.to_string()).unwrap();
    let output = run(&on(&empty), &["restore", "--dry-run", folder.text()]);
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("home.dump cannot be checked"), "{said}");
    fs::write(&path, kept).unwrap();
}
