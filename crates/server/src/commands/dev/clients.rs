//! The API keys of a sandbox: one for servers and one for web pages.

use anyhow::Context;
use perennial_domain::ClientKind;
use serde_json::Value;

use super::{DevSandbox, state_dir::StateDir};

/// Where development servers of web pages usually listen. Their pages may use the publishable client.
const DEV_ORIGINS: [&str; 4] = [
    "http://localhost:3000",
    "http://127.0.0.1:3000",
    "http://localhost:5173",
    "http://127.0.0.1:5173",
];

impl DevSandbox {
    /// Creates the clients that do not exist for this database, and exports their API keys.
    pub(super) fn ensure_clients(
        &mut self,
        state_dir: &StateDir,
        database: &str,
    ) -> anyhow::Result<()> {
        for (variable, kind) in [
            ("CLIENT_ID", ClientKind::Secret),
            ("PUBLISHABLE_ID", ClientKind::Publishable),
        ] {
            let key = if let Some(key) = state_dir.api_key(kind, database)? {
                key
            } else {
                let key = self.create_client(kind)?;
                state_dir.save_api_key(kind, database, &key)?;
                key
            };
            self.variables.insert(variable.to_owned(), key);
        }
        Ok(())
    }

    /// Creates a client of the oldest tenant and returns its API key.
    fn create_client(&self, kind: ClientKind) -> anyhow::Result<String> {
        let tenants = self.run(&["tenant", "list", "--json"])?;
        let oldest: Value = serde_json::from_str(tenants.lines().next().unwrap_or_default())?;
        let tenant = oldest.get("id").and_then(Value::as_str);
        let tenant = tenant.context("`tenant list` printed no tenant")?;
        let name = match kind {
            ClientKind::Secret => "perennial dev",
            ClientKind::Publishable => "perennial dev browser",
        };
        let mut arguments = vec!["client", "create", "--json", "--tenant", tenant];
        arguments.extend(["--name", name, "--kind", kind.as_str()]);
        if kind == ClientKind::Publishable {
            for origin in DEV_ORIGINS {
                arguments.extend(["--allowed-origin", origin]);
            }
        }
        let output = self.run_json(&arguments)?;
        let key = output.get("client_id").and_then(Value::as_str);
        Ok(key
            .context("`client create` printed no client_id")?
            .to_owned())
    }
}
