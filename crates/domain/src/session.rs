//! Sessions: expiry and refresh token rotation.
//!
//! Each session has one current refresh token, identified by its *generation*. Using it creates the
//! next generation. Responses get lost, and browsers have several tabs. Therefore the previous token
//! returns the same successor for 30 seconds. After that it does so once more, within 10 minutes and
//! only while the successor is unconfirmed; this *late reissue* is recorded as an event. Any other
//! use of an old token revokes the session, because the token was probably stolen.

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};

use crate::{ClientId, SessionId, UserId};

/// How long the previous refresh token is always accepted.
const REUSE_TTL: SignedDuration = SignedDuration::from_secs(30);
/// How long the previous refresh token is accepted once more while its successor is unconfirmed.
const LATE_REISSUE_TTL: SignedDuration = SignedDuration::from_mins(10);

/// A sign-in of a user on one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The session's id.
    pub id: SessionId,
    /// The signed-in user.
    pub user: UserId,
    /// The client that created the session. No other client can refresh it.
    pub client: ClientId,
    /// The identity provider that authenticated the user.
    pub issuer: String,
    /// The IP address of the sign-in.
    pub address: IpAddr,
    /// The `user-agent` of the sign-in.
    pub user_agent: Option<String>,
    /// When the user signed in.
    pub created_at: Timestamp,
    /// When the identity provider authenticated the user, if it says so.
    pub authenticated_at: Option<Timestamp>,
    /// When the session was last used, to the minute.
    pub last_used_at: Timestamp,
    /// When the session expires unless it is refreshed before.
    pub expires_at: Timestamp,
    /// When the session was revoked.
    pub ended_at: Option<Timestamp>,
    /// The generation of the current refresh token, starting at 0.
    pub generation: u32,
    /// The newest confirmed generation: its tokens have been used, or were issued by a late reissue.
    pub confirmed: u32,
    /// When the current generation was created, or its late reissue.
    pub refreshed_at: Timestamp,
}

/// How to handle a refresh token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefreshDecision {
    /// It is the current token: create the next generation.
    Rotate,
    /// It is the previous token: return the current generation again.
    Reissue,
    /// It is the previous token, more than 30 seconds later, and the current one is unconfirmed: set
    /// [`Session::confirmed`] and [`Session::refreshed_at`], so that this happens once, record an
    /// event, and return the current generation again.
    LateReissue,
    /// It is an older token, or the previous one too late: revoke the session.
    Revoke,
    /// The session has ended, or the generation does not exist, as after a database restore.
    Reject,
}

/// How long the sessions of a tenant last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLifetimes {
    /// The lifetime of a session without a refresh.
    pub idle_timeout: SignedDuration,
    /// The lifetime of a session from its sign-in, however often it is refreshed.
    pub absolute_timeout: SignedDuration,
}

impl SessionLifetimes {
    /// 14 and 30 days.
    pub const DEFAULT: Self = Self {
        idle_timeout: SignedDuration::from_hours(14 * 24),
        absolute_timeout: SignedDuration::from_hours(30 * 24),
    };

    /// Returns the expiry of a session from the times of its sign-in and last refresh.
    pub fn expiry(&self, created_at: Timestamp, refreshed_at: Timestamp) -> Timestamp {
        let add =
            |start: Timestamp, duration| start.saturating_add(duration).unwrap_or(Timestamp::MAX);
        add(refreshed_at, self.idle_timeout).min(add(created_at, self.absolute_timeout))
    }
}

impl Session {
    /// The maximum number of active sessions of a user. A sign-in ends the oldest ones beyond it.
    pub const MAX_PER_USER: u32 = 100;
    /// The minimum time between two updates of `last_used_at`, unless the row is written anyway.
    pub const TOUCH_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

