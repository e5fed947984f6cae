//! The API keys of a sandbox: one for servers and one for web pages.

use anyhow::Context;
use perennial_domain::ClientKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DevSandbox, eprint_wrapped, state_dir::StateDir};

/// Where development servers of web pages usually listen. Their pages may use the publishable client.
const DEV_ORIGINS: [&str; 4] = [
    "http://localhost:3000",
    "http://127.0.0.1:3000",
    "http://localhost:5173",
    "http://127.0.0.1:5173",
];

/// A client of the sandbox, as the state directory stores it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredClient {
    pub id: String,
    pub key: String,
}

impl DevSandbox {
    /// Creates the clients that do not exist in this database, and exports their API keys. A database that was
    /// created again does not have the stored ones.
    pub(super) fn ensure_clients(
        &mut self,
        state_dir: &StateDir,
        database: &str,
    ) -> anyhow::Result<()> {
        let tenant = self.oldest_tenant()?;
        let clients = self.run(&["client", "list", "--json", "--tenant", &tenant])?;
        let clients = clients.lines().map(serde_json::from_str);
        let clients: Vec<Value> = clients.collect::<Result<_, serde_json::Error>>()?;
        let is_enabled = |id: &str| {
            let is_this = |client: &&Value| client.get("id").is_some_and(|other| other == id);
            let client = clients.iter().find(is_this);
            let disabled_at = client.and_then(|client| client.get("disabled_at"));
            disabled_at.is_some_and(Value::is_null)
        };
        for (variable, kind) in [
            ("CLIENT_ID", ClientKind::Secret),
            ("PUBLISHABLE_ID", ClientKind::Publishable),
        ] {
            let key = match state_dir.client(kind, database)? {
                Some(client) if is_enabled(&client.id) => client.key,
                stored => {
                    let created = self.create_client(kind, &tenant)?;
                    state_dir.save_client(kind, database, &created)?;
                    if stored.is_some() {
                        eprint_wrapped(&format!(
                            "  the stored {kind} API key is not valid in this database; created another one for {variable}"
                        ));
                    }
                    created.key
                }
            };
            self.variables.insert(variable.to_owned(), key);
        }
        Ok(())
    }

    fn oldest_tenant(&self) -> anyhow::Result<String> {
        let tenants = self.run(&["tenant", "list", "--json"])?;
        let oldest: Value = serde_json::from_str(tenants.lines().next().unwrap_or_default())?;
        let tenant = oldest.get("id").and_then(Value::as_str);
        let tenant = tenant.context("`tenant list` printed no tenant")?;
        Ok(tenant.to_owned())
    }

    fn create_client(&self, kind: ClientKind, tenant: &str) -> anyhow::Result<StoredClient> {
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
        let field = |name: &str| -> anyhow::Result<String> {
            let text = output.get(name).and_then(Value::as_str);
            let text = text.with_context(|| format!("`client create` printed no {name}"))?;
            Ok(text.to_owned())
        };
        Ok(StoredClient {
            id: field("id")?,
            key: field("client_id")?,
        })
    }
}
