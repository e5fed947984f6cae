//! The documents are true as far as a test can tell.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::{architecture::source, harness::service::Service};

fn documents(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let ours = !name.starts_with('.') && !["target", "node_modules"].contains(&name);
        if path.is_dir() && ours {
            found.extend(documents(&path));
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let mut links = 0;
    for path in documents(&source("../..").canonicalize().unwrap()) {
        let text = fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices("](") {
            let link = text[at + 2..].split(')').next().unwrap();
            if link.contains("://") {
                continue;
            }
            links += 1;
            let target = path.parent().unwrap().join(link.split('#').next().unwrap());
            assert!(target.exists(), "{}: {link}", path.display());
        }
    }
    assert!(links > 10, "only {links} links were found");
}

/// The reference of all commands is what they say of themselves.
#[test]
fn the_commands_are_as_documented() {
    let path = source("../../docs/commands.md");
    let made = perennial::commands::reference();
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "docs/commands.md is not what `just reference` makes of the code"
    );
}

/// Every document is a page of the service.
#[test]
fn every_document_is_served() {
    let served: Vec<&str> = perennial::http::pages::SECTIONS
        .iter()
        .flat_map(|(_, documents)| documents.iter().map(|(path, _)| *path))
        .collect();
    let folder = source("../../docs").canonicalize().unwrap();
    for path in documents(&folder) {
        let path = path.strip_prefix(&folder).unwrap().with_extension("");
        let path = path.to_str().unwrap();
        assert!(
            served.contains(&path),
            "docs/{path}.md is not served; name it in http/pages.rs"
        );
    }
}

/// Every link of every page that is served leads to a page that is served, at an anchor that is there.
#[tokio::test]
async fn every_link_of_a_page_leads_somewhere() {
    let service = Service::start().await;
    let base = reqwest::Url::parse(&service.server.url).unwrap();
    let mut waiting = vec![base.join("/docs/contents").unwrap()];
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let mut links = 0;
    let mut anchors = Vec::new();
    while let Some(url) = waiting.pop() {
        if seen.contains_key(url.path()) {
            continue;
        }
        let answer = reqwest::get(url.clone()).await.unwrap();
        assert_eq!(answer.status(), 200, "{url}");
        let text = answer.text().await.unwrap();
        let own = url.path().starts_with("/docs/");
        for link in text.split("href=\"").skip(1).filter(|_| own) {
            let link = link.split('"').next().unwrap();
            let target = url.join(link).unwrap();
            if target.origin() != base.origin() {
                continue;
            }
            links += 1;
            if let Some(anchor) = target.fragment() {
                anchors.push((
                    url.path().to_owned(),
                    target.path().to_owned(),
                    anchor.to_owned(),
                ));
            }
            waiting.push(target);
        }
        seen.insert(url.path().to_owned(), text);
    }
    for (from, page, anchor) in anchors {
        let id = format!("id=\"{anchor}\"");
        assert!(seen[&page].contains(&id), "{from} links to {page}#{anchor}");
    }
    assert!(
        links > 200 && seen.len() > 60,
        "{links} links, {} pages",
        seen.len()
    );
    // What a problem's `type` says is one of them.
    let problem: serde_json::Value = service.anonymous().get("/nowhere").await.json();
    let page = problem["type"].as_str().unwrap().to_owned();
    let path = reqwest::Url::parse(&page).unwrap().path().to_owned();
    assert!(seen.contains_key(&path), "{page}");
}

/// Whoever mistypes a page's address is shown the way; a program that mistypes an endpoint's is told as ever.
#[tokio::test]
async fn where_there_is_no_page_is_the_way_to_all() {
    let service = Service::start().await;
    for path in ["/docs/nope", "/docs/errors/nope", "/docs/runbooks/nope.md"] {
        let page = service.anonymous().get(path).await;
        assert_eq!(page.status, 404);
        assert!(page.header("content-type").starts_with("text/html"));
        assert!(page.text.contains("href=\"/docs/contents\""), "{path}");
    }
    let elsewhere = service.anonymous().get("/nope").await;
    assert_eq!(elsewhere.problem(), "not_found");
}

/// Every dependency has its line in the decision that says what it is for.
#[test]
fn every_dependency_is_explained() {
    let explained =
        fs::read_to_string(source("../../docs/decisions/0007-dependencies.md")).unwrap();
    for manifest in ["Cargo.toml", "../domain/Cargo.toml"] {
        let text = fs::read_to_string(source(manifest)).unwrap();
        let dependencies = text.split("ependencies]").skip(1);
        for line in dependencies.flat_map(|section| section.split("\n[").next().unwrap().lines()) {
            let name = line.split(['=', '.', ' ']).next().unwrap();
            if name.is_empty() || name.starts_with('#') || name == "perennial-domain" {
                continue;
            }
            let listed = explained
                .split(|c: char| !c.is_alphanumeric() && !"-_".contains(c))
                .any(|word| word == name);
            assert!(
                listed,
                "{name} has no line in docs/decisions/0007-dependencies.md"
            );
        }
    }
}
