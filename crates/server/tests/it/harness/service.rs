//! A database, an instance on it, and clients that call it.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::{
    api::ApiClient,
    client,
    database::Database,
    in_process::InProcessServer,
    process::{Server, Variables, run_ok, sandbox},
};

/// A sandbox with its own database: a server process, or an instance in the test's process.
pub struct Service<S = Server> {
    // Dropped in this order: the server stops before its database is dropped.
    pub server: S,
    pub variables: Variables,
    pub database: Database,
    anonymous: ApiClient,
}

/// A sandbox without a socket, log, metrics and background workers.
pub type InProcessService = Service<Arc<InProcessServer>>;

impl Service {
    /// Starts a server process.
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// Starts a server process with changed environment variables.
    pub async fn start_with(change: impl FnOnce(&mut Variables)) -> Self {
        let (database, variables) = prepare(change).await;
        let server = Server::start(&variables).await;
        Self {
            anonymous: ApiClient::new(&server.url),
            server,
            variables,
            database,
        }
    }
}

impl InProcessService {
    /// Starts an instance in this process.
    pub async fn start_in_process() -> Self {
        Self::start_in_process_with(|_| {}).await
    }

    /// Starts an instance in this process with changed environment variables.
    pub async fn start_in_process_with(change: impl FnOnce(&mut Variables)) -> Self {
        let (database, variables) = prepare(change).await;
        let server = InProcessServer::start(&variables).await;
        Self::from_parts(server, variables, database)
    }

    /// Starts an instance in this process with a fixed billing clock.
    pub async fn start_in_process_at(now: Timestamp) -> Self {
        let (database, variables) = prepare(|_| {}).await;
        let server = InProcessServer::start_at(&variables, now).await;
        Self::from_parts(server, variables, database)
    }

    /// Starts an instance in this process with a fixed clock for sessions and tokens.
    pub async fn start_in_process_with_fixed_clock() -> Self {
        let (database, variables) = prepare(|_| {}).await;
        let server = InProcessServer::start_with_fixed_clock(&variables).await;
        Self::from_parts(server, variables, database)
    }

    fn from_parts(server: InProcessServer, variables: Variables, database: Database) -> Self {
        let server = Arc::new(server);
        Self {
            anonymous: ApiClient::in_process(server.clone()),
            server,
            variables,
            database,
        }
    }
}

async fn prepare(change: impl FnOnce(&mut Variables)) -> (Database, Variables) {
    let database = Database::create().await;
    let mut variables = sandbox(&database.url);
    change(&mut variables);
    (database, variables)
}

impl<S> Service<S> {
    /// Runs a command on the service's database and returns the JSON that it printed.
    pub fn run_json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&run_ok(&self.variables, arguments)).unwrap()
    }

    /// Creates a client and returns its id and the value for the header `client-id`. Takes the
    /// arguments of `perennial client create`.
    pub fn create_client(&self, arguments: &[&str]) -> (String, String) {
        client::create_client(&self.database.url, arguments)
    }

    /// Returns an API client that sends no `client-id`.
    pub fn anonymous(&self) -> ApiClient {
        self.anonymous.clone()
    }

    /// Creates a client with these arguments and returns an API client that uses it.
    pub fn api(&self, arguments: &[&str]) -> ApiClient {
        let (_, value) = self.create_client(arguments);
        self.anonymous.with("client-id", &value)
    }

    /// Returns the number that a query selects.
    pub async fn count(&self, query: &str) -> i64 {
        let database = self.database.connect().await;
        database.query_one(query, &[]).await.unwrap().get(0)
    }
}

/// Two server processes on one database.
pub struct InstancePair {
    pub other_server: Server,
    pub service: Service,
    /// Calls the first instance.
    pub here: ApiClient,
    /// Calls the other instance, with the same client.
    pub there: ApiClient,
}

impl InstancePair {
    /// Takes the arguments of `perennial client create`.
    pub async fn start(arguments: &[&str]) -> Self {
        let service = Service::start_with(|variables| {
            let url = "http://perennial.example".to_owned();
            variables.insert("PERENNIAL_PUBLIC_URL", url);
        })
        .await;
        let other_server = Server::start(&service.variables).await;
        let (_, client) = service.create_client(arguments);
        Self {
            here: service.anonymous().with("client-id", &client),
            there: ApiClient::new(&other_server.url).with("client-id", &client),
            other_server,
            service,
        }
    }
}
