//! Who this process is to others, and whom it believes: certificates, authorities and a token, from files
//! (docs/design/0012-protection.md).

mod channel;
mod connector;
mod credentials;
mod dialer;
mod failure;
pub mod pem;
mod secured;

pub use channel::{GrpcChannel, was_never_sent};
pub use dialer::Dialer;
pub use failure::TlsFailure;
use kith_types::ErrorCode;

use std::{io, path::PathBuf};
use thiserror::Error;

/// The files that say who this process is, and whom it believes. `Default` is nobody and everybody: connections are plain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityOptions {
    /// Authorities whose certificates are believed, as PEM. With it connections are TLS.
    pub ca: Option<PathBuf>,
    /// This process's certificate and what leads from it to an authority, as PEM.
    pub cert: Option<PathBuf>,
    /// Its private key, as PEM.
    pub key: Option<PathBuf>,
    /// A file with a bearer token, and nothing else but a line's end.
    pub token: Option<PathBuf>,
}

/// A file that says who somebody is, or what they may, cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum SecurityError {
    /// It cannot be read.
    #[error("{option}: read {path}")]
    File {
        /// Which option named it.
        option: &'static str,
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It is not what it should be.
    #[error("{option}: {path} {detail}")]
    Content {
        /// Which option named it.
        option: &'static str,
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// Certificate and key, or certificates and authorities, do not go together.
    #[error("{option}")]
    Tls {
        /// Which option.
        option: &'static str,
        #[source]
        source: rustls::Error,
    },
    /// An option lacks another.
    #[error("{option} {detail}")]
    Option {
        option: &'static str,
        /// What it lacks.
        detail: &'static str,
    },
}

impl SecurityError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            SecurityError::File { .. } | SecurityError::Content { .. } | SecurityError::Tls { .. } => {
                ErrorCode::BadSecurityFile
            }
            SecurityError::Option { .. } => ErrorCode::Usage,
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            SecurityError::File { .. } => "check the path and who may read it",
            SecurityError::Content { .. } | SecurityError::Tls { .. } => {
                "docs/operating/securing.md says what the file should hold"
            }
            SecurityError::Option { .. } => "see docs/operating/securing.md",
        }
    }
}
