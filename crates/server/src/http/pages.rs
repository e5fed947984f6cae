//! The documents of `docs/`, as pages of this very service: what is read is what runs. They are within the binary, and load
//! nothing from elsewhere.

use axum::{Router, http::StatusCode, response::Html, routing::get};
use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, html};

macro_rules! documents {
    ($($section:literal: $($path:literal)*;)*) => {
        /// Each section, and in it the path of each document below `docs/`, without its ending, and its text.
        pub static SECTIONS: &[(&str, &[(&str, &str)])] = &[$(($section, &[
            $(($path, include_str!(concat!("../../../../docs/", $path, ".md"))),)*
        ]),)*];
    };
}

documents! {
    "Begin": "quickstart";
    "Concepts": "concepts/subscriptions" "concepts/payments" "concepts/time";
    "Guides":
        "guides/pricing-page-to-access-check" "guides/connect-a-provider" "guides/sessions-and-tokens"
        "guides/verify-our-tokens" "guides/idempotency-and-retries" "guides/paging-and-filters" "guides/behind-a-proxy"
        "guides/move-an-existing-system";
    "Reference": "configuration" "commands" "limits" "hostile-input" "benchmarks" "size" "scale";
    "Runbooks":
        "runbooks/late-worker" "runbooks/provider-down" "runbooks/restored-backup" "runbooks/rotate-signing-keys"
        "runbooks/leaked-client" "runbooks/leaked-master-key" "runbooks/upgrade" "runbooks/backup";
    "Decisions":
        "decisions/README" "decisions/0001-driver" "decisions/0002-tenancy" "decisions/0003-clients" "decisions/0004-one-engine"
        "decisions/0005-migrations" "decisions/0006-json" "decisions/0007-dependencies" "decisions/0008-rates-and-shedding"
        "decisions/0009-outside-tokens" "decisions/0010-sessions" "decisions/0011-trying" "decisions/0012-subscriptions"
        "decisions/0013-time";
}

/// `/docs/contents`, and a page for each document.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let mut router = Router::new().route("/docs/contents", page("Contents", &contents()));
    for (path, text) in SECTIONS.iter().flat_map(|(_, documents)| *documents) {
        let body = rendered(text);
        router = router.route(&format!("/docs/{path}"), page(title(text), &body));
    }
    router
}

/// What a document is called: its first heading.
fn title(text: &str) -> &str {
    let first = text.lines().find_map(|line| line.strip_prefix("# "));
    first.unwrap_or("Perennial")
}

fn contents() -> String {
    let mut body =
        "<h1>Contents</h1><ul><li><a href=\"/docs/\">The interface</a>, every endpoint, to try out\
        <li><a href=\"/docs/errors\">Errors</a>, an entry for each code</ul>"
            .to_owned();
    for (section, documents) in SECTIONS {
        body += &format!("<h2>{section}</h2><ul>");
        for (path, text) in *documents {
            body += &format!("<li><a href=\"/docs/{path}\">{}</a>", title(text));
        }
        body += "</ul>";
    }
    body
}

/// A page of text, with what all pages have.
pub fn page<S: Clone + Send + Sync + 'static>(
    title: &str,
    body: &str,
) -> axum::routing::MethodRouter<S> {
    let html: &'static str = text_page(title, body).leak();
    get(async move || Html(html))
}

/// What is answered below `/docs/` where there is no page. Whoever looks there is a person, not a program.
pub async fn nothing_here() -> (StatusCode, Html<String>) {
    let body = "<h1>There is no page here</h1><p>It may have been renamed, or belong to another version than the one that \
        runs here. All pages are listed in the <a href=\"/docs/contents\">contents</a>; every endpoint is at \
        <a href=\"/docs/\">the interface</a>, every error code at <a href=\"/docs/errors\">errors</a>.</p>";
    (StatusCode::NOT_FOUND, Html(text_page("No page", body)))
}

fn text_page(title: &str, body: &str) -> String {
    let head = format!("<style>{STYLE}</style>");
    html(title, &head, &format!("<main>{body}</main>"))
}

/// A whole page: what all have, and this in its head and its body.
pub(super) fn html(title: &str, head: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" href=\"data:,\"><title>{title} · Perennial</title>\
         <style>{SHELL}</style>{head}\
         <nav><a href=\"/docs/contents\">Contents</a> · <a href=\"/docs/\">Interface</a> · \
         <a href=\"/docs/errors\">Errors</a></nav>{body}</html>\n"
    )
}

const SHELL: &str = "\
    body{font:16px/1.55 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}\
    nav{margin-bottom:2rem}";

// A table scrolls within itself where it is wider than the screen; its words stay whole.
const STYLE: &str = "\
    :root{--line:#8884;--soft:#8881}\
    h1,h2,h3{line-height:1.25;overflow-wrap:anywhere}h2{margin-top:2.2em}h2 small{font-weight:normal;white-space:nowrap}\
    p,li{overflow-wrap:anywhere}\
    code,pre{font:.9em/1.5 ui-monospace,monospace}code{background:var(--soft);padding:.1em .3em;border-radius:3px}\
    pre{background:var(--soft);padding:.8em 1em;border-radius:6px;overflow-x:auto}pre code{background:none;padding:0}\
    table{border-collapse:collapse;display:block;overflow-x:auto}\
    td,th{border:1px solid var(--line);padding:.35em .6em;text-align:left;vertical-align:top}";

/// A document as HTML: headings can be linked to, and links lead to other pages.
fn rendered(text: &str) -> String {
    let mut events: Vec<Event<'_>> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
    name_headings(&mut events);
    let events = events.into_iter().map(|event| match event {
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => Event::Start(Tag::Link {
            dest_url: target(link_type, &dest_url),
            link_type,
            title,
            id,
        }),
        other => other,
    });
    let mut body = String::new();
    html::push_html(&mut body, events);
    body
}

/// Gives each heading the id that GitHub gives it.
fn name_headings(events: &mut [Event<'_>]) {
    let mut text = String::new();
    let mut within = false;
    // From the end, so that a heading's text is known when its beginning is reached.
    for event in events.iter_mut().rev() {
        match event {
            Event::End(TagEnd::Heading(_)) => {
                within = true;
                text.clear();
            }
            Event::Text(part) | Event::Code(part) if within => text.insert_str(0, part),
            Event::Start(Tag::Heading { id, .. }) => {
                within = false;
                *id = Some(slug(&text).into());
            }
            _ => {}
        }
    }
}

fn slug(text: &str) -> String {
    let kept = text.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

/// Where a link of a document leads: a page for a document; what is not served is in the repository.
fn target<'a>(kind: LinkType, link: &str) -> CowStr<'a> {
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
