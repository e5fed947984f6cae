//! Staff members: sign-in links, sessions, access, removal and audit.

mod audit;
mod cli;
mod identity_provider;
mod members;
mod own_listener;
mod removal;
mod requests;
mod sign_in;

use serde_json::{Value, json};

use crate::harness::{
    api::{ApiClient, ApiResponse},
    service::Service,
};

pub const COOKIE: &str = "__Host-perennial-console";

/// Creates a sign-in link with `perennial console link` and returns its secret.
pub fn create_link<S>(service: &Service<S>, arguments: &[&str]) -> String {
    let printed = service.run_json(&[&["console", "link", "--json"], arguments].concat());
    secret_of(&printed)
}

/// Returns the secret of the link in a response or in a command's output.
pub fn secret_of(value: &Value) -> String {
    let link = value["link"].as_str().unwrap();
    let (page, secret) = link.split_once("#link=").unwrap();
    assert!(page.ends_with("/console/"), "{link}");
    secret.to_owned()
}

/// Returns a client that sends requests as the pages of the service do.
pub fn page(api: &ApiClient) -> ApiClient {
    api.with("sec-fetch-site", "same-origin")
}

/// Sends the secret of a link as the sign-in page does.
pub async fn use_link(api: &ApiClient, secret: &str) -> ApiResponse {
    let body = json!({"link": secret}).to_string();
    page(api).post("/console/session", &body).await
}

/// Returns the value of the cookie that a response sets.
pub fn cookie_value(response: &ApiResponse) -> String {
    let cookie = response.header("set-cookie");
    let value = cookie.strip_prefix(&format!("{COOKIE}=")).unwrap();
    value.split(';').next().unwrap().to_owned()
}

/// Returns a client that sends this cookie as the pages of the service do.
pub fn with_cookie(api: &ApiClient, value: &str) -> ApiClient {
    page(api).with("cookie", &format!("{COOKIE}={value}"))
}

/// Signs in with a new link. Takes the arguments of `perennial console link`.
pub async fn sign_in<S>(service: &Service<S>, arguments: &[&str]) -> ApiClient {
    let api = service.anonymous();
    let response = use_link(&api, &create_link(service, arguments)).await;
    assert_eq!(response.status, 201, "{}", response.text);
    with_cookie(&api, &cookie_value(&response))
}