    /// Creates a session that starts at `now`, without a `user_agent`.
    pub fn new(
        id: SessionId,
        user: UserId,
        client: ClientId,
        issuer: String,
        address: IpAddr,
        lifetimes: &SessionLifetimes,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            user,
            client,
            issuer,
            address,
            user_agent: None,
            created_at: now,
            authenticated_at: None,
            last_used_at: now,
            expires_at: lifetimes.expiry(now, now),
            ended_at: None,
            generation: 0,
            confirmed: 0,
            refreshed_at: now,
        }
    }

    /// Returns whether the session is neither revoked nor expired at `now`.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.ended_at.is_none() && now < self.expires_at
    }

    /// Returns how long ago the user authenticated: at the identity provider, or if it does not say
    /// when, at the sign-in. The sign-in also counts if the provider's time is later, because its clock
    /// may be fast.
    pub fn authentication_age(&self, now: Timestamp) -> SignedDuration {
        let authenticated_at = self.authenticated_at.unwrap_or(self.created_at);
        now.duration_since(authenticated_at.min(self.created_at))
    }

    /// Applies shorter lifetimes to a session that was stored with longer ones. Longer lifetimes take
    /// effect when the session is refreshed.
    pub fn cap_expiry(&mut self, lifetimes: &SessionLifetimes) {
        let cap = lifetimes.expiry(self.created_at, self.refreshed_at);
        self.expires_at = self.expires_at.min(cap);
    }

    /// Decides how to handle a refresh token of generation `presented`.
    pub fn refresh_decision(&self, presented: u32, now: Timestamp) -> RefreshDecision {
        let age = now.duration_since(self.refreshed_at);
        let is_confirmed = self.confirmed >= self.generation;
        match self.generation.checked_sub(presented) {
            _ if !self.is_active(now) => RefreshDecision::Reject,
            None => RefreshDecision::Reject,
            Some(0) => RefreshDecision::Rotate,
            Some(1) if age <= REUSE_TTL => RefreshDecision::Reissue,
            Some(1) if age <= LATE_REISSUE_TTL && !is_confirmed => RefreshDecision::LateReissue,
            Some(_) => RefreshDecision::Revoke,
        }
    }

    /// Returns whether a use of a token of `generation` confirms the generation. This must be stored
    /// before the response, because [`Self::refresh_decision`] depends on it.
    pub fn needs_confirmation(&self, generation: u32) -> bool {
        self.confirmed < generation.min(self.generation)
    }

    /// Returns whether `last_used_at` is outdated. The new time can be stored later.
    pub fn needs_touch(&self, now: Timestamp) -> bool {
        now.duration_since(self.last_used_at) >= Self::TOUCH_INTERVAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Id;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    /// A session that started an hour before second 0 and reached generation 5 at second 0.
    fn session(confirmed: u32) -> Session {
        let uuid = uuid::Uuid::max();
        let new = Session::new(
            SessionId::new(uuid),
            UserId::new(uuid),
            ClientId::new(uuid),
            "https://accounts.example.com".to_owned(),
            [192, 0, 2, 1].into(),
            &SessionLifetimes::DEFAULT,
            at(-3600),
        );
        Session {
            last_used_at: at(0),
            expires_at: SessionLifetimes::DEFAULT.expiry(at(-3600), at(0)),
            generation: 5,
            confirmed,
            refreshed_at: at(0),
            ..new
        }
    }

    /// Shows the decision by presented generation, by whether the current generation is confirmed,
    /// and by seconds since its creation.
    #[test]
    fn refresh_decision_grid() {
        let (minute, hour, day) = (60, 3600, 86_400);
        let times = [
            0,
            30,
            31,
            minute,
            10 * minute,
            10 * minute + 1,
            hour,
            day,
            14 * day - 1,
            14 * day,
        ];
        let mut grid = String::from("generation 5, used?");
        for time in times {
            grid += &format!(" {time:>11}");
        }
        for presented in [0, 3, 4, 5, 6] {
            for (used, confirmed) in [("yes", 5), ("no", 4)] {
                grid += &format!("\n{presented:>10}, {used:<6}");
                for time in times {
                    let decision = session(confirmed).refresh_decision(presented, at(time));
                    grid += &format!(" {:>11}", format!("{decision:?}"));
                }
            }
        }
        assert_eq!(
            grid,
            "\
generation 5, used?           0          30          31          60         600         601        3600       86400     1209599     1209600
         0, yes         Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Reject
         0, no          Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Reject
         3, yes         Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Reject
         3, no          Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Reject
         4, yes        Reissue     Reissue      Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Revoke      Reject
         4, no         Reissue     Reissue LateReissue LateReissue LateReissue      Revoke      Revoke      Revoke      Revoke      Reject
         5, yes         Rotate      Rotate      Rotate      Rotate      Rotate      Rotate      Rotate      Rotate      Rotate      Reject
         5, no          Rotate      Rotate      Rotate      Rotate      Rotate      Rotate      Rotate      Rotate      Rotate      Reject
         6, yes         Reject      Reject      Reject      Reject      Reject      Reject      Reject      Reject      Reject      Reject
         6, no          Reject      Reject      Reject      Reject      Reject      Reject      Reject      Reject      Reject      Reject",
            "\n{grid}"
        );
        let ended = Session {
            ended_at: Some(at(0)),
            ..session(5)
        };
        assert_eq!(ended.refresh_decision(5, at(0)), RefreshDecision::Reject);
    }

    #[test]
    fn authentication_age_is_counted_from_the_provider_and_at_least_from_the_sign_in() {
        let age = |authenticated_at| {
            let session = Session {
                authenticated_at,
                ..session(5)
            };
            session.authentication_age(at(0)).as_secs()
        };
        assert_eq!(age(None), 3600);
        assert_eq!(age(Some(at(-7200))), 7200);
        assert_eq!(age(Some(at(60))), 3600);
    }

    #[test]
    fn expiry_is_idle_timeout_capped_by_absolute_timeout() {
        let day = 86_400;
        let expiry = |created_at, refreshed_at| {
            SessionLifetimes::DEFAULT.expiry(at(created_at), at(refreshed_at))
        };
        assert_eq!(expiry(0, 0), at(14 * day));
        assert_eq!(expiry(0, 10 * day), at(24 * day));
        assert_eq!(expiry(0, 20 * day), at(30 * day));
    }

    #[test]
    fn shorter_lifetimes_apply_to_stored_sessions_and_longer_ones_do_not() {
        let hours = |idle, absolute| SessionLifetimes {
            idle_timeout: SignedDuration::from_hours(idle),
            absolute_timeout: SignedDuration::from_hours(absolute),
        };
        // Signed in at second -3600, refreshed at second 0.
        let capped = |lifetimes| {
            let mut session = session(5);
            session.cap_expiry(&lifetimes);
            session.expires_at
        };
        assert_eq!(capped(hours(1, 24)), at(3600));
        assert_eq!(capped(hours(24, 3)), at(2 * 3600));
        assert_eq!(capped(hours(8760, 8760)), session(5).expires_at);
    }

    #[test]
    fn needs_touch_after_a_minute() {
        assert!(!session(5).needs_touch(at(59)));
        assert!(session(5).needs_touch(at(60)));
    }

    #[test]
    fn first_use_of_a_generation_needs_confirmation() {
        assert!(session(4).needs_confirmation(5));
        assert!(!session(4).needs_confirmation(4));
        assert!(!session(5).needs_confirmation(5));
        // A generation that the database does not know, as after a restore, confirms nothing.
        assert!(!session(5).needs_confirmation(9));
    }
}
