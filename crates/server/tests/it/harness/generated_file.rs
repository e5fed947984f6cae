//! Files of the repository that are generated from the code. `just reference` writes them.

use std::fs;

use crate::architecture::crate_path;

/// Returns the text of a file of the repository, or an empty one if there is none.
pub fn read(path: &str) -> String {
    fs::read_to_string(crate_path("../..").join(path)).unwrap_or_default()
}

/// Asserts that the file has this text, or writes it if `UPDATE_REFERENCE` is set.
pub fn assert_current(path: &str, generated: &str) {
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        fs::write(crate_path("../..").join(path), generated).unwrap();
    }
    assert!(
        read(path) == generated,
        "{path} is outdated; run `just reference` and review the difference"
    );
}
