//! Where we listen, and what we are called from outside.

use std::net::SocketAddr;

use super::{
    Mode,
    key::{Key, Reader},
};

static LISTEN: Key = Key {
    name: "PERENNIAL_LISTEN",
    doc: "The address and port of the interface.",
    default: Some("127.0.0.1:8080"),
    secret: false,
};

static ADMIN_LISTEN: Key = Key {
    name: "PERENNIAL_ADMIN_LISTEN",
    doc: "The address and port of `/livez`, `/readyz` and `/metrics`. Keep it away from the outside.",
    default: Some("127.0.0.1:9090"),
    secret: false,
};

static PUBLIC_URL: Key = Key {
    name: "PERENNIAL_PUBLIC_URL",
    doc: "The address under which callers reach the interface, such as `https://billing.example.com`: \
          the only source of links to ourselves. Required in live mode; in sandbox mode it is the \
          listening address unless set.",
    default: None,
    secret: false,
};

/// The keys of this section.
pub static KEYS: &[&Key] = &[&LISTEN, &ADMIN_LISTEN, &PUBLIC_URL];

/// Where we listen, and what we are called from outside.
#[derive(Debug, Clone)]
pub struct Http {
    /// The interface.
    pub listen: SocketAddr,
    /// Health and metrics.
    pub admin_listen: SocketAddr,
    /// Our own address, without a slash at its end.
    pub public_url: String,
}

impl Http {
    pub(super) fn read(reader: &mut Reader, mode: Option<Mode>) -> Option<Self> {
        let listen = reader.value::<SocketAddr>(&LISTEN);
        let admin_listen = reader.value::<SocketAddr>(&ADMIN_LISTEN);
        let public_url = reader.text(&PUBLIC_URL);
        let public_url = match (public_url, mode) {
            (Some(text), _) => {
                let parsed = url::Url::parse(&text)
                    .ok()
                    .filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host())
                    .filter(|url| url.query().is_none() && url.fragment().is_none())
                    .filter(|url| {
                        url.path() == "/" && url.username().is_empty() && url.password().is_none()
                    });
                if parsed.is_none() {
                    reader.wrong(
                        &PUBLIC_URL,
                        &format!("{text}: expected scheme and host alone, such as https://billing.example.com"),
                    );
                }
                parsed.map(|url| url.as_str().trim_end_matches('/').to_owned())
            }
            (None, Some(Mode::Sandbox)) => listen.map(|address| format!("http://{address}")),
            (None, Some(Mode::Live)) => {
                reader.wrong(&PUBLIC_URL, "is required in live mode: the address under which callers reach this service, such as https://billing.example.com");
                None
            }
            (None, None) => None,
        };
        Some(Self {
            listen: listen?,
            admin_listen: admin_listen?,
            public_url: public_url?,
        })
    }
}
