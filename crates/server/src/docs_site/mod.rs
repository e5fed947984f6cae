//! The documentation served by the binary: the start page, the OpenAPI document, an API explorer, a page
//! per error code, the other pages of `docs/`, and scripts of `examples/`. It loads nothing from other hosts, so it works offline.

use axum::{Router, response::Redirect, routing::get};
use secrecy::SecretString;
use utoipa::openapi::OpenApi;

use self::asset::Asset;
use crate::config::Mode;

mod asset;
mod examples;
mod explorer;
mod home;
mod layout;
mod markdown;
mod navigation;
pub mod pages;
mod search;

/// The properties of an instance that its pages show.
#[derive(Debug, Clone, Copy)]
pub struct SiteConfig<'a> {
    pub mode: Mode,
    /// Without a trailing slash.
    pub public_url: &'a str,
    /// The client id that the explorer fills in, in sandbox mode.
    pub explorer_client_id: Option<&'a SecretString>,
    /// Without a trailing slash. `None` if the listener of the pages does not serve the console.
    pub console_url: Option<&'a str>,
}

/// Returns the routes `/`, `/openapi.json`, `/docs/`, `/docs/errors`, `/docs/contents` and those of all
/// pages.
pub fn router<S: Clone + Send + Sync + 'static>(
    document: &OpenApi,
    config: SiteConfig<'_>,
) -> anyhow::Result<Router<S>> {
    let value = serde_json::to_value(document)?;
    let json = serde_json::to_string(document)?;
    let index = move || search::index(&value);
    let router = Router::new()
        .route("/", home::route(config))
        .route(
            "/openapi.json",
            Asset::new("application/json", json).route(),
        )
        .route("/docs", get(async || Redirect::to("/docs/")))
        .route(
            "/docs/search.json",
            Asset::rendered("application/json", index).route(),
        )
        .merge(explorer::router(config.mode, config.explorer_client_id))
        .merge(pages::router())
        .merge(examples::router());
    let style = Asset::new("text/css", include_str!("assets/site.css"));
    let script = Asset::new("text/javascript", include_str!("assets/site.js"));
    let icon = Asset::new("image/svg+xml", include_str!("assets/icon.svg"));
    Ok(router
        .route("/docs/site.css", style.route())
        .route("/docs/site.js", script.route())
        .route(
            "/docs/icon.svg",
            icon.with_content_sources("img-src 'self'").route(),
        )
        .route("/docs/{*path}", get(layout::not_found)))
}
