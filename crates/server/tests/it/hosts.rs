//! The header Host: which hosts the service answers for.

use crate::harness::{raw_connection::RawConnection, service::Service};

/// DNS rebinding: a web page makes its own host name resolve to this service.
///
/// Malformed input: 64.
#[tokio::test]
async fn requests_to_unknown_hosts_are_misdirected() {
    let service = Service::start_in_process_with(|variables| {
        let hosts = "perennial, Billing.internal, 2001:db8::7";
        variables.insert("PERENNIAL_ALLOWED_HOSTS", hosts.to_owned());
        variables.insert(
            "PERENNIAL_PUBLIC_URL",
            "https://billing.example.com".to_owned(),
        );
        variables.insert("PERENNIAL_LISTEN", "192.0.2.1:8080".to_owned());
    })
    .await;
    let (_, client) = service.create_client(&[]);
    for path in ["/subscription-plans", "/openapi.json", "/docs/"] {
        let api = service.anonymous().with("client-id", &client);
        let api = api.with("x-forwarded-host", "evil.example");
        for host in [
            "billing.example.com",
            "BILLING.EXAMPLE.COM:443",
            "192.0.2.1:8080",
            "localhost:8080",
            "127.0.0.1",
            "[::1]:8080",
            "perennial:8080",
            "billing.internal",
            "[2001:db8::7]:8080",
        ] {
            let response = api.with("host", host).get(path).await;
            assert_eq!(response.status, 200, "{host}: {}", response.text);
        }
        for host in [
            "evil.example",
            "billing.example.com.evil.example",
            "127.0.0.1@evil.example",
            "localhost.evil.example",
            "' OR 1",
            "192.0.2.2",
            "perennial.evil.example",
            "",
        ] {
            let response = api.with("host", host).get(path).await;
            response.assert_problem(421, "misdirected_request");
            let text = &response.text;
            let is_linked = text.contains("https://billing.example.com/docs/errors/");
            assert!(is_linked && !text.contains("evil"), "{text}");
        }
    }
}

/// In a container, health checks and load balancers may use any of the machine's addresses.
#[tokio::test]
async fn service_on_all_addresses_accepts_ip_addresses_as_host() {
    let service = Service::start_in_process_with(|variables| {
        variables.insert("PERENNIAL_LISTEN", "0.0.0.0:8080".to_owned());
    })
    .await;
    let status = async |host: &str| {
        service
            .anonymous()
            .with("host", host)
            .get("/docs/")
            .await
            .status
    };
    assert_eq!(status("10.1.2.3:8080").await, 200);
    assert_eq!(status("perennial").await, 421);
}

/// The host of an absolute request target takes precedence over the header.
#[tokio::test]
async fn absolute_target_with_an_unknown_host_is_misdirected() {
    let service = Service::start().await;
    for (host, status) in [("evil.example", "421"), ("127.0.0.1", "200")] {
        let request = format!("GET http://{host}/docs/ HTTP/1.1\r\nhost: x\r\n\r\n");
        let mut connection = RawConnection::open(&service.server.url).await;
        let response = connection.send(request.as_bytes()).await;
        assert_eq!(&response[9..12], status, "{host}");
    }
    // HTTP/1.0 needs no Host; later versions need exactly one.
    for (request, status, code) in [
        ("1.0\r\n", "404", "not_found"),
        ("1.1\r\n", "400", "invalid_request"),
        ("1.1\r\nhost: a\r\nhost: a\r\n", "400", "invalid_request"),
    ] {
        let request = format!("GET /nothing HTTP/{request}\r\n");
        let mut connection = RawConnection::open(&service.server.url).await;
        let response = connection.send(request.as_bytes()).await;
        assert_eq!(&response[9..12], status, "{request}");
        assert!(response.contains(code), "{response}");
    }
}

/// Monitoring reaches it under names that the service does not know.
#[tokio::test]
async fn admin_listener_accepts_every_host() {
    let service = Service::start().await;
    let request = "GET /livez HTTP/1.1\r\nhost: prometheus.example\r\n\r\n";
    let url = &service.server.admin_url;
    let mut connection = RawConnection::open(url).await;
    let response = connection.send(request.as_bytes()).await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
}
