//! The pages of `docs/`, embedded by `build.rs` and rendered at startup. They load nothing from other
//! hosts.

use anyhow::Context;
use axum::{
    Router,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::MethodRouter,
};
use pulldown_cmark::{CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, html};

use super::asset::Asset;
use crate::http::html::add_security_headers;

pub(super) const HTML: &str = "text/html; charset=utf-8";
/// What pages and diagrams may load: their own inline style, diagrams, and the empty icon.
const CONTENT_SOURCES: &str = "style-src 'unsafe-inline'; img-src 'self' data:";

/// The path of each Markdown file below `docs/`, without its extension, and its text.
pub static PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/docs_pages.rs"));
/// The name of each diagram in `docs/diagrams/`, without its extension, and its SVG.
static DIAGRAMS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/docs_diagrams.rs"));

/// Returns a route for each page and diagram. The index, `docs/README.md`, is also `/docs/contents`.
pub fn router<S: Clone + Send + Sync + 'static>() -> anyhow::Result<Router<S>> {
    let mut router = Router::new();
    for (path, text) in PAGES {
        let body = render(text).with_context(|| format!("docs/{path}.md"))?;
        let page = page(title(text), &body);
        if *path == "README" {
            router = router.route("/docs/contents", page.clone());
        }
        router = router.route(&format!("/docs/{path}"), page);
    }
    for (name, svg) in DIAGRAMS {
        let image = Asset::document("image/svg+xml", *svg, CONTENT_SOURCES);
        router = router.route(&format!("/docs/diagrams/{name}.svg"), image.route());
    }
    Ok(router)
}

/// Returns the first heading.
fn title(text: &str) -> &str {
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    heading.unwrap_or("Perennial")
}

/// Returns a route that serves an HTML body in the layout of text pages.
pub fn page<S: Clone + Send + Sync + 'static>(title: &str, body: &str) -> MethodRouter<S> {
    Asset::document(HTML, text_page(title, body), CONTENT_SOURCES).route()
}

/// Responds to unknown paths below `/docs/` with HTML, because they are opened in a browser.
pub async fn not_found() -> Response {
    let body = "<h1>Page not found</h1><p>The page may have been renamed, or may not exist in this version. See the \
        <a href=\"/docs/contents\">contents</a>, the <a href=\"/docs/\">API explorer</a> or the list of \
        <a href=\"/docs/errors\">errors</a>.</p>";
    let page = text_page("Page not found", body);
    let mut response = (StatusCode::NOT_FOUND, page).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(HTML));
    add_security_headers(headers, CONTENT_SOURCES);
    response
}

fn text_page(title: &str, body: &str) -> String {
    let head = format!("<style>{STYLE}</style>");
    html_page(title, &head, &format!("<main>{body}</main>"))
}

/// Returns a complete HTML page with the navigation.
pub(super) fn html_page(title: &str, head: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" href=\"data:,\"><title>{title} · Perennial</title>\
         <style>{LAYOUT}</style>{head}\
         <nav><a href=\"/docs/contents\">Contents</a> · <a href=\"/docs/\">API explorer</a> · \
         <a href=\"/docs/errors\">Errors</a></nav>{body}</html>\n"
    )
}

const LAYOUT: &str = "\
    body{font:16px/1.55 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}\
    nav{margin-bottom:2rem}";

// A table that is wider than the screen scrolls horizontally.
const STYLE: &str = "\
    :root{--line:#8884;--soft:#8881}\
    h1,h2,h3{line-height:1.25;overflow-wrap:anywhere}h2{margin-top:2.2em}h2 small{font-weight:normal;white-space:nowrap}\
    p,li{overflow-wrap:anywhere}\
    code,pre{font:.9em/1.5 ui-monospace,monospace}code{background:var(--soft);padding:.1em .3em;border-radius:3px}\
    pre{background:var(--soft);padding:.8em 1em;border-radius:6px;overflow-x:auto}pre code{background:none;padding:0}\
    img{max-width:100%;height:auto}\
    table{border-collapse:collapse;display:block;overflow-x:auto}\
    td,th{border:1px solid var(--line);padding:.35em .6em;text-align:left;vertical-align:top}";

