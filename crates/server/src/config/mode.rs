//! Live or sandbox mode.

use super::env::EnvVar;

pub(super) static MODE: EnvVar = EnvVar {
    name: "PERENNIAL_MODE",
    doc: "`live` for production, `sandbox` for development and testing. Sandbox mode generates a master \
          key automatically and allows well-known client ids such as `DEMO` (`perennial client create \
          --id`). The mode is stored in each database at setup. The service does not start with a \
          database of the other mode.",
    default: Some("live"),
    secret: false,
};

pub static VARIABLES: &[&EnvVar] = &[&MODE];

perennial_domain::string_enum! {
    /// The mode of the service.
    pub enum Mode: "a mode" {
        /// For production: users and payments are real.
        Live = "live",
        /// For development and testing.
        Sandbox = "sandbox",
    }
}
