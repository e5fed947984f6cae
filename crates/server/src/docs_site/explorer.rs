//! `/docs/`: the API explorer, Swagger UI with its script and style embedded in the binary.
//!
//! The page has its own title, navigation and dark mode. Its content security policy allows requests to
//! this service only.

use std::sync::Arc;

use anyhow::Context;
use axum::{Router, response::Redirect, routing::get};
use utoipa_swagger_ui::Config;

use super::{
    asset::{Asset, Freshness},
    pages,
};

/// The files of Swagger UI that are served below `/docs/`.
const SWAGGER_UI_FILES: [&str; 2] = ["swagger-ui.css", "swagger-ui-bundle.js"];
const SCRIPT: &str = include_str!("explorer/explorer.js");
const STYLE: &str = include_str!("explorer/explorer.css");

/// Returns the routes of the explorer, which sends requests to `public_url`.
pub fn router<S: Clone + Send + Sync + 'static>(public_url: &str) -> anyhow::Result<Router<S>> {
    let content_sources = format!(
        "script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
         connect-src 'self' {public_url}"
    );
    let page = Asset::document(pages::HTML, html(), content_sources).route();
    let script = Asset::new("text/javascript", SCRIPT).route();
    let style = Asset::new("text/css", STYLE).route();
    let mut router = Router::new()
        .route("/docs", get(async || Redirect::to("/docs/")))
        .route("/docs/", page)
        .route("/docs/explorer.js", script)
        .route("/docs/explorer.css", style);
    for name in SWAGGER_UI_FILES {
        let result = utoipa_swagger_ui::serve(name, Arc::new(Config::default()));
        let file = result.ok().flatten();
        let file = file.with_context(|| format!("{name} is not part of utoipa-swagger-ui"))?;
        let content_type: &'static str = file.content_type.leak();
        let asset = Asset::new(content_type, file.bytes.into_owned());
        let asset = asset.with_freshness(Freshness::OneHour);
        router = router.route(&format!("/docs/{name}"), asset.route());
    }
    Ok(router)
}

fn html() -> String {
    pages::html_page(
        "API explorer",
        "<link rel=\"stylesheet\" href=\"swagger-ui.css\"><link rel=\"stylesheet\" href=\"explorer.css\">",
        "<div id=\"explorer\"></div><noscript>This page requires JavaScript. Without it, read <a href=\"/openapi.json\">\
         openapi.json</a>.</noscript><script src=\"swagger-ui-bundle.js\"></script><script src=\"explorer.js\"></script>",
    )
}
