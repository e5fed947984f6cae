//! Every statement of the service is prepared against the migrated schema: what a compiler would
//! check, this checks.

use crate::{
    architecture::{rust_files, source},
    harness::database::Database,
};

/// The string literal that a text begins with.
fn literal(text: &str) -> &str {
    let rest = text.trim_start().strip_prefix('"');
    let rest = rest.expect("a statement is a plain string literal");
    let literal = rest.split('"').next().unwrap();
    assert!(
        !literal.contains('\\'),
        "a statement has no escapes: {literal}"
    );
    literal
}

/// The texts of all `Sql::new("…")` in a source file; `select!("…")` stands for the file's own list of
/// columns and what follows.
pub fn statements(text: &str) -> Vec<String> {
    let head = text.split("concat!(").nth(1).map(literal);
    text.match_indices("Sql::new(")
        .map(|(at, found)| {
            let rest = text[at + found.len()..].trim_start();
            match rest.strip_prefix("select!(") {
                Some(rest) => format!("{}{}", head.unwrap(), literal(rest)),
                None => literal(rest).to_owned(),
            }
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
            if let Err(error) = client.prepare(&statement).await {
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

/// Each statement on a table that has a tenant is held to one tenant: by its key, or by the row it
/// adds. The exceptions are listed.
#[tokio::test]
async fn every_statement_names_the_tenant() {
    let database = Database::create().await;
    let rows = database
        .connect()
        .await
        .query(
            "SELECT table_name FROM information_schema.columns
             WHERE column_name = 'tenant_id' AND table_schema = 'public' AND table_name <> 'tenants'",
            &[],
        )
        .await
        .unwrap();
    let tables: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert!(tables.len() >= 4, "{tables:?}");
    // The look-up that finds the tenant, and housekeeping, which serves all of them.
    let exceptions = [
        "WHERE client_values.value_hash = $1",
        "DELETE FROM client_values",
        "DELETE FROM idempotency_keys",
    ];
    for path in rust_files(&source("src")) {
        for statement in statements(&std::fs::read_to_string(&path).unwrap()) {
            let words: Vec<&str> = statement
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .collect();
            let touches = tables.iter().any(|table| words.contains(&table.as_str()));
            let excepted = exceptions
                .iter()
                .any(|exception| statement.contains(exception));
            let one_tenant =
                statement.contains("tenant_id = $1") || statement.contains("(tenant_id,");
            assert!(
                !touches || excepted || one_tenant,
                "{}: {statement}",
                path.display()
            );
        }
    }
}
