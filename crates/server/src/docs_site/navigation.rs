//! The order of the pages: the lists of `docs/README.md`, then the pages of the listed folders.

use std::sync::LazyLock;

use super::{layout::escape, markdown, pages};
use crate::http::problem::Code;

pub(super) static NAVIGATION: LazyLock<Navigation> = LazyLock::new(Navigation::new);

/// The path of the index page below `/docs/`.
pub(super) const CONTENTS: &str = "contents";
/// The path of the list of error codes below `/docs/`.
pub(super) const ERRORS: &str = "errors";

pub(super) struct Navigation {
    sections: Vec<(String, Vec<PageLink>)>,
}

#[derive(Debug, Clone)]
pub(super) struct PageLink {
    /// Below `/docs/`.
    pub path: String,
    pub title: String,
    /// The other pages of the folder whose index this page is.
    children: Vec<PageLink>,
}

impl PageLink {
    fn new(path: &str, title: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            title: title.into(),
            children: Vec::new(),
        }
    }
}

impl Navigation {
    fn new() -> Self {
        let contents = pages::find("README").unwrap_or_default();
        let mut sections: Vec<(String, Vec<PageLink>)> = markdown::link_lists(contents)
            .into_iter()
            .map(|(title, links)| {
                let links = links.iter().map(|(path, title)| PageLink {
                    children: folder_pages(path),
                    ..PageLink::new(path, title)
                });
                (title, links.collect())
            })
            .collect();
        let codes = Code::ALL.iter().map(|code| {
            let code = code.as_str();
            PageLink::new(&format!("{ERRORS}/{code}"), code)
        });
        let errors = PageLink {
            children: codes.collect(),
            ..PageLink::new(ERRORS, "Error codes")
        };
        sections.push(("Errors".to_owned(), vec![errors]));
        Self { sections }
    }

    /// Returns all pages in order.
    fn pages(&self) -> impl Iterator<Item = &PageLink> {
        let links = self.sections.iter().flat_map(|(_, links)| links);
        links.flat_map(|link| std::iter::once(link).chain(&link.children))
    }

    /// Returns the lists of links, with the current page marked. The pages of a folder are listed only
    /// on its own pages.
    pub(super) fn to_html(&self, current: &str) -> String {
        let mut html = String::new();
        for (index, (title, links)) in self.sections.iter().enumerate() {
            let id = format!("section-{index}");
            html += &format!(
                "<p id=\"{id}\">{}</p><ul aria-labelledby=\"{id}\">",
                escape(title)
            );
            for link in links {
                html += "<li>";
                html += &anchor(link, current);
                let is_open = |link: &PageLink| link.path == current;
                if !link.children.is_empty() && (is_open(link) || link.children.iter().any(is_open))
                {
                    let children = link.children.iter();
                    let children: Vec<String> = children
                        .map(|child| format!("<li>{}</li>", anchor(child, current)))
                        .collect();
                    html += &format!("<ul>{}</ul>", children.concat());
                }
                html += "</li>";
            }
            html += "</ul>";
        }
        html
    }

    /// Returns links to the pages before and after this one.
    pub(super) fn neighbors(&self, current: &str) -> String {
        let pages: Vec<&PageLink> = self.pages().collect();
        let (previous, next) = if current == CONTENTS {
            (None, pages.first())
        } else {
            let at = pages.iter().position(|link| link.path == current);
            let Some(at) = at else { return String::new() };
            let previous = at.checked_sub(1).and_then(|before| pages.get(before));
            (previous, pages.get(at + 1))
        };
        let link = |rel: &str, label: &str, link: Option<&&PageLink>| {
            link.map_or_else(String::new, |link| {
                format!(
                    "<a rel=\"{rel}\" href=\"/docs/{}\"><small>{label}</small> {}</a>",
                    link.path,
                    escape(&link.title)
                )
            })
        };
        format!(
            "<nav class=\"neighbors\" aria-label=\"Previous and next page\">{}{}</nav>",
            link("prev", "Previous", previous),
            link("next", "Next", next)
        )
    }
}

/// Returns the pages of the folder whose index `path` is, except the index.
fn folder_pages(path: &str) -> Vec<PageLink> {
    let Some(folder) = path.strip_suffix("README") else {
        return Vec::new();
    };
    let pages = pages::PAGES.iter();
    let pages = pages.filter(|(page, _)| page.starts_with(folder) && *page != path);
    pages
        .map(|(page, text)| PageLink::new(page, pages::title(text)))
        .collect()
}

fn anchor(link: &PageLink, current: &str) -> String {
    let mark = if link.path == current {
        " aria-current=\"page\""
    } else {
        ""
    };
    let PageLink { path, title, .. } = link;
    format!("<a href=\"/docs/{path}\"{mark}>{}</a>", escape(title))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_page_is_in_the_navigation_once() {
        let listed: Vec<&str> = NAVIGATION.pages().map(|link| link.path.as_str()).collect();
        let unique: BTreeSet<&str> = listed.iter().copied().collect();
        assert_eq!(listed.len(), unique.len(), "{listed:?}");
        let pages = pages::PAGES.iter().map(|(path, _)| *path);
        let mut expected: BTreeSet<&str> = pages.filter(|path| *path != "README").collect();
        expected.insert(ERRORS);
        assert_eq!(unique, expected);
    }

    #[test]
    fn neighbors_follow_the_order_of_the_contents() {
        let first = NAVIGATION.neighbors(CONTENTS);
        assert!(first.contains("rel=\"next\" href=\"/docs/tutorial/quickstart\""));
        assert!(!first.contains("rel=\"prev\""), "{first}");
        let middle = NAVIGATION.neighbors("decisions/0001-driver");
        assert!(middle.contains("rel=\"prev\" href=\"/docs/decisions/README\""));
        assert!(middle.contains("rel=\"next\" href=\"/docs/decisions/0002-tenancy\""));
        let last = format!("{ERRORS}/{}", Code::ALL.last().unwrap().as_str());
        assert!(!NAVIGATION.neighbors(&last).contains("rel=\"next\""));
    }

    #[test]
    fn pages_of_a_folder_are_listed_on_its_own_pages_only() {
        let child = "href=\"/docs/decisions/0001-driver\"";
        assert!(!NAVIGATION.to_html("tutorial/quickstart").contains(child));
        assert!(NAVIGATION.to_html("decisions/README").contains(child));
        let html = NAVIGATION.to_html("decisions/0001-driver");
        assert!(html.contains(&format!("{child} aria-current=\"page\"")));
    }
}
