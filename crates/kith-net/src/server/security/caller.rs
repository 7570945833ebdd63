//! Who is at the other end, as far as they have shown it.

use std::{fmt, net::SocketAddr, sync::Arc};

/// Who somebody is, as they proved it. What they may is looked up at each request: it can change while they are connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// They speak in the clear to a port that takes TLS only.
    Plain,
    /// They showed nothing.
    Nobody,
    /// A certificate with these names, from an authority that is believed.
    Certificate(Arc<[String]>),
    /// A token with this SHA-256.
    Token([u8; 32]),
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Identity::Plain => f.write_str("in the clear"),
            Identity::Nobody => f.write_str("nobody"),
            Identity::Certificate(names) => write!(f, "certificate {}", names.join(", ")),
            Identity::Token(_) => f.write_str("token"),
        }
    }
}

/// Who is at the other end of a connection or request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Who they are.
    pub identity: Identity,
    /// Where they are, for the log.
    pub peer: Option<SocketAddr>,
}

impl Caller {
    /// As they proved it.
    pub fn new(identity: Identity) -> Self {
        Self { identity, peer: None }
    }

    /// The same, connected from there.
    pub fn at(self, peer: Option<SocketAddr>) -> Self {
        Self { peer, ..self }
    }
}
