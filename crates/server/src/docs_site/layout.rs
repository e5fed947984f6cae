//! The frame of every page: product name, navigation, search, sidebar and outline.

use crate::http::html::add_security_headers;
use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use super::{asset::Asset, navigation::NAVIGATION};

pub(super) const HTML: &str = "text/html; charset=utf-8";
/// What a page may load: the site's own script, style, images and search index, and the empty icon.
pub(super) const CONTENT_SOURCES: &str =
    "script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'";

/// The entries of the navigation in the header of each page.
const SITE_LINKS: [(&str, &str); 3] = [
    ("/docs/contents", "Docs"),
    ("/docs/", "API explorer"),
    ("/docs/errors", "Errors"),
];

/// The parts of a page. All but `title` are HTML.
#[derive(Default)]
pub(super) struct PageLayout<'a> {
    /// Plain text.
    pub title: &'a str,
    /// The entry of the header's navigation that the page belongs to.
    pub site_link: &'a str,
    /// `None` for a page without a sidebar.
    pub sidebar: Option<String>,
    pub main: String,
    pub outline: String,
    /// The path of a script that only this page needs.
    pub script: Option<&'a str>,
}

impl PageLayout<'_> {
    pub(super) fn to_html(&self) -> String {
        let site_links: Vec<String> = SITE_LINKS
            .iter()
            .map(|(path, text)| {
                let current = if *path == self.site_link {
                    " aria-current=\"true\""
                } else {
                    ""
                };
                format!("<a href=\"{path}\"{current}>{text}</a>")
            })
            .collect();
        let site_links = site_links.concat();
        let (menu, sidebar) = match &self.sidebar {
            Some(sidebar) => (
                "<button id=\"menu\" type=\"button\" aria-expanded=\"false\" aria-controls=\"sidebar\">Menu</button>",
                format!("<nav id=\"sidebar\" aria-label=\"Pages\">{sidebar}</nav>"),
            ),
            None => ("", String::new()),
        };
        let script = self.script.map_or_else(String::new, |path| {
            format!("<script src=\"{path}\" defer></script>")
        });
        let Self {
            title,
            main,
            outline,
            ..
        } = self;
        let title = escape(title);
        format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\"><title>{title} · Perennial</title>\
             <link rel=\"icon\" href=\"/docs/icon.svg\"><link rel=\"stylesheet\" href=\"/docs/site.css\">\
             <script src=\"/docs/site.js\" defer></script>{script}</head><body>\
             <a class=\"skip\" href=\"#main\">Skip to content</a>\
             <header><a class=\"brand\" href=\"/\"><img src=\"/docs/icon.svg\" alt=\"\" width=\"24\" height=\"24\">Perennial</a>\
             <nav class=\"site\" aria-label=\"Site\">{site_links}</nav>\
             <div class=\"search\" role=\"search\"><input id=\"search\" type=\"search\" placeholder=\"Search  /\" \
             aria-label=\"Search the documentation\" autocomplete=\"off\" spellcheck=\"false\">\
             <div id=\"results\" role=\"status\" hidden></div></div>{menu}</header>\
             <div class=\"frame\">{sidebar}<main id=\"main\" tabindex=\"-1\">{main}</main>{outline}</div></body></html>\n"
        )
    }
}

/// Responds to unknown paths below `/docs/` with HTML, because they are opened in a browser.
pub(super) async fn not_found() -> Response {
    let page = PageLayout {
        title: "Page not found",
        sidebar: Some(NAVIGATION.to_html("")),
        main: "<h1>Page not found</h1><p>The page may have been renamed, or may not exist in this version. See the \
               <a href=\"/docs/contents\">contents</a>, the <a href=\"/docs/\">API explorer</a> or the list of \
               <a href=\"/docs/errors\">errors</a>, or search.</p>"
            .to_owned(),
        ..PageLayout::default()
    };
    let mut response = (StatusCode::NOT_FOUND, page.to_html()).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(HTML));
    add_security_headers(headers, CONTENT_SOURCES);
    response
}

/// Returns an HTML document that is rendered at the first request.
pub(super) fn document(render: impl FnOnce() -> String + Send + 'static) -> Asset {
    Asset::rendered(HTML, render).with_content_sources(CONTENT_SOURCES)
}

/// Escapes plain text for HTML, in elements and attributes.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
