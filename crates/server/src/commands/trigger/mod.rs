//! `perennial trigger`: causes an event in a sandbox, by the calls that an application would make.

use std::{process::Command, time::Duration};

use anyhow::{Context, bail};
use clap::Args;
use perennial_domain::EventKind;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{service_client::ServiceClient, terminal::eprint_wrapped};
use crate::randomness::Randomness;

mod payment_accounts;
mod subscriptions;
mod webhook_endpoints;

/// Longer than the longest wait for an event.
const READ_TIMEOUT: Duration = Duration::from_secs(40);
/// The longest wait of `GET /events`, in seconds.
const MAX_WAIT_SECONDS: u64 = 25;
/// The previous refresh token counts as repeated after this time.
const REPEATED_REFRESH_TIME: Duration = Duration::from_secs(31);
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  eval \"$(perennial dev --background)\"
  perennial trigger subscription.created
  perennial trigger payment.updated --json

Creates a plan, a user and other records as needed, with random names, and
waits for the event. Calls the service at $URL with the API key in $CLIENT_ID.")]
pub struct TriggerArgs {
    /// The event type, such as subscription.past_due
    #[arg(value_name = "TYPE", value_parser = parse_type)]
    kind: EventKind,
    /// Allow moving the sandbox's billing clock forward by weeks, which subscription.unpaid needs
    #[arg(long)]
    advance_clock: bool,
    /// The service's URL [default: $URL]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Print the event as a JSON object, as GET /events returns it
    #[arg(long)]
    json: bool,
}

fn parse_type(text: &str) -> Result<EventKind, String> {
    let kind: EventKind = text
        .parse()
        .map_err(|error: perennial_domain::ValidationError| error.message)?;
    if !kind.is_public() {
        return Err("is for operators only, and has no API call".to_owned());
    }
    Ok(kind)
}

impl TriggerArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let service = ServiceClient::from_env(self.url, READ_TIMEOUT)?;
        let start = service.send(Method::GET, "/", None).await?;
        if text(&start, "mode")? != "sandbox" {
            let url = service.url();
            bail!(
                "the service at {url} is not a sandbox; events of test records belong in a sandbox"
            );
        }
        let page = service.send(Method::GET, "/events?after=now", None).await?;
        let cursor = text(&page, "next_cursor")?;
        let trigger = Trigger {
            service: &service,
            suffix: random_suffix(),
        };
        let subject = trigger.cause(self.kind, self.advance_clock).await?;
        let path = format!(
            "/events?after={cursor}&types={}&subject_id={subject}&limit=1&wait={MAX_WAIT_SECONDS}",
            self.kind
        );
        let request = service.request(Method::GET, &path);
        let page = service.send_request("GET /events", request).await?;
        let page: TriggeredEvents = serde_json::from_str(&page)?;
        let event = page.data.first().with_context(|| {
            format!(
                "{} did not arrive within {MAX_WAIT_SECONDS} s; are the background tasks running?",
                self.kind
            )
        })?;
        if self.json {
            println!("{event}");
        } else {
            let event: Value = serde_json::from_str(event.get())?;
            println!("{}  {}  {subject}", self.kind, text(&event, "id")?);
        }
        Ok(())
    }
}

/// A page of events. Their text is not parsed, so that amounts keep the decimals of their currency.
#[derive(Deserialize)]
struct TriggeredEvents {
    data: Vec<Box<RawValue>>,
}

/// Makes the calls of one event.
struct Trigger<'a> {
    service: &'a ServiceClient,
    /// Makes names and addresses unique.
    suffix: String,
}

