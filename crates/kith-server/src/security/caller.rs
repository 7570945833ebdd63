//! Who is at the other end, as far as they have shown it.

use std::sync::Arc;

/// Who somebody is, as they proved it. What they may is looked up at each request: it can change while they are connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// They speak in the clear to a port that takes TLS only.
    Plain,
    /// They showed nothing.
    Nobody,
    /// A certificate with these names, from an authority that is believed.
    Certificate(Arc<[String]>),
    /// A token with this SHA-256.
    Token([u8; 32]),
}

/// Who is at the other end of a connection or request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Who they are.
    pub identity: Identity,
}

impl Caller {
    /// As they proved it.
    pub fn new(identity: Identity) -> Self {
        Self { identity }
    }
}
