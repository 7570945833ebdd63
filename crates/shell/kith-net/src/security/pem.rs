//! Reads certificates, keys and authorities from PEM files.

use super::{SecurityError, secret};
use rustls::{
    RootCertStore,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{Error as PemError, PemObject},
    },
};
use std::{fs, io, path::Path};

/// Reads the certificates of a file, in their order. The first is the certificate of the process itself.
///
/// # Errors
/// [`SecurityError`] if the file cannot be read or contains no certificate.
pub fn certificates(
    option: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, SecurityError> {
    let all = text(path).map_err(PemError::Io);
    let all: Result<Vec<_>, PemError> = all.and_then(|text| CertificateDer::pem_slice_iter(&text).collect());
    match all {
        Ok(all) if all.is_empty() => Err(content(option, path, "holds no certificate")),
        Ok(all) => Ok(all),
        Err(error) => Err(unreadable(option, path, error, "certificate")),
    }
}

/// The content of a file without a byte order mark, behind which its first certificate would not be found.
fn text(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = fs::read(path)?;
    let mark = kith_types::byte_order_mark(&text);
    text.drain(..mark.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?);
    Ok(text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_certificate_is_found_behind_a_byte_order_mark() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chain.pem");
        // Whether the bytes are a certificate is not checked here.
        let one = |bytes: &str| format!("-----BEGIN CERTIFICATE-----\n{bytes}\n-----END CERTIFICATE-----\n");
        let chain = one("AAEC") + &one("AwQF");
        for text in
            [chain.clone(), format!("\u{feff}{chain}"), format!("\u{feff}{}", chain.replace('\n', "\r\n"))]
        {
            fs::write(&path, text).unwrap();
            let read = certificates("tls-cert", &path).unwrap();
            assert_eq!(read.iter().map(|it| it[0]).collect::<Vec<_>>(), [0, 3]);
        }
        fs::write(&path, b"\xff\xfe-\0").unwrap();
        let SecurityError::File { source, .. } = certificates("tls-cert", &path).unwrap_err() else {
            panic!()
        };
        assert!(source.to_string().contains("UTF-16"), "{source}");
    }
}
