//! Staff members, their sign-in links and their sessions.
//!
//! A staff member works with the console in a browser. The member belongs to one tenant, or to all. A **link** signs a
//! member in, once and within 10 minutes. A **session** is a cookie; it ends after 12 hours, or after an hour without a
//! request. Only the SHA-256 of both is stored. All of this is in the home cell.
//!
//! Every change of a member, and the end of a session, sends a notification that clears the cached sessions in every
//! instance.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use perennial_domain::{Email, EventKind, Id, StaffId, StaffRole, TenantId};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::tenants::table::{list_ids, notify_staff_changed};
use crate::{
    clock::IdGenerator,
    db::{Error, PooledConnection, Transaction},
    events::{self, Actor, Event},
    http::problem::{Code, Problem},
    randomness::Randomness,
};

pub mod cookie;
mod staff_caller;
pub mod table;

pub use staff_caller::{StaffCaller, Visitor};

pub const LINK_TTL: SignedDuration = SignedDuration::from_mins(10);
pub const SESSION_ABSOLUTE_TIMEOUT: SignedDuration = SignedDuration::from_hours(12);
pub const SESSION_IDLE_TIMEOUT: SignedDuration = SignedDuration::from_hours(1);
/// How old `last_used_at` may be before it is written again.
pub(super) const TOUCH_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// A person who works with the console.
#[derive(Debug, Clone)]
pub struct StaffMember {
    pub id: StaffId,
    /// `None` for a member of all tenants.
    pub tenant: Option<TenantId>,
    pub email: Option<String>,
    pub role: StaffRole,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub last_signed_in_at: Option<Timestamp>,
}

/// A session of a staff member.
#[derive(Debug, Clone)]
pub struct StaffSession {
    pub member: StaffMember,
    /// SHA-256 of the cookie.
    pub token_hash: [u8; 32],
    pub expires_at: Timestamp,
}

/// Hashes the secret of a link or a session for storage. It has 256 random bits, so a single round is enough.
pub(super) fn hash(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

fn generate_token() -> SecretString {
    let random: [u8; 32] = Randomness.bytes();
    BASE64_URL_SAFE_NO_PAD.encode(random).into()
}

/// Returns the problem of a cookie that is missing, unknown or expired.
pub fn invalid_session() -> Problem {
    let detail = "no staff member is signed in with this cookie; open the console and sign in";
    Problem::new(Code::InvalidStaffSession, detail)
}

/// Who changes staff members, and when.
#[derive(Debug, Clone)]
pub struct StaffChange {
    pub ids: IdGenerator,
    pub now: Timestamp,
    pub actor: Actor,
}

impl StaffChange {
    async fn record(
        &self,
        tx: &Transaction<'_>,
        tenant: TenantId,
        kind: EventKind,
        staff: StaffId,
        data: &Value,
    ) -> Result<(), Error> {
        let event = Event {
            id: self.ids.generate(self.now),
            at: self.now,
            tenant,
            kind,
            subject: staff.uuid(),
            actor: self.actor.clone(),
            data,
        };
        events::record(tx, &event).await
    }

    /// Records a change of a member: for a member of all tenants, in the log of each.
    async fn record_change(
        &self,
        tx: &Transaction<'_>,
        kind: EventKind,
        member: &StaffMember,
        previous: Option<StaffRole>,
    ) -> Result<(), Error> {
        let mut data = event_data(member);
        if let (Some(role), Some(fields)) = (previous, data.as_object_mut()) {
            fields.insert("previous".to_owned(), json!({"role": role.as_str()}));
        }
        let tenants = match member.tenant {
            Some(tenant) => vec![tenant],
            None => list_ids(tx).await?,
        };
        for tenant in tenants {
            self.record(tx, tenant, kind, member.id, &data).await?;
        }
        Ok(())
    }
}

/// Returns the data of an event about a member. It has no email address.
fn event_data(member: &StaffMember) -> Value {
    json!({
        "id": member.id.to_string(),
        "role": member.role.as_str(),
        "all_tenants": member.tenant.is_none(),
    })
}

/// A person who becomes a staff member, unless there is such a member.
#[derive(Debug, Clone, Copy)]
pub struct NewStaffMember<'a> {
    /// `None` for all tenants.
    pub tenant: Option<TenantId>,
    pub email: Option<&'a Email>,
    pub role: StaffRole,
    /// Whether a group of the identity provider makes the person a member, and not an invitation.
    pub is_by_group: bool,
}

/// Returns the member with this email address, or the member without one, and creates it if there is none. A member
/// with another role gets this one.
pub async fn ensure_member(
    tx: &Transaction<'_>,
    change: &StaffChange,
    new: NewStaffMember<'_>,
) -> Result<StaffMember, Error> {
    let NewStaffMember {
        tenant,
        email,
        role,
        is_by_group,
    } = new;
    let found = match email {
        Some(email) => table::lock_by_email(tx, tenant, email).await?,
        None => table::lock_without_email(tx, tenant, role).await?,
    };
    if let Some(member) = found {
        if !is_by_group {
            table::set_invited(tx, member.id).await?;
        }
        return set_role(tx, change, member, role).await;
    }
    let member = StaffMember {
        id: change.ids.generate(change.now),
        tenant,
        email: email.map(|email| email.as_str().to_owned()),
        role,
        created_at: change.now,
        updated_at: change.now,
        last_signed_in_at: None,
    };
    table::insert(tx, &member, email, is_by_group).await?;
    change
        .record_change(tx, EventKind::StaffInvited, &member, None)
        .await?;
    Ok(member)
}

