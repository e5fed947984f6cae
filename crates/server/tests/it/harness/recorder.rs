//! Records the requests of the tests for `tools/request-check`, which compares them with the OpenAPI document.
//!
//! Off unless the environment variable `RECORD_REQUESTS` names a directory. Each test process appends to a
//! file of its own, one JSON object per line. Requests over raw connections are not recorded.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::PathBuf,
    sync::{LazyLock, Mutex},
};

use reqwest::{Method, header::HeaderMap};
use serde_json::{Value, json};

use super::api::ApiResponse;

static FILE: LazyLock<Option<Mutex<File>>> = LazyLock::new(|| {
    let directory = PathBuf::from(std::env::var_os("RECORD_REQUESTS")?);
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join(format!("{}.jsonl", std::process::id()));
    let file = OpenOptions::new().create(true).append(true).open(path);
    Some(Mutex::new(file.unwrap()))
});

/// Headers whose values are secrets. That they were sent is recorded.
const SECRET: [&str; 2] = ["authorization", "client-id"];

/// Returns whether requests are recorded.
pub fn is_on() -> bool {
    FILE.is_some()
}

/// Records a request that was accepted, or rejected for its form.
pub fn record(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    body: Option<&[u8]>,
    response: &ApiResponse,
) {
    let Some(file) = &*FILE else { return };
    if !matches!(response.status, 200..=299 | 400 | 422) {
        return;
    }
    let headers: Vec<Value> = headers
        .iter()
        .map(|(name, value)| match name.as_str() {
            secret if SECRET.contains(&secret) => json!([secret, ""]),
            name => json!([name, String::from_utf8_lossy(value.as_bytes())]),
        })
        .collect();
    let problem: Value = match response.status {
        400 | 422 => serde_json::from_str(&response.text).unwrap_or_default(),
        _ => Value::Null,
    };
    let line = json!({
        "test": std::thread::current().name(),
        "method": method.as_str(),
        "path": path,
        "headers": headers,
        "body": body.map(String::from_utf8_lossy),
        "status": response.status,
        "code": problem["code"],
        "errors": problem["errors"],
    });
    let mut file = file.lock().unwrap();
    writeln!(file, "{line}").unwrap();
}
