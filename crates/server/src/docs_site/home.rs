//! `/`: a start page for browsers, and the same links as JSON for other clients.

use axum::{
    http::{HeaderMap, HeaderValue, header},
    response::Response,
    routing::{MethodRouter, get},
};
use serde_json::json;

use super::{
    SiteConfig,
    asset::Asset,
    layout::{self, PageLayout},
};
use crate::{config::Mode, http::accept::accepts_media_type};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the route of the start page.
pub(super) fn route<S: Clone + Send + Sync + 'static>(config: SiteConfig<'_>) -> MethodRouter<S> {
    let mode = config.mode;
    let has_console = config.console_url.is_some();
    let page = layout::document(move || html(mode, has_console)).leak();
    let links = Asset::new("application/json", links(config)).leak();
    get(async move |headers: HeaderMap| {
        // Browsers list HTML when they open a page.
        let is_browser = accepts_media_type(&headers, "text/html");
        let asset = if is_browser { page } else { links };
        let mut response: Response = asset.respond(headers).await;
        let vary = HeaderValue::from_static("accept, accept-encoding");
        response.headers_mut().insert(header::VARY, vary);
        response
    })
}

fn links(config: SiteConfig<'_>) -> String {
    let public_url = config.public_url;
    let links = json!({
        "name": "Perennial",
        "version": VERSION,
        "mode": config.mode.as_str(),
        "console": config.console_url.map(|url| format!("{url}/console/")),
        "documentation": format!("{public_url}/docs/contents"),
        "explorer": format!("{public_url}/docs/"),
        "errors": format!("{public_url}/docs/errors"),
        "openapi": format!("{public_url}/openapi.json"),
        "openid_configuration": format!("{public_url}/.well-known/openid-configuration"),
    });
    links.to_string()
}

fn html(mode: Mode, has_console: bool) -> String {
    let card = |path: &str, title: &str, text: &str| {
        format!("<li><a href=\"{path}\"><strong>{title}</strong><span>{text}</span></a></li>")
    };
    let console = has_console.then(|| {
        card(
            "/console/",
            "Console",
            "Find a subscriber, see why they have access, and see the business.",
        )
    });
    let cards = [
        card(
            "/docs/tutorial/quickstart",
            "Quickstart",
            "Sign up a user, create a subscription and record a payment in five minutes.",
        ),
        card(
            "/docs/contents",
            "Documentation",
            "How-to guides, runbooks, reference and explanation.",
        ),
        card(
            "/docs/",
            "API explorer",
            "Every endpoint, with a form to try it.",
        ),
        card(
            "/docs/errors",
            "Errors",
            "Every error code, with a sample response and the fix.",
        ),
        card(
            "/openapi.json",
            "openapi.json",
            "The OpenAPI document, for code generators and tests.",
        ),
    ];
    let main = format!(
        "<div class=\"home\"><h1>Perennial <span class=\"mode\">{mode}</span></h1>\
         <p class=\"lead\">Plans, subscriptions, payments, entitlements and sessions for your product, over an HTTP JSON API.</p>\
         <ul class=\"cards\">{}</ul><p class=\"hint\">Version {VERSION}</p></div>",
        console.into_iter().chain(cards).collect::<String>()
    );
    let layout = PageLayout {
        title: "Start",
        main,
        ..PageLayout::default()
    };
    layout.to_html()
}
