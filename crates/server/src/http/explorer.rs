//! `/docs/`: every endpoint, to read and to try out, by Swagger UI.
//!
//! Its script and its style are within the binary; the page around them is ours, so that it has our title, our way to the
//! other pages and the reader's own choice of light or dark. The page's policy tells the browser to ask nobody but this
//! service, so a later version of the script that would like to cannot either.

use std::sync::Arc;

use anyhow::Context;
use axum::{
    Router,
    http::header,
    response::{Html, Redirect},
    routing::get,
};
use utoipa_swagger_ui::Config;

use super::pages;

/// What of Swagger UI is served, below `/docs/`.
const VENDORED: [&str; 2] = ["swagger-ui.css", "swagger-ui-bundle.js"];
/// Ours, beside it: what begins it, and what it looks like.
const SCRIPT: &str = include_str!("explorer/explorer.js");
const STYLE: &str = include_str!("explorer/explorer.css");

/// `/docs/` and what it loads. What is tried out is sent to `public_url`.
pub fn router<S: Clone + Send + Sync + 'static>(public_url: &str) -> anyhow::Result<Router<S>> {
    let policy: &'static str = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
         connect-src 'self' {public_url}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    .leak();
    let page: &'static str = html().leak();
    let page = get(async move || ([(header::CONTENT_SECURITY_POLICY, policy)], Html(page)));
    let script = get(async || ([(header::CONTENT_TYPE, "text/javascript")], SCRIPT));
    let style = get(async || ([(header::CONTENT_TYPE, "text/css")], STYLE));
    let mut router = Router::new()
        .route("/docs", get(async || Redirect::to("/docs/")))
        .route("/docs/", page)
        .route("/docs/explorer.js", script)
        .route("/docs/explorer.css", style);
    for name in VENDORED {
        let found = utoipa_swagger_ui::serve(name, Arc::new(Config::default()));
        let file = found.ok().flatten();
        let file = file.with_context(|| format!("{name} was not built into this binary"))?;
        let kind: &'static str = file.content_type.leak();
        let bytes: &'static [u8] = file.bytes.into_owned().leak();
        let answer = get(async move || ([(header::CONTENT_TYPE, kind)], bytes));
        router = router.route(&format!("/docs/{name}"), answer);
    }
    Ok(router)
}

fn html() -> String {
    pages::html(
        "Interface",
        "<link rel=\"stylesheet\" href=\"swagger-ui.css\"><link rel=\"stylesheet\" href=\"explorer.css\">",
        "<div id=\"explorer\"></div><noscript>This page needs scripts; without them, read <a href=\"/openapi.json\">\
         openapi.json</a>.</noscript><script src=\"swagger-ui-bundle.js\"></script><script src=\"explorer.js\"></script>",
    )
}
