//! Creates clients (API keys) as `perennial client create` does, without starting a process.

use jiff::Timestamp;
use perennial::{
    auth::{SystemContext, tenants},
    clients::{NewClient, ScopeLimit, insert_client},
    clock::{Clock, IdGenerator},
    config::parse_network,
    db::{CellDatabase, ConnectOptions, ConnectionLimits, HOME},
    events::Actor,
    randomness::Randomness,
    record::ChangeOrigin,
};
use perennial_domain::{ClientKind, Scope};
use secrecy::ExposeSecret;

use super::block_on;

/// Creates a client and returns its id and the value for the header `client-id`. Takes the
/// arguments of `perennial client create`.
pub fn create_client(database_url: &str, arguments: &[&str]) -> (String, String) {
    block_on(insert(database_url, arguments))
}

/// Returns the arguments of `perennial client create` that give every scope.
pub fn every_scope() -> Vec<&'static str> {
    let scopes = Scope::ALL.iter();
    scopes
        .flat_map(|scope| ["--scope", scope.as_str()])
        .collect()
}

async fn insert(database_url: &str, arguments: &[&str]) -> (String, String) {
    let options = ConnectOptions::parse(&database_url.into()).unwrap();
    let limits = ConnectionLimits {
        pool: 1,
        pipelined: 0,
    };
    let database = CellDatabase::start(HOME, &options, limits).unwrap();
    let mut connection = database.connection().await.unwrap();
    let mut client = NewClient {
        kind: ClientKind::Secret,
        name: "client".parse().unwrap(),
        scopes: None,
        allow_addresses: Vec::new(),
        allowed_origins: Vec::new(),
    };
    let (mut tenant_name, mut name, mut value) = (None, None, None);
    for argument in arguments.chunks(2) {
        let [flag, given] = *argument else {
            panic!("{argument:?} has no value");
        };
        match flag {
            "--tenant" => tenant_name = Some(given),
            "--name" => name = Some(given),
            "--id" => value = Some(given),
            "--kind" => client.kind = given.parse().unwrap(),
            "--scope" => {
                let scopes = client.scopes.get_or_insert_default();
                scopes.push(given.parse().unwrap());
            }
            "--allow-address" => {
                client.allow_addresses.push(parse_network(given).unwrap());
            }
            "--allowed-origin" => client.allowed_origins.push(given.to_owned()),
            _ => panic!("{flag}"),
        }
    }
    let tenants = tenants::table::list(&connection).await.unwrap();
    let mut tenants = tenants
        .iter()
        .filter(|(_, name)| tenant_name.is_none_or(|wanted| name == wanted));
    let (Some((tenant, _)), None) = (tenants.next(), tenants.next()) else {
        panic!("{arguments:?} do not select one tenant");
    };
    client.name = name.unwrap_or(client.kind.as_str()).parse().unwrap();
    let origin = ChangeOrigin {
        tenant,
        actor: Actor::default(),
        ids: IdGenerator(Randomness),
        clock: Clock::System,
    };
    let tx = connection.begin();
    let context = origin.context(origin.clock.now(), &tx);
    let created = insert_client(&context, ScopeLimit::All, client, value).await;
    let (client, value) = created.unwrap();
    tx.commit().await.unwrap();
    (client.id.to_string(), value.expose_secret().to_owned())
}

/// Returns the context in which the tests change data: there is no calling client.
pub fn system_context() -> SystemContext {
    SystemContext {
        ids: IdGenerator(Randomness),
        now: Timestamp::now(),
        operator: None,
    }
}
