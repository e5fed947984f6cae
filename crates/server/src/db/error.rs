//! Database errors, classified by what the caller can do about them.

use std::error::Error as _;

use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::error::SqlState;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The database is down, starting, out of resources or too slow. The call can be retried later.
    #[error("database unavailable: {0}")]
    Unavailable(String),
    /// Admission control rejected the call before it was sent. Contains the queue's name.
    #[error("too many requests are waiting for a database {0}")]
    Busy(&'static str),
    /// Contains the constraint's name, which the caller maps to an API error.
    #[error("violates the constraint {0}")]
    ConstraintViolation(String),
    /// A bug: an invalid statement, or stored data that the code does not expect.
    #[error("database error: {0}")]
    Internal(String),
}

impl Error {
    pub(super) fn timed_out() -> Self {
        Self::Unavailable("no response in time".to_owned())
    }

    /// A cell that another process may have.
    pub fn unknown_cell(name: &str) -> Self {
        Self::Unavailable(format!("the cell {name} is not configured in this process"))
    }

    /// Returns whether the connection is lost, as opposed to a failed statement.
    pub(super) fn is_lost_connection(error: &tokio_postgres::Error) -> bool {
        let ends_session = [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
        ];
        error.is_closed() || error.code().is_some_and(|code| ends_session.contains(code))
    }

    /// Returns the name of the violated constraint, if there is one.
    pub fn constraint(&self) -> Option<&str> {
        match self {
            Self::ConstraintViolation(name) => Some(name),
            Self::Unavailable(_) | Self::Busy(_) | Self::Internal(_) => None,
        }
    }

    /// Returns whether a transaction with one snapshot met a row that another one changed since. It can be repeated.
    pub fn is_serialization_failure(&self) -> bool {
        let code = SqlState::T_R_SERIALIZATION_FAILURE;
        matches!(self, Self::Unavailable(text) if text.ends_with(&format!("({})", code.code())))
    }

    /// Classifies an error of the driver.
    pub fn from_driver(error: &tokio_postgres::Error) -> Self {
        let Some(response) = error.as_db_error() else {
            let text = match error.source() {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            };
            // The driver's error kinds are private. The prefixes below belong to errors about
            // values and statements, which are bugs. All other errors concern the connection.
            let bug_prefixes = [
                "error serializing",
                "error deserializing",
                "invalid column",
                "expected",
                "query returned",
                "error encoding",
            ];
            return if bug_prefixes.iter().any(|prefix| text.starts_with(prefix)) {
                Self::Internal(text)
            } else {
                Self::Unavailable(text)
            };
        };
        let text = format!("{} ({})", response.message(), response.code().code());
        let class = response.code().code().get(..2).unwrap_or_default();
        match (class, response.constraint()) {
            ("23", Some(constraint)) => Self::ConstraintViolation(constraint.to_owned()),
            // The partition of the event's month was attached after the event was routed to the
            // default partition. A retry succeeds.
            ("23", None) if *response.code() == SqlState::CHECK_VIOLATION => {
                Self::Unavailable(text)
            }
            // Connection exception, invalid authorization, unknown database, transaction rollback,
            // insufficient resources, operator intervention (also timeouts), system error.
            ("08" | "28" | "3D" | "40" | "53" | "57" | "58", _) => Self::Unavailable(text),
            _ if [
                SqlState::LOCK_NOT_AVAILABLE,
                SqlState::READ_ONLY_SQL_TRANSACTION,
                SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            ]
            .contains(response.code()) =>
            {
                Self::Unavailable(text)
            }
            _ => Self::Internal(text),
        }
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::from_driver(&error)
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
