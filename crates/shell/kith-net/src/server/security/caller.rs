//! The caller of a connection or request, as far as it is authenticated.

use std::{fmt, net::SocketAddr, sync::Arc};

/// A proven identity. Its rights are looked up for each request, because they may change while the caller is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerIdentity {
    /// The caller does not use TLS on a port that requires it.
    Plain,
    /// The caller uses TLS, but sent neither a certificate nor a token.
    Nobody,
    /// The caller sent a certificate with these names from a trusted authority.
    Certificate(Arc<[String]>),
    /// The caller sent a token with this SHA-256.
    Token([u8; 32]),
}

impl fmt::Display for CallerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallerIdentity::Plain => f.write_str("in the clear"),
            CallerIdentity::Nobody => f.write_str("nobody"),
            CallerIdentity::Certificate(names) => write!(f, "certificate {}", names.join(", ")),
            CallerIdentity::Token(_) => f.write_str("token"),
        }
    }
}

/// The caller of a connection or request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The proven identity.
    pub identity: CallerIdentity,
    /// The address, for the log.
    pub peer: Option<SocketAddr>,
}

impl Caller {
    /// Returns a caller without an address.
    pub fn new(identity: CallerIdentity) -> Self {
        Self { identity, peer: None }
    }

    /// Sets the address.
    pub fn at(self, peer: Option<SocketAddr>) -> Self {
        Self { peer, ..self }
    }
}
