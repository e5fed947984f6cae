//! Connection options of a database: its URL, TLS by `sslmode`, and the limits of each session.
//!
//! `sslmode` and `sslrootcert` work as in `psql`. The driver supports only some of their values, so
//! they are handled here.

use std::{fs::File, io::BufReader, net::IpAddr, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore,
    SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use secrecy::{ExposeSecret, SecretString};
use tokio_postgres::{
    Client, Connection, Socket,
    config::{Host, SslMode, TargetSessionAttrs},
    tls::MakeTlsConnect,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::Error;

/// The age at which a connection is replaced, so that none stays connected to a former primary after
/// a failover. Jitter is applied, so that connections do not all end together.
pub(super) const MAX_LIFETIME: Duration = Duration::from_mins(30);

/// Timeouts of all sessions except migrations, because building an index may take long.
const SESSION_TIMEOUTS: &str =
    "-c statement_timeout=5000 -c lock_timeout=2000 -c idle_in_transaction_session_timeout=10000";

/// Makes the server plan each statement once. By default it plans a statement again for each
/// execution if that seems cheaper, for example if one key has far more rows than most (measured:
/// planning took 0.2 ms of 0.55 ms for a page of subscriptions). And without compiling it: a generic plan
/// assumes many rows, and the server compiles what looks expensive again for each execution
/// (measured: 750 of 752 ms for claiming due subscriptions).
const GENERIC_PLANS: &str = "-c plan_cache_mode=force_generic_plan -c jit=off";

type TlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// The parsed URL of a database and its TLS configuration.
#[derive(Clone)]
pub struct ConnectOptions {
    pub(super) config: tokio_postgres::Config,
    pub(super) tls: MakeRustlsConnect,
}

impl ConnectOptions {
    /// Returns hosts, ports and the database name, without credentials.
    pub fn name(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        });
        let ports = self.config.get_ports();
        let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(5432);
        let hosts: Vec<String> = hosts
            .enumerate()
            .map(|(index, host)| format!("{host}:{}", port(index)))
            .collect();
        let database = self.config.get_dbname().unwrap_or_default();
        format!("{}/{database}", hosts.join(","))
    }

    /// Returns whether the connection crosses a network and may not be encrypted.
    pub fn may_be_unencrypted(&self) -> bool {
        let is_local = |host: &Host| match host {
            Host::Tcp(name) => {
                let address = name.parse::<IpAddr>();
                name == "localhost" || address.is_ok_and(|address| address.is_loopback())
            }
            #[cfg(unix)]
            Host::Unix(_) => true,
        };
        let mut addresses = self.config.get_hostaddrs().iter();
        let is_network = addresses.any(|address| !address.is_loopback())
            || (self.config.get_hostaddrs().is_empty()
                && !self.config.get_hosts().iter().all(is_local));
        is_network && self.config.get_ssl_mode() != SslMode::Require
    }

    /// Parses a `postgres://` URL.
    pub fn parse(url: &SecretString) -> anyhow::Result<Self> {
        let url = url.expose_secret();
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            bail!("a database URL must start with postgres://");
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut ssl_mode = "prefer";
        let mut root_file = None;
        let mut other_params = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", value)) => ssl_mode = value,
                Some(("sslrootcert", value)) => root_file = Some(value),
                _ => other_params.push(parameter),
            }
        }
        let mut config: tokio_postgres::Config = format!("{base}?{}", other_params.join("&"))
            .parse()
            // The driver's message may contain the password.
            .map_err(|_| {
                anyhow::anyhow!(
                    "invalid database URL; expected postgres://user:password@host:port/name"
                )
            })?;
        config
            .ssl_mode(match ssl_mode {
                "disable" => SslMode::Disable,
                "allow" | "prefer" => SslMode::Prefer,
                "require" | "verify-ca" | "verify-full" => SslMode::Require,
                other => bail!(
                    "sslmode={other}: must be disable, prefer, require, verify-ca or verify-full"
                ),
            })
            .connect_timeout(Duration::from_secs(2))
            .tcp_user_timeout(Duration::from_secs(5))
            .keepalives_idle(Duration::from_secs(5))
            .keepalives_interval(Duration::from_secs(1))
            .keepalives_retries(3)
            // Only connect to the primary, also after a failover.
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        let verification = match (ssl_mode, root_file) {
            ("verify-full", _) => TlsVerification::ChainAndHost,
            ("verify-ca", _) | ("require", Some(_)) => TlsVerification::Chain,
            _ => TlsVerification::None,
        };
        let tls = MakeRustlsConnect::new(client_config(verification, root_file)?);
        Ok(Self { config, tls })
    }

    #[expect(clippy::disallowed_methods, reason = "only `db` opens connections")]
    pub(super) async fn connect(&self) -> Result<(Client, Connection<Socket, TlsStream>), Error> {
        Ok(self.config.connect(self.tls.clone()).await?)
    }

    /// Adds settings of each session.
    pub(super) fn with_options(mut self, options: &str) -> Self {
        let given = self.config.get_options().unwrap_or_default();
        let options = format!("{given} {options}");
        self.config.options(options.trim());
        self
    }

    /// Adds the limits of sessions that serve requests or run background tasks. `purpose` becomes a
    /// part of `application_name`.
    pub(super) fn with_session_limits(mut self, purpose: &str) -> Self {
        let given = self.config.get_options().unwrap_or_default();
        let options = format!("{SESSION_TIMEOUTS} {GENERIC_PLANS} {given}");
        self.config
            // PgBouncer rejects trailing white space.
            .options(options.trim())
            .application_name(format!("perennial {purpose}"));
        self
    }
}

