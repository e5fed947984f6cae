//! Embeds files in the binary: writes `$OUT_DIR/migrations.rs`, which `src/db/migrate.rs` includes,
//! `$OUT_DIR/docs_pages.rs` and `$OUT_DIR/docs_diagrams.rs`, which `src/docs_site/` includes, and
//! `$OUT_DIR/error_pages.rs`, which `src/http/problem/sample.rs` includes.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

const MIGRATIONS: &str = "../../migrations";
const DOCS: &str = "../../docs";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={MIGRATIONS}");
    println!("cargo::rerun-if-changed={DOCS}");
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let output = PathBuf::from(env::var("OUT_DIR")?);
    let docs = root.join(DOCS);
    let migrations = migrations(&root.join(MIGRATIONS))?;
    fs::write(output.join("migrations.rs"), migrations)?;
    fs::write(output.join("docs_pages.rs"), files(&docs, "md")?)?;
    let errors = files(&docs.join("errors"), "md")?;
    fs::write(output.join("error_pages.rs"), errors)?;
    let diagrams = files(&docs.join("diagrams"), "svg")?;
    fs::write(output.join("docs_diagrams.rs"), diagrams)?;
    Ok(())
}

/// Returns a Rust expression that lists all migrations in order. Fails unless the files are named
/// `0001_name.sql`, `0002_name.sql` and so on, without a gap.
fn migrations(folder: &Path) -> Result<String, Box<dyn Error>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let file_name = entry?.file_name().into_string();
        let file_name = file_name.map_err(|name| format!("{} is not UTF-8", name.display()))?;
        names.extend(file_name.strip_suffix(".sql").map(str::to_owned));
    }
    names.sort();
    let mut list = "&[\n".to_owned();
    for (version, name) in (1..).zip(&names) {
        if !name.starts_with(&format!("{version:04}_")) {
            return Err(format!("expected migration {version:04}, found {name}.sql").into());
        }
        let path = folder.join(format!("{name}.sql")).canonicalize()?;
        let path = path.to_str().ok_or("the path is not UTF-8")?;
        writeln!(
            list,
            "Migration {{ version: {version}, name: {name:?}, text: include_str!({path:?}) }},"
        )?;
    }
    list.push(']');
    Ok(list)
}

/// Returns a Rust expression that lists all files below a folder that have this extension, each as its
/// path without the extension and its text.
fn files(folder: &Path, extension: &str) -> Result<String, Box<dyn Error>> {
    let folder = folder.canonicalize()?;
    let mut paths = Vec::new();
    let mut folders = vec![folder.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let mut list = "&[\n".to_owned();
    for path in paths {
        let name = path.strip_prefix(&folder)?.with_extension("");
        let (name, path) = (name.to_str(), path.to_str());
        let (name, path) = name.zip(path).ok_or("the path is not UTF-8")?;
        writeln!(list, "({name:?}, include_str!({path:?})),")?;
    }
    list.push(']');
    Ok(list)
}
