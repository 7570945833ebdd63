//! The refusal of a read because a quota is used up.

use strum::IntoStaticStr;
use thiserror::Error;

/// The kind of quota that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum QuotaKind {
    /// Keys.
    Keys,
    /// Bytes of values.
    Bytes,
}

impl QuotaKind {
    /// Returns the name of the kind in messages and metrics.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A process has refused a read because a quota is used up.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the read quota of store {store:?} is used up: {per_second} {} a second at {at}", kind.name())]
pub struct QuotaRefusal {
    /// The store.
    pub store: String,
    /// The kind of quota.
    pub kind: QuotaKind,
    /// The quota per second, at the process that refused.
    pub per_second: u64,
    /// The process that refused: `this router` or `node 3`.
    pub at: String,
    /// The time after which the same query may be sent again, in milliseconds.
    pub retry_after_ms: u64,
}