/// Which parts of the server's certificate are verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TlsVerification {
    None,
    Chain,
    ChainAndHost,
}

fn client_config(
    verification: TlsVerification,
    root_file: Option<&str>,
) -> anyhow::Result<ClientConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let chain = match verification {
        TlsVerification::None => None,
        TlsVerification::Chain | TlsVerification::ChainAndHost => {
            let verifier = WebPkiServerVerifier::builder_with_provider(
                Arc::new(trusted_roots(root_file)?),
                provider.clone(),
            );
            Some(verifier.build()?)
        }
    };
    let verifier = Arc::new(PostgresCertVerifier {
        provider: provider.clone(),
        chain,
        checks_host: verification == TlsVerification::ChainAndHost,
    });
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

fn trusted_roots(root_file: Option<&str>) -> anyhow::Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    match root_file {
        Some(path) => {
            let file = File::open(path).with_context(|| format!("sslrootcert={path}"))?;
            for certificate in CertificateDer::pem_reader_iter(BufReader::new(file)) {
                store.add(certificate.with_context(|| format!("sslrootcert={path}"))?)?;
            }
        }
        None => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if store.is_empty() {
        bail!("no trusted root certificate found; set sslrootcert to a file");
    }
    Ok(store)
}

/// Verifies the parts of the server's certificate that `sslmode` requires.
#[derive(Debug)]
struct PostgresCertVerifier {
    provider: Arc<CryptoProvider>,
    chain: Option<Arc<WebPkiServerVerifier>>,
    checks_host: bool,
}

impl ServerCertVerifier for PostgresCertVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        match chain.verify_server_cert(certificate, intermediates, server_name, ocsp_response, now)
        {
            Err(TlsError::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.checks_host => Ok(ServerCertVerified::assertion()),
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> ConnectOptions {
        ConnectOptions::parse(&url.into()).unwrap()
    }

    #[test]
    fn session_options_have_no_surrounding_white_space() {
        for (url, last) in [
            ("postgres://host/x", "jit=off"),
            ("postgres://host/x?options=-c%20a%3D1%20", "-c a=1"),
        ] {
            let options = parse(url).with_session_limits("test");
            let options = options.config.get_options().unwrap();
            assert_eq!(options, options.trim());
            assert!(options.starts_with("-c statement_timeout") && options.ends_with(last));
        }
    }

    #[test]
    fn may_be_unencrypted_only_over_a_network_below_require() {
        for (url, expected) in [
            ("postgres://db.example.com/x", true),
            ("postgres://192.0.2.1/x?sslmode=prefer", true),
            ("postgres://db.example.com/x?sslmode=disable", true),
            ("postgres://127.0.0.1,db.example.com/x", true),
            ("postgres://db.example.com/x?sslmode=require", false),
            ("postgres://127.0.0.1/x", false),
            ("postgres://[::1]/x", false),
            ("postgres://localhost/x?sslmode=disable", false),
            ("postgres://%2Frun%2Fpostgresql/x", false),
        ] {
            assert_eq!(parse(url).may_be_unencrypted(), expected, "{url}");
        }
    }
}