impl Trigger<'_> {
    /// Causes an event and returns the id of its subject.
    async fn cause(&self, kind: EventKind, advance_clock: bool) -> anyhow::Result<String> {
        match kind {
            EventKind::PlanCreated | EventKind::PlanUpdated | EventKind::PlanDeleted => {
                self.cause_plan_event(kind).await
            }
            EventKind::PaymentCreated | EventKind::PaymentUpdated | EventKind::PaymentDeleted => {
                self.cause_payment_event(kind).await
            }
            EventKind::UserCreated
            | EventKind::UserUpdated
            | EventKind::UserErased
            | EventKind::UserClaimed
            | EventKind::UserSessionsRevoked => self.cause_user_event(kind).await,
            EventKind::SessionCreated
            | EventKind::SessionRevoked
            | EventKind::SessionRefreshRepeated => self.cause_session_event(kind).await,
            EventKind::SubscriptionCreated
            | EventKind::SubscriptionUpdated
            | EventKind::SubscriptionDeleted
            | EventKind::SubscriptionEnded => self.cause_subscription_event(kind).await,
            EventKind::SubscriptionExpired
            | EventKind::SubscriptionRenewed
            | EventKind::SubscriptionPastDue
            | EventKind::SubscriptionUnpaid => self.cause_due_event(kind, advance_clock).await,
            EventKind::UserEmailChanged => bail!(
                "user.email_changed follows from a change at the identity provider, and a sandbox token's address never \
                 changes"
            ),
            EventKind::WebhookEndpointCreated
            | EventKind::WebhookEndpointUpdated
            | EventKind::WebhookEndpointEnabled
            | EventKind::WebhookEndpointDisabled
            | EventKind::WebhookEndpointSecretRotated
            | EventKind::WebhookEndpointDeleted => self.cause_webhook_endpoint_event(kind).await,
            EventKind::PaymentAccountCreated
            | EventKind::PaymentAccountUpdated
            | EventKind::PaymentAccountSecretRotated
            | EventKind::PaymentAccountDeleted => self.cause_payment_account_event(kind).await,
            other => bail!("{other} cannot be triggered"),
        }
    }

    async fn cause_plan_event(&self, kind: EventKind) -> anyhow::Result<String> {
        let plan = self.create_plan("10.00").await?;
        let path = format!("/subscription-plans/{}", text(&plan, "slug")?);
        match kind {
            EventKind::PlanUpdated => self.put(&path, &json!({"price": 12.50})).await?,
            EventKind::PlanDeleted => self.delete(&path).await?,
            _ => {}
        }
        id(&plan)
    }

    async fn cause_payment_event(&self, kind: EventKind) -> anyhow::Result<String> {
        let subscription = self.create_subscription(json!({})).await?;
        let body = json!({
            "subscription_id": id(&subscription)?,
            "amount": "10.00",
            "currency": "USD",
            "status": "pending",
        });
        let payment = self.post("/subscription-payments", &body).await?;
        let path = format!("/subscription-payments/{}", id(&payment)?);
        match kind {
            EventKind::PaymentUpdated => self.put(&path, &json!({"status": "completed"})).await?,
            EventKind::PaymentDeleted => self.delete(&path).await?,
            _ => {}
        }
        id(&payment)
    }

    async fn cause_user_event(&self, kind: EventKind) -> anyhow::Result<String> {
        if kind == EventKind::UserSessionsRevoked {
            let tokens = self.sign_up().await?;
            self.call_as_user("/authentication/tokens/revoke-all", &tokens)
                .await?;
            return Ok(text(&tokens, "auth_id")?.to_owned());
        }
        let user = self.create_user().await?;
        let path = format!("/users/{}", id(&user)?);
        match kind {
            EventKind::UserUpdated => {
                self.put(&path, &json!({"metadata": {"size": "42"}}))
                    .await?;
            }
            EventKind::UserErased => self.delete(&path).await?,
            EventKind::UserClaimed => {
                self.sign_up().await?;
            }
            _ => {}
        }
        id(&user)
    }

    async fn cause_session_event(&self, kind: EventKind) -> anyhow::Result<String> {
        let tokens = self.sign_up().await?;
        match kind {
            EventKind::SessionRevoked => {
                self.call_as_user("/authentication/tokens/logout", &tokens)
                    .await?;
            }
            EventKind::SessionRefreshRepeated => {
                let body = json!({"refresh_token": text(&tokens, "refresh_token")?});
                self.post("/authentication/refresh-token", &body).await?;
                let seconds = REPEATED_REFRESH_TIME.as_secs();
                eprint_wrapped(&format!(
                    "waiting for {seconds} s, after which a refresh counts as repeated"
                ));
                tokio::time::sleep(REPEATED_REFRESH_TIME).await;
                self.post("/authentication/refresh-token", &body).await?;
            }
            _ => {}
        }
        Ok(text(&tokens, "session_id")?.to_owned())
    }

    async fn create_plan(&self, price: &str) -> anyhow::Result<Value> {
        let slug = format!("trigger-{}", self.suffix);
        let body = json!({"name": "Trigger", "slug": slug, "price": price, "currency": "USD", "billing_cycle": "monthly"});
        self.post("/subscription-plans", &body).await
    }

    fn email(&self) -> String {
        format!("trigger-{}@example.com", self.suffix)
    }

    async fn create_user(&self) -> anyhow::Result<Value> {
        self.post("/users", &json!({"email": self.email()})).await
    }

    /// Creates a subscription of a new user to a new plan.
    async fn create_subscription(&self, mut fields: Value) -> anyhow::Result<Value> {
        let plan = self.create_plan("10.00").await?;
        let user = self.create_user().await?;
        let references = json!({"user_id": id(&user)?, "subscription_plan_id": id(&plan)?});
        if let (Some(fields), Value::Object(references)) = (fields.as_object_mut(), references) {
            fields.extend(references);
        }
        self.post("/subscriptions", &fields).await
    }

    /// Signs up with a test token.
    async fn sign_up(&self) -> anyhow::Result<Value> {
        let email = self.email();
        let token = run_own_command(&["sandbox", "token", &email])?;
        let body = json!({"access_token": token.trim(), "email": email});
        self.post("/authentication/sign-up", &body).await
    }

    async fn call_as_user(&self, path: &str, tokens: &Value) -> anyhow::Result<()> {
        let request = self.service.request(Method::POST, path);
        let request = request.bearer_auth(text(tokens, "access_token")?);
        self.service
            .send_request(&format!("POST {path}"), request)
            .await?;
        Ok(())
    }

    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.service.send(Method::POST, path, Some(body)).await
    }

    async fn put(&self, path: &str, body: &Value) -> anyhow::Result<()> {
        self.service.send(Method::PUT, path, Some(body)).await?;
        Ok(())
    }

    async fn delete(&self, path: &str) -> anyhow::Result<()> {
        self.service.send(Method::DELETE, path, None).await?;
        Ok(())
    }
}

fn random_suffix() -> String {
    format!("{:016x}", u64::from_be_bytes(Randomness.bytes()))
}

/// Runs another command of this binary and returns its output.
fn run_own_command(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(std::env::current_exe()?)
        .args(arguments)
        .output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("perennial {}: {}", arguments.join(" "), errors.trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns a text member of a JSON object.
fn text<'v>(value: &'v Value, name: &str) -> anyhow::Result<&'v str> {
    let text = value.get(name).and_then(Value::as_str);
    text.with_context(|| format!("the response has no {name}"))
}

fn id(record: &Value) -> anyhow::Result<String> {
    Ok(text(record, "id")?.to_owned())
}
