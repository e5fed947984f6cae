//! Serves the console's web app, whose files (`console/dist`) are part of the binary, compressed by `build.rs`.

use std::io::Read as _;

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, HeaderValue, Uri, header},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use flate2::read::GzDecoder;

use crate::http::{
    accept::accepts_encoding,
    html,
    problem::{Code, Problem},
};

/// A file of the web app.
struct WebAppFile {
    /// Below `/console/`.
    path: &'static str,
    content_type: &'static str,
    /// The digest of the uncompressed file.
    sha256: &'static str,
    gzip: &'static [u8],
}

static FILES: &[WebAppFile] = include!(concat!(env!("OUT_DIR"), "/web_app_files.rs"));

/// The page that shows every screen.
const INDEX: &str = "index.html";
/// Files in this folder have their digest in their name.
const ASSETS: &str = "assets/";
/// The web app loads nothing from other hosts, and has no inline scripts or styles.
const CONTENT_SOURCES: &str = "script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'";

/// Returns the routes of the web app.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let file = async |uri: Uri, headers: HeaderMap| {
        let path = uri.path().strip_prefix("/console/").unwrap_or_default();
        respond(path, &headers)
    };
    Router::new()
        .route("/console", get(async || Redirect::to("/console/")))
        .route("/console/", get(file))
        .route("/console/{*path}", get(file))
}

/// Responds with a file, or with the page for the path of a screen.
fn respond(path: &str, request: &HeaderMap) -> Response {
    let is_asset = path.starts_with(ASSETS);
    let name = if is_asset { path } else { INDEX };
    let Some(file) = FILES.iter().find(|file| file.path == name) else {
        return Problem::new(Code::NotFound, "the console has no such file").into_response();
    };
    let tag = format!("\"{}\"", file.sha256);
    let mut response = file.body(request);
    let headers = response.headers_mut();
    let fixed = HeaderValue::from_static;
    headers.insert(header::CONTENT_TYPE, fixed(file.content_type));
    headers.insert(header::VARY, fixed("accept-encoding"));
    // Weak, because all encodings have the same tag.
    if let Ok(tag) = HeaderValue::try_from(format!("W/{tag}")) {
        headers.insert(header::ETAG, tag);
    }
    let storage = if is_asset {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    headers.insert(header::CACHE_CONTROL, fixed(storage));
    html::add_security_headers(headers, CONTENT_SOURCES);
    response
}

impl WebAppFile {
    fn body(&self, request: &HeaderMap) -> Response {
        if accepts_encoding(request, "gzip") {
            let encoding = [(header::CONTENT_ENCODING, "gzip")];
            return (encoding, Bytes::from_static(self.gzip)).into_response();
        }
        let mut plain = Vec::new();
        match GzDecoder::new(self.gzip).read_to_end(&mut plain) {
            Ok(_) => plain.into_response(),
            Err(error) => Problem::internal(&error).into_response(),
        }
    }
}
