//! Where the data is.

use std::collections::BTreeMap;

use secrecy::SecretString;

use super::key::{Key, Reader};

static URL: Key = Key {
    name: "DATABASE_URL",
    doc: "The PostgreSQL database (15 or newer) that holds the directory of tenants and clients, \
          and the data of every tenant that is not in another cell: \
          `postgres://user:password@host:5432/name`. `sslmode` is `disable`, `prefer` (the default), \
          `require`, `verify-ca` or `verify-full`, as with `psql`; `sslrootcert` names a file of \
          certificates to trust instead of the machine's own.",
    default: None,
    secret: true,
};

static CELLS: Key = Key {
    name: "PERENNIAL_CELLS",
    doc: "Further databases, as `name=url` separated by white space. A tenant made with \
          `perennial tenant create --cell name` has its data there. Most installations have none.",
    default: Some(""),
    secret: true,
};

static POOL: Key = Key {
    name: "PERENNIAL_DATABASE_POOL",
    doc: "How many connections to each database carry writes, lists and transactions. One more \
          listens for what other instances say. Writes wait for the database's disk, and those that \
          wait at once share one wait, so more connections do more; the default is what lets two \
          instances on machines of up to a dozen cores, as there are during an upgrade, stay below \
          PostgreSQL's own default of 100.",
    default: Some("32"),
    secret: false,
};

static LANES: Key = Key {
    name: "PERENNIAL_DATABASE_LANES",
    doc: "How many further connections to each database are shared by all reads of one record by \
          its key. Default: as many as this machine has cores, at least 2. More lanes make smaller \
          batches, and so cost more than they bring.",
    default: None,
    secret: false,
};

/// The keys of this section.
pub static KEYS: &[&Key] = &[&URL, &CELLS, &POOL, &LANES];

/// Where the data is.
#[derive(Debug, Clone)]
pub struct Database {
    /// The home database.
    pub url: SecretString,
    /// The other cells, by name.
    pub cells: BTreeMap<String, SecretString>,
    /// Connections for writes, lists and transactions.
    pub pool: usize,
    /// Shared connections for reads by key.
    pub lanes: usize,
}

impl Database {
    pub(super) fn read(reader: &mut Reader) -> Option<Self> {
        let url = reader.text(&URL);
        if url.is_none() {
            reader.wrong(&URL, "is not set; give the database's address, such as postgres://postgres@127.0.0.1:5432/perennial");
        }
        let cells = reader.text(&CELLS).unwrap_or_default();
        let cells: Option<BTreeMap<_, _>> = cells
            .split_whitespace()
            .map(|cell| cell.split_once('=').filter(|(name, _)| is_cell_name(name)))
            .map(|cell| cell.map(|(name, url)| (name.to_owned(), SecretString::from(url))))
            .collect();
        if cells.is_none() {
            reader.wrong(&CELLS, "expected name=url, separated by white space; a name is made of small letters, digits and \"-\", and is not \"home\"");
        }
        let pool = reader.whole(&POOL, 1..=500);
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let lanes = reader.whole(&LANES, 1..=64);
        let lanes = lanes.unwrap_or(cores.clamp(2, 64));
        Some(Self {
            url: url?.into(),
            cells: cells?,
            pool: pool?,
            lanes,
        })
    }
}

fn is_cell_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !name.is_empty() && name != "home" && name.bytes().all(allowed)
}
