//! Live or sandbox.

use std::{fmt, str::FromStr};

use super::key::Key;

pub(super) static MODE: Key = Key {
    name: "PERENNIAL_MODE",
    doc: "`live`, or `sandbox` for trying things out: there a master key is made by itself and \
          well-known client ids such as `DEMO` can be made (`perennial client create --id`). The mode is stamped into the database \
          when it is first set up; a database of one mode is refused by the other.",
    default: Some("live"),
    secret: false,
};

/// The keys of this section.
pub static KEYS: &[&Key] = &[&MODE];

/// Whether real users and money are at stake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They are.
    Live,
    /// They are not.
    Sandbox,
}

impl Mode {
    /// The word that is stamped into the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Sandbox => "sandbox",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "live" => Ok(Self::Live),
            "sandbox" => Ok(Self::Sandbox),
            _ => Err("expected live or sandbox".to_owned()),
        }
    }
}
