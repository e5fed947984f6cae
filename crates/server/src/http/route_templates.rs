//! Maps a request's path to the path template of the OpenAPI document, for logs and metrics.
//!
//! axum's `MatchedPath` is known only inside its router. The middleware that needs the template runs
//! outside of it, because a layer around each route costs more than most routes do.

use matchit::{InsertError, Router};

/// The label of a path that is not in the document.
const UNMATCHED: &str = "(none)";

/// The path templates, in axum's own kind of router.
pub struct RouteTemplates(Router<&'static str>);

impl RouteTemplates {
    /// Copies and leaks the templates, so it must be called only once per process.
    pub fn new<'a>(templates: impl Iterator<Item = &'a String>) -> Result<Self, InsertError> {
        let mut router = Router::new();
        for template in templates {
            router.insert(template, &*template.clone().leak())?;
        }
        Ok(Self(router))
    }

    /// Returns the template that matches a path, or `(none)`.
    pub fn find(&self, path: &str) -> &'static str {
        self.0.at(path).map_or(UNMATCHED, |route| route.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_matches_its_template() {
        let templates = ["/plans/{slug}", "/plans", "/plans/own", "/a/{b}/c"].map(str::to_owned);
        let routes = RouteTemplates::new(templates.iter()).unwrap();
        for (path, expected) in [
            ("/plans", "/plans"),
            ("/plans/pro", "/plans/{slug}"),
            ("/plans/own", "/plans/own"),
            ("/plans/%2e", "/plans/{slug}"),
            ("/a/x/c", "/a/{b}/c"),
            ("/a//c", "/a/{b}/c"),
            ("/plans/", UNMATCHED),
            ("/plans/a/b", UNMATCHED),
            ("/", UNMATCHED),
            ("", UNMATCHED),
            ("*", UNMATCHED),
        ] {
            assert_eq!(routes.find(path), expected, "{path}");
        }
    }
}
