//! Documents: links resolve, commands exist, and generated references are current.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use url::Position;

use crate::{
    architecture::{crate_path, rust_files},
    harness::{generated_file, service::Service},
};

/// Returns all files below a folder, except installed and built ones.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let included = !name.starts_with('.') && !["target", "node_modules"].contains(&name);
        if path.is_dir() && included {
            paths.extend(files(&path));
        } else if path.is_file() {
            paths.push(path);
        }
    }
    paths
}

/// Returns all Markdown files below a folder.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let mut paths = files(folder);
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    paths
}

#[test]
fn links_between_documents_resolve() {
    let mut links = 0;
    for path in documents(&crate_path("../..").canonicalize().unwrap()) {
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

/// Every `just RECIPE` is in the justfile, and every `just prove NAME` in the table of proofs. Code has them in its comments.
#[test]
fn recipes_and_proofs_exist() {
    let root = crate_path("../..").canonicalize().unwrap();
    let justfile = fs::read_to_string(root.join("justfile")).unwrap();
    let table = fs::read_to_string(root.join("tools/proofs.toml")).unwrap();
    let declarations = justfile.lines().filter(|line| !line.contains(":="));
    let recipes = declarations.filter_map(|line| line.split_once(':')?.0.split(' ').next());
    let headings = table
        .lines()
        .filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
    let proofs = headings.filter_map(|heading| Some(heading.split_once('.')?.1));
    let (recipes, proofs): (BTreeSet<&str>, BTreeSet<&str>) = (recipes.collect(), proofs.collect());
    let (mut recipe_uses, mut proof_uses) = (0, 0);
    // The built console has "just now".
    let paths = files(&root).into_iter();
    for path in paths.filter(|path| !path.starts_with(root.join("console"))) {
        // A picture is not text.
        let text = fs::read_to_string(&path).unwrap_or_default();
        let commands = ["`just ", "$ just "].map(|start| text.split(start).skip(1));
        for command in commands.into_iter().flatten() {
            let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            let mut words = command.split(|c: char| !is_part(c));
            let is_name = |word: &&str| !word.is_empty() && !word.starts_with('-');
            let Some(recipe) = words.next().filter(is_name) else {
                continue;
            };
            assert!(
                recipes.contains(recipe),
                "{}: just {recipe}",
                path.display()
            );
            recipe_uses += 1;
            if let Some(proof) = words.next().filter(is_name).filter(|_| recipe == "prove") {
                assert!(
                    proofs.contains(proof),
                    "{}: just prove {proof}",
                    path.display()
                );
                proof_uses += 1;
            }
        }
    }
    assert!(
        recipe_uses > 100 && proof_uses > 50,
        "{recipe_uses}, {proof_uses}"
    );
}

/// `just reference` writes the document.
#[test]
fn command_reference_is_current() {
    let generated = perennial::commands::command_reference();
    generated_file::assert_current("docs/reference/commands.md", &generated);
}

#[test]
fn every_document_is_listed_for_serving() {
    let pages = perennial::docs_site::pages::PAGES.iter();
    let served: Vec<&str> = pages.map(|(path, _)| *path).collect();
    let folder = crate_path("../../docs").canonicalize().unwrap();
    for path in documents(&folder) {
        let path = path.strip_prefix(&folder).unwrap().with_extension("");
        let path = path.to_str().unwrap();
        assert!(served.contains(&path), "docs/{path}.md is not served");
    }
}

/// Mermaid source is for GitHub; the site shows the committed image. Pictures are served too, in light and dark.
#[tokio::test]
async fn served_pages_show_diagrams_and_pictures_as_images() {
    let service = Service::start().await;
    let (mut images, mut pictures) = (0, 0);
    for (path, _) in perennial::docs_site::pages::PAGES {
        let page = service.anonymous().get(&format!("/docs/{path}")).await;
        assert_eq!(page.status, 200, "{path}");
        assert!(!page.text.contains("mermaid"), "{path}");
        for source in page.text.split("<img src=\"").skip(1) {
            let source = source.split('"').next().unwrap();
            if source.starts_with("pictures/") {
                continue;
            }
            let image = service.anonymous().get(source).await;
            assert_eq!(image.header("content-type"), "image/svg+xml", "{source}");
            images += 1;
        }
        for source in page.text.split("\"pictures/").skip(1) {
            let source = format!("/docs/pictures/{}", source.split('"').next().unwrap());
            let picture = service.anonymous().get(&source).await;
            assert_eq!(picture.header("content-type"), "image/webp", "{source}");
            pictures += 1;
        }
    }
    assert!(images > 0 && pictures > 0, "{images}, {pictures}");
}

/// Follows all links and checks their anchors.
#[tokio::test]
async fn links_between_served_pages_resolve() {
    let service = Service::start_in_process().await;
    let api = service.anonymous();
    let base = reqwest::Url::parse(&service.server.app.public_url).unwrap();
    let mut queue = vec![base.join("/docs/contents").unwrap()];
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let mut links = 0;
    let mut anchors = Vec::new();
    while let Some(url) = queue.pop() {
        if seen.contains_key(url.path()) {
            continue;
        }
        let response = api
            .get(&url[Position::BeforePath..Position::AfterQuery])
            .await;
        assert_eq!(response.status, 200, "{url}");
        // Links in code are examples.
        let text = response.text.replace("&lt;a href=\"", "");
        let is_document = url.path().starts_with("/docs/");
        for link in text.split("href=\"").skip(1).filter(|_| is_document) {
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
            queue.push(target);
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
    // A problem's `type` is one of the pages.
    let problem: serde_json::Value = api.get("/nowhere").await.json();
    let page = problem["type"].as_str().unwrap().to_owned();
    let path = reqwest::Url::parse(&page).unwrap().path().to_owned();
    assert!(seen.contains_key(&path), "{page}");
}

/// An unknown endpoint returns a problem instead.
#[tokio::test]
async fn unknown_page_links_to_the_contents() {
    let service = Service::start_in_process().await;
    for path in ["/docs/nope", "/docs/errors/nope", "/docs/runbooks/nope.md"] {
        let page = service.anonymous().get(path).await;
        assert_eq!(page.status, 404);
        assert!(page.header("content-type").starts_with("text/html"));
        assert!(page.text.contains("href=\"/docs/contents\""), "{path}");
    }
    let elsewhere = service.anonymous().get("/nope").await;
    assert_eq!(elsewhere.problem(), "not_found");
}

/// Each has a HELP text and a row in the reference.
#[test]
fn every_metric_is_documented() {
    let reference = crate_path("../../docs/reference/logs-and-metrics.md");
    let reference = fs::read_to_string(reference).unwrap();
    let admin = [
        "src/admin.rs",
        "src/admin/event_metrics.rs",
        "src/admin/payment_metrics.rs",
    ];
    let admin = admin.map(|file| fs::read_to_string(crate_path(file)).unwrap());
    let admin = admin.concat();
    let mut metrics = BTreeSet::new();
    for path in rust_files(&crate_path("src")) {
        let text = fs::read_to_string(path).unwrap();
        for kind in ["counter", "gauge", "histogram"] {
            let start = format!("metrics::{kind}!(");
            let uses = text.split(&start).skip(1);
            metrics.extend(uses.map(|usage| usage.split('"').nth(1).unwrap().to_owned()));
        }
    }
    for metric in &metrics {
        assert!(reference.contains(&format!("`{metric}`")), "{metric}");
        let described = admin.split("metrics::describe_").skip(1);
        let mut described = described.filter_map(|description| description.split('"').nth(1));
        assert!(described.any(|name| name == metric), "{metric}");
    }
    assert!(metrics.len() > 10, "{metrics:?}");
}

/// The decision record has a line for every dependency.
#[test]
fn every_dependency_is_documented() {
    let documented =
        fs::read_to_string(crate_path("../../docs/decisions/0007-dependencies.md")).unwrap();
    for manifest in ["Cargo.toml", "../domain/Cargo.toml"] {
        let text = fs::read_to_string(crate_path(manifest)).unwrap();
        let dependencies = text.split("ependencies]").skip(1);
        for line in dependencies.flat_map(|section| section.split("\n[").next().unwrap().lines()) {
            let name = line.split(['=', '.', ' ']).next().unwrap();
            if name.is_empty() || name.starts_with('#') || name.starts_with("perennial") {
                continue;
            }
            let listed = documented
                .split(|c: char| !c.is_alphanumeric() && !"-_".contains(c))
                .any(|word| word == name);
            assert!(
                listed,
                "{name} has no line in docs/decisions/0007-dependencies.md"
            );
        }
    }
}
