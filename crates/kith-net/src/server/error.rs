//! Why a process cannot listen.

use super::connections::FILES_MIN;
use kith_types::ErrorCode;
use std::{io, net::SocketAddr};
use thiserror::Error;

/// Why a process cannot listen where it should.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ListenError {
    /// An address cannot be listened on.
    #[error("listen on {addr}")]
    Listen {
        addr: SocketAddr,
        #[source]
        source: io::Error,
    },
    /// The system lets this process have too few files and connections open.
    #[error(
        "this process may have {files} files and connections open at once, and needs {FILES_MIN} at least"
    )]
    TooFewFiles {
        /// How many it may have.
        files: usize,
    },
    /// Others could listen in, and nobody has said that they may.
    #[error("{addr} is not on loopback, and what is said there would not be encrypted")]
    InsecureListener { addr: SocketAddr },
    /// Everybody who connects would have every right, and nobody has said that they may.
    #[error("{addr} is not on loopback, and everybody who connects there would have every right")]
    OpenListener { addr: SocketAddr },
    /// Health and metrics, which are never encrypted, would be read by others, and nobody has said that they may.
    #[error(
        "{addr} is not on loopback, and health and metrics, which name stores, are served there in the clear"
    )]
    InsecureHttp { addr: SocketAddr },
}

impl ListenError {
    /// The stable code.
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

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            ListenError::Listen { .. } => "stop what uses the port, or choose another (0 takes a free one)",
            ListenError::TooFewFiles { .. } => {
                "raise the limit to 4096 or more: `ulimit -n 4096`, `LimitNOFILE=` of systemd, `--ulimit nofile=` of containers"
            }
            ListenError::InsecureListener { .. } => {
                "give it a certificate (--tls-cert, --tls-key), or say that the network is trusted: --insecure-listen"
            }
            ListenError::OpenListener { .. } => {
                "say who may do what (--access), or whose certificates to ask for (--tls-client-ca), or that the network is trusted: --insecure-listen"
            }
            ListenError::InsecureHttp { .. } => {
                "serve them on loopback, or say that their network is trusted: --insecure-http"
            }
        }
    }
}
