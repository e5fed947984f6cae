//! Master keys, and refresh tokens computed from them as an attacker would.

use perennial::{
    auth::tokens::{RefreshKeys, Salt},
    config::MasterKey,
    crypto::DerivedKeys,
};
use perennial_domain::{Id, SessionId, TenantId};
use secrecy::ExposeSecret;
use tokio_postgres::Row;

use super::{
    process::{MASTER_KEY, Server, Variables, run_ok},
    service::Service,
};

pub fn generate_key() -> String {
    let key = run_ok(&Variables::new(), &["keys", "generate-master"]);
    key.trim().to_owned()
}

pub fn derived_keys(key: &str) -> DerivedKeys {
    DerivedKeys::new(&MasterKey::parse(key).unwrap().into())
}

/// Returns the environment with this master key and the key that it replaces.
pub fn with_keys(variables: &Variables, present: &str, previous: Option<&str>) -> Variables {
    let mut variables = variables.clone();
    variables.insert("PERENNIAL_MASTER_KEY", present.to_owned());
    variables.remove("PERENNIAL_MASTER_KEY_PREVIOUS");
    if let Some(previous) = previous {
        variables.insert("PERENNIAL_MASTER_KEY_PREVIOUS", previous.to_owned());
    }
    variables
}

/// Replaces the master key of the test databases, and starts a second instance with both keys.
pub async fn start_with_new_key(service: &Service) -> Server {
    let both = with_keys(&service.variables, &generate_key(), Some(MASTER_KEY));
    let server = Server::start(&both).await;
    run_ok(&both, &["keys", "rewrap"]);
    server
}

/// A stored session, as a dump of the database shows it.
pub struct DumpedSession {
    pub tenant: TenantId,
    pub id: SessionId,
    pub salt: [u8; 16],
}

impl DumpedSession {
    /// Reads the columns `tenant_id`, `id` and `salt`.
    pub fn from_row(row: &Row) -> Self {
        Self {
            tenant: TenantId::new(row.get("tenant_id")),
            id: SessionId::new(row.get("id")),
            salt: row.get::<_, &[u8]>("salt").try_into().unwrap(),
        }
    }

    /// Computes a refresh token.
    pub fn refresh_token(&self, keys: &DerivedKeys, generation: u32) -> String {
        let salt = Salt {
            bytes: self.salt,
            key: keys.present().id,
        };
        let token = RefreshKeys(keys.clone()).issue(self.tenant, self.id, &salt, generation);
        token.unwrap().expose_secret().to_owned()
    }
}
