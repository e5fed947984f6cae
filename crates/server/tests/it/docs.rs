//! The documents are true as far as a test can tell.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::architecture::source;

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
