use std::{
    collections::HashSet,
    env,
    error::Error,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use serde_json::Value;
use standardwebhooks::Webhook;

struct Receiver {
    webhook: Webhook,
    // In production, a table with a unique constraint, written in the transaction that processes the event.
    processed: Mutex<HashSet<String>>,
}

async fn receive(
    State(receiver): State<Arc<Receiver>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    // Verify the bytes that were received, before they are parsed.
    if receiver.webhook.verify(&body, &headers).is_err() {
        return StatusCode::UNAUTHORIZED;
    }
    let id = headers.get("webhook-id").and_then(|id| id.to_str().ok());
    let (Some(id), Ok(event)) = (id, serde_json::from_slice::<Value>(&body)) else {
        return StatusCode::BAD_REQUEST;
    };
    let Ok(mut processed) = receiver.processed.lock() else {
        return StatusCode::INTERNAL_SERVER_ERROR;
    };
    if processed.insert(id.to_owned()) {
        let kind = event.get("type").and_then(Value::as_str);
        println!("{id} {}", kind.unwrap_or_default());
    }
    StatusCode::NO_CONTENT
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let receiver = Receiver {
        webhook: Webhook::new(&env::var("WEBHOOK_SECRET")?)?,
        processed: Mutex::default(),
    };
    let router = Router::new()
        .route("/hook", post(receive))
        .with_state(Arc::new(receiver));
    let port = env::var("PORT").unwrap_or_else(|_| "3000".to_owned());
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    axum::serve(listener, router).await?;
    Ok(())
}
