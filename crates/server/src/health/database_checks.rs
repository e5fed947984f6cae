//! The checks of PostgreSQL: version, timeouts, clock and role.

use std::time::Instant;

use jiff::SignedDuration;

use super::{HealthCheck, HealthChecker};
use crate::{
    config::Mode,
    db::{
        PooledConnection, instance,
        roles::{self, SchemaPrivilege},
    },
};

/// The largest accepted difference between the database's clock and ours.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(2);
/// The oldest PostgreSQL major version that the tests cover.
const OLDEST_TESTED_VERSION: i32 = 15;

impl HealthChecker<'_> {
    pub(super) async fn check_databases(&self) -> anyhow::Result<Vec<HealthCheck>> {
        let home = self.db.home()?.connection().await?;
        let mut checks = vec![check_version(&home).await?];
        if !instance::has_statement_timeout(&home).await? {
            let detail = "a connection pooler drops the timeouts of the service's connections";
            let check = HealthCheck::warning("database", detail);
            checks.push(
                check
                    .fix("set them for the database role")
                    .see("how-to/pgbouncer"),
            );
        }
        checks.push(self.check_clock_skew(&home).await?);
        drop(home);
        for cell in self.db.cell_names() {
            let connection = self.db.cell(cell)?.connection().await?;
            checks.push(self.check_role(cell, &connection).await?);
        }
        Ok(checks)
    }

    async fn check_clock_skew(&self, home: &PooledConnection) -> anyhow::Result<HealthCheck> {
        let started_at = Instant::now();
        let (_, _, database_now) = instance::server_info(home).await?;
        let latency = SignedDuration::try_from(started_at.elapsed() / 2)?;
        let skew = self.clocks.real.now().duration_since(database_now) - latency;
        let detail = format!("clock skew {} ms", skew.as_millis().abs());
        Ok(if skew.abs() > MAX_CLOCK_SKEW {
            HealthCheck::failed("clock", detail).fix(
                "the clocks of this machine and the database differ; synchronize both with NTP",
            )
        } else {
            HealthCheck::ok("clock", detail)
        })
    }

    /// Reports whether the role of `DATABASE_URL` can change the schema, which serving does not need.
    async fn check_role(
        &self,
        cell: &str,
        connection: &PooledConnection,
    ) -> anyhow::Result<HealthCheck> {
        let SchemaPrivilege { role, reason } = roles::own_schema_privilege(connection).await?;
        let name = "database_role";
        Ok(match reason {
            None => HealthCheck::ok(
                name,
                format!("{cell}: role {role}, cannot change the schema"),
            ),
            Some(reason) if self.mode == Mode::Live => {
                let detail = format!("{cell}: role {role} {reason}, so it can change the schema");
                HealthCheck::warning(name, detail)
                    .fix("serve with a second role: `perennial migrate --grant-to ROLE`")
                    .see("how-to/database-roles")
            }
            Some(_) => HealthCheck::ok(name, format!("{cell}: role {role}, can change the schema")),
        })
    }
}

async fn check_version(home: &PooledConnection) -> anyhow::Result<HealthCheck> {
    let (version_number, name, _) = instance::server_info(home).await?;
    let detail = format!("PostgreSQL {name}");
    Ok(if version_number / 10_000 < OLDEST_TESTED_VERSION {
        HealthCheck::warning("database", detail).fix(format!(
            "older than {OLDEST_TESTED_VERSION}, the oldest tested version; plan an upgrade"
        ))
    } else {
        HealthCheck::ok("database", detail)
    })
}
