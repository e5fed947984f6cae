//! What packages are made from: the version, the manual pages and the completions of the binary.

use std::{collections::BTreeSet, fs};

use crate::harness::{
    process::{Variables, run_ok},
    unique_name,
};

#[test]
fn version_names_the_release_and_the_commit() {
    let output = run_ok(&Variables::new(), &["--version"]);
    let version = concat!("perennial ", env!("CARGO_PKG_VERSION"), " (");
    let build = output.trim().strip_prefix(version).unwrap();
    let build = build.strip_suffix(')').unwrap();
    let hash = build.split(',').next().unwrap();
    let is_hash = hash.len() == 12 && hash.chars().all(|digit| digit.is_ascii_hexdigit());
    // The tests run a development build; source archives and releases contain the commit.
    assert!(is_hash || build == "development build", "{output}");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = std::env::temp_dir().join(unique_name("perennial-man-pages-"));
    run_ok(&Variables::new(), &["man-pages", folder.to_str().unwrap()]);
    let entries = fs::read_dir(&folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages: BTreeSet<String> = names.collect();
    let reference = perennial::commands::command_reference();
    let headings = reference.lines().filter(|line| line.starts_with("##"));
    let commands = headings.map(|line| line.trim_start_matches('#').trim());
    let mut expected: BTreeSet<String> = commands
        .map(|command| format!("{}.1", command.replace(' ', "-")))
        .collect();
    expected.insert("perennial.1".to_owned());
    assert_eq!(pages, expected);
    let page = fs::read_to_string(folder.join("perennial-client-create.1")).unwrap();
    assert!(page.contains("perennial client create"), "{page}");
    assert!(page.contains("allow\\-address"), "{page}");
    fs::remove_dir_all(folder).unwrap();
}
