//! The need of a request: a right to a store, or a role in the cluster.

use std::fmt;

/// A right to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// Read it.
    Read,
    /// Push to it, and swap its versions.
    Write,
    /// Both of these, as a traversal needs that may change its graph: what it finds decides what it writes.
    ReadAndWrite,
    /// Create, define and drop it.
    Admin,
}

impl Right {
    fn name(self) -> &'static str {
        match self {
            Right::Read => "read",
            Right::Write => "write",
            Right::ReadAndWrite => "read and write",
            Right::Admin => "admin",
        }
    }
}

/// The rights that a caller needs so that a request is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// To be a listed subject.
    Known,
    /// A right to a store or graph.
    Store(Right, String),
    /// The right to administer the whole cluster: `admin` of all stores.
    Administrator,
    /// To be a node or router of the cluster.
    Cluster,
}

impl Need {
    /// The right that a traversal of a graph needs, at every door. One that would write and does not say so is refused where it is
    /// evaluated.
    pub fn traversal(graph: &str, writes: bool) -> Self {
        Self::Store(if writes { Right::ReadAndWrite } else { Right::Read }, graph.to_owned())
    }

    /// The store that the need names; empty if it names none.
    pub fn store(&self) -> &str {
        if let Need::Store(_, store) = self { store } else { "" }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Known => f.write_str("ask this"),
            Need::Store(right, store) if store.is_empty() => {
                write!(f, "{} a store that the request does not name", right.name())
            }
            Need::Store(right, store) => write!(f, "{} store {store:?}", right.name()),
            Need::Administrator => f.write_str("administer the cluster"),
            Need::Cluster => f.write_str("do what nodes and routers ask of each other"),
        }
    }
}
