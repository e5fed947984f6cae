//! Creates sessions.

use std::net::IpAddr;

use axum::{
    extract::FromRequestParts,
    http::{header, request::Parts},
};
use jiff::Timestamp;
use perennial_domain::{ClientKind, EventKind, Session, SessionUser};
use serde_json::json;

use super::credentials::VerifiedIdentity;
use crate::{
    app::App,
    auth::{
        Caller, Client, SignIn,
        sessions::{self, RevokeReason, table, user_sessions_sql},
        tokens::Salt,
    },
    db::Transaction,
    events,
    http::{
        client_ip::RemoteAddr,
        problem::{Code, Problem},
    },
    randomness::Randomness,
};

/// In characters; longer values are truncated.
const MAX_USER_AGENT: usize = 255;
/// The maximum number of sessions that a sign-in ends. Usually it is one.
const MAX_ENDED_PER_SIGN_IN: usize = 100;

/// The device that signs in, by its `User-Agent` header.
pub(super) struct Device {
    user_agent: Option<String>,
}

impl<S: Sync> FromRequestParts<S> for Device {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let header = parts.headers.get(header::USER_AGENT);
        let user_agent: Option<String> = header
            .and_then(|value| value.to_str().ok())
            .map(|text| text.chars().take(MAX_USER_AGENT).collect());
        Ok(Self {
            user_agent: user_agent.filter(|text| !text.trim().is_empty()),
        })
    }
}

/// Returns the end user's IP address: the one that a secret client forwards, or else the client's.
fn user_address(client: &Client, remote_addr: RemoteAddr) -> IpAddr {
    let RemoteAddr {
        client_ip,
        forwarded_for,
    } = remote_addr;
    match client.kind {
        ClientKind::Secret => forwarded_for.unwrap_or(client_ip.0),
        ClientKind::Publishable => client_ip.0,
    }
}

/// Inserts a session and records the event. Ends the oldest sessions beyond the limit per user.
pub(super) async fn create_session(
    app: &App,
    tx: &Transaction<'_>,
    caller: &Caller<SignIn>,
    device: Device,
    user: &SessionUser,
    identity: VerifiedIdentity,
    now: Timestamp,
) -> Result<(Session, Salt), Problem> {
    let client = caller.require_client()?;
    let id = app.ids.generate(now);
    let (issuer, address) = (identity.issuer, user_address(client, caller.remote_addr()));
    let lifetimes = &caller.tenant().session_lifetimes;
    let session = Session {
        user_agent: device.user_agent,
        authenticated_at: identity.authenticated_at,
        ..Session::new(id, user.id, client.id, issuer, address, lifetimes, now)
    };
    let salt = app.refresh_keys.new_salt(Randomness);
    let tenant = caller.tenant().id;
    if !table::insert(tx, tenant, &session, &salt).await? {
        return Err(account_not_found());
    }
    let data = json!({"id": session.id.to_string(), "user_id": user.id.to_string(), "issuer": session.issuer});
    let kind = EventKind::SessionCreated;
    let event = caller.event(app.ids, now, kind, session.id, &data);
    events::record(tx, &event).await?;
    end_excess(app, tx, caller, user, now).await?;
    Ok((session, salt))
}

/// Ends the oldest sessions of a user who has more than [`Session::MAX_PER_USER`]. Every instance, this
/// one included, is notified when the transaction is committed.
async fn end_excess(
    app: &App,
    tx: &Transaction<'_>,
    caller: &Caller<SignIn>,
    user: &SessionUser,
    now: Timestamp,
) -> Result<(), Problem> {
    let tenant = caller.tenant();
    let mut excess = user_sessions_sql::list_excess(tx, tenant, user.id, now).await?;
    // Bounds the duration if many sessions became active again, because the tenant's timeouts were raised.
    excess.truncate(MAX_ENDED_PER_SIGN_IN);
    if !excess.is_empty() {
        let cause = (RevokeReason::SessionLimit, &caller.actor());
        sessions::revoke(tx, app.ids, tenant.id, &excess, cause, now).await?;
    }
    Ok(())
}

pub(super) fn account_not_found() -> Problem {
    let detail = "no account exists for this identity; sign up first";
    Problem::new(Code::AccountNotFound, detail)
}
