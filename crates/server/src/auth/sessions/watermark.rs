//! Watermarks: one row ends all sessions of a user, an issuer, a tenant or the installation.
//!
//! Each session has a number, and each watermark the number of the first session that stays valid.
//! Both come from one sequence per cell, so a sign-in is either before a watermark or after it;
//! clocks do not matter. A session is refused as soon as the watermark is committed; housekeeping
//! ends the rows later.

use std::fmt;

use perennial_domain::{Id, Session, SessionId, TenantId, UserId};
use uuid::Uuid;

/// The sessions that a watermark applies to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SessionScope {
    User(TenantId, UserId),
    /// The sessions of a tenant that were created with tokens of this issuer.
    Issuer(TenantId, String),
    Tenant(TenantId),
    /// All tenants of a cell.
    Installation,
}

impl SessionScope {
    /// Returns the scopes that a session belongs to.
    fn containing(tenant: TenantId, session: &Session) -> [Self; 4] {
        [
            Self::User(tenant, session.user),
            Self::Issuer(tenant, session.issuer.clone()),
            Self::Tenant(tenant),
            Self::Installation,
        ]
    }

    /// Returns the value of the column `tenant_id`.
    pub(super) fn tenant_uuid(&self) -> Uuid {
        match self {
            Self::User(tenant, _) | Self::Issuer(tenant, _) | Self::Tenant(tenant) => tenant.uuid(),
            Self::Installation => Uuid::nil(),
        }
    }

    /// Returns the issuer if the scope is limited to one.
    pub(super) fn issuer(&self) -> Option<&str> {
        match self {
            Self::Issuer(_, issuer) => Some(issuer),
            Self::User(..) | Self::Tenant(_) | Self::Installation => None,
        }
    }

    /// Parses the columns `tenant_id` and `scope`.
    pub(super) fn from_columns(tenant: Uuid, scope: &str) -> Option<Self> {
        let tenant = TenantId::new(tenant);
        match scope.split_once(':') {
            Some(("user", user)) => {
                let user = user.parse().ok()?;
                Some(Self::User(tenant, UserId::new(user)))
            }
            Some(("issuer", issuer)) => Some(Self::Issuer(tenant, issuer.to_owned())),
            None if scope == "tenant" => Some(Self::Tenant(tenant)),
            None if scope == "installation" => Some(Self::Installation),
            _ => None,
        }
    }
}

/// Writes the value of the column `scope`.
impl fmt::Display for SessionScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(_, user) => write!(f, "user:{}", user.uuid()),
            Self::Issuer(_, issuer) => write!(f, "issuer:{issuer}"),
            Self::Tenant(_) => f.write_str("tenant"),
            Self::Installation => f.write_str("installation"),
        }
    }
}

/// Ends the sessions of a scope whose number is less than `sessions_valid_from`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watermark {
    pub scope: SessionScope,
    pub sessions_valid_from: i64,
    /// A session that the watermark does not end.
    pub except_session: Option<SessionId>,
}

impl Watermark {
    /// Parses the payload of a notification: tenant, number, excepted session or `-`, and scope,
    /// separated by spaces.
    pub(super) fn from_payload(payload: &str) -> Option<Self> {
        let mut parts = payload.splitn(4, ' ');
        let tenant = parts.next()?.parse().ok()?;
        let sessions_valid_from = parts.next()?.parse().ok()?;
        let except_session = match parts.next()? {
            "-" => None,
            session => Some(SessionId::new(session.parse().ok()?)),
        };
        Some(Self {
            scope: SessionScope::from_columns(tenant, parts.next()?)?,
            sessions_valid_from,
            except_session,
        })
    }
}

/// The watermarks that a cache has received, by scope.
#[derive(Debug, Default)]
pub(super) struct Watermarks(std::collections::HashMap<SessionScope, Watermark>);

