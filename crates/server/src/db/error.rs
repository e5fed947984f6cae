//! What can go wrong between us and PostgreSQL, sorted by what the caller can do about it.

use std::error::Error as _;

use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::error::SqlState;

/// A failed call to the database.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// It cannot be asked right now: down, starting, full, or too slow. Trying again later helps.
    #[error("the database cannot be asked right now: {0}")]
    Unavailable(String),
    /// More is waiting for it than can be done in time; the queue's name. Turned away before anything was
    /// done.
    #[error("too much is waiting for a {0} of the database")]
    Busy(&'static str),
    /// A constraint refused the change. The table's owner knows what its name means.
    #[error("the constraint {0} refuses this")]
    Refused(String),
    /// We asked wrongly, or the data is not what we believe: a mistake of ours.
    #[error("the database call failed: {0}")]
    Failed(String),
}

impl Error {
    /// Whether a connection ended, and not just a statement on it.
    pub(super) fn is_lost_connection(error: &tokio_postgres::Error) -> bool {
        let ends_session = [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
        ];
        error.is_closed() || error.code().is_some_and(|code| ends_session.contains(code))
    }

    /// The name of the constraint that refused the change, if that is what happened.
    pub fn constraint(&self) -> Option<&str> {
        match self {
            Self::Refused(name) => Some(name),
            Self::Unavailable(_) | Self::Busy(_) | Self::Failed(_) => None,
        }
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::of(&error)
    }
}

impl Error {
    /// Sorts an error of the driver.
    pub fn of(error: &tokio_postgres::Error) -> Self {
        let Some(answer) = error.as_db_error() else {
            let text = match error.source() {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            };
            // The kinds of error are private to the driver; those below are the ones that speak of
            // values and statements, and so of our mistakes. All others are about the connection.
            let ours = [
                "error serializing",
                "error deserializing",
                "invalid column",
                "expected",
                "query returned",
                "error encoding",
            ];
            return if ours.iter().any(|start| text.starts_with(start)) {
                Self::Failed(text)
            } else {
                Self::Unavailable(text)
            };
        };
        let text = format!("{} ({})", answer.message(), answer.code().code());
        let class = answer.code().code().get(..2).unwrap_or_default();
        match (class, answer.constraint()) {
            ("23", Some(constraint)) => Self::Refused(constraint.to_owned()),
            // A row that no partition takes any more: the month was attached a moment ago.
            ("23", None) if *answer.code() == SqlState::CHECK_VIOLATION => Self::Unavailable(text),
            // Connection lost, login refused, unknown database, transaction rolled back by the
            // server, out of resources, stopped by an operator or a time-out, system error.
            ("08" | "28" | "3D" | "40" | "53" | "57" | "58", _) => Self::Unavailable(text),
            _ if [
                SqlState::LOCK_NOT_AVAILABLE,
                SqlState::READ_ONLY_SQL_TRANSACTION,
                SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            ]
            .contains(answer.code()) =>
            {
                Self::Unavailable(text)
            }
            _ => Self::Failed(text),
        }
    }
}

impl From<PoolError> for Error {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => error.into(),
            PoolError::Timeout(TimeoutType::Wait) => Self::Busy("connection"),
            other => Self::Unavailable(other.to_string()),
        }
    }
}
