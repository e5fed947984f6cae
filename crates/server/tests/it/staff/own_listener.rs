//! The console on a separate listener.

use super::{cookie_value, create_link, use_link, with_cookie};
use crate::harness::{
    api::ApiClient,
    process::{run_err, sandbox},
    reserve_port,
    service::Service,
};

#[tokio::test]
async fn only_the_own_listener_serves_the_console() {
    let address = format!("127.0.0.1:{}", reserve_port());
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_CONSOLE_LISTEN", address.clone());
    })
    .await;
    let (api, console) = (
        service.anonymous(),
        ApiClient::new(&format!("http://{address}")),
    );

    let secret = create_link(&service, &[]);
    use_link(&api, &secret)
        .await
        .assert_problem(404, "not_found");
    let signed_in = use_link(&console, &secret).await;
    assert_eq!(signed_in.status, 201, "{}", signed_in.text);
    let cookie = cookie_value(&signed_in);
    for path in ["/console/session", "/subscriptions"] {
        let response = with_cookie(&console, &cookie).get(path).await;
        assert_eq!(response.status, 200, "{path}: {}", response.text);
    }
    with_cookie(&api, &cookie)
        .get("/subscriptions")
        .await
        .assert_problem(401, "invalid_staff_session");

    // Clients can use both.
    let (_, key) = service.create_client(&[]);
    for api in [&api, &console] {
        let response = api.with("client-id", &key).get("/subscriptions").await;
        assert_eq!(response.status, 200, "{}", response.text);
    }

    #[cfg(feature = "console")]
    {
        assert_eq!(console.get("/console/").await.status, 200);
        api.get("/console/").await.assert_problem(404, "not_found");
        let links = console.get("/").await.json();
        assert_eq!(links["console"], format!("http://{address}/console/"));
        assert!(api.get("/").await.json()["console"].is_null());
    }
}

#[tokio::test]
async fn links_lead_to_the_own_listener() {
    let service = Service::start_in_process_with(|variables| {
        variables.insert("PERENNIAL_CONSOLE_LISTEN", "127.0.0.1:8082".to_owned());
    })
    .await;
    let link = |service: &Service<_>| {
        let printed = service.run_json(&["console", "link", "--json"]);
        printed["link"].as_str().unwrap().to_owned()
    };
    assert!(link(&service).starts_with("http://127.0.0.1:8082/console/#link="));
    let mut service = service;
    let url = "https://console.example.com".to_owned();
    service.variables.insert("PERENNIAL_CONSOLE_URL", url);
    assert!(link(&service).starts_with("https://console.example.com/console/#link="));
}

#[test]
fn settings_of_the_listener_are_checked() {
    let check = |changes: &[(&'static str, &str)]| {
        let mut variables = sandbox("postgres://127.0.0.1/none");
        for (name, value) in changes {
            variables.insert(name, (*value).to_owned());
        }
        run_err(&variables, &["config", "check"])
    };
    let message = check(&[("PERENNIAL_CONSOLE_LISTEN", "8082")]);
    assert!(
        message.contains("PERENNIAL_CONSOLE_LISTEN: must be an address and port"),
        "{message}"
    );
    let message = check(&[("PERENNIAL_CONSOLE_URL", "https://console.example.com")]);
    assert!(
        message.contains("PERENNIAL_CONSOLE_URL: needs PERENNIAL_CONSOLE_LISTEN"),
        "{message}"
    );
    let message = check(&[
        ("PERENNIAL_MODE", "live"),
        ("PERENNIAL_CONSOLE_LISTEN", "127.0.0.1:8082"),
    ]);
    assert!(
        message.contains("PERENNIAL_CONSOLE_URL: is required"),
        "{message}"
    );
}
