//! Beginning a session.

use std::net::IpAddr;

use axum::{
    extract::FromRequestParts,
    http::{header, request::Parts},
};
use jiff::Timestamp;
use perennial_domain::{ClientKind, EventKind, Session, User};
use serde_json::json;

use crate::{
    app::App,
    callers::{Caller, SignIn, sessions::table, tokens::Salt},
    db::Transaction,
    events,
    http::{
        peer::Sender,
        problem::{Code, Problem},
    },
    randomness::Randomness,
};

/// How much of what a device says of itself is kept, in characters.
const MAX_USER_AGENT: usize = 255;

/// What somebody signs in with.
pub(super) struct Device {
    user_agent: Option<String>,
}

impl<S: Sync> FromRequestParts<S> for Device {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let agent = parts.headers.get(header::USER_AGENT);
        let agent = agent.and_then(|agent| agent.to_str().ok());
        let agent = agent.map(|agent| agent.chars().take(MAX_USER_AGENT).collect::<String>());
        Ok(Self {
            user_agent: agent.filter(|agent| !agent.trim().is_empty()),
        })
    }
}

/// The end user's address: whom a server names, or whoever calls.
fn address(caller: &Caller<SignIn>) -> IpAddr {
    let Sender { peer, named } = caller.sender();
    match caller.client().kind {
        ClientKind::Secret => named.unwrap_or(peer.0),
        ClientKind::Publishable => peer.0,
    }
}

/// Begins a session of this user, in this transaction.
pub(super) async fn open(
    app: &App,
    tx: &Transaction<'_>,
    caller: &Caller<SignIn>,
    device: Device,
    user: &User,
    issuer: String,
    now: Timestamp,
) -> Result<(Session, Salt), Problem> {
    let client = caller.client();
    let session = Session {
        id: app.ids.next(now),
        user: user.id,
        client: client.id,
        issuer,
        address: address(caller),
        user_agent: device.user_agent,
        created_at: now,
        last_used_at: now,
        expires_at: Session::expiry(now, now),
        ended_at: None,
        generation: 0,
        confirmed: 0,
        refreshed_at: now,
    };
    let salt = Randomness.bytes();
    let tenant = caller.tenant().id;
    if !table::insert(tx, tenant, &session, &salt).await? {
        return Err(no_account());
    }
    let data = json!({"id": session.id.to_string(), "user_id": user.id.to_string(), "issuer": session.issuer});
    let kind = EventKind::SessionCreated;
    let event = caller.event(app.ids, now, kind, session.id, &data);
    events::record(tx, &event).await?;
    Ok((session, salt))
}

/// Nobody has signed up with this identity, or whoever had has deleted the account.
pub(super) fn no_account() -> Problem {
    let detail = "nobody has signed up with this identity; sign up first";
    Problem::new(Code::AccountNotFound, detail)
}
