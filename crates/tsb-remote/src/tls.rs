//! TLS sessions with servers whose certificate a trusted authority has signed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};
use tsb_stores::error::{Error, Result};

/// Whom an HTTP client that speaks TLS trusts; clients with a driver have `tls` and `tls_ca`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// A file of certificates of authorities, in PEM; absent: those of Mozilla's list.
    pub ca: Option<PathBuf>,
}

/// The configuration of a client that trusts the certificates in a file, or otherwise Mozilla's list.
///
/// # Errors
/// [`Error::Backend`] if the file cannot be read.
pub(crate) fn client_config(ca: Option<&Path>) -> Result<ClientConfig> {
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|source| Error::Backend {
        action: "set up TLS".to_owned(),
        source: source.into(),
    })?;
    let roots = match ca {
        None => webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect(),
        Some(file) => certificates(file)?,
    };
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// The certificates in a file, of which there must be one.
fn certificates(file: &Path) -> Result<RootCertStore> {
    let wrong = |source: Box<dyn std::error::Error + Send + Sync>| Error::Backend {
        action: format!("read the certificates in {}", file.display()),
        source,
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.into()))? {
        let certificate = certificate.map_err(|error| wrong(error.into()))?;
        roots.add(certificate).map_err(|error| wrong(error.into()))?;
    }
    if roots.is_empty() {
        return Err(wrong("it holds none; authorities are expected in PEM".into()));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_certificate_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let of = |file: &Path| client_config(Some(file)).unwrap_err();
        assert!(tsb_stores::error::chain(&of(&file)).contains("ca.pem"));
        std::fs::write(&file, "no certificate").unwrap();
        assert!(tsb_stores::error::chain(&of(&file)).contains("it holds none"));
        let broken = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
        std::fs::write(&file, broken).unwrap();
        assert!(of(&file).to_string().contains("ca.pem"));
        assert!(client_config(None).is_ok());
    }
}
