//! Sessions: how long a sign-in lasts, and what a refresh token is worth.
//!
//! A session has one current refresh token, its *generation*. Using it makes the next one. The one before
//! is still worth something, because answers get lost and browsers have several tabs: it gets the same
//! successor again, for 30 seconds, or for a day as long as nobody has shown that the successor arrived.
//! What is older has been copied, or has been kept where it should not: the session ends, for whoever
//! holds the newer one may be the thief.

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};

use crate::{ClientId, Email, SessionId, UserId};

/// How long the generation before gets the same successor, whatever happens.
const OVERLAP: SignedDuration = SignedDuration::from_secs(30);
/// How long it does if the successor has not been seen in use.
const UNCONFIRMED: SignedDuration = SignedDuration::from_hours(24);
/// How much may pass between two notes of when it was last used.
const NOTED: SignedDuration = SignedDuration::from_mins(1);

/// An end user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Its identifier.
    pub id: UserId,
    /// How to reach it.
    pub email: Email,
    /// Since when it is known.
    pub created_at: Timestamp,
}

/// A sign-in of a user on one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its identifier.
    pub id: SessionId,
    /// Whose it is.
    pub user: UserId,
    /// The application that it was begun with, and that alone can refresh it.
    pub client: ClientId,
    /// The identity provider that vouched for the user.
    pub issuer: String,
    /// From where it was begun.
    pub address: IpAddr,
    /// With what it was begun, as the device says.
    pub user_agent: Option<String>,
    /// When it was begun.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_used_at: Timestamp,
    /// When it ends by itself, unless it is refreshed before.
    pub expires_at: Timestamp,
    /// When it was ended before that.
    pub ended_at: Option<Timestamp>,
    /// Which refresh token is the current one.
    pub generation: u32,
    /// The newest generation that has been seen in use.
    pub confirmed: u32,
    /// When the current generation was made.
    pub refreshed_at: Timestamp,
}

/// What is to be done for a refresh token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// It is the current one: make the next.
    Rotate,
    /// It is the one before: give its successor again.
    Repeat,
    /// It has been used up: end the session.
    Reused,
    /// Nothing: the session has ended, or does not know such a generation yet, as after its database was
    /// set back.
    Refuse,
}

impl Session {
    /// How long one lasts without a refresh.
    pub const IDLE: SignedDuration = SignedDuration::from_hours(14 * 24);
    /// How long one lasts at most.
    pub const TOTAL: SignedDuration = SignedDuration::from_hours(30 * 24);

    /// Whether it has not ended at `now`.
    pub fn lives(&self, now: Timestamp) -> bool {
        self.ended_at.is_none() && now < self.expires_at
    }

    /// When a session that began at `created_at` ends if it was refreshed at `refreshed_at`.
    pub fn expiry(created_at: Timestamp, refreshed_at: Timestamp) -> Timestamp {
        let after = |begin: Timestamp, time| begin.saturating_add(time).unwrap_or(Timestamp::MAX);
        after(refreshed_at, Self::IDLE).min(after(created_at, Self::TOTAL))
    }

    /// What a refresh token of this generation is worth at `now`.
    pub fn refresh(&self, presented: u32, now: Timestamp) -> Refresh {
        let age = now.duration_since(self.refreshed_at);
        let seen = self.confirmed >= self.generation;
        match self.generation.checked_sub(presented) {
            _ if !self.lives(now) => Refresh::Refuse,
            None => Refresh::Refuse,
            Some(0) => Refresh::Rotate,
            Some(1) if age <= OVERLAP || (!seen && age <= UNCONFIRMED) => Refresh::Repeat,
            Some(_) => Refresh::Reused,
        }
    }

    /// Whether a use at `now` of a token of this generation tells something that is worth writing down.
    pub fn is_news(&self, generation: u32, now: Timestamp) -> bool {
        self.confirmed < generation.min(self.generation)
            || now.duration_since(self.last_used_at) >= NOTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Id;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    /// At generation 5, made at second 0 of a session that began an hour before.
    fn session(confirmed: u32) -> Session {
        let uuid = uuid::Uuid::max();
        Session {
            id: SessionId::new(uuid),
            user: UserId::new(uuid),
            client: ClientId::new(uuid),
            issuer: "https://accounts.example.com".to_owned(),
            address: [192, 0, 2, 1].into(),
            user_agent: None,
            created_at: at(-3600),
            last_used_at: at(0),
            expires_at: Session::expiry(at(-3600), at(0)),
            ended_at: None,
            generation: 5,
            confirmed,
            refreshed_at: at(0),
        }
    }

    /// The whole grid: which generation, whether the current one has been seen, how long after it was made.
    #[test]
    fn what_a_refresh_token_is_worth() {
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
        let mut grid = String::from("generation 5, seen?");
        for time in times {
            grid += &format!(" {time:>8}");
        }
        for presented in [0, 3, 4, 5, 6] {
            for (seen, confirmed) in [("yes", 5), ("no", 4)] {
                grid += &format!("\n{presented:>10}, {seen:<6}");
                for time in times {
                    let worth = session(confirmed).refresh(presented, at(time));
                    grid += &format!(" {:>8}", format!("{worth:?}"));
                }
            }
        }
        assert_eq!(
            grid,
            "\
generation 5, seen?        0       30       31       60     3600    86400    86401  1209599  1209600
         0, yes      Reused   Reused   Reused   Reused   Reused   Reused   Reused   Reused   Refuse
         0, no       Reused   Reused   Reused   Reused   Reused   Reused   Reused   Reused   Refuse
         3, yes      Reused   Reused   Reused   Reused   Reused   Reused   Reused   Reused   Refuse
         3, no       Reused   Reused   Reused   Reused   Reused   Reused   Reused   Reused   Refuse
         4, yes      Repeat   Repeat   Reused   Reused   Reused   Reused   Reused   Reused   Refuse
         4, no       Repeat   Repeat   Repeat   Repeat   Repeat   Repeat   Reused   Reused   Refuse
         5, yes      Rotate   Rotate   Rotate   Rotate   Rotate   Rotate   Rotate   Rotate   Refuse
         5, no       Rotate   Rotate   Rotate   Rotate   Rotate   Rotate   Rotate   Rotate   Refuse
         6, yes      Refuse   Refuse   Refuse   Refuse   Refuse   Refuse   Refuse   Refuse   Refuse
         6, no       Refuse   Refuse   Refuse   Refuse   Refuse   Refuse   Refuse   Refuse   Refuse",
            "\n{grid}"
        );
        let ended = Session {
            ended_at: Some(at(0)),
            ..session(5)
        };
        assert_eq!(ended.refresh(5, at(0)), Refresh::Refuse);
    }

    #[test]
    fn two_weeks_idle_and_thirty_days_in_all() {
        let day = 86_400;
        assert_eq!(Session::expiry(at(0), at(0)), at(14 * day));
        assert_eq!(Session::expiry(at(0), at(10 * day)), at(24 * day));
        assert_eq!(Session::expiry(at(0), at(20 * day)), at(30 * day));
    }

    #[test]
    fn what_is_worth_writing_down() {
        assert!(!session(5).is_news(5, at(59)));
        assert!(session(5).is_news(5, at(60)));
        assert!(session(4).is_news(5, at(0)));
        assert!(!session(4).is_news(4, at(0)));
        // A token of a generation that the database has forgotten confirms nothing.
        assert!(!session(5).is_news(9, at(0)));
    }
}
