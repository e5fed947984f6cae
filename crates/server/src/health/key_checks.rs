//! The check of the master key and of signing keys.

use super::{HealthCheck, HealthChecker};
use crate::{auth::tokens, crypto::DerivedKeys, db::instance};

const NAME: &str = "keys";

impl HealthChecker<'_> {
    pub(super) async fn check_keys(&self) -> anyhow::Result<Vec<HealthCheck>> {
        let Some(keys) = self.keys else {
            return Ok(Vec::new());
        };
        let home = self.db.home()?.connection().await?;
        let state = instance::master_key_state(&home).await?;
        if let Err((message, fix)) = check_master_keys(keys, &state) {
            let check = HealthCheck::failed(NAME, format!("the database {message}"));
            return Ok(vec![check.fix(fix).see("runbooks/backup")]);
        }
        if keys.previous().is_some() {
            return Ok(vec![check_rotation(keys, &state)]);
        }
        let now = self.clocks.real.now();
        let signing_keys = tokens::table::list(&home).await?;
        let can_sign = signing_keys.iter().any(|key| key.validity.can_sign(now));
        Ok(vec![if can_sign {
            HealthCheck::ok(NAME, "master key, signing key")
        } else {
            HealthCheck::failed(NAME, "there is no key to sign access tokens")
                .fix("`perennial keys rotate` creates one")
                .see("runbooks/rotate-signing-keys")
        }])
    }
}

/// Reports the next step of a rotation of the master key.
fn check_rotation(keys: &DerivedKeys, state: &instance::MasterKeyState) -> HealthCheck {
    let is_in_use = state.check.as_deref() == Some(keys.present().check.as_slice());
    let check = if is_in_use && state.previous_check.is_none() {
        let detail = "PERENNIAL_MASTER_KEY_PREVIOUS is set, but nothing in the database needs it";
        HealthCheck::warning(NAME, detail).fix("remove it and restart")
    } else {
        HealthCheck::warning(NAME, "the master key is being replaced")
            .fix("when every instance has both keys, run `perennial keys rewrap`")
    };
    check.see("runbooks/leaked-master-key")
}

/// Returns an error, and the suggested action, if a master key that the database needs is not
/// configured.
pub fn check_master_keys(
    keys: &DerivedKeys,
    state: &instance::MasterKeyState,
) -> Result<(), (&'static str, &'static str)> {
    let is_missing = |check: &Option<Vec<u8>>| {
        let check = check.as_deref();
        check.is_some_and(|check| keys.all().all(|keys| keys.check != check))
    };
    if is_missing(&state.check) {
        return Err((
            "was set up with another master key",
            "set PERENNIAL_MASTER_KEY to that key, or use another database; to replace that key, set \
             PERENNIAL_MASTER_KEY_PREVIOUS to it",
        ));
    }
    if is_missing(&state.previous_check) {
        return Err((
            "still needs the previous master key",
            "set PERENNIAL_MASTER_KEY_PREVIOUS to it until `perennial keys rewrap` has finished",
        ));
    }
    Ok(())
}