/// Renders Markdown as HTML with heading ids, links to other pages, and diagrams as images.
fn render(text: &str) -> anyhow::Result<String> {
    let mut events: Vec<Event<'_>> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
    add_heading_ids(&mut events);
    let events = replace_diagrams(events)?;
    let events = events.into_iter().map(|event| match event {
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => Event::Start(Tag::Link {
            dest_url: link_target(link_type, &dest_url),
            link_type,
            title,
            id,
        }),
        other => other,
    });
    let mut body = String::new();
    html::push_html(&mut body, events);
    Ok(body)
}

/// Replaces each Mermaid block by the SVG that the comment before it names:
/// `<!-- diagram: subscription-states -->`.
fn replace_diagrams(events: Vec<Event<'_>>) -> anyhow::Result<Vec<Event<'_>>> {
    let mut output = Vec::with_capacity(events.len());
    let mut name: Option<String> = None;
    let mut in_diagram = false;
    for event in events {
        match &event {
            Event::Html(comment) => {
                let comment = comment.trim().strip_prefix("<!-- diagram: ");
                name = comment
                    .and_then(|rest| rest.strip_suffix(" -->"))
                    .map(str::to_owned);
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language)))
                if &**language == "mermaid" =>
            {
                let name = name.take();
                let name = name.context("a mermaid block has no diagram comment before it")?;
                output.push(Event::Html(image(&name)?.into()));
                in_diagram = true;
            }
            Event::End(TagEnd::CodeBlock) if in_diagram => {
                in_diagram = false;
                continue;
            }
            _ => {}
        }
        if !in_diagram {
            output.push(event);
        }
    }
    Ok(output)
}

/// Returns the image of a diagram, with the SVG's `<desc>` as its alternative text.
fn image(name: &str) -> anyhow::Result<String> {
    let diagram = DIAGRAMS.iter().find(|(other, _)| *other == name);
    let (_, svg) = diagram.with_context(|| format!("docs/diagrams/{name}.svg does not exist"))?;
    let description = svg
        .split_once("<desc")
        .and_then(|(_, rest)| rest.split_once('>'))
        .and_then(|(_, rest)| rest.split_once("</desc>"))
        .map_or(name, |(description, _)| description.trim());
    Ok(format!(
        "<p><img src=\"/docs/diagrams/{name}.svg\" alt=\"{}\"></p>\n",
        description.replace('"', "&quot;")
    ))
}

/// Gives each heading the id that GitHub gives it.
fn add_heading_ids(events: &mut [Event<'_>]) {
    let mut text = String::new();
    let mut in_heading = false;
    // Backwards, so that the text is known when the start tag is reached.
    for event in events.iter_mut().rev() {
        match event {
            Event::End(TagEnd::Heading(_)) => {
                in_heading = true;
                text.clear();
            }
            Event::Text(part) | Event::Code(part) if in_heading => text.insert_str(0, part),
            Event::Start(Tag::Heading { id, .. }) => {
                in_heading = false;
                *id = Some(slug(&text).into());
            }
            _ => {}
        }
    }
}

fn slug(text: &str) -> String {
    let characters = text.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
        _ => None,
    });
    characters.collect()
}

/// Rewrites a link to another Markdown file as a link to the page that is served for it. Other links
/// are unchanged.
fn link_target<'a>(kind: LinkType, link: &str) -> CowStr<'a> {
    if kind == LinkType::Email || link.contains("://") || link.starts_with('#') {
        return link.to_owned().into();
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = path.strip_suffix(".md").unwrap_or(path);
    let anchor = if anchor.is_empty() {
        String::new()
    } else {
        format!("#{anchor}")
    };
    format!("{path}{anchor}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mermaid_block_becomes_the_named_image() {
        let text = "a\n\n<!-- diagram: subscription-states -->\n```mermaid\nx --> y\n```\n\nb\n";
        let html = render(text).unwrap();
        assert!(html.contains("<img src=\"/docs/diagrams/subscription-states.svg\" alt=\""));
        assert!(
            !html.contains("mermaid") && !html.contains("x --"),
            "{html}"
        );
        assert!(
            html.contains("<p>a</p>") && html.contains("<p>b</p>"),
            "{html}"
        );
    }

    #[test]
    fn mermaid_block_without_a_name_is_an_error() {
        assert!(render("```mermaid\nx --> y\n```\n").is_err());
        assert!(render("<!-- diagram: missing -->\n```mermaid\nx\n```\n").is_err());
    }
}
