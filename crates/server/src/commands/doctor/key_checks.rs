//! The check of the master key and of signing keys.

use super::Finding;
use crate::{
    auth::tokens,
    clock::Clock,
    commands::bootstrap,
    config::Config,
    crypto::DerivedKeys,
    db::{PooledConnection, instance},
};

pub(super) async fn check_keys(
    config: &Config,
    home: &PooledConnection,
) -> anyhow::Result<Finding> {
    let masters = match config.master_key.load() {
        Ok(Some(masters)) => masters,
        Ok(None) => {
            let fix = "the first `perennial serve` creates one";
            return Ok(Finding::warning("this sandbox has no master key yet", fix));
        }
        Err(error) => {
            let fix = "set PERENNIAL_MASTER_KEY or PERENNIAL_MASTER_KEY_FILE";
            return Ok(Finding::problem(format!("master key: {error:#}"), fix));
        }
    };
    let keys = DerivedKeys::new(&masters);
    let state = instance::master_key_state(home).await?;
    if let Err((message, fix)) = bootstrap::check_master_keys(&keys, &state) {
        let fix = format!("{fix}; see docs/runbooks/backup");
        return Ok(Finding::problem(format!("the database {message}"), fix));
    }
    if keys.previous().is_some() {
        return Ok(check_rotation(&keys, &state));
    }
    let now = Clock::System.now();
    let signing_keys = tokens::table::list(home).await?;
    Ok(
        if signing_keys.iter().any(|key| key.validity.can_sign(now)) {
            Finding::ok("master key, signing key")
        } else {
            let fix = "`perennial keys rotate` creates one; see docs/runbooks/rotate-signing-keys";
            Finding::problem("there is no key to sign access tokens", fix)
        },
    )
}

/// Reports the next step of a rotation of the master key.
fn check_rotation(keys: &DerivedKeys, state: &instance::MasterKeyState) -> Finding {
    let is_in_use = state.check.as_deref() == Some(keys.present().check.as_slice());
    if is_in_use && state.previous_check.is_none() {
        Finding::warning(
            "PERENNIAL_MASTER_KEY_PREVIOUS is set, but nothing in the database needs it",
            "remove it and restart; see docs/runbooks/leaked-master-key",
        )
    } else {
        Finding::warning(
            "the master key is being replaced",
            "when every instance has both keys, run `perennial keys rewrap`; see docs/runbooks/leaked-master-key",
        )
    }
}
