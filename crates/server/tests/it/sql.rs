//! Every statement of the service is prepared against the migrated schema: what a compiler would
//! check, this checks.

use crate::{
    architecture::{rust_files, source},
    harness::database::Database,
};

/// The texts of all `Sql::new("…")` in a source file.
fn statements(text: &str) -> Vec<String> {
    text.match_indices("Sql::new(")
        .map(|(at, found)| {
            let rest = text[at + found.len()..].trim_start();
            let rest = rest
                .strip_prefix('"')
                .expect("a statement is a plain string literal");
            let end = rest.find('"').unwrap();
            assert!(
                !rest[..end].contains('\\'),
                "a statement has no escapes: {}",
                &rest[..end]
            );
            rest[..end].to_owned()
        })
        .collect()
}

#[tokio::test]
async fn every_statement_can_be_prepared() {
    let database = Database::create().await;
    let client = database.connect().await;
    let mut count = 0;
    for path in rust_files(&source("src")) {
        for statement in statements(&std::fs::read_to_string(&path).unwrap()) {
            count += 1;
            // LOCK takes no plan, and so cannot be prepared.
            if statement.starts_with("LOCK ") {
                client
                    .batch_execute(&format!("BEGIN; {statement}; ROLLBACK"))
                    .await
                    .unwrap();
            } else if let Err(error) = client.prepare(&statement).await {
                panic!("{}: {statement}\n{error:?}", path.display());
            }
            assert!(
                !statement.to_lowercase().contains("select *"),
                "{statement}"
            );
        }
    }
    assert!(count >= 20, "only {count} statements were found");
}

/// Each statement on a tenant's table names the tenant. The directory, which finds the tenant, and
/// housekeeping, which serves all of them, are the exceptions; they are listed.
#[test]
fn every_statement_names_the_tenant() {
    let tables = ["events", "subscription_plans", "clients", "client_values"];
    let exceptions = [
        "FROM client_values\n     JOIN clients",
        "DELETE FROM client_values",
    ];
    for path in rust_files(&source("src")) {
        for statement in statements(&std::fs::read_to_string(&path).unwrap()) {
            let words: Vec<&str> = statement
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .collect();
            let touches = tables.iter().any(|table| words.contains(table));
            let excepted = exceptions
                .iter()
                .any(|exception| statement.contains(exception));
            assert!(
                !touches || excepted || words.contains(&"tenant_id"),
                "{}: {statement}",
                path.display()
            );
        }
    }
}
