//! Certificates of a private authority, made with `openssl`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tokio_rustls::rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use super::unique_name;

/// A certificate authority in a folder of its own.
pub struct Authority {
    folder: PathBuf,
}

fn openssl(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("openssl");
    let output = command.args(arguments).current_dir(folder).output();
    let output = output.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
}

const NEW_KEY: [&str; 4] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];

impl Authority {
    pub fn create() -> Self {
        let folder = std::env::temp_dir().join(unique_name("perennial-authority-"));
        fs::create_dir(&folder).unwrap();
        let subject = format!("/CN={}", unique_name("Authority "));
        let mut arguments = vec!["req", "-x509", "-nodes", "-days", "2", "-subj", &subject];
        arguments.extend(NEW_KEY);
        arguments.extend(["-keyout", "ca.key", "-out", "ca.pem"]);
        openssl(&folder, &arguments);
        Self { folder }
    }

    /// The file with the certificate of the authority.
    pub fn file(&self) -> String {
        self.folder.join("ca.pem").to_str().unwrap().to_owned()
    }

    /// Returns the configuration of a server with a certificate for this subject alternative name, such as
    /// `IP:127.0.0.1`.
    pub fn server_config(&self, alternative_name: &str) -> ServerConfig {
        let extension = format!("subjectAltName={alternative_name}\nbasicConstraints=CA:FALSE\n");
        fs::write(self.folder.join("extensions"), extension).unwrap();
        let mut arguments = vec!["req", "-new", "-nodes", "-subj", "/CN=Server"];
        arguments.extend(NEW_KEY);
        arguments.extend(["-keyout", "server.key", "-out", "server.csr"]);
        openssl(&self.folder, &arguments);
        let sign = "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile extensions -out server.pem";
        openssl(&self.folder, &sign.split(' ').collect::<Vec<_>>());
        let certificate = CertificateDer::from_pem_file(self.folder.join("server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(self.folder.join("server.key")).unwrap();
        let config = ServerConfig::builder_with_provider(aws_lc_rs::default_provider().into());
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth();
        config.with_single_cert(vec![certificate], key).unwrap()
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
