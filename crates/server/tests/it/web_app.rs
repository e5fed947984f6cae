//! The files of the console's web app.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::harness::{process::Server, service::Service};

const DIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../console/dist");

async fn get(service: &Service<Server>, path: &str, encoding: &str) -> reqwest::Response {
    let client = reqwest::Client::builder().build().unwrap();
    let url = format!("{}{path}", service.server.url);
    let request = client.get(url).header("accept-encoding", encoding);
    request.send().await.unwrap()
}

/// Without the feature, the API of the console remains, and the pages do not exist.
#[cfg(not(feature = "console"))]
#[tokio::test]
async fn binary_without_the_feature_has_no_pages() {
    let service = Service::start().await;
    for path in [
        "/console",
        "/console/",
        "/console/subscribers",
        "/console/assets/x.js",
    ] {
        assert_eq!(get(&service, path, "br").await.status(), 404, "{path}");
    }
}

#[cfg(feature = "console")]
#[tokio::test]
async fn files_are_served_as_built() {
    let service = Service::start().await;
    let manifest = std::fs::read_to_string(format!("{DIST}/manifest.tsv")).unwrap();
    let mut assets = 0;
    for line in manifest.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [path, content_type, sha256] = columns[..] else {
            panic!("{line}");
        };
        let url = match path {
            "index.html" => "/console/".to_owned(),
            _ => format!("/console/{path}"),
        };
        for (encoding, extension) in [("br, gzip", "br"), ("gzip;q=0.5", "gz")] {
            let response = get(&service, &url, encoding).await;
            assert_eq!(response.status(), 200, "{url}");
            let expected = if extension == "br" { "br" } else { "gzip" };
            assert_eq!(response.headers()["content-encoding"], expected, "{url}");
            let built = std::fs::read(format!("{DIST}/{path}.{extension}")).unwrap();
            assert!(response.bytes().await.unwrap() == built, "{url}");
        }
        let plain = get(&service, &url, "identity").await;
        let headers = plain.headers().clone();
        assert_eq!(headers["content-type"], content_type, "{url}");
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
        assert!(!policy.contains("unsafe"), "{policy}");
        let storage = match path {
            "index.html" => "no-cache",
            _ => "public, max-age=31536000, immutable",
        };
        assert_eq!(headers["cache-control"], storage, "{url}");
        let body = plain.bytes().await.unwrap();
        let digest = Sha256::digest(&body);
        let digest = digest.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        });
        assert_eq!(digest, sha256, "{url}");
        assets += usize::from(path != "index.html");
    }
    assert!(assets > 5, "{manifest}");
}

#[cfg(feature = "console")]
#[tokio::test]
async fn screens_have_the_same_page_and_unknown_files_are_not_found() {
    let service = Service::start().await;
    let index = get(&service, "/console/", "identity").await;
    let tag = index.headers()["etag"].to_str().unwrap().to_owned();
    let index = index.text().await.unwrap();
    let screen = get(
        &service,
        "/console/subscribers/usr_1?tab=payments",
        "identity",
    )
    .await;
    assert_eq!(screen.text().await.unwrap(), index);
    let unknown = get(&service, "/console/assets/unknown.js", "identity").await;
    assert_eq!(unknown.status(), 404);
    let client = reqwest::Client::new();
    let url = format!("{}/console/", service.server.url);
    let known = client.get(url).header("if-none-match", tag).send().await;
    assert_eq!(known.unwrap().status(), 304);
}