/// Changes the role of a locked member. The member's sessions continue with the new role.
pub async fn set_role(
    tx: &Transaction<'_>,
    change: &StaffChange,
    member: StaffMember,
    role: StaffRole,
) -> Result<StaffMember, Error> {
    if member.role == role {
        return Ok(member);
    }
    let previous = member.role;
    let member = StaffMember {
        role,
        updated_at: change.now,
        ..member
    };
    table::set_role(tx, member.id, role, change.now).await?;
    notify_staff_changed(tx).await?;
    let kind = EventKind::StaffChanged;
    change
        .record_change(tx, kind, &member, Some(previous))
        .await?;
    Ok(member)
}

/// Removes a locked member and ends the member's sessions.
pub async fn remove(
    tx: &Transaction<'_>,
    change: &StaffChange,
    member: &StaffMember,
) -> Result<(), Error> {
    table::remove(tx, member.id, change.now).await?;
    notify_staff_changed(tx).await?;
    change
        .record_change(tx, EventKind::StaffRemoved, member, None)
        .await
}

/// Creates a link that signs a member in. Returns its secret, which cannot be read again.
pub async fn create_link(
    tx: &Transaction<'_>,
    member: StaffId,
    now: Timestamp,
) -> Result<SecretString, Error> {
    let secret = generate_token();
    let hash = hash(secret.expose_secret().as_bytes());
    table::insert_link(tx, member, &hash, after(now, LINK_TTL)).await?;
    Ok(secret)
}

/// Returns the URL of a sign-in link. The secret is in the fragment, which browsers do not send, so it is in no log.
pub fn link_url(console_url: &str, secret: &SecretString) -> String {
    format!("{console_url}/console/#link={}", secret.expose_secret())
}

/// A session that was just created.
#[derive(Debug)]
pub struct NewStaffSession {
    /// The value of the cookie.
    pub secret: SecretString,
    pub session: StaffSession,
    pub tenant: TenantId,
}

/// Signs a member in with the secret of a link, which is used up. Returns `None` if the link is unknown, used or expired.
pub async fn use_link(
    home: &mut PooledConnection,
    change: &StaffChange,
    secret: &str,
) -> Result<Option<NewStaffSession>, Error> {
    let tx = home.begin();
    let hash = hash(secret.as_bytes());
    let Some(staff) = table::take_link(&tx, &hash, change.now).await? else {
        return Ok(None);
    };
    let session = sign_in(&tx, change, staff).await?;
    tx.commit().await?;
    Ok(session)
}

/// Creates a session of a member. Returns `None` if the member was removed.
pub async fn sign_in(
    tx: &Transaction<'_>,
    change: &StaffChange,
    staff: StaffId,
) -> Result<Option<NewStaffSession>, Error> {
    table::delete_expired(tx, change.now).await?;
    let Some(member) = table::lock(tx, staff).await? else {
        return Ok(None);
    };
    let tenant = match member.tenant {
        Some(tenant) => Some(tenant),
        None => list_ids(tx).await?.into_iter().next(),
    };
    let Some(tenant) = tenant else {
        return Ok(None);
    };
    let secret = generate_token();
    let session = StaffSession {
        token_hash: hash(secret.expose_secret().as_bytes()),
        expires_at: after(change.now, SESSION_ABSOLUTE_TIMEOUT),
        member,
    };
    table::insert_session(tx, &session, tenant, change.now).await?;
    let change = StaffChange {
        actor: Actor {
            staff: Some(staff),
            ..change.actor.clone()
        },
        ..change.clone()
    };
    let kind = EventKind::StaffSignedIn;
    change
        .record(tx, tenant, kind, staff, &event_data(&session.member))
        .await?;
    Ok(Some(NewStaffSession {
        secret,
        session,
        tenant,
    }))
}

/// Ends a session.
pub async fn sign_out(
    home: &mut PooledConnection,
    change: &StaffChange,
    tenant: TenantId,
    session: &StaffSession,
) -> Result<(), Error> {
    let tx = home.begin();
    table::delete_session(&tx, &session.token_hash).await?;
    notify_staff_changed(&tx).await?;
    let (kind, member) = (EventKind::StaffSignedOut, &session.member);
    change
        .record(&tx, tenant, kind, member.id, &event_data(member))
        .await?;
    tx.commit().await
}

/// Changes the tenant of a session, which gets a new secret, because instances cache the tenant by the old one. The caller
/// has checked that the member may work with the tenant. Returns `None` if the session has ended.
pub async fn switch_tenant(
    home: &mut PooledConnection,
    change: &StaffChange,
    session: &StaffSession,
    tenant: TenantId,
) -> Result<Option<SecretString>, Error> {
    let tx = home.begin();
    let secret = generate_token();
    let new_hash = hash(secret.expose_secret().as_bytes());
    if !table::replace_session(&tx, &session.token_hash, &new_hash, tenant).await? {
        return Ok(None);
    }
    notify_staff_changed(&tx).await?;
    let (kind, member) = (EventKind::StaffSignedIn, &session.member);
    change
        .record(&tx, tenant, kind, member.id, &event_data(member))
        .await?;
    tx.commit().await?;
    Ok(Some(secret))
}

fn after(now: Timestamp, duration: SignedDuration) -> Timestamp {
    now.saturating_add(duration).unwrap_or(Timestamp::MAX)
}
