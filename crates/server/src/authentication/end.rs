//! Ending sessions by the user whose they are.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    callers::{
        Caller, SignedInUser,
        sessions::{self, Reason, table},
    },
    http::problem::Problem,
};

/// What was ended.
#[derive(Serialize, ToSchema)]
#[schema(as = Revoked, example = json!({"success": true, "revoked": 1}))]
pub struct RevokedView {
    /// Always true; otherwise the answer is an error.
    #[schema(example = true)]
    success: bool,
    /// How many sessions were ended.
    #[schema(example = 1)]
    revoked: usize,
}

/// Which sessions of the bearer's user to end.
pub(super) enum Which {
    Current,
    All,
    Others,
}

/// Ends sessions of the bearer's user.
pub(super) async fn end(
    app: &App,
    caller: &Caller<SignedInUser>,
    reason: Reason,
    which: Which,
) -> Result<RevokedView, Problem> {
    let signed_in = caller.signed_in()?;
    let tenant = caller.tenant();
    let mut connection = app.engine_of(tenant)?.connection().await?;
    let tx = connection.begin();
    let now: Timestamp = app.clock.now();
    let current = signed_in.session.id;
    let mut chosen = match which {
        Which::Current => vec![current],
        Which::All | Which::Others => {
            table::of_user(&tx, tenant.id, signed_in.user.id, false).await?
        }
    };
    if let Which::Others = which {
        chosen.retain(|session| *session != current);
    }
    let why = (reason, &caller.by());
    let ended = sessions::end(&tx, app.ids, tenant.id, &chosen, why, now).await?;
    tx.commit().await?;
    app.bearers.sessions.forget(tenant, &ended);
    Ok(RevokedView {
        success: true,
        revoked: ended.len(),
    })
}
