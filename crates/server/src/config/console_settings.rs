//! The console, and how staff members sign in.

use std::net::SocketAddr;

use perennial_domain::StaffRole;
use secrecy::SecretString;
use url::Url;

use super::{
    env::{EnvReader, EnvVar},
    listen::{EXPECTED_ADDRESS, HttpConfig, read_base_url},
    mode::Mode,
};

static CONSOLE: EnvVar = EnvVar {
    name: "PERENNIAL_CONSOLE",
    doc: "`on` to serve the console at `/console/` and accept the sessions of staff members, `off` to respond to `/console/` with \
          404 and refuse them.",
    default: Some("on"),
    secret: false,
};

static LISTEN: EnvVar = EnvVar {
    name: "PERENNIAL_CONSOLE_LISTEN",
    doc: "Address and port of a separate listener for the console, such as `10.0.0.5:8082` in an internal network. Only this \
          listener then serves `/console/` and accepts the sessions of staff members; it also serves the API, which the console \
          uses. Without it, `PERENNIAL_LISTEN` serves the console.",
    default: None,
    secret: false,
};

static URL: EnvVar = EnvVar {
    name: "PERENNIAL_CONSOLE_URL",
    doc: "Base URL under which staff members reach `PERENNIAL_CONSOLE_LISTEN`, such as `https://console.example.com`. Required with \
          it in live mode. Default in sandbox mode: its address. Without a separate listener, the console is below \
          `PERENNIAL_PUBLIC_URL`.",
    default: None,
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
    doc: "The client id of the console at the OpenID provider. Its redirect URL is `PERENNIAL_CONSOLE_URL`, or else \
          `PERENNIAL_PUBLIC_URL`, followed by `/console/callback`. Required with `PERENNIAL_CONSOLE_ISSUER`.",
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
    &LISTEN,
    &URL,
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
    /// Address of a separate listener.
    listen: Option<SocketAddr>,
    /// Base URL of the console, without a trailing slash.
    pub url: String,
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
    /// Reads the settings. `http` is `None` if it is invalid.
    pub(super) fn read(
        reader: &mut EnvReader,
        mode: Option<Mode>,
        http: Option<&HttpConfig>,
    ) -> Option<Self> {
        let access = reader.parse(&CONSOLE);
        let listen = reader.parse_if(&LISTEN, EXPECTED_ADDRESS, |_| true);
        let url = if reader.raw(LISTEN.name).is_some() {
            let required = "is required with PERENNIAL_CONSOLE_LISTEN in live mode: the base URL under which staff members reach \
                            the console, such as https://console.example.com";
            read_base_url(reader, &URL, mode, listen, required)
        } else if reader.get(&URL).is_some() {
            let message = "needs PERENNIAL_CONSOLE_LISTEN: without it, the console is below PERENNIAL_PUBLIC_URL";
            reader.push_error(&URL, message);
            None
        } else {
            http.map(|http| http.public_url.clone())
        };
        let sign_in = read_sign_in(reader);
        Some(Self {
            access: access?,
            listen,
            url: url?,
            sign_in: sign_in?,
        })
    }

    /// Returns the address of the console's own listener. `None` if the console is turned off, or the API's listener
    /// serves it.
    pub fn own_listener(&self) -> Option<SocketAddr> {
        self.listen.filter(|_| self.access == ConsoleAccess::On)
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
