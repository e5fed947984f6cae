//! Embeds files in the binary: writes `$OUT_DIR/migrations.rs`, which `src/db/migrate.rs` includes,
//! `$OUT_DIR/docs_pages.rs`, `$OUT_DIR/docs_diagrams.rs` and `$OUT_DIR/docs_pictures.rs`, which `src/docs_site/` includes, and
//! `$OUT_DIR/error_pages.rs`, which `src/http/problem/sample.rs` includes, and `$OUT_DIR/web_app_files.rs`,
//! which `src/console/web_app.rs` includes. Sets `VERSION_AND_COMMIT`,
//! which `perennial --version` prints.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::Command,
};

use flate2::{Compression, bufread::GzEncoder};
use sha2::{Digest as _, Sha256};

const MIGRATIONS: &str = "../../migrations";
const DOCS: &str = "../../docs";
/// The files of the console's web app.
const WEB_APP: &str = "../../console/dist";
/// `git archive` writes the commit into this file (`.gitattributes`).
const ARCHIVE_COMMIT: &str = "commit.txt";
/// The number of digits of the commit that `perennial --version` shows.
const COMMIT_DIGITS: usize = 12;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={MIGRATIONS}");
    println!("cargo::rerun-if-changed={DOCS}");
    println!("cargo::rerun-if-changed={WEB_APP}");
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let output = PathBuf::from(env::var("OUT_DIR")?);
    let docs = Path::new(DOCS);
    let migrations = migrations(Path::new(MIGRATIONS))?;
    fs::write(output.join("migrations.rs"), migrations)?;
    let pages = files(docs, "md", "include_str")?;
    fs::write(output.join("docs_pages.rs"), pages)?;
    let errors = files(&docs.join("errors"), "md", "include_str")?;
    fs::write(output.join("error_pages.rs"), errors)?;
    let diagrams = files(&docs.join("diagrams"), "svg", "include_str")?;
    fs::write(output.join("docs_diagrams.rs"), diagrams)?;
    let pictures = files(&docs.join("pictures"), "webp", "include_bytes")?;
    fs::write(output.join("docs_pictures.rs"), pictures)?;
    if env::var_os("CARGO_FEATURE_CONSOLE").is_some() {
        let web_app = web_app_files(Path::new(WEB_APP), &output.join("web_app"))?;
        fs::write(output.join("web_app_files.rs"), web_app)?;
    }
    let version = env::var("CARGO_PKG_VERSION")?;
    let commit = commit(&root).unwrap_or_else(|| "commit unknown".to_owned());
    println!("cargo::rustc-env=VERSION_AND_COMMIT={version} ({commit})");
    Ok(())
}

/// Returns the commit that is built: `BUILD_COMMIT` if it is set, else the commit of a source archive, else,
/// in the release profile, the commit of the Git checkout. Other profiles do not ask Git, because every
/// commit would compile the crate again.
fn commit(root: &Path) -> Option<String> {
    println!("cargo::rerun-if-env-changed=BUILD_COMMIT");
    let given = env::var("BUILD_COMMIT").ok();
    let archived = fs::read_to_string(root.join(ARCHIVE_COMMIT)).ok();
    if archived.is_some() {
        // Cargo would run the script every time for a file that is missing.
        println!("cargo::rerun-if-changed={ARCHIVE_COMMIT}");
    }
    let hash = given
        .and_then(|text| parse_commit(&text))
        .or_else(|| parse_commit(&archived?));
    if hash.is_some() {
        return hash;
    }
    if env::var("PROFILE").ok()? != "release" {
        return Some("development build".to_owned());
    }
    let hash = parse_commit(&git(root, &["rev-parse", "HEAD"])?)?;
    // The files that change with every commit, switch and pull.
    for path in ["HEAD", "logs/HEAD"] {
        let path = root.join(git(root, &["rev-parse", "--git-path", path])?.trim());
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let changes = git(root, &["status", "--porcelain"])?;
    let suffix = if changes.is_empty() { "" } else { ", modified" };
    Some(format!("{hash}{suffix}"))
}

/// Returns the first digits of a commit hash, or nothing if the text is not one, such as the placeholder
/// that `git archive` replaces.
fn parse_commit(text: &str) -> Option<String> {
    let text = text.trim();
    let is_hash = text.chars().all(|digit| digit.is_ascii_hexdigit());
    Some(text.get(..COMMIT_DIGITS)?.to_owned()).filter(|_| is_hash)
}

/// Returns the standard output of a Git command, or nothing if it fails or Git is not installed.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root)
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// Returns a Rust expression that embeds a file with this macro, given its path relative to this crate. The expression does not
/// contain the crate's own path: the hash of the crate, and so its debug information, would depend on that.
fn include(include: &str, path: &Path) -> Result<String, Box<dyn Error>> {
    let path = path.to_str().ok_or("the path is not UTF-8")?;
    Ok(format!(
        "{include}!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/\", {path:?}))"
    ))
}

/// Compresses the files of the console's web app into a folder, and returns a Rust expression that lists them.
fn web_app_files(dist: &Path, compressed: &Path) -> Result<String, Box<dyn Error>> {
    fs::create_dir_all(compressed)?;
    let mut list = "&[\n".to_owned();
    for (index, path) in paths_below(dist)?.iter().enumerate() {
        let content_type = match path.extension().and_then(|extension| extension.to_str()) {
            Some("css") => "text/css; charset=utf-8",
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("woff2") => "font/woff2",
            _ => return Err(format!("no content type for {}", path.display()).into()),
        };
        let plain = fs::read(path)?;
        let mut gzip = Vec::new();
        GzEncoder::new(&*plain, Compression::best()).read_to_end(&mut gzip)?;
        fs::write(compressed.join(index.to_string()), gzip)?;
        let mut sha256 = String::new();
        for byte in Sha256::digest(&plain) {
            write!(sha256, "{byte:02x}")?;
        }
        let path = path.strip_prefix(dist)?;
        let path = path.to_str().ok_or("the path is not UTF-8")?;
        writeln!(
            list,
            "WebAppFile {{ path: {path:?}, content_type: {content_type:?}, sha256: {sha256:?}, \
             gzip: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/web_app/{index}\")) }},"
        )?;
    }
    list.push(']');
    Ok(list)
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
        let text = include("include_str", &folder.join(format!("{name}.sql")))?;
        writeln!(
            list,
            "Migration {{ version: {version}, name: {name:?}, text: {text} }},"
        )?;
    }
    list.push(']');
    Ok(list)
}

/// Returns a Rust expression that lists all files below a folder that have this extension, each as its
/// path without the extension and its content, which a macro embeds: `include_str` or `include_bytes`.
fn files(folder: &Path, extension: &str, embed: &str) -> Result<String, Box<dyn Error>> {
    let mut list = "&[\n".to_owned();
    for path in paths_below(folder)? {
        if path.extension().is_none_or(|found| found != extension) {
            continue;
        }
        let name = path.strip_prefix(folder)?.with_extension("");
        let name = name.to_str().ok_or("the path is not UTF-8")?;
        writeln!(list, "({name:?}, {}),", include(embed, &path)?)?;
    }
    list.push(']');
    Ok(list)
}

/// Returns all files below a folder, sorted.
fn paths_below(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut paths = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                paths.push(path);
            }
        }
    }
    paths.sort();
    Ok(paths)
}
