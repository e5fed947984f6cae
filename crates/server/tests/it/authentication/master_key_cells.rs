//! Rotation of the master key of an installation with several cells.

use crate::harness::{
    api::ApiClient,
    auth::SessionTokens,
    client::create_client,
    database::Database,
    master_key::{derived_keys, generate_key, with_keys},
    process::{MASTER_KEY, Server, run_err, run_ok, sandbox},
};

/// An earlier `keys rewrap` was killed after it had put the new key into use in the home cell only.
#[tokio::test]
async fn rewrap_completes_the_rotation_in_every_cell() {
    let (home, second) = (Database::create().await, Database::create().await);
    let mut variables = sandbox(&home.url);
    variables.insert("PERENNIAL_CELLS", format!("second={}", second.url));
    let mut server = Server::start(&variables).await;
    let create = ["tenant", "create", "--name", "acme", "--cell", "second"];
    run_ok(&variables, &create);
    let mut sessions = Vec::new();
    for tenant in ["default", "acme"] {
        let (_, client) = create_client(&home.url, &["--tenant", tenant]);
        let api = ApiClient::new(&server.url).with("client-id", &client);
        sessions.push((client, api.sign_up("ada@example.com").await));
    }

    let new = generate_key();
    let both = with_keys(&variables, &new, Some(MASTER_KEY));
    let only_new = with_keys(&variables, &new, None);
    let replace =
        "UPDATE instance SET previous_master_key_check = master_key_check, master_key_check = $1";
    let check = derived_keys(&new).present().check;
    let database = home.connect().await;
    let replaced = database.execute(replace, &[&check.as_slice()]).await;
    assert_eq!(replaced.unwrap(), 1);
    server.restart(&both).await;
    let status = run_ok(&both, &["keys", "rewrap", "--status"]);
    assert!(status.contains("2 sessions"), "{status}");
    run_ok(&both, &["keys", "rewrap"]);
    for database in [&home, &second] {
        let carried = "SELECT count(*) FROM sessions, instance WHERE carried_tokens IS NOT NULL
            AND master_key_check = $1 AND previous_master_key_check IS NULL";
        let database = database.connect().await;
        let carried = database.query_one(carried, &[&check.as_slice()]).await;
        assert_eq!(carried.unwrap().get::<_, i64>(0), 1);
    }

    server.restart(&only_new).await;
    for (client, tokens) in sessions {
        let api = ApiClient::new(&server.url).with("client-id", &client);
        assert_eq!(api.check(tokens.access()).await.status, 200);
        let next = SessionTokens::from_response(&api.refresh(tokens.refresh()).await);
        assert_eq!(api.refresh(next.refresh()).await.status, 200);
    }
    // No cell accepts the old key.
    for cell in ["home", "second"] {
        let mut old = variables.clone();
        if cell == "second" {
            old.insert("DATABASE_URL", sandbox(&second.url)["DATABASE_URL"].clone());
            old.remove("PERENNIAL_CELLS");
        }
        let output = run_err(&old, &["serve"]);
        assert!(
            output.contains("with another master key"),
            "{cell}: {output}"
        );
    }
}
