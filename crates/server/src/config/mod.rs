//! Configuration: environment variables, read once at start.
//!
//! One section per file; every key is declared and documented there, and nowhere else. All
//! mistakes are reported at once, a misspelt key among them. What a section holds is plain data.

use anyhow::bail;

mod database;
mod http;
mod key;
mod keys;
mod limits;
mod log;
mod mode;
mod work;

pub use database::Database;
pub use http::{Http, network};
pub use key::{Key, Origin, Reader, Setting};
pub use keys::{Keys, MasterKey};
pub use limits::Limits;
pub use log::{Format, Log, Traces};
pub use mode::Mode;
pub use work::Work;

/// All sections with their titles, in the order of the reference.
pub static SECTIONS: &[(&str, &[&Key])] = &[
    ("Mode", mode::KEYS),
    ("Database", database::KEYS),
    ("HTTP", http::KEYS),
    ("Limits", limits::KEYS),
    ("Keys", keys::KEYS),
    ("Background work", work::KEYS),
    ("Logs and traces", log::KEYS),
];

/// Everything that an operator can set.
#[derive(Debug, Clone)]
pub struct Config {
    /// Live or sandbox.
    pub mode: Mode,
    /// Where the data is.
    pub database: Database,
    /// Where we listen.
    pub http: Http,
    /// How much of everything one caller may have.
    pub limits: Limits,
    /// Where the master key is.
    pub keys: Keys,
    /// Background work.
    pub work: Work,
    /// What is logged.
    pub log: Log,
}

impl Config {
    /// Reads the process's environment; an error lists all that is wrong.
    pub fn from_environment() -> anyhow::Result<Self> {
        let mut reader = Reader::of_environment();
        let config = Self::read(&mut reader);
        all_right(config, &reader)
    }

    /// Reads all sections; what is wrong, and what was read, is then in `reader`.
    pub fn read(reader: &mut Reader) -> Option<Self> {
        let (mode, storage) = Storage::read(reader);
        let http = Http::read(reader, mode);
        let limits = Limits::read(reader);
        let keys = Keys::read(reader, mode);
        let work = Work::read(reader);
        let Storage {
            mode,
            database,
            log,
        } = storage?;
        Some(Self {
            mode,
            database,
            http: http?,
            limits: limits?,
            keys: keys?,
            work: work?,
            log,
        })
    }
}

/// What a command needs that works on the data and serves nobody.
#[derive(Debug, Clone)]
pub struct Storage {
    /// Live or sandbox.
    pub mode: Mode,
    /// Where the data is.
    pub database: Database,
    /// What is logged.
    pub log: Log,
}

impl Storage {
    /// Reads the process's environment; an error lists all that is wrong.
    pub fn from_environment() -> anyhow::Result<Self> {
        let mut reader = Reader::of_environment();
        let (_, storage) = Self::read(&mut reader);
        all_right(storage, &reader)
    }

    /// The master key that a command needs beside this, in the mode that the database is of.
    pub fn keys_from_environment(mode: Mode) -> anyhow::Result<Keys> {
        let mut reader = Reader::of_environment();
        let keys = Keys::read(&mut reader, Some(mode));
        all_right(keys, &reader)
    }

    /// Also answers the mode by itself: what else is wrong must not hide what depends on it.
    fn read(reader: &mut Reader) -> (Option<Mode>, Option<Self>) {
        let known: Vec<&Key> = SECTIONS
            .iter()
            .flat_map(|(_, keys)| keys.iter().copied())
            .collect();
        reader.refuse_unknown(&known);
        let mode = reader.value(&mode::MODE);
        let database = Database::read(reader);
        let log = Log::read(reader);
        let storage = || {
            Some(Self {
                mode: mode?,
                database: database?,
                log: log?,
            })
        };
        (mode, storage())
    }
}

fn all_right<T>(read: Option<T>, reader: &Reader) -> anyhow::Result<T> {
    match (read, reader.errors.as_slice()) {
        (Some(read), []) => Ok(read),
        (_, errors) => bail!("the configuration is not right:\n  {}", errors.join("\n  ")),
    }
}

/// The reference of all keys, in Markdown: what `docs/configuration.md` holds.
pub fn reference() -> String {
    let mut page = String::from(
        "# Configuration\n\n\
         Everything is set by environment variables, read once at start. `perennial config show` \
         prints each value and where it came from; `perennial config check` says what is wrong. A \
         key marked *secret* is never shown (of a database's address, its password) and can also be given as `NAME_FILE`, the path of a \
         file that holds the value.\n\n\
         This page is made from the code by `just reference`.\n",
    );
    for (title, keys) in SECTIONS {
        page += &format!("\n## {title}\n");
        for key in *keys {
            let default = match key.default {
                Some("") => " (default: empty)".to_owned(),
                Some(default) => format!(" (default: `{default}`)"),
                None => String::new(),
            };
            let secret = if key.secret { " *secret*" } else { "" };
            let heading = format!("`{}`{default}{secret}", key.name);
            page += &format!("\n### {heading}\n\n{}\n", key.doc);
        }
    }
    page
}
