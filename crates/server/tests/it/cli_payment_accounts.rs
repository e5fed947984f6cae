//! `perennial payment-account`: the rules of the API, from flags.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{
    harness::{
        process::{run_err, run_ok},
        service::Service,
        unique_name,
    },
    payment_accounts::{TestAccount, lemon_event},
};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A file with a secret, which is deleted at the end.
struct SecretFile(PathBuf);

impl SecretFile {
    fn new(secret: &str) -> Self {
        let path = std::env::temp_dir().join(unique_name("secret"));
        std::fs::write(&path, format!("{secret}\n")).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for SecretFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn account_commands_manage_accounts_as_the_api_does() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let run = |arguments: &[&str]| {
        run_ok(
            &service.variables,
            &[&["payment-account"], arguments].concat(),
        )
    };
    let fail = |arguments: &[&str]| {
        run_err(
            &service.variables,
            &[&["payment-account"], arguments].concat(),
        )
    };
    assert!(run(&["list"]).contains("perennial payment-account connect"));
    let add = ["add", "--provider", "stripe", "--mode", "test"];
    assert!(fail(&add).contains("--api-key-file: is required for stripe"));
    let key = SecretFile::new("rk_test_hush");
    let live_key = SecretFile::new("rk_live_hush");
    let live = fail(&[&add[..], &["--api-key-file", live_key.path()]].concat());
    assert!(live.contains("--api-key-file: must be a key of the account's mode"));
    assert!(!live.contains("hush"), "{live}");
    let options = [
        "--api-key-file",
        key.path(),
        "--description",
        "Shop",
        "--json",
    ];
    let added = json(&run(&[&add[..], &options].concat()));
    let id = added["id"].as_str().unwrap().to_owned();
    let path = format!("/payment-accounts/{id}");
    let show = |id: &str| {
        let mut shown = json(&run(&["show", id, "--json"]));
        // Only the command lists what is not applied.
        let fields = shown.as_object_mut().unwrap();
        for (field, expected) in [
            ("waiting_objects", json!(0)),
            ("failed_objects", json!(0)),
            ("payment_objects", json!([])),
            ("payment_commands", json!([])),
        ] {
            assert_eq!(fields.remove(field), Some(expected), "{field}");
        }
        shown
    };
    assert_eq!(show(&id), api.get_json(&path).await);
    assert_eq!(show(&id), added);
    let text = run(&["show", &id]);
    assert!(
        text.contains(&format!("/payment-notifications/{id}")),
        "{text}"
    );
    assert!(
        text.contains("without a secret") && text.contains("API key: stored"),
        "{text}"
    );

    let update = [
        "update",
        &id,
        "--description",
        "",
        "--external-account-id",
        "acct_1",
        "--json",
    ];
    let updated = json(&run(&update));
    assert_eq!(
        (&updated["description"], &updated["external_account_id"]),
        (&Value::Null, &json!("acct_1"))
    );
    assert!(fail(&["update", &id]).contains("nothing to change"));
    assert!(fail(&["rotate", &id]).contains("--secret-file: is required for stripe"));
    let secret = SecretFile::new("whsec_hush");
    let rotated = run(&["rotate", &id, "--secret-file", secret.path()]);
    assert_eq!(
        rotated.trim(),
        format!("{id}  secret stored"),
        "a secret that was sent is not shown"
    );
    assert_eq!(show(&id)["has_secret"], true);
    assert!(run(&["list"]).contains(&id));
    assert_eq!(run(&["remove", &id]).trim(), format!("removed {id}"));
    assert!(fail(&["show", &id]).contains("there is no payment account"));
}

#[tokio::test]
async fn notifications_are_listed_and_replayed() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let run = |arguments: &[&str]| {
        run_ok(
            &service.variables,
            &[&["payment-account"], arguments].concat(),
        )
    };
    assert!(run(&["notifications"]).contains("no notifications"));
    let mut account = TestAccount::lemon_squeezy(&api, &service.anonymous()).await;
    let rotated = run(&["rotate", &account.id]);
    let secret = rotated
        .lines()
        .find_map(|line| line.strip_prefix("secret: "));
    account.secret = secret.unwrap().to_owned();
    // The running service is notified of the new secret.
    let event = lemon_event("order_created", "orders", "1").to_string();
    crate::harness::wait_until(
        "the new secret is used",
        std::time::Duration::from_secs(5),
        async || account.send(event.as_bytes()).await.status == 200,
    )
    .await;
    let id = account
        .accept(&lemon_event("affiliate_activated", "affiliates", "2"))
        .await;

    let ignored = run(&["notifications", "--state", "ignored", "--json"]);
    let view = api.get(&format!("/payment-notifications/{id}")).await;
    assert_eq!(ignored.trim(), view.text);
    let of_type = run(&[
        "notifications",
        "--type",
        "order_created",
        "--account",
        &account.id,
    ]);
    assert!(
        of_type.contains("order_created") && !of_type.contains(&id),
        "{of_type}"
    );
    let both = run(&["notifications", "--limit", "5"]);
    assert_eq!(both.lines().count(), 3, "{both}");
    let replayed = json(&run(&["replay", &id, "--json"]));
    assert_eq!(replayed, view.json());
    let unknown = "pnt_01920000000070008000000000000001";
    let replay = ["payment-account", "replay", unknown];
    let error = run_err(&service.variables, &replay);
    assert!(
        error.contains("no payment notification has this id"),
        "{error}"
    );
}
