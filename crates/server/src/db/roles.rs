//! The serving role: a database role that reads and writes rows but cannot change the schema.
//!
//! The role that applies migrations owns the tables. [`grant`] gives a second role what `serve`,
//! `work` and the other commands need. Applying a migration grants it again, so that new tables are
//! covered. Partitions of the event log are created and dropped by functions that run with the
//! privileges of the owner.

use anyhow::{Context, bail};
use tokio_postgres::Client;

use super::{ConnectOptions, Error, PooledConnection, Sql, migrate};

/// The document that explains the two roles.
const GUIDE: &str = "see docs/how-to/database-roles";

// The serving role cannot change or delete events and ledger entries. It inserts events through the
// parent table, so it needs no more than SELECT on partitions, for backups.
const GRANTS: &str = "
    WITH own AS (
        SELECT pg_class.oid, nspname, relname, relkind, CASE
            WHEN relkind = 'S' THEN 'USAGE, SELECT'
            WHEN relname = 'schema_migrations' OR relispartition OR relkind = 'v' THEN 'SELECT'
            WHEN relname IN ('events', 'ledger_entries') THEN 'SELECT, INSERT'
            ELSE 'SELECT, INSERT, UPDATE, DELETE' END AS privileges,
            CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind
        FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
        WHERE nspname = current_schema() AND relkind IN ('r', 'p', 'S', 'v') AND pg_has_role(relowner, 'MEMBER'))
    SELECT 1, format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), $1::text)
    UNION ALL
    SELECT 2, format('REVOKE ALL ON %s %I.%I FROM %I', kind, nspname, relname, $1::text) FROM own
    UNION ALL
    SELECT 3, format('GRANT %s ON %s %I.%I TO %I', privileges, kind, nspname, relname, $1::text) FROM own
    UNION ALL
    SELECT 4, format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', pg_proc.oid::regprocedure)
    FROM pg_proc JOIN pg_namespace ON pg_namespace.oid = pronamespace
    WHERE nspname = current_schema() AND prosecdef AND pg_has_role(proowner, 'MEMBER')
    UNION ALL
    SELECT 5, format('GRANT EXECUTE ON FUNCTION %s TO %I', pg_proc.oid::regprocedure, $1::text)
    FROM pg_proc JOIN pg_namespace ON pg_namespace.oid = pronamespace
    WHERE nspname = current_schema() AND prosecdef AND pg_has_role(proowner, 'MEMBER')
    UNION ALL
    SELECT 6, format('ALTER DEFAULT PRIVILEGES IN SCHEMA %I GRANT SELECT ON TABLES TO %I', current_schema(), $1::text)
    ORDER BY 1, 2";

/// The roles that [`grant`] was called for: other roles than the owner that can update the table
/// `instance`.
const SERVING_ROLES: &str = "
    SELECT rolname::text
    FROM pg_class, aclexplode(relacl) AS entry JOIN pg_roles ON pg_roles.oid = entry.grantee
    WHERE pg_class.oid = to_regclass('instance') AND privilege_type = 'UPDATE' AND grantee <> relowner";

static SCHEMA_PRIVILEGE: Sql = Sql::new(
    "SELECT rolname::text, CASE
        WHEN rolsuper THEN 'is a superuser'
        WHEN EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('schema_migrations')
            AND pg_has_role(pg_roles.oid, relowner, 'MEMBER')) THEN 'owns the tables, or is a member of the role that does'
        WHEN has_schema_privilege(pg_roles.oid, current_schema(), 'CREATE')
            THEN format('has the privilege CREATE on the schema %I', current_schema())
        WHEN has_database_privilege(pg_roles.oid, current_database(), 'CREATE')
            THEN format('has the privilege CREATE on the database %I', current_database())
        END
     FROM pg_roles WHERE rolname = coalesce($1::text, current_user)",
);

/// A database role, and why it can change the schema. `None` if it cannot.
#[derive(Debug)]
pub struct SchemaPrivilege {
    pub role: String,
    pub reason: Option<String>,
}

/// Returns whether the role of this connection can change the schema.
pub async fn own_schema_privilege(connection: &PooledConnection) -> Result<SchemaPrivilege, Error> {
    let row = connection
        .query_opt(&SCHEMA_PRIVILEGE, &[&None::<String>])
        .await?;
    let row = row.ok_or_else(|| Error::Internal("the current role is not listed".to_owned()))?;
    Ok(SchemaPrivilege {
        role: row.try_get(0)?,
        reason: row.try_get(1)?,
    })
}

/// Gives a role what serving needs, and nothing that changes the schema. Can be repeated. Fails if
/// the role does not exist or can change the schema by other means.
pub async fn grant(options: &ConnectOptions, role: &str) -> anyhow::Result<()> {
    let client = migrate::connect(options).await?;
    migrate::lock(&client).await?;
    let row = client
        .query_opt(SCHEMA_PRIVILEGE.text(), &[&Some(role)])
        .await?;
    let Some(row) = row else {
        bail!(
            "there is no role {role}; create it with CREATE ROLE {role} LOGIN PASSWORD '…'; {GUIDE}"
        );
    };
    if let Some(reason) = row.get::<_, Option<String>>(1) {
        bail!("the role {role} {reason}, so it can change the schema; use another role; {GUIDE}");
    }
    apply_grants(&client, role).await
}

/// Grants each serving role its privileges again, because a migration may have added tables.
pub(super) async fn renew_grants(client: &Client) -> anyhow::Result<()> {
    for row in client.query(SERVING_ROLES, &[]).await? {
        let role: String = row.get(0);
        apply_grants(client, &role).await?;
        tracing::info!(role, "renewed the privileges of the serving role");
    }
    Ok(())
}

async fn apply_grants(client: &Client, role: &str) -> anyhow::Result<()> {
    let rows = client.query(GRANTS, &[&role]).await?;
    let statements: Vec<String> = rows.iter().map(|row| row.get(1)).collect();
    // Several statements in one message are one transaction.
    let granted = client.batch_execute(&statements.join(";\n")).await;
    granted.with_context(|| format!("cannot grant privileges to the role {role}; {GUIDE}"))
}

/// Fails if the current role cannot apply migrations.
pub(super) async fn require_schema_privilege(client: &Client) -> anyhow::Result<()> {
    let row = client
        .query_one(
            "SELECT current_user::text, coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)",
            &[],
        )
        .await?;
    if !row.get::<_, bool>(1) {
        let role: String = row.get(0);
        bail!(
            "the schema is older than this binary, and the role {role} cannot change it; \
             first run `perennial migrate` as the role that owns the tables; {GUIDE}"
        );
    }
    Ok(())
}
