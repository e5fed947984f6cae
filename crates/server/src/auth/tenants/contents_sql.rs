//! SQL that finds out whether a tenant has data in its cell.

use perennial_domain::{Id, TenantId};

use crate::db::{Error, PooledConnection, Sql};

// Ordered by the primary key, so that the planner uses it instead of scanning for a first match.
static CONTENTS: Sql = Sql::new(
    "SELECT (SELECT id FROM users WHERE tenant_id = $1 ORDER BY id LIMIT 1) IS NOT NULL AS users,
        (SELECT id FROM subscription_plans WHERE tenant_id = $1 ORDER BY id LIMIT 1) IS NOT NULL AS plans,
        (SELECT id FROM subscriptions WHERE tenant_id = $1 ORDER BY id LIMIT 1) IS NOT NULL AS subscriptions,
        (SELECT id FROM webhook_endpoints WHERE tenant_id = $1 ORDER BY id LIMIT 1) IS NOT NULL AS webhook_endpoints,
        (SELECT id FROM payment_accounts WHERE tenant_id = $1 ORDER BY id LIMIT 1) IS NOT NULL AS payment_accounts",
);

/// Returns the kinds of records that a tenant has, including deleted and erased ones.
pub async fn list_contents(
    connection: &PooledConnection,
    tenant: TenantId,
) -> Result<Vec<&'static str>, Error> {
    let rows = connection.query(&CONTENTS, &[&tenant.uuid()]).await?;
    let Some(row) = rows.first() else {
        return Ok(Vec::new());
    };
    let mut contents = Vec::new();
    for (column, kind) in [
        ("users", "users"),
        ("plans", "plans"),
        ("subscriptions", "subscriptions"),
        ("webhook_endpoints", "webhook endpoints"),
        ("payment_accounts", "payment accounts"),
    ] {
        if row.try_get(column)? {
            contents.push(kind);
        }
    }
    Ok(contents)
}
