//! Database connections.

use std::collections::BTreeMap;

use secrecy::SecretString;

use super::env::{EnvReader, EnvVar};

static URL: EnvVar = EnvVar {
    name: "DATABASE_URL",
    doc: "URL of the home database (PostgreSQL 15 or newer): \
          `postgres://user:password@host:5432/name`. It stores all tenants and clients, and the data of \
          every tenant that is not in another cell. `sslmode` is `disable`, `prefer` (the default), \
          `require`, `verify-ca` or `verify-full`, as with `psql`. `sslrootcert` is the path of a file with \
          root certificates that replace those of the operating system.",
    default: None,
    secret: true,
};

static CELLS: EnvVar = EnvVar {
    name: "PERENNIAL_CELLS",
    doc: "Additional databases (cells), as `name=url` separated by white space. The data of a tenant \
          created with `perennial tenant create --cell name` is stored there. Most installations have \
          none.",
    default: Some(""),
    secret: true,
};

static POOL: EnvVar = EnvVar {
    name: "PERENNIAL_DATABASE_POOL",
    doc: "Size of the connection pool per database, from 1 to 500. The pool is used for writes, lists \
          and transactions. One more connection per database receives notifications. Concurrent commits \
          share disk flushes, so a larger pool increases write throughput. With the default, two \
          instances on machines of up to 12 cores, as during an upgrade, stay below PostgreSQL's default \
          limit of 100 connections.",
    default: Some("32"),
    secret: false,
};

static LANES: EnvVar = EnvVar {
    name: "PERENNIAL_DATABASE_LANES",
    doc: "Number of pipelined connections per database, from 1 to 64. They are shared by all reads of a \
          single record by key, in addition to the pool. Default: the number of CPU cores, at least 2. \
          More connections make smaller batches and reduce throughput.",
    default: None,
    secret: false,
};

pub static VARIABLES: &[&EnvVar] = &[&URL, &CELLS, &POOL, &LANES];

#[derive(Debug, Clone)]
pub struct DatabaseConfig {
    /// The home database.
    pub url: SecretString,
    /// The URLs of the other cells by name.
    pub cells: BTreeMap<String, SecretString>,
    /// Connections per cell for writes, lists and transactions.
    pub pool: usize,
    /// Pipelined connections per cell for reads by key.
    pub pipelined: usize,
}

impl DatabaseConfig {
    pub(super) fn read(reader: &mut EnvReader) -> Option<Self> {
        let url = reader.get(&URL);
        if url.is_none() {
            reader.push_error(
                &URL,
                "must be set, for example to postgres://postgres@127.0.0.1:5432/perennial",
            );
        }
        let cells = reader.get(&CELLS).unwrap_or_default();
        let cells: Option<BTreeMap<_, _>> = cells
            .split_whitespace()
            .map(|cell| cell.split_once('=').filter(|(name, _)| is_cell_name(name)))
            .map(|cell| cell.map(|(name, url)| (name.to_owned(), SecretString::from(url))))
            .collect();
        if cells.is_none() {
            reader.push_error(
                &CELLS,
                "must be name=url pairs separated by white space; a name can contain lowercase \
                 letters, digits and \"-\", and cannot be \"home\"",
            );
        }
        let pool = reader.integer(&POOL, 1..=500);
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let pipelined = reader.integer(&LANES, 1..=64);
        let default_pipelined = cores.clamp(2, 64);
        reader.set_default(&LANES, default_pipelined);
        Some(Self {
            url: url?.into(),
            cells: cells?,
            pool: pool?,
            pipelined: pipelined.unwrap_or(default_pipelined),
        })
    }
}

fn is_cell_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !name.is_empty() && name != "home" && name.bytes().all(allowed)
}
