//! The files of the console's web app.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use flate2::read::GzDecoder;

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
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                files_below(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[cfg(feature = "console")]
#[tokio::test]
async fn files_are_served_as_built() {
    let service = Service::start().await;
    let mut assets = 0;
    for path in files_below(DIST.as_ref()) {
        let built = std::fs::read(&path).unwrap();
        let path = path.strip_prefix(DIST).unwrap().to_str().unwrap();
        let url = match path {
            "index.html" => "/console/".to_owned(),
            _ => format!("/console/{path}"),
        };
        let compressed = get(&service, &url, "br, gzip;q=0.5").await;
        assert_eq!(compressed.status(), 200, "{url}");
        assert_eq!(compressed.headers()["content-encoding"], "gzip", "{url}");
        let compressed = compressed.bytes().await.unwrap();
        let mut unpacked = Vec::new();
        GzDecoder::new(&*compressed)
            .read_to_end(&mut unpacked)
            .unwrap();
        assert!(unpacked == built, "{url}");
        let plain = get(&service, &url, "identity").await;
        let headers = plain.headers().clone();
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
        assert!(!policy.contains("unsafe"), "{policy}");
        let storage = match path {
            "index.html" => "no-cache",
            _ => "public, max-age=31536000, immutable",
        };
        assert_eq!(headers["cache-control"], storage, "{url}");
        let content_type = headers["content-type"].to_str().unwrap();
        let expected = [
            ("css", "text/css"),
            ("html", "text/html"),
            ("js", "text/javascript"),
            ("svg", "image/svg+xml"),
            ("woff2", "font/woff2"),
        ];
        let expected = expected
            .iter()
            .find(|(extension, _)| path.ends_with(&format!(".{extension}")));
        assert!(
            content_type.starts_with(expected.unwrap().1),
            "{url}: {content_type}"
        );
        assert!(plain.bytes().await.unwrap() == built, "{url}");
        assets += usize::from(path != "index.html");
    }
    assert!(assets > 5, "{assets}");
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
