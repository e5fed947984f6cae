//! A database, a server on it, and clients that call it.

use serde_json::Value;

use super::{
    api::Api,
    database::Database,
    process::{Server, Variables, run_ok, sandbox},
};

/// A running sandbox with a database of its own.
pub struct Service {
    // Dropped in this order: the server goes before its database.
    pub server: Server,
    pub variables: Variables,
    pub database: Database,
}

impl Service {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// With other variables than usual.
    pub async fn start_with(change: impl FnOnce(&mut Variables)) -> Self {
        let database = Database::create().await;
        let mut variables = sandbox(&database.url);
        change(&mut variables);
        let server = Server::start(&variables).await;
        Self {
            server,
            variables,
            database,
        }
    }

    /// Runs a command beside the service; answers the JSON that it printed.
    pub fn command(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&run_ok(&self.variables, arguments)).unwrap()
    }

    /// Makes a client; answers its id and the value for the header.
    pub fn make_client(&self, arguments: &[&str]) -> (String, String) {
        let mut all = vec!["client", "create", "--json"];
        all.extend(arguments);
        let made = self.command(&all);
        let text = |field: &str| made[field].as_str().unwrap().to_owned();
        (text("id"), text("client_id"))
    }

    /// A caller without a client.
    pub fn anonymous(&self) -> Api {
        Api::new(&self.server.url)
    }

    /// A caller with a new client, made with these arguments.
    pub fn caller(&self, arguments: &[&str]) -> Api {
        let (_, value) = self.make_client(arguments);
        self.anonymous().with("client-id", &value)
    }

    /// How many rows a query counts.
    pub async fn count(&self, query: &str) -> i64 {
        let row = self
            .database
            .connect()
            .await
            .query_one(query, &[])
            .await
            .unwrap();
        row.get(0)
    }
}
