//! Reads certificates, keys and authorities from PEM files.

use super::{SecurityError, secret};
use rustls::{
    RootCertStore,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{Error as PemError, PemObject},
    },
};
use std::{io, path::Path};

/// Reads the certificates of a file, in their order. The first is the certificate of the process itself.
///
/// # Errors
/// [`SecurityError`] if the file cannot be read or contains no certificate.
pub fn certificates(
    option: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, SecurityError> {
    let all: Result<Vec<_>, PemError> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    match all {
        Ok(all) if all.is_empty() => Err(content(option, path, "holds no certificate")),
        Ok(all) => Ok(all),
        Err(error) => Err(unreadable(option, path, error, "certificate")),
    }
}

/// Reads the private key of a file.
///
/// # Errors
/// [`SecurityError`] if the file cannot be read, other users can open it, or it contains no private key.
pub fn private_key(option: &'static str, path: &Path) -> Result<PrivateKeyDer<'static>, SecurityError> {
    let key = secret::read(path).map_err(PemError::Io);
    let key = key.and_then(|text| PrivateKeyDer::from_pem_slice(text.as_bytes()));
    key.map_err(|error| unreadable(option, path, error, "private key"))
}

/// Reads the authorities of a file.
///
/// # Errors
/// [`SecurityError`] if the file cannot be read, contains no certificate, or contains something that is not a certificate.
pub fn authorities(option: &'static str, path: &Path) -> Result<RootCertStore, SecurityError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(option, path)? {
        let added = roots.add(certificate);
        added.map_err(|error| {
            content(option, path, &format!("holds something that is not a certificate: {error}"))
        })?;
    }
    Ok(roots)
}

/// Returns the error for certificates that `rustls` rejects together with their key or with the authorities.
pub fn unusable(option: &'static str, path: &Path, source: rustls::Error) -> SecurityError {
    // The library reports this cause only by its name.
    if source.to_string().contains("UnsupportedCertVersion") {
        let detail = "is an X.509 certificate of version 1: make it with extensions (`openssl x509 -extfile`), which gives it version 3";
        return content(option, path, detail);
    }
    SecurityError::Tls { option, source }
}

fn content(option: &'static str, path: &Path, detail: &str) -> SecurityError {
    SecurityError::Content { option, path: path.to_owned(), detail: detail.to_owned() }
}

fn unreadable(option: &'static str, path: &Path, error: PemError, what: &str) -> SecurityError {
    match error {
        PemError::Io(source) if source.kind() != io::ErrorKind::InvalidData => {
            SecurityError::File { option, path: path.to_owned(), source }
        }
        PemError::NoItemsFound => content(option, path, &format!("holds no {what}")),
        error => content(option, path, &format!("is not PEM: {error}")),
    }
}