impl Watermarks {
    /// Adds a watermark. Returns false if it is not newer than the known one of its scope.
    pub(super) fn add(&mut self, watermark: &Watermark) -> bool {
        let known = self.0.get(&watermark.scope);
        let is_newer =
            known.is_none_or(|known| known.sessions_valid_from < watermark.sessions_valid_from);
        if is_newer {
            self.0.insert(watermark.scope.clone(), watermark.clone());
        }
        is_newer
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns whether a watermark ends this session.
    pub(super) fn end(&self, tenant: TenantId, session: &Session, number: i64) -> bool {
        SessionScope::containing(tenant, session)
            .iter()
            .filter_map(|scope| self.0.get(scope))
            .any(|watermark| {
                number < watermark.sessions_valid_from
                    && watermark.except_session != Some(session.id)
            })
    }
}

#[cfg(test)]
mod tests {
    use perennial_domain::{ClientId, SessionLifetimes};

    use super::*;

    fn tenant(number: u128) -> TenantId {
        TenantId::new(Uuid::from_u128(number))
    }

    fn session(user: u128, issuer: &str) -> Session {
        let id = Uuid::from_u128(7);
        Session::new(
            SessionId::new(id),
            UserId::new(Uuid::from_u128(user)),
            ClientId::new(id),
            issuer.to_owned(),
            [192, 0, 2, 1].into(),
            &SessionLifetimes::DEFAULT,
            jiff::Timestamp::UNIX_EPOCH,
        )
    }

    #[test]
    fn payload_parses_every_scope() {
        let nil = Uuid::nil();
        let id = Uuid::from_u128(7);
        let scopes = [
            SessionScope::User(tenant(1), UserId::new(id)),
            SessionScope::Issuer(tenant(1), "https://id.example/a b:c".to_owned()),
            SessionScope::Tenant(tenant(1)),
            SessionScope::Installation,
        ];
        for scope in scopes {
            for except in [None, Some(id)] {
                let shown = except.map_or_else(|| "-".to_owned(), |id: Uuid| id.to_string());
                let payload = format!("{} 42 {shown} {scope}", scope.tenant_uuid());
                let expected = Watermark {
                    scope: scope.clone(),
                    sessions_valid_from: 42,
                    except_session: except.map(SessionId::new),
                };
                assert_eq!(
                    Watermark::from_payload(&payload),
                    Some(expected),
                    "{payload}"
                );
            }
        }
        for invalid in ["", "x", &id.to_string(), &format!("{nil} 1 - other")] {
            assert_eq!(Watermark::from_payload(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn watermark_ends_earlier_sessions_of_its_scope_only() {
        let ends = |payload: &str, number| {
            let mut watermarks = Watermarks::default();
            assert!(watermarks.add(&Watermark::from_payload(payload).unwrap()));
            [
                watermarks.end(tenant(1), &session(1, "a"), number),
                watermarks.end(tenant(1), &session(2, "b"), number),
                watermarks.end(tenant(2), &session(1, "a"), number),
            ]
        };
        let (one, nil) = (Uuid::from_u128(1), Uuid::nil());
        let user = format!("{one} 42 - user:{one}");
        assert_eq!(ends(&user, 41), [true, false, false]);
        assert_eq!(ends(&user, 42), [false; 3]);
        assert_eq!(
            ends(&format!("{one} 42 - issuer:a"), 41),
            [true, false, false]
        );
        assert_eq!(ends(&format!("{one} 42 - tenant"), 41), [true, true, false]);
        assert_eq!(ends(&format!("{nil} 42 - installation"), 41), [true; 3]);
        let except = format!("{one} 42 {} user:{one}", Uuid::from_u128(7));
        assert_eq!(ends(&except, 41), [false; 3]);
    }

    #[test]
    fn older_watermark_does_not_replace_a_newer_one() {
        let mut watermarks = Watermarks::default();
        let at = |number: i64| Watermark {
            scope: SessionScope::Installation,
            sessions_valid_from: number,
            except_session: None,
        };
        assert!(watermarks.add(&at(42)));
        assert!(!watermarks.add(&at(42)));
        assert!(!watermarks.add(&at(41)));
        assert!(watermarks.end(tenant(1), &session(1, "a"), 41));
        assert!(watermarks.add(&at(43)));
    }
}
