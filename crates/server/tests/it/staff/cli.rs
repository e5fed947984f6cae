//! `perennial staff` and `perennial console link`.

use super::*;
use crate::harness::process::{run, run_ok};

#[tokio::test]
async fn members_are_listed_and_removed() {
    let service = Service::start_in_process().await;
    let empty = run_ok(&service.variables, &["staff", "list"]);
    assert!(empty.contains("no staff members"), "{empty}");
    let invite = [
        "staff",
        "invite",
        "ada@example.com",
        "--role",
        "admin",
        "--json",
    ];
    let invited = service.run_json(&invite);
    let link = [
        "console", "link", "--role", "viewer", "--tenant", "default", "--json",
    ];
    let viewer = service.run_json(&link);
    // A second link is for the same member.
    assert_eq!(service.run_json(&link)["id"], viewer["id"]);
    let listed = run_ok(&service.variables, &["staff", "list", "--json"]);
    let listed: Vec<Value> = listed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0]["id"], invited["id"]);
    assert_eq!(listed[0]["tenant_id"], Value::Null);
    assert_eq!(listed[1]["role"], "viewer");
    assert_ne!(listed[1]["tenant_id"], Value::Null);
    let table = run_ok(&service.variables, &["staff", "list"]);
    assert!(table.contains("never") && table.contains("all"), "{table}");

    let id = viewer["id"].as_str().unwrap();
    run_ok(&service.variables, &["staff", "remove", id]);
    let again = run(&service.variables, &["staff", "remove", id]);
    assert!(!again.status.success());
    let unknown = run(&service.variables, &["staff", "remove", "bob@example.com"]);
    let message = String::from_utf8(unknown.stderr).unwrap();
    assert!(message.contains("there is no staff member"), "{message}");
}

#[tokio::test]
async fn link_is_printed_with_the_public_url() {
    let service = Service::start_in_process_with(|variables| {
        let url = "https://perennial.example".to_owned();
        variables.insert("PERENNIAL_PUBLIC_URL", url);
    })
    .await;
    let printed = run_ok(&service.variables, &["console", "link"]);
    let prefix = "https://perennial.example/console/#link=";
    let secret = printed.trim().strip_prefix(prefix).unwrap();
    assert_eq!(use_link(&service.anonymous(), secret).await.status, 201);
}
