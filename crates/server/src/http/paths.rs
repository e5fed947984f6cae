//! The paths of the interface, as the document writes them: what a request is called in logs and metrics. Never what
//! the caller wrote, of which there is no end.

/// What has no path of the document.
const NONE: &str = "(none)";

/// All paths, those without a parameter first; each with what stands before its first parameter.
pub struct Paths(Vec<(&'static str, &'static str)>);

impl Paths {
    /// These paths; to be called once, since they are kept for good.
    pub fn new<'a>(templates: impl Iterator<Item = &'a String>) -> Self {
        let mut all: Vec<(&str, &str)> = templates
            .map(|template| {
                let template: &str = template.clone().leak();
                let literal = template.split('{').next().unwrap_or_default();
                (literal, template)
            })
            .collect();
        all.sort_by_key(|(literal, template)| literal != template);
        Self(all)
    }

    /// The one that a request's path is an instance of.
    pub fn of(&self, path: &str) -> &'static str {
        let found = self.0.iter().find(|(literal, template)| {
            path == *template
                || (literal != template && path.starts_with(literal) && fits(template, path))
        });
        found.map_or(NONE, |(_, template)| template)
    }
}

/// Whether each segment is the same, or stands where the template has a parameter.
fn fits(template: &str, path: &str) -> bool {
    let (mut wanted, mut given) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(wanted), Some(given)) if wanted == given => {}
            (Some(wanted), Some(given)) if wanted.starts_with('{') && !given.is_empty() => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_by_its_template() {
        let templates = ["/plans/{slug}", "/plans", "/plans/own", "/a/{b}/c"].map(str::to_owned);
        let paths = Paths::new(templates.iter());
        for (path, expected) in [
            ("/plans", "/plans"),
            ("/plans/pro", "/plans/{slug}"),
            ("/plans/own", "/plans/own"),
            ("/plans/%2e", "/plans/{slug}"),
            ("/a/x/c", "/a/{b}/c"),
            ("/plans/", NONE),
            ("/plans/a/b", NONE),
            ("/", NONE),
            ("", NONE),
            ("*", NONE),
        ] {
            assert_eq!(paths.of(path), expected, "{path}");
        }
    }
}
