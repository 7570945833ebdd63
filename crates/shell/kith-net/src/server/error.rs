//! Errors of listening.

use super::connections::FILES_MIN;
use kith_types::ErrorCode;
use std::{io, net::SocketAddr};
use thiserror::Error;

/// Why a process cannot listen on its addresses.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ListenError {
    /// The system refuses to listen on an address.
    #[error("listen on {addr}")]
    Listen {
        addr: SocketAddr,
        #[source]
        source: io::Error,
    },
    /// The limit of open files and connections of this process is too low.
    #[error(
        "this process may have {files} files and connections open at once, but needs at least {FILES_MIN}"
    )]
    TooFewFiles {
        /// The limit.
        files: usize,
    },
    /// Connections to this address would not be encrypted, and `--insecure-listen` is not set.
    #[error("{addr} is not on loopback, and connections to it would not be encrypted")]
    InsecureListener { addr: SocketAddr },
    /// Every client that connects would have every right, and `--insecure-listen` is not set.
    #[error("{addr} is not on loopback, and everybody who connects there would have every right")]
    OpenListener { addr: SocketAddr },
    /// Others could read health and metrics, which are never encrypted, and `--insecure-http` is not set.
    #[error(
        "{addr} is not on loopback, and health and metrics, which name stores, are served there in the clear"
    )]
    InsecureHttp { addr: SocketAddr },
}

impl ListenError {
    /// The stable error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            ListenError::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                ErrorCode::PortInUse
            }
            ListenError::Listen { .. } => ErrorCode::CannotListen,
            ListenError::TooFewFiles { .. } => ErrorCode::TooFewFiles,
            ListenError::InsecureListener { .. } | ListenError::InsecureHttp { .. } => {
                ErrorCode::InsecureListener
            }
            ListenError::OpenListener { .. } => ErrorCode::OpenListener,
        }
    }

    /// Advice for the operator.
    pub fn help(&self) -> &'static str {
        match self {
            ListenError::Listen { .. } => {
                "stop the program that uses the port, or choose another port (0 takes a free one)"
            }
            ListenError::TooFewFiles { .. } => {
                "raise the limit to 4096 or more: `ulimit -n 4096`, `LimitNOFILE=` of systemd, `--ulimit nofile=` of containers"
            }
            ListenError::InsecureListener { .. } => {
                "give it a certificate (--tls-cert, --tls-key), or declare the network trusted with --insecure-listen"
            }
            ListenError::OpenListener { .. } => {
                "set --access (who may do what) or --tls-client-ca (whose certificates are accepted), or declare the network trusted with --insecure-listen"
            }
            ListenError::InsecureHttp { .. } => {
                "serve them on loopback, or declare their network trusted with --insecure-http"
            }
        }
    }
}
