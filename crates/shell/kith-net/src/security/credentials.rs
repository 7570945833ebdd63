//! The credentials of this process, read from its files: its certificate, its token, and the authorities that it trusts.

use super::{SecurityError, SecurityOptions, pem, secret};
use rustls::{ClientConfig, crypto::ring};
use std::sync::Arc;
use tonic::codegen::http::HeaderValue;

/// The name of HTTP/2 in TLS (ALPN), which gRPC uses.
const HTTP2: &[u8] = b"h2";

/// The credentials as of the last time that the files were read.
pub(super) struct Credentials {
    /// The TLS configuration of gRPC connections, which announces HTTP/2 through ALPN.
    pub grpc: Arc<ClientConfig>,
    pub frames: Arc<ClientConfig>,
    pub token: Option<Token>,
}

/// A token, in the forms that frames and gRPC send it.
#[derive(Clone)]
pub(super) struct Token {
    pub text: Arc<str>,
    pub header: HeaderValue,
}

impl Credentials {
    /// Reads the files that `options` name.
    ///
    /// # Errors
    /// [`SecurityError`] if a file cannot be read or used.
    pub fn read(options: &SecurityOptions) -> Result<Self, SecurityError> {
        let roots = match &options.ca {
            Some(path) => pem::authorities("tls-ca", path)?,
            None => rustls::RootCertStore::empty(),
        };
        let tls = |option| move |source| SecurityError::Tls { option, source };
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(tls("tls-ca"))?
            .with_root_certificates(roots);
        let config = match (&options.cert, &options.key) {
            (Some(cert), Some(key)) => config
                .with_client_auth_cert(
                    pem::certificates("tls-cert", cert)?,
                    pem::private_key("tls-key", key)?,
                )
                .map_err(|source| pem::unusable("tls-cert", cert, source))?,
            _ => config.with_no_client_auth(),
        };
        let mut grpc = config.clone();
        grpc.alpn_protocols = vec![HTTP2.to_vec()];
        let token = options.token.as_deref().map(Token::read).transpose()?;
        Ok(Self { grpc: Arc::new(grpc), frames: Arc::new(config), token })
    }
}

impl Token {
    fn read(path: &std::path::Path) -> Result<Self, SecurityError> {
        const OPTION: &str = "token-file";
        let bad = |detail: &str| SecurityError::Content {
            option: OPTION,
            path: path.to_owned(),
            detail: detail.to_owned(),
        };
        let text = secret::read(path).map_err(|source| SecurityError::File {
            option: OPTION,
            path: path.to_owned(),
            source,
        })?;
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(bad("holds no token: one line of printable characters without spaces"));
        }
        let header = format!("Bearer {text}").parse();
        let mut header: HeaderValue =
            header.map_err(|_| bad("holds characters that an HTTP header cannot carry"))?;
        header.set_sensitive(true);
        Ok(Self { text: text.into(), header })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::ErrorCode;
    use std::path::Path;

    #[test]
    fn a_token_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let read = |text: &str| {
            secret::testing::write(&file, text);
            Token::read(&file).map(|token| token.text.to_string())
        };
        assert_eq!(read("s3cret\n").unwrap(), "s3cret");
        assert_eq!(read("\u{feff}s3cret\r\n").unwrap(), "s3cret");
        secret::testing::write(&file, b"\xff\xfes\0");
        let refused = Token::read(&file).map(|_| ()).unwrap_err();
        assert!(
            matches!(refused, SecurityError::File { ref source, .. } if source.to_string().contains("UTF-16"))
        );
        for bad in ["", "\n", "two words", "two\nlines\n", "é"] {
            assert_eq!(read(bad).unwrap_err().code(), ErrorCode::BadSecurityFile, "{bad:?}");
        }
        assert!(Token::read(Path::new("/nowhere/token")).is_err());
    }
}
