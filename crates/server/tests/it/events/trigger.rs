//! `perennial trigger`: causes events by API calls.

use perennial_domain::EventKind;
use serde_json::Value;

use super::feed::READABLE_TIMEOUT;
use crate::{
    harness::{
        api::ApiClient,
        auth::SessionTokens,
        process::{Variables, run_err, run_ok},
        service::Service,
        wait_until,
    },
    webhooks::allow_loopback,
};

/// A sandbox with managed billing, and the environment of `perennial trigger`.
pub struct TriggerFixture {
    pub service: Service,
    pub api: ApiClient,
    variables: Variables,
}

impl TriggerFixture {
    pub async fn start() -> Self {
        let service = Service::start_with(allow_loopback).await;
        let managed = ["tenant", "set", "--lifecycle", "managed"];
        run_ok(&service.variables, &managed);
        let (_, client_id) = service.create_client(&[]);
        let api = service.anonymous().with("client-id", &client_id);
        let mut variables = service.variables.clone();
        variables.insert("URL", service.server.url.clone());
        variables.insert("CLIENT_ID", client_id);
        Self {
            service,
            api,
            variables,
        }
    }

    /// Causes an event and returns its JSON.
    pub async fn trigger(&self, kind: EventKind) -> String {
        let mut arguments = vec!["trigger", kind.as_str(), "--json"];
        if kind == EventKind::SubscriptionUnpaid {
            arguments.push("--advance-clock");
        }
        let (variables, arguments) = (self.variables.clone(), arguments.clone());
        let run = tokio::task::spawn_blocking(move || run_ok(&variables, &arguments));
        run.await.unwrap().trim().to_owned()
    }

    /// Returns the JSON of the first event of this type, when it is readable.
    async fn first_event(&self, kind: EventKind) -> String {
        let mut listed = String::new();
        wait_until(kind.as_str(), READABLE_TIMEOUT, async || {
            let arguments = ["event", "list", "--types", kind.as_str(), "--json"];
            listed = run_ok(&self.variables, &arguments);
            !listed.is_empty()
        })
        .await;
        listed.lines().next().unwrap().to_owned()
    }
}

/// Signs in a user whose address has changed at the identity provider.
pub async fn cause_email_change(fixture: &TriggerFixture) -> String {
    let tokens = fixture.api.sign_up("changed@example.com").await;
    let database = fixture.service.database.connect().await;
    let change = format!(
        "UPDATE users SET email = 'old@example.com', email_key = 'old@example.com' WHERE id = '{}'",
        tokens.user().trim_start_matches("usr_")
    );
    database.batch_execute(&change).await.unwrap();
    fixture.api.sign_in("changed@example.com").await;
    fixture.first_event(EventKind::UserEmailChanged).await
}

/// Repeats a refresh a minute after the first one.
pub async fn cause_repeated_refresh(fixture: &TriggerFixture) -> String {
    let first = fixture.api.sign_up("repeated@example.com").await;
    SessionTokens::from_response(&fixture.api.refresh(first.refresh()).await);
    let database = fixture.service.database.connect().await;
    let change = format!(
        "UPDATE sessions SET refreshed_at = refreshed_at - interval '1 minute' WHERE id = '{}'",
        first.session().trim_start_matches("ses_")
    );
    database.batch_execute(&change).await.unwrap();
    SessionTokens::from_response(&fixture.api.refresh(first.refresh()).await);
    fixture.first_event(EventKind::SessionRefreshRepeated).await
}

#[tokio::test]
async fn trigger_names_what_an_event_needs() {
    let service = Service::start().await;
    let (_, client_id) = service.create_client(&[]);
    let mut variables = service.variables.clone();
    variables.insert("URL", service.server.url.clone());
    variables.insert("CLIENT_ID", client_id);
    for (arguments, expected) in [
        (
            &["subscription.past_due"][..],
            "perennial tenant set --lifecycle managed",
        ),
        (&["subscription.unpaid"], "--advance-clock"),
        (&["user.email_changed"], "identity provider"),
        (
            &["webhook_endpoint.created"],
            "PERENNIAL_WEBHOOK_NETWORKS=127.0.0.0/8",
        ),
        (&["tenant.created"], "for operators only"),
        (&["plan.craeted"], "did you mean \"plan.created\"?"),
    ] {
        let error = run_err(&variables, &[&["trigger"], arguments].concat());
        let error = error.replace('\n', " ");
        assert!(error.contains(expected), "{error}");
    }
    let text = run_ok(&variables, &["trigger", "plan.created"]);
    assert!(text.starts_with("plan.created  evt_"), "{text}");
    // The event is in the list of the command for operators too.
    let listed = run_ok(
        &variables,
        &["event", "list", "--types", "plan.*", "--json"],
    );
    let event: Value = serde_json::from_str(listed.lines().last().unwrap()).unwrap();
    assert_eq!(event["type"], "plan.created");
    let table = run_ok(&variables, &["event", "list"]);
    assert!(
        table.starts_with("POSITION") && table.contains("plan.created"),
        "{table}"
    );
    variables.remove("URL");
    let error = run_err(&variables, &["trigger", "plan.created"]);
    assert!(error.contains("set URL"), "{error}");
}
