//! The console, and how staff members sign in.

use perennial_domain::StaffRole;
use secrecy::SecretString;
use url::Url;

use super::env::{EnvReader, EnvVar};

static CONSOLE: EnvVar = EnvVar {
    name: "PERENNIAL_CONSOLE",
    doc: "`on` to serve the console at `/console/` and accept the sessions of staff members, `off` to respond to `/console/` with \
          404 and refuse them.",
    default: Some("on"),
    secret: false,
};

static ISSUER: EnvVar = EnvVar {
    name: "PERENNIAL_CONSOLE_ISSUER",
    doc: "Issuer URL of the OpenID provider with which staff members sign in. Without it, they sign in with links only. See \
          [Give staff access](../how-to/give-staff-access.md).",
    default: None,
    secret: false,
};

static CLIENT_ID: EnvVar = EnvVar {
    name: "PERENNIAL_CONSOLE_CLIENT_ID",
    doc: "The client id of the console at the OpenID provider. Its redirect URL is `PERENNIAL_PUBLIC_URL` followed by \
          `/console/callback`. Required with `PERENNIAL_CONSOLE_ISSUER`.",
    default: None,
    secret: false,
};

static CLIENT_SECRET: EnvVar = EnvVar {
    name: "PERENNIAL_CONSOLE_CLIENT_SECRET",
    doc: "The client secret of the console at the OpenID provider, if it has one.",
    default: None,
    secret: true,
};

static SCOPES: EnvVar = EnvVar {
    name: "PERENNIAL_CONSOLE_SCOPES",
    doc: "The scopes that the console requests from the OpenID provider, separated by commas. Some providers need `groups` for \
          the claim `groups`.",
    default: Some("openid,email"),
    secret: false,
};

static GROUPS: EnvVar = EnvVar {
    name: "PERENNIAL_CONSOLE_GROUPS",
    doc: "Groups whose members can sign in without an invitation, and their roles, separated by commas: \
          `billing-admins=admin,support-team=support`. Of several groups, the first in this list counts. The groups of a person \
          are the claim `groups` of the ID token. They apply to all tenants.",
    default: Some(""),
    secret: false,
};

pub static VARIABLES: &[&EnvVar] = &[
    &CONSOLE,
    &ISSUER,
    &CLIENT_ID,
    &CLIENT_SECRET,
    &SCOPES,
    &GROUPS,
];

perennial_domain::string_enum! {
    /// Whether the console is served.
    pub enum ConsoleAccess: "a setting" {
        On = "on",
        Off = "off",
    }
}

#[derive(Debug, Clone)]
pub struct ConsoleConfig {
    pub access: ConsoleAccess,
    /// `None` if staff members sign in with links only.
    pub sign_in: Option<ConsoleSignInConfig>,
}

/// The OpenID provider with which staff members sign in.
#[derive(Debug, Clone)]
pub struct ConsoleSignInConfig {
    pub issuer: String,
    pub client_id: String,
    pub client_secret: Option<SecretString>,
    pub scopes: Vec<String>,
    /// The roles of groups, most important first.
    pub groups: Vec<(String, StaffRole)>,
}

impl ConsoleConfig {
    pub(super) fn read(reader: &mut EnvReader) -> Option<Self> {
        let access = reader.parse(&CONSOLE);
        let sign_in = read_sign_in(reader);
        Some(Self {
            access: access?,
            sign_in: sign_in?,
        })
    }
}

/// Returns `None` if a variable is invalid.
#[expect(
    clippy::option_option,
    reason = "invalid variables and no variables are different"
)]
fn read_sign_in(reader: &mut EnvReader) -> Option<Option<ConsoleSignInConfig>> {
    let issuer = reader.get(&ISSUER);
    let client_id = reader.get(&CLIENT_ID);
    let client_secret = reader.get(&CLIENT_SECRET).map(SecretString::from);
    let scopes = reader.parse_list(&SCOPES, |scope| Ok(scope.to_owned()));
    let groups = reader.parse_list(&GROUPS, parse_group);
    match (issuer, client_id) {
        (None, None) => Some(None),
        (Some(issuer), Some(client_id)) => {
            let url = Url::parse(&issuer).ok();
            let is_url = url.is_some_and(|url| ["http", "https"].contains(&url.scheme()));
            if !is_url {
                reader.push_error(&ISSUER, "must be a URL, such as https://login.example.com");
                return None;
            }
            Some(Some(ConsoleSignInConfig {
                issuer,
                client_id,
                client_secret,
                scopes: scopes?,
                groups: groups?,
            }))
        }
        (Some(_), None) => {
            reader.push_error(&CLIENT_ID, "is required with PERENNIAL_CONSOLE_ISSUER");
            None
        }
        (None, Some(_)) => {
            reader.push_error(&ISSUER, "is required with PERENNIAL_CONSOLE_CLIENT_ID");
            None
        }
    }
}

fn parse_group(text: &str) -> Result<(String, StaffRole), String> {
    let (group, role) = text
        .rsplit_once('=')
        .filter(|(group, _)| !group.trim().is_empty())
        .ok_or("must be a group and a role, such as support-team=support")?;
    let role = role.trim().parse::<StaffRole>();
    let role = role.map_err(|error| error.message)?;
    Ok((group.trim().to_owned(), role))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_roles() {
        assert_eq!(
            parse_group("a=b = support"),
            Ok(("a=b".to_owned(), StaffRole::Support))
        );
        for text in ["", "admin", "=admin", "team=owner"] {
            assert!(parse_group(text).is_err(), "{text}");
        }
    }
}
