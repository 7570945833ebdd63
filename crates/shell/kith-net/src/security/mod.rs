//! The client side of security: the certificate and token of this process, and the authorities that it trusts, all read
//! from files (docs/design/0012-protection.md).

mod channel;
mod connector;
mod credentials;
mod dialer;
mod failure;
pub mod pem;
pub mod secret;
mod secured;

pub use channel::GrpcChannel;
pub use dialer::Dialer;
pub use failure::TlsFailure;
use kith_types::ErrorCode;

use std::{io, path::PathBuf};
use thiserror::Error;

/// The files with this process's credentials and with the authorities that it trusts. With `Default`, connections use no
/// TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityOptions {
    /// A PEM file with the trusted authorities. If it is set, connections use TLS.
    pub ca: Option<PathBuf>,
    /// A PEM file with this process's certificate, followed by the intermediate certificates up to an authority.
    pub cert: Option<PathBuf>,
    /// A PEM file with the private key of the certificate.
    pub key: Option<PathBuf>,
    /// A file that holds a bearer token on one line, and nothing else.
    pub token: Option<PathBuf>,
}

/// A file with credentials or permissions cannot be used, or the options contradict each other.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum SecurityError {
    /// The file cannot be read.
    #[error("{option}: read {path}")]
    File {
        /// The option that named the file.
        option: &'static str,
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The file can be read, but its content is not valid.
    #[error("{option}: {path} {detail}")]
    Content {
        /// The option that named the file.
        option: &'static str,
        path: PathBuf,
        /// The fault in the content, as a clause that follows the path.
        detail: String,
    },
    /// A certificate does not match its key, or certificates do not match the authorities.
    #[error("{option}")]
    Tls {
        /// The option that named the certificates.
        option: &'static str,
        #[source]
        source: rustls::Error,
    },
    /// An option requires another one that is missing.
    #[error("{option} {detail}")]
    Option {
        option: &'static str,
        /// Which option is required, as a clause that follows the option's name.
        detail: &'static str,
    },
}

impl SecurityError {
    /// The option that named the file, or that requires another one.
    pub fn option(&self) -> &'static str {
        match self {
            Self::File { option, .. }
            | Self::Content { option, .. }
            | Self::Tls { option, .. }
            | Self::Option { option, .. } => option,
        }
    }

    /// The stable error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            SecurityError::File { .. } | SecurityError::Content { .. } | SecurityError::Tls { .. } => {
                ErrorCode::BadSecurityFile
            }
            SecurityError::Option { .. } => ErrorCode::Usage,
        }
    }

    /// Advice for the operator.
    pub fn help(&self) -> &'static str {
        match self {
            SecurityError::File { .. } => "check the path and its permissions",
            SecurityError::Content { .. } | SecurityError::Tls { .. } => {
                "docs/operating/securing.md says what the file should hold"
            }
            SecurityError::Option { .. } => "see docs/operating/securing.md",
        }
    }
}
