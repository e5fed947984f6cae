//! How to reach a database: its address, TLS by `sslmode`, and the time-outs of every session.
//!
//! `sslmode` means what it means to `psql`; the driver itself knows only half of its words.

use std::{fs::File, io::BufReader, sync::Arc, time::Duration};

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

/// What a session may do before PostgreSQL ends its statement or its transaction. A session that
/// migrates has none of these limits: building an index takes what it takes.
const LIMITS: &str =
    "-c statement_timeout=5000 -c lock_timeout=2000 -c idle_in_transaction_session_timeout=10000";

/// Each statement is planned once. Left to itself, the server plans one anew each time if that looks cheaper, as it does where
/// one key has far more rows than most, or where it cannot know that a page has few; and planning takes longer than reading.
const ONE_PLAN: &str = "-c plan_cache_mode=force_generic_plan";

type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// Everything needed to open a session.
#[derive(Clone)]
pub struct Address {
    pub(super) config: tokio_postgres::Config,
    pub(super) tls: MakeRustlsConnect,
}

impl Address {
    /// Where it is, without who asks: host, port and database.
    pub fn name(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        });
        let ports = self.config.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        let all: Vec<String> = hosts
            .enumerate()
            .map(|(at, host)| format!("{host}:{}", port(at)))
            .collect();
        let name = self.config.get_dbname().unwrap_or_default();
        format!("{}/{name}", all.join(","))
    }

    /// Reads a `postgres://` address.
    pub fn parse(url: &SecretString) -> anyhow::Result<Self> {
        let url = url.expose_secret();
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            bail!("a database's address begins with postgres://");
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut mode = "prefer";
        let mut roots = None;
        let mut rest = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", value)) => mode = value,
                Some(("sslrootcert", value)) => roots = Some(value),
                _ => rest.push(parameter),
            }
        }
        let mut config: tokio_postgres::Config = format!("{base}?{}", rest.join("&"))
            .parse()
            // The driver's message could quote the password.
            .map_err(|_| anyhow::anyhow!("the database's address cannot be read; expected postgres://user:password@host:port/name"))?;
        config
            .ssl_mode(match mode {
                "disable" => SslMode::Disable,
                "allow" | "prefer" => SslMode::Prefer,
                "require" | "verify-ca" | "verify-full" => SslMode::Require,
                other => bail!(
                    "sslmode={other}: expected disable, prefer, require, verify-ca or verify-full"
                ),
            })
            .connect_timeout(Duration::from_secs(2))
            .tcp_user_timeout(Duration::from_secs(5))
            .keepalives_idle(Duration::from_secs(5))
            .keepalives_interval(Duration::from_secs(1))
            .keepalives_retries(3)
            // Writes, and the reads that decide them, belong to the primary, also after a failover.
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        let verify = match (mode, roots) {
            ("verify-full", _) => Verify::ChainAndName,
            ("verify-ca", _) | ("require", Some(_)) => Verify::Chain,
            _ => Verify::Nothing,
        };
        let tls = MakeRustlsConnect::new(client_config(verify, roots)?);
        Ok(Self { config, tls })
    }

    /// Opens a session.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is `db`, the one place that connects"
    )]
    pub(super) async fn open(&self) -> Result<(Client, Connection<Socket, Stream>), Error> {
        Ok(self.config.connect(self.tls.clone()).await?)
    }

    /// The same, for sessions that serve requests or do background work.
    pub(super) fn with_limits(mut self, purpose: &str) -> Self {
        let given = self.config.get_options().unwrap_or_default();
        let options = format!("{LIMITS} {ONE_PLAN} {given}");
        self.config
            .options(options)
            .application_name(format!("perennial {purpose}"));
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verify {
    Nothing,
    Chain,
    ChainAndName,
}

fn client_config(verify: Verify, roots: Option<&str>) -> anyhow::Result<ClientConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let chain = match verify {
        Verify::Nothing => None,
        Verify::Chain | Verify::ChainAndName => {
            let verifier = WebPkiServerVerifier::builder_with_provider(
                Arc::new(trusted(roots)?),
                provider.clone(),
            );
            Some(verifier.build()?)
        }
    };
    let verifier = Arc::new(Verifier {
        provider: provider.clone(),
        chain,
        name: verify == Verify::ChainAndName,
    });
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

fn trusted(roots: Option<&str>) -> anyhow::Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    match roots {
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
        bail!("no certificate to trust was found; name a file by sslrootcert");
    }
    Ok(store)
}

/// Checks as much of the server's certificate as `sslmode` asks for.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    chain: Option<Arc<WebPkiServerVerifier>>,
    name: bool,
}

impl ServerCertVerifier for Verifier {
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
            )) if !self.name => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
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
