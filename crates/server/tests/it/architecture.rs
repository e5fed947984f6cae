//! The house stays as it was drawn: imports run down only, files fit in the head, and the domain
//! stays pure.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The rooms of the server from top to bottom; a room may use what stands below it, and its equals
/// only if it is itself. ARCHITECTURE.md shows the same picture.
const LAYERS: &[&[&str]] = &[
    &["main"],
    &["commands"],
    &["router", "work", "admin"],
    &["authentication"],
    &["subscription_payments", "entitlements"],
    &["subscriptions"],
    &["subscription_plans", "users"],
    &["app"],
    &["providers"],
    &["callers"],
    &["events"],
    &["http"],
    &["db"],
    &["logging", "keys"],
    &["config"],
    &["clock"],
    &["randomness"],
];

pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

pub fn source(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// Which room a path inside `src/` belongs to.
fn room(path: &Path) -> String {
    let relative = path.strip_prefix(source("src")).unwrap();
    let first = relative.components().next().unwrap();
    let name = first.as_os_str().to_str().unwrap();
    name.strip_suffix(".rs").unwrap_or(name).to_owned()
}

fn layer(room: &str) -> Option<usize> {
    LAYERS.iter().position(|rooms| rooms.contains(&room))
}

/// The rooms that a file names by `crate::room`, also inside `use crate::{…}`.
fn used_rooms(text: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        text.chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let mut rooms = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        let Some(group) = rest.strip_prefix('{') else {
            rooms.push(word(rest));
            continue;
        };
        let mut depth = 0_usize;
        let mut expecting = true;
        for (index, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => expecting = true,
                c if expecting && depth == 0 && c.is_alphabetic() => {
                    rooms.push(word(&group[index..]));
                    expecting = false;
                }
                _ => {}
            }
        }
    }
    rooms
}

#[test]
fn imports_run_down_only() {
    let mut wrong = Vec::new();
    for path in rust_files(&source("src")) {
        let own = room(&path);
        if own == "lib" {
            continue;
        }
        let own_layer = layer(&own).unwrap_or_else(|| panic!("{own} has no place in LAYERS"));
        for used in used_rooms(&fs::read_to_string(&path).unwrap()) {
            let used_layer =
                layer(&used).unwrap_or_else(|| panic!("{used} has no place in LAYERS"));
            if used != own && used_layer <= own_layer {
                wrong.push(format!("{} uses {used}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "upward imports:\n{}", wrong.join("\n"));
}

#[test]
fn used_rooms_are_found() {
    let text = "use crate::{\n a::{b, c},\n d,\n};\nuse crate::e;\nfn f() { crate::g::h() }";
    assert_eq!(used_rooms(text), ["a", "d", "e", "g"]);
}

/// `table.rs` knows the domain and the database, nothing of HTTP.
#[test]
fn tables_know_only_domain_and_database() {
    for path in rust_files(&source("src")) {
        if path.file_name().unwrap() == "table.rs" {
            for used in used_rooms(&fs::read_to_string(&path).unwrap()) {
                assert_eq!(used, "db", "{}", path.display());
            }
        }
    }
}

#[test]
fn the_domain_is_pure() {
    let manifest = fs::read_to_string(source("../domain/Cargo.toml")).unwrap();
    let dependencies = manifest.split("[dependencies]").nth(1).unwrap();
    for outside in ["tokio", "axum", "postgres", "reqwest", "rand", "hyper"] {
        assert!(
            !dependencies.contains(outside),
            "the domain depends on {outside}"
        );
    }
}

#[test]
fn every_module_opens_with_an_essay_and_fits_in_the_head() {
    for path in rust_files(&source("src"))
        .into_iter()
        .chain(rust_files(&source("../domain/src")))
    {
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("//! "),
            "{} says nothing of itself",
            path.display()
        );
        let lines = text.lines().count();
        assert!(
            lines <= 400,
            "{} has {lines} lines: is it one thing?",
            path.display()
        );
    }
}
