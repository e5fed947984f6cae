//! Where the APIs of payment providers are.

use url::Url;

use super::env::{EnvReader, EnvVar};

static STRIPE_API_BASE: EnvVar = EnvVar {
    name: "PERENNIAL_STRIPE_API_BASE",
    doc: "Base URL of Stripe's API. Only tests against a stand-in of the API need another value: API keys of payment \
          accounts are sent there.",
    default: Some("https://api.stripe.com"),
    secret: false,
};

static LEMON_SQUEEZY_API_BASE: EnvVar = EnvVar {
    name: "PERENNIAL_LEMON_SQUEEZY_API_BASE",
    doc: "Base URL of Lemon Squeezy's API. Only tests against a stand-in of the API need another value: API keys of \
          payment accounts are sent there.",
    default: Some("https://api.lemonsqueezy.com"),
    secret: false,
};

pub static VARIABLES: &[&EnvVar] = &[&STRIPE_API_BASE, &LEMON_SQUEEZY_API_BASE];

/// The base URLs of payment providers' APIs.
#[derive(Debug, Clone)]
pub struct PaymentApisConfig {
    pub stripe: Url,
    pub lemon_squeezy: Url,
}

impl PaymentApisConfig {
    pub(super) fn read(reader: &mut EnvReader) -> Option<Self> {
        let stripe = read_base(reader, &STRIPE_API_BASE);
        let lemon_squeezy = read_base(reader, &LEMON_SQUEEZY_API_BASE);
        Some(Self {
            stripe: stripe?,
            lemon_squeezy: lemon_squeezy?,
        })
    }
}

/// Reads a base URL. An unencrypted one must be on this machine, because API keys are sent to it.
fn read_base(reader: &mut EnvReader, var: &'static EnvVar) -> Option<Url> {
    let expected = "must be an https URL without a path, or an http URL with a loopback address";
    reader.parse_if(var, expected, |url: &Url| {
        let is_protected = match url.scheme() {
            "https" => url.has_host(),
            "http" => url.host().is_some_and(|host| match host {
                url::Host::Ipv4(address) => address.is_loopback(),
                url::Host::Ipv6(address) => address.is_loopback(),
                url::Host::Domain(name) => name == "localhost",
            }),
            _ => false,
        };
        is_protected && url.path() == "/" && url.query().is_none() && url.username().is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(base: &str) -> Option<PaymentApisConfig> {
        let variable = ("PERENNIAL_STRIPE_API_BASE".to_owned(), base.to_owned());
        PaymentApisConfig::read(&mut EnvReader::new([variable]))
    }

    #[test]
    fn base_url_is_encrypted_or_local() {
        for accepted in [
            "https://api.stripe.com",
            "http://127.0.0.1:8080/",
            "http://[::1]:80",
            "http://localhost:1",
        ] {
            assert!(read(accepted).is_some(), "{accepted}");
        }
        for refused in [
            "http://api.stripe.com",
            "http://10.0.0.1",
            "https://api.stripe.com/v1",
            "https://key@api.stripe.com",
            "ftp://127.0.0.1",
            "api.stripe.com",
        ] {
            assert!(read(refused).is_none(), "{refused}");
        }
        let default = PaymentApisConfig::read(&mut EnvReader::new([])).unwrap();
        assert_eq!(default.stripe.as_str(), "https://api.stripe.com/");
    }
}
