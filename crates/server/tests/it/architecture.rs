//! Architecture rules: imports point downwards, files stay short, and the domain crate has no I/O.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The modules of the server crate from top to bottom. A module may use those in lower layers.
/// ARCHITECTURE.md shows the same list.
const LAYERS: &[&[&str]] = &[
    &["main"],
    &["commands"],
    &["relay"],
    &["router", "admin"],
    &["health"],
    &["work"],
    &["sandbox"],
    &["console"],
    &["reports"],
    &["user_export"],
    &["payment_accounts"],
    &["webhooks"],
    &["authentication"],
    &["timeline"],
    &["subscription_payments", "entitlements"],
    &["subscriptions"],
    &[
        "subscription_plans",
        "users",
        "clients",
        "tenant_providers",
        "payment_commands",
        "event_feed",
    ],
    &["record"],
    &["revenue_journal"],
    &["app"],
    &["identity_providers"],
    &["auth"],
    &["events"],
    &["docs_site"],
    &["http"],
    &["db"],
    &["logging", "crypto"],
    &["config"],
    &["clock"],
    &["randomness"],
];

/// Returns all Rust files below a folder.
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

/// Returns a path relative to the server crate.
pub fn crate_path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// Returns the top-level module of a file in `src/`.
fn module(path: &Path) -> String {
    let relative = path.strip_prefix(crate_path("src")).unwrap();
    let first = relative.components().next().unwrap();
    let name = first.as_os_str().to_str().unwrap();
    name.strip_suffix(".rs").unwrap_or(name).to_owned()
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

/// Returns the modules that a file names as `crate::module`, including those in `use crate::{…}`.
fn used_modules(text: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        text.chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let mut modules = Vec::new();
    // `pub(in crate::module)` restricts visibility and imports nothing.
    let text = text.replace("(in crate::", "(in ");
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        let Some(group) = rest.strip_prefix('{') else {
            modules.push(word(rest));
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
                    modules.push(word(&group[index..]));
                    expecting = false;
                }
                _ => {}
            }
        }
    }
    modules
}

#[test]
fn imports_point_downwards() {
    let mut violations = Vec::new();
    for path in rust_files(&crate_path("src")) {
        let own = module(&path);
        if own == "lib" {
            continue;
        }
        let own_layer = layer(&own).unwrap_or_else(|| panic!("{own} is not in LAYERS"));
        for used in used_modules(&fs::read_to_string(&path).unwrap()) {
            let used_layer = layer(&used).unwrap_or_else(|| panic!("{used} is not in LAYERS"));
            if used != own && used_layer <= own_layer {
                violations.push(format!("{} uses {used}", path.display()));
            }
        }
    }
    assert!(
        violations.is_empty(),
        "upward imports:\n{}",
        violations.join("\n")
    );
}

#[test]
fn used_modules_finds_grouped_imports() {
    let text = "use crate::{\n a::{b, c},\n d,\n};\nuse crate::e;\nfn f() { crate::g::h() }";
    assert_eq!(used_modules(text), ["a", "d", "e", "g"]);
}

/// A `table.rs` knows nothing of HTTP.
#[test]
fn table_modules_use_only_domain_and_database() {
    for path in rust_files(&crate_path("src")) {
        if path.file_name().unwrap() == "table.rs" {
            for used in used_modules(&fs::read_to_string(&path).unwrap()) {
                assert_eq!(used, "db", "{}", path.display());
            }
        }
    }
}

#[test]
fn domain_has_no_io_dependencies() {
    let manifest = fs::read_to_string(crate_path("../domain/Cargo.toml")).unwrap();
    let dependencies = manifest.split("[dependencies]").nth(1).unwrap();
    for outside in ["tokio", "axum", "postgres", "reqwest", "rand", "hyper"] {
        assert!(
            !dependencies.contains(outside),
            "the domain depends on {outside}"
        );
    }
}

#[test]
fn every_module_is_documented_and_under_400_lines() {
    for path in rust_files(&crate_path("src"))
        .into_iter()
        .chain(rust_files(&crate_path("../domain/src")))
    {
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("//! "),
            "{} has no module documentation",
            path.display()
        );
        let lines = text.lines().count();
        assert!(
            lines <= 400,
            "{} has {lines} lines; split it",
            path.display()
        );
    }
}
