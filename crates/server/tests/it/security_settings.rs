//! Settings that live mode refuses, or accepts with a warning.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::{
    commands::live,
    harness::{
        database::Database,
        process::{Server, Variables, run, run_err, run_ok, sandbox},
        unique_name,
    },
};

#[test]
fn live_mode_rejects_a_master_key_file_that_others_can_read() {
    let folder = std::env::temp_dir().join(unique_name("perennial-keys-"));
    fs::create_dir(&folder).unwrap();
    let file = folder.join("master.key");
    fs::write(
        &file,
        run_ok(&Variables::new(), &["keys", "generate-master"]),
    )
    .unwrap();
    let path = file.to_str().unwrap();
    for name in ["PERENNIAL_MASTER_KEY", "PERENNIAL_MASTER_KEY_PREVIOUS"] {
        let file_variable = format!("{name}_FILE");
        let mut variables = live("postgres://127.0.0.1/x");
        variables.remove(name);
        variables.insert(file_variable.clone().leak(), path.to_owned());
        for mode in [0o644, 0o640, 0o604, 0o660] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let output = run_err(&variables, &["config", "check"]);
            let expected = format!(
                "{file_variable}: {path} can be read by others (mode {mode:o}); run `chmod 600 {path}`"
            );
            assert!(output.contains(&expected), "{output}");
        }
        // systemd's credentials have a group bit, in a directory that only the service can enter.
        let credentials = [("CREDENTIALS_DIRECTORY", folder.to_str().unwrap().to_owned())];
        let mut as_credential = variables.clone();
        as_credential.extend(credentials);
        run_ok(&as_credential, &["config", "check"]);
        variables.insert("PERENNIAL_MODE", "sandbox".to_owned());
        run_ok(&variables, &["config", "check"]);
        variables.insert("PERENNIAL_MODE", "live".to_owned());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        run_ok(&variables, &["config", "check"]);
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn previous_master_key_must_differ_from_the_present_one() {
    let mut variables = sandbox("postgres://127.0.0.1/x");
    let key = variables["PERENNIAL_MASTER_KEY"].clone();
    variables.insert("PERENNIAL_MASTER_KEY_PREVIOUS", key);
    let output = run_err(&variables, &["config", "check"]);
    let expected = "PERENNIAL_MASTER_KEY_PREVIOUS: must differ from PERENNIAL_MASTER_KEY";
    assert!(output.contains(expected), "{output}");
}

#[tokio::test]
async fn weak_live_settings_are_reported_by_serve_doctor_and_config_check() {
    let database = Database::empty().await;
    let mut variables = live(&database.url);
    variables.insert(
        "PERENNIAL_PUBLIC_URL",
        "http://billing.example.com".to_owned(),
    );
    let plain_url = "PERENNIAL_PUBLIC_URL is http://billing.example.com: tokens and client ids are sent without encryption";
    let server = Server::start(&variables).await;
    assert!(server.process.log().contains(plain_url));
    drop(server);
    for (id, network) in [
        ("EVERYWHERE", "0.0.0.0/0"),
        ("EVERYWHERE6", "::/0"),
        ("SOME", "10.0.0.0/8"),
    ] {
        let arguments = ["client", "create", "--id", id, "--allow-address", network];
        run_ok(&variables, &arguments);
    }
    let server = Server::start(&variables).await;
    let doctor = run(&variables, &["doctor"]);
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    let doctor = doctor.split_whitespace().collect::<Vec<_>>().join(" ");
    for output in [server.process.log(), doctor] {
        assert!(output.contains(plain_url), "{output}");
        for network in ["0.0.0.0/0", "::/0"] {
            let expected = format!("can be used from every address: --allow-address {network}");
            assert!(output.contains(&expected), "{output}");
        }
        assert!(!output.contains("10.0.0.0/8"), "{output}");
    }
    // A database across a network; the address is reserved for documentation.
    variables.insert(
        "DATABASE_URL",
        "postgres://u:hunter2@192.0.2.1/x".to_owned(),
    );
    let check = |variables: &Variables| {
        let output = run(variables, &["config", "check"]);
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let output = check(&variables);
    let expected = "home: the connection to 192.0.2.1:5432/x may be unencrypted, because sslmode is below require";
    assert!(
        output.contains(expected) && output.contains(plain_url),
        "{output}"
    );
    assert!(!output.contains("hunter2"), "{output}");
    variables.insert(
        "DATABASE_URL",
        "postgres://192.0.2.1/x?sslmode=verify-full".to_owned(),
    );
    variables.insert(
        "PERENNIAL_PUBLIC_URL",
        "https://billing.example.com".to_owned(),
    );
    assert_eq!(check(&variables), "");
}
