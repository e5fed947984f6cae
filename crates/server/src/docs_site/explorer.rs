//! `/docs/`: the API explorer. Its script builds a form for each operation of `/openapi.json`, sends the
//! request to this service and shows the response.

use axum::Router;
use secrecy::{ExposeSecret, SecretString};

use super::{
    asset::{Asset, Storage},
    layout::{self, PageLayout, escape},
};
use crate::config::Mode;

/// Returns the route of the explorer. The page shows the client id in sandbox mode.
pub(super) fn router<S: Clone + Send + Sync + 'static>(
    mode: Mode,
    client_id: Option<&SecretString>,
) -> Router<S> {
    let client_id = match mode {
        Mode::Sandbox => client_id.map(|id| id.expose_secret().to_owned()),
        Mode::Live => None,
    };
    let storage = match client_id {
        Some(_) => Storage::Forbidden,
        None => Storage::Revalidate,
    };
    let page = layout::document(move || html(mode, client_id.as_deref()));
    let script = Asset::new("text/javascript", include_str!("assets/explorer.js"));
    Router::new()
        .route("/docs/", page.with_storage(storage).route())
        .route("/docs/explorer.js", script.route())
}

fn html(mode: Mode, client_id: Option<&str>) -> String {
    let hint = match (mode, client_id) {
        (Mode::Sandbox, Some(_)) => {
            "This is the key of your sandbox. It works from this page, and not from pages of other origins."
        }
        (Mode::Sandbox, None) => {
            "Paste the client id that <code>perennial client create</code> printed. This is a sandbox, so a secret one \
             works from this page too."
        }
        (Mode::Live, _) => {
            "Use a publishable client that allows this page's origin. Browsers cannot use secret clients in live mode."
        }
    };
    let value = escape(client_id.unwrap_or_default());
    let main = format!(
        "<h1>API explorer <span class=\"mode\">{mode}</span></h1>\
         <noscript><p>This page requires JavaScript. Without it, read <a href=\"/openapi.json\">openapi.json</a>.</p></noscript>\
         <section class=\"credentials\" aria-label=\"Credentials\">\
         <div class=\"field\"><label for=\"client-id\">API key <code>client-id</code></label>\
         <input id=\"client-id\" value=\"{value}\" autocomplete=\"off\" spellcheck=\"false\" aria-describedby=\"client-id-hint\">\
         <p class=\"hint\" id=\"client-id-hint\">{hint}</p></div>\
         <div class=\"field\"><label for=\"access-token\">Access token <code>Authorization</code></label>\
         <input id=\"access-token\" autocomplete=\"off\" spellcheck=\"false\" aria-describedby=\"access-token-hint\">\
         <p class=\"hint\" id=\"access-token-hint\">Of a signed-in user, for operations that use one. Sign-up and sign-in fill \
         it in.</p></div></section>\
         <section id=\"operation\" aria-label=\"Operation\"></section>"
    );
    let layout = PageLayout {
        title: "API explorer",
        site_link: "/docs/",
        sidebar: Some(String::new()),
        main,
        outline: String::new(),
        script: Some("/docs/explorer.js"),
    };
    layout.to_html()
}
