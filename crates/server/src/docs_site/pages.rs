//! The pages of `docs/`, embedded by `build.rs`. They load nothing from other hosts.

use axum::Router;

use super::{
    asset::Asset,
    layout::{self, PageLayout},
    markdown::{self, DIAGRAMS, RenderedMarkdown},
    navigation::{CONTENTS, ERRORS, NAVIGATION},
};
use crate::http::problem::Code;

/// What a diagram that is opened alone may load: its inline style.
const DIAGRAM_SOURCES: &str = "style-src 'unsafe-inline'";

/// The path of each Markdown file below `docs/`, without its extension, and its text.
pub static PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/docs_pages.rs"));

/// The name of each picture in `docs/pictures/`, without its extension, and its WebP.
static PICTURES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/docs_pictures.rs"));

/// Returns a route for each page, diagram and picture. The index, `docs/README.md`, is also `/docs/contents`.
pub(super) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let mut router = Router::new();
    for (path, text) in PAGES {
        let current = if *path == "README" { CONTENTS } else { path };
        let page = layout::document(move || page(current, text)).route();
        if current != *path {
            router = router.route(&format!("/docs/{current}"), page.clone());
        }
        router = router.route(&format!("/docs/{path}"), page);
    }
    for (name, svg) in DIAGRAMS {
        let image = Asset::new("image/svg+xml", *svg).with_content_sources(DIAGRAM_SOURCES);
        router = router.route(&format!("/docs/diagrams/{name}.svg"), image.route());
    }
    for (name, webp) in PICTURES {
        let picture = Asset::new("image/webp", *webp);
        router = router.route(&format!("/docs/pictures/{name}.webp"), picture.route());
    }
    router.route("/docs/errors", layout::document(error_list).route())
}

/// Returns the text of a page.
pub(super) fn find(path: &str) -> Option<&'static str> {
    let page = PAGES.iter().find(|(other, _)| *other == path);
    page.map(|(_, text)| *text)
}

/// Returns the first heading.
pub(super) fn title(text: &str) -> &str {
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    heading.unwrap_or("Perennial")
}

fn page(path: &str, text: &str) -> String {
    let RenderedMarkdown { html, headings } = markdown::render(text).unwrap_or_else(|error| {
        tracing::error!(path, %error, "a page of the documentation cannot be rendered");
        RenderedMarkdown {
            html: String::new(),
            headings: Vec::new(),
        }
    });
    let site_link = if path.starts_with(ERRORS) {
        "/docs/errors"
    } else {
        "/docs/contents"
    };
    text_page(
        path,
        title(text),
        site_link,
        &html,
        markdown::outline(&headings),
    )
}

/// Returns the list of error codes, in the order of their status.
fn error_list() -> String {
    let mut list = String::new();
    let mut status = None;
    for code in Code::ALL {
        if status != Some(code.status()) {
            if status.is_some() {
                list += "</tbody></table></div>";
            }
            status = Some(code.status());
            let reason = code.status().canonical_reason().unwrap_or_default();
            list += &format!(
                "<h2>{} {reason}</h2><div class=\"table\"><table class=\"codes\"><tbody>",
                code.status().as_u16()
            );
        }
        let title = code.title();
        let code = code.as_str();
        list += &format!(
            "<tr><td><a href=\"/docs/errors/{code}\"><code>{code}</code></a></td><td>{title}</td></tr>"
        );
    }
    list += "</tbody></table></div>";
    let html = format!(
        "<h1>Errors</h1><p>Every error is a problem document (RFC 9457). Its <code>code</code> is one of these, and its \
         <code>type</code> is the URL of the page that explains it, with a sample response and the fix.</p>{list}"
    );
    text_page(ERRORS, "Errors", "/docs/errors", &html, String::new())
}

fn text_page(path: &str, title: &str, site_link: &str, html: &str, outline: String) -> String {
    let layout = PageLayout {
        title: &title.replace('`', ""),
        site_link,
        sidebar: Some(NAVIGATION.to_html(path)),
        main: format!("{html}{}", NAVIGATION.neighbors(path)),
        outline,
        script: None,
    };
    layout.to_html()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_rendered() {
        for (path, text) in PAGES {
            let rendered = markdown::render(text);
            assert!(rendered.is_ok(), "docs/{path}.md: {:?}", rendered.err());
        }
    }
}
