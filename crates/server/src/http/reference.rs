//! The reference, from the binary: the OpenAPI document, a user interface for it, a page per error code, and the
//! documents. Nothing is loaded from elsewhere, so it works without the internet.

use axum::{Router, http::header, routing::get};
use utoipa::openapi::OpenApi;

use super::{
    explorer,
    pages::{self, page},
    problem::Code,
};

/// `/openapi.json`, `/docs`, `/docs/errors` and a page for each code below it, `/docs/contents` and the documents; for
/// whatever else is looked for below `/docs/`, the way to them.
pub fn router<S: Clone + Send + Sync + 'static>(
    document: &OpenApi,
    public_url: &str,
) -> anyhow::Result<Router<S>> {
    let json: &'static str = serde_json::to_string_pretty(document)?.leak();
    let openapi = get(async move || ([(header::CONTENT_TYPE, "application/json")], json));
    let mut router = Router::new()
        .route("/openapi.json", openapi)
        .merge(explorer::router(public_url)?)
        .merge(pages::router())
        .route("/docs/{*elsewhere}", get(pages::nothing_here));
    let all: String = Code::ALL.iter().map(|code| entry(*code)).collect();
    let all = format!(
        "<h1>Errors</h1><p>Every error is a problem document (RFC 9457). Its <code>code</code> is one of these, and its \
         <code>type</code> is the address of its entry.</p>{all}"
    );
    router = router.route("/docs/errors", page("Errors", &all));
    for code in Code::ALL {
        let path = format!("/docs/errors/{}", code.as_str());
        router = router.route(&path, page(code.title(), &entry(*code)));
    }
    Ok(router)
}

fn entry(code: Code) -> String {
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
        "<h2 id=\"{word}\">{title} <small><a href=\"/docs/errors/{word}\"><code>{word}</code></a> · {status}</small></h2><p>{meaning}</p>",
        word = code.as_str(),
        title = code.title(),
        status = code.status().as_u16(),
    )
}
