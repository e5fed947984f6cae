//! Sessions: expiry and refresh token rotation.
//!
//! Each session has one current refresh token, identified by its *generation*. Using it creates the
//! next generation. The previous token can be used again, because responses get lost and browsers
//! have several tabs: it returns the same successor for 30 seconds, or for 24 hours while the
//! successor has not been used. Using an older token revokes the session, because the token was
//! probably stolen.

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};

use crate::{ClientId, SessionId, UserId};

/// How long the previous refresh token is always accepted.
const REUSE_TTL: SignedDuration = SignedDuration::from_secs(30);
/// How long the previous refresh token is accepted while its successor is unused.
const UNCONFIRMED_REUSE_TTL: SignedDuration = SignedDuration::from_hours(24);
/// The minimum time between two updates of `last_used_at`.
const TOUCH_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

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
    /// When the session was last used, to the minute.
    pub last_used_at: Timestamp,
    /// When the session expires unless it is refreshed before.
    pub expires_at: Timestamp,
    /// When the session was revoked.
    pub ended_at: Option<Timestamp>,
    /// The generation of the current refresh token, starting at 0.
    pub generation: u32,
    /// The newest generation whose tokens have been used.
    pub confirmed: u32,
    /// When the current generation was created.
    pub refreshed_at: Timestamp,
}

/// How to handle a refresh token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefreshDecision {
    /// It is the current token: create the next generation.
    Rotate,
    /// It is the previous token: return the current generation again.
    Reissue,
    /// It is an older token: revoke the session.
    Revoke,
    /// The session has ended, or the generation does not exist, as after a database restore.
    Reject,
}

impl Session {
    /// The lifetime of a session without a refresh.
    pub const IDLE_TIMEOUT: SignedDuration = SignedDuration::from_hours(14 * 24);
    /// The maximum lifetime of a session.
    pub const MAX_LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);

    /// Creates a session that starts at `now`, without a `user_agent`.
    pub fn new(
        id: SessionId,
        user: UserId,
        client: ClientId,
        issuer: String,
        address: IpAddr,
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
            last_used_at: now,
            expires_at: Self::expiry(now, now),
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

    /// Returns the expiry of a session from the times of its sign-in and last refresh.
    pub fn expiry(created_at: Timestamp, refreshed_at: Timestamp) -> Timestamp {
        let add =
            |start: Timestamp, duration| start.saturating_add(duration).unwrap_or(Timestamp::MAX);
        add(refreshed_at, Self::IDLE_TIMEOUT).min(add(created_at, Self::MAX_LIFETIME))
    }

    /// Decides how to handle a refresh token of generation `presented`.
    pub fn refresh_decision(&self, presented: u32, now: Timestamp) -> RefreshDecision {
        let age = now.duration_since(self.refreshed_at);
        let is_confirmed = self.confirmed >= self.generation;
        let ttl = if is_confirmed {
            REUSE_TTL
        } else {
            UNCONFIRMED_REUSE_TTL
        };
        match self.generation.checked_sub(presented) {
            _ if !self.is_active(now) => RefreshDecision::Reject,
            None => RefreshDecision::Reject,
            Some(0) => RefreshDecision::Rotate,
            Some(1) if age <= ttl => RefreshDecision::Reissue,
            Some(_) => RefreshDecision::Revoke,
        }
    }

    /// Returns whether a use of a token of `generation` must be stored: it confirms the generation, or
    /// `last_used_at` is older than a minute.
    pub fn needs_touch(&self, generation: u32, now: Timestamp) -> bool {
        self.confirmed < generation.min(self.generation)
            || now.duration_since(self.last_used_at) >= TOUCH_INTERVAL
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
            at(-3600),
        );
        Session {
            last_used_at: at(0),
            expires_at: Session::expiry(at(-3600), at(0)),
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
            hour,
            day,
            day + 1,
            14 * day - 1,
            14 * day,
        ];
        let mut grid = String::from("generation 5, used?");
        for time in times {
            grid += &format!(" {time:>8}");
        }
        for presented in [0, 3, 4, 5, 6] {
            for (used, confirmed) in [("yes", 5), ("no", 4)] {
                grid += &format!("\n{presented:>10}, {used:<6}");
                for time in times {
                    let decision = session(confirmed).refresh_decision(presented, at(time));
                    grid += &format!(" {:>8}", format!("{decision:?}"));
                }
            }
        }
        assert_eq!(
            grid,
            "\
generation 5, used?        0       30       31       60     3600    86400    86401  1209599  1209600
         0, yes      Revoke   Revoke   Revoke   Revoke   Revoke   Revoke   Revoke   Revoke   Reject
         0, no       Revoke   Revoke   Revoke   Revoke   Revoke   Revoke   Revoke   Revoke   Reject
         3, yes      Revoke   Revoke   Revoke   Revoke   Revoke   Revoke   Revoke   Revoke   Reject
         3, no       Revoke   Revoke   Revoke   Revoke   Revoke   Revoke   Revoke   Revoke   Reject
         4, yes     Reissue  Reissue   Revoke   Revoke   Revoke   Revoke   Revoke   Revoke   Reject
         4, no      Reissue  Reissue  Reissue  Reissue  Reissue  Reissue   Revoke   Revoke   Reject
         5, yes      Rotate   Rotate   Rotate   Rotate   Rotate   Rotate   Rotate   Rotate   Reject
         5, no       Rotate   Rotate   Rotate   Rotate   Rotate   Rotate   Rotate   Rotate   Reject
         6, yes      Reject   Reject   Reject   Reject   Reject   Reject   Reject   Reject   Reject
         6, no       Reject   Reject   Reject   Reject   Reject   Reject   Reject   Reject   Reject",
            "\n{grid}"
        );
        let ended = Session {
            ended_at: Some(at(0)),
            ..session(5)
        };
        assert_eq!(ended.refresh_decision(5, at(0)), RefreshDecision::Reject);
    }

    #[test]
    fn expiry_is_idle_timeout_capped_by_max_lifetime() {
        let day = 86_400;
        assert_eq!(Session::expiry(at(0), at(0)), at(14 * day));
        assert_eq!(Session::expiry(at(0), at(10 * day)), at(24 * day));
        assert_eq!(Session::expiry(at(0), at(20 * day)), at(30 * day));
    }

    #[test]
    fn needs_touch_after_a_minute_or_for_an_unconfirmed_generation() {
        assert!(!session(5).needs_touch(5, at(59)));
        assert!(session(5).needs_touch(5, at(60)));
        assert!(session(4).needs_touch(5, at(0)));
        assert!(!session(4).needs_touch(4, at(0)));
        // A generation that the database does not know, as after a restore, confirms nothing.
        assert!(!session(5).needs_touch(9, at(0)));
    }
}
