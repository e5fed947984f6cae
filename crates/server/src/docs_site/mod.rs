//! The documentation served by the binary: the OpenAPI document, an API explorer, a page per error code,
//! and the pages of `docs/`. It loads nothing from other hosts, so it works offline.

use axum::{Router, routing::get};
use utoipa::openapi::OpenApi;

use self::{asset::Asset, pages::page};
use crate::http::problem::Code;

mod asset;
mod explorer;
pub mod pages;

/// Returns the routes `/openapi.json`, `/docs/`, `/docs/errors`, `/docs/contents` and those of all pages.
pub fn router<S: Clone + Send + Sync + 'static>(
    document: &OpenApi,
    public_url: &str,
) -> anyhow::Result<Router<S>> {
    let json = serde_json::to_string_pretty(document)?;
    let openapi = Asset::new("application/json", json).route();
    let mut router = Router::new()
        .route("/openapi.json", openapi)
        .merge(explorer::router(public_url)?)
        .merge(pages::router()?)
        .route("/docs/{*path}", get(pages::not_found));
    let entries: String = Code::ALL.iter().map(|code| error_entry(*code)).collect();
    let errors = format!(
        "<h1>Errors</h1><p>Every error is a problem document (RFC 9457). Its <code>code</code> is one of these, and its \
         <code>type</code> is the URL of the entry.</p>{entries}"
    );
    router = router.route("/docs/errors", page("Errors", &errors));
    for code in Code::ALL {
        let path = format!("/docs/errors/{}", code.as_str());
        router = router.route(&path, page(code.title(), &error_entry(*code)));
    }
    Ok(router)
}

/// Returns the HTML entry of an error code. Text between backticks becomes `<code>`.
fn error_entry(code: Code) -> String {
    let meaning: String = code
        .meaning()
        .split('`')
        .enumerate()
        .map(|(index, part)| {
            if index % 2 == 1 {
                format!("<code>{part}</code>")
            } else {
                part.to_owned()
            }
        })
        .collect();
    format!(
        "<h2 id=\"{code}\">{title} <small><a href=\"/docs/errors/{code}\"><code>{code}</code></a> · {status}</small></h2><p>{meaning}</p>",
        title = code.title(),
        status = code.status().as_u16(),
        code = code.as_str(),
    )
}
