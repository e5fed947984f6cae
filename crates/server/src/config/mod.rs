//! Configuration: environment variables, read once at startup.
//!
//! Each section is a file that declares and documents its variables. All errors are reported
//! together, including misspelled variable names.

use anyhow::bail;
use secrecy::SecretString;

mod console_settings;
mod database;
mod env;
mod limits;
mod listen;
mod log_settings;
mod master_key;
mod mode;
mod payment_settings;
mod relay_target;
mod webhook_settings;
mod workers;

pub use console_settings::{ConsoleAccess, ConsoleConfig, ConsoleSignInConfig};
pub use database::DatabaseConfig;
pub use env::{EnvReader, EnvVar, Origin, Setting};
pub use limits::LimitsConfig;
pub use listen::{DocsAccess, HttpConfig, parse_network};
pub use log_settings::{LogConfig, LogFormat, OtlpConfig};
pub use master_key::{MasterKey, MasterKeySource, MasterKeys};
pub use mode::Mode;
pub use payment_settings::PaymentApisConfig;
pub use webhook_settings::WebhooksConfig;
pub use workers::WorkersConfig;

/// All sections with their titles, in the order of the reference.
static SECTIONS: &[(&str, &[&EnvVar])] = &[
    ("Mode", mode::VARIABLES),
    ("Database", database::VARIABLES),
    ("HTTP", listen::VARIABLES),
    ("Console", console_settings::VARIABLES),
    ("Limits", limits::VARIABLES),
    ("Keys", master_key::VARIABLES),
    ("Background work", workers::VARIABLES),
    ("Event relay", relay_target::VARIABLES),
    ("Webhooks", webhook_settings::VARIABLES),
    ("Payment providers", payment_settings::VARIABLES),
    ("Logs and traces", log_settings::VARIABLES),
];

/// The complete configuration.
#[derive(Debug, Clone)]
pub struct Config {
    pub mode: Mode,
    pub database: DatabaseConfig,
    pub http: HttpConfig,
    pub console: ConsoleConfig,
    pub limits: LimitsConfig,
    pub master_key: MasterKeySource,
    pub work: WorkersConfig,
    /// The servers of `perennial relay`.
    pub relay_to: Option<SecretString>,
    pub webhooks: WebhooksConfig,
    pub payment_apis: PaymentApisConfig,
    pub log: LogConfig,
}

impl Config {
    /// Reads the environment of this process. The error lists everything that is invalid.
    pub fn from_env() -> anyhow::Result<Self> {
        let mut reader = EnvReader::from_env();
        let config = Self::read(&mut reader);
        finish(config, &reader)
    }

    /// Reads all sections. The reader then has all settings and errors.
    pub fn read(reader: &mut EnvReader) -> Option<Self> {
        let (mode, storage) = StorageConfig::read(reader);
        let http = HttpConfig::read(reader, mode);
        let console = ConsoleConfig::read(reader, mode, http.as_ref());
        let limits = LimitsConfig::read(reader);
        let master_key = MasterKeySource::read(reader, mode);
        let work = WorkersConfig::read(reader);
        let relay_to = relay_target::read(reader);
        let webhooks = WebhooksConfig::read(reader);
        let payment_apis = PaymentApisConfig::read(reader);
        let StorageConfig {
            mode,
            database,
            log,
        } = storage?;
        Some(Self {
            mode,
            database,
            http: http?,
            console: console?,
            limits: limits?,
            master_key: master_key?,
            work: work?,
            relay_to,
            webhooks: webhooks?,
            payment_apis: payment_apis?,
            log,
        })
    }
}

/// The part of the configuration that commands need to access the database.
#[derive(Debug, Clone)]
pub struct StorageConfig {
    pub mode: Mode,
    pub database: DatabaseConfig,
    pub log: LogConfig,
}

impl StorageConfig {
    /// Reads the environment of this process. The error lists everything that is invalid.
    pub fn from_env() -> anyhow::Result<Self> {
        let mut reader = EnvReader::from_env();
        let (_, storage) = Self::read(&mut reader);
        finish(storage, &reader)
    }

    /// Reads the source of the master keys. `mode` is the mode stored in the database.
    pub fn master_key_from_env(mode: Mode) -> anyhow::Result<MasterKeySource> {
        let mut reader = EnvReader::from_env();
        let master_key = MasterKeySource::read(&mut reader, Some(mode));
        finish(master_key, &reader)
    }

    /// Reads the URL at which staff members reach the console. `mode` is the mode stored in the database.
    pub fn console_url_from_env(mode: Mode) -> anyhow::Result<String> {
        let mut reader = EnvReader::from_env();
        let http = HttpConfig::read(&mut reader, Some(mode));
        let console = ConsoleConfig::read(&mut reader, Some(mode), http.as_ref());
        finish(console.map(|console| console.url), &reader)
    }

    /// Reads which networks webhook requests may reach.
    pub fn webhooks_from_env() -> anyhow::Result<WebhooksConfig> {
        let mut reader = EnvReader::from_env();
        let webhooks = WebhooksConfig::read(&mut reader);
        finish(webhooks, &reader)
    }

    /// Reads this part. Returns the mode separately too, because other sections depend on it even if
    /// this part has errors.
    fn read(reader: &mut EnvReader) -> (Option<Mode>, Option<Self>) {
        let known: Vec<&EnvVar> = SECTIONS
            .iter()
            .flat_map(|(_, variables)| variables.iter().copied())
            .collect();
        reader.reject_unknown(&known);
        let mode = reader.parse(&mode::MODE);
        let database = DatabaseConfig::read(reader);
        let log = LogConfig::read(reader);
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

/// Returns the configuration, or an error that lists all errors of the reader.
fn finish<T>(config: Option<T>, reader: &EnvReader) -> anyhow::Result<T> {
    match (config, reader.errors.as_slice()) {
        (Some(config), []) => Ok(config),
        (_, errors) => bail!("invalid configuration:\n  {}", errors.join("\n  ")),
    }
}

/// Returns the configuration reference in Markdown, which is `docs/reference/configuration.md`.
pub fn reference() -> String {
    let mut page = String::from(
        "# Configuration\n\n\
         Perennial is configured by environment variables, which are read once at startup. `perennial config \
         show` prints each value and its origin; `perennial config check` prints all errors.\n\n\
         `config show` never prints a variable that is marked *secret*; of a database URL, it hides the \
         password. You can also store a secret in a file and set `NAME_FILE` to its path.\n\n\
         This page is generated from the code by `just reference`.\n",
    );
    for (title, variables) in SECTIONS {
        page += &format!("\n## {title}\n");
        for variable in *variables {
            let default = match variable.default {
                Some("") => " (default: empty)".to_owned(),
                Some(default) => format!(" (default: `{default}`)"),
                None => String::new(),
            };
            let secret = if variable.secret { " *secret*" } else { "" };
            let name = variable.name;
            page += &format!("\n### `{name}`{default}{secret}\n\n{}\n", variable.doc);
        }
    }
    page
}
