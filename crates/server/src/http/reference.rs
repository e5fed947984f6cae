//! The reference, from the binary: the OpenAPI document, a user interface for it, and a page per
//! error code. Nothing is loaded from elsewhere, so it works without the internet.

use axum::{Router, http::header, response::Html, routing::get};
use utoipa::openapi::OpenApi;
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::problem::Code;

/// `/openapi.json`, `/docs`, `/docs/errors` and a page for each code below it.
pub fn router<S: Clone + Send + Sync + 'static>(
    document: &OpenApi,
) -> serde_json::Result<Router<S>> {
    let json: &'static str = serde_json::to_string_pretty(document)?.leak();
    let openapi = get(async move || ([(header::CONTENT_TYPE, "application/json")], json));
    let config = Config::from("/openapi.json");
    let mut router = Router::new()
        .route("/openapi.json", openapi)
        .merge(SwaggerUi::new("/docs").config(config));
    let all: String = Code::ALL.iter().map(|code| entry(*code)).collect();
    router = router.route("/docs/errors", page("Errors", &all));
    for code in Code::ALL {
        let path = format!("/docs/errors/{}", code.as_str());
        router = router.route(&path, page(code.title(), &entry(*code)));
    }
    Ok(router)
}

fn page<S: Clone + Send + Sync + 'static>(
    title: &str,
    body: &str,
) -> axum::routing::MethodRouter<S> {
    let html: &'static str = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title} · Perennial</title>\
         <style>body{{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:3rem auto;padding:0 1rem}}\
         code{{font-size:.95em}}h2 small{{font-weight:normal;opacity:.6}}</style>\
         <p><a href=\"/docs/\">Reference</a> · <a href=\"/docs/errors\">All errors</a></p>{body}</html>\n"
    )
    .leak();
    get(async move || Html(html))
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
        "<h2 id=\"{word}\">{title} <small><code>{word}</code> · {status}</small></h2><p>{meaning}</p>",
        word = code.as_str(),
        title = code.title(),
        status = code.status().as_u16(),
    )
}
