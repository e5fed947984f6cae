//! Who recorded an event, as JSON and as text.

use serde::Serialize;

use super::ActorNames;
use crate::events::{RecordedActor, RecordedEvent};

/// Who recorded an event, as JSON. All fields are null for background tasks.
#[derive(Debug, Serialize)]
pub struct EventAuthor {
    client_id: Option<String>,
    client_name: Option<String>,
    /// The user on whose behalf the client called.
    user_id: Option<String>,
    staff_id: Option<String>,
    staff_email: Option<String>,
    operator: Option<String>,
    /// The account whose payment provider reported the change.
    payment_account_id: Option<String>,
}

impl EventAuthor {
    pub fn new(names: &ActorNames, event: &RecordedEvent) -> Self {
        let RecordedActor {
            client,
            user,
            staff,
            operator,
            payment_account,
        } = &event.actor;
        Self {
            client_id: client.map(|client| client.to_string()),
            client_name: client.and_then(|client| names.clients.get(&client).cloned()),
            user_id: user.map(|user| user.to_string()),
            staff_id: staff.map(|staff| staff.to_string()),
            staff_email: staff.and_then(|staff| names.staff.get(&staff).cloned()),
            operator: operator.clone(),
            payment_account_id: payment_account.map(|account| account.to_string()),
        }
    }
}

impl std::fmt::Display for EventAuthor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(staff) = self.staff_email.as_ref().or(self.staff_id.as_ref()) {
            return write!(f, "by staff member {staff}");
        }
        let client = self.client_name.as_ref().or(self.client_id.as_ref());
        match (&self.operator, client, &self.user_id) {
            (Some(operator), ..) => write!(f, "by {operator}"),
            (None, Some(client), Some(_)) => write!(f, "by the user, client {client}"),
            (None, Some(client), None) => write!(f, "by client {client}"),
            (None, None, _) => match &self.payment_account_id {
                Some(account) => write!(f, "by payment account {account}"),
                None => f.write_str("by the service"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn author_is_the_operator_or_the_client_or_the_service() {
        let author = |operator: Option<&str>, client: Option<&str>, user: Option<&str>| {
            let author = EventAuthor {
                staff_id: None,
                staff_email: None,
                client_id: client.map(|_| "cli_1".to_owned()),
                client_name: client.map(str::to_owned),
                user_id: user.map(str::to_owned),
                operator: operator.map(str::to_owned),
                payment_account_id: None,
            };
            author.to_string()
        };
        assert_eq!(author(Some("ada@db-1"), None, None), "by ada@db-1");
        assert_eq!(author(None, Some("backend"), None), "by client backend");
        let with_user = author(None, Some("web"), Some("usr_1"));
        assert_eq!(with_user, "by the user, client web");
        assert_eq!(author(None, None, None), "by the service");
        let staff = EventAuthor {
            client_id: None,
            client_name: None,
            user_id: None,
            staff_id: Some("stf_1".to_owned()),
            staff_email: None,
            operator: None,
            payment_account_id: None,
        };
        assert_eq!(staff.to_string(), "by staff member stf_1");
        let named = EventAuthor {
            staff_email: Some("ada@example.com".to_owned()),
            ..staff
        };
        assert_eq!(named.to_string(), "by staff member ada@example.com");
    }
}
