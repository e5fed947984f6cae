//! The search index: a JSON array that the site's script reads at the first search.

use serde_json::Value;

use super::{
    markdown,
    navigation::CONTENTS,
    pages::{self, PAGES},
};

/// The URL, the page's title, the section's heading and its text.
type IndexEntry = [String; 4];

/// Returns the index of all sections of the pages and all operations of an OpenAPI document.
pub(super) fn index(document: &Value) -> String {
    let mut entries = operations(document);
    for (path, text) in PAGES {
        let title = pages::title(text).replace('`', "");
        let path = if *path == "README" { CONTENTS } else { path };
        for (index, section) in markdown::sections(text).into_iter().enumerate() {
            let heading = section.heading;
            let anchor = if index == 0 {
                String::new()
            } else {
                format!("#{}", heading.id)
            };
            let words: Vec<&str> = section.text.split_whitespace().collect();
            entries.push([
                format!("/docs/{path}{anchor}"),
                title.clone(),
                heading.text,
                words.join(" "),
            ]);
        }
    }
    serde_json::to_string(&entries).unwrap_or_default()
}

/// Returns the operations, with links to the API explorer.
fn operations(document: &Value) -> Vec<IndexEntry> {
    let text = |value: &Value, key: &str| {
        let text = value.get(key).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let mut entries = Vec::new();
    let paths = document.get("paths").and_then(Value::as_object);
    for (path, item) in paths.into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let method = method.to_uppercase();
            entries.push([
                format!("/docs/#{}", text(operation, "operationId")),
                "API explorer".to_owned(),
                format!("{method} {path}"),
                format!(
                    "{}. {}",
                    text(operation, "summary"),
                    text(operation, "description").replace(['\n', '`'], " ")
                ),
            ]);
        }
    }
    entries
}
