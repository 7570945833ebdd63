//! Newtypes for ids, versions and places in logs.

use std::fmt;

macro_rules! newtype {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

newtype!(
    /// One hash slice of the key space, `0..PartitionCount`.
    PartitionId(u32),
    "p"
);
newtype!(
    /// One serving process. Unique in a cluster, never reused.
    NodeId(u32),
    "n"
);
newtype!(
    /// A replica group: nodes that together hold each partition once (Moolle §II-B).
    GroupId(u32),
    "g"
);
newtype!(
    /// The version of a routing table. Grows with every change of topology.
    Epoch(u64),
    "e"
);
newtype!(
    /// One immutable build of a store, graph or graph component. Grows with every build.
    StoreVersion(u64),
    "v"
);

newtype!(
    /// A period in which one node leads a partition of a live graph. The metadata assign terms; none is used twice.
    Term(u64),
    "t"
);
newtype!(
    /// The number of a change in the log of one partition of a live graph: 1, 2, 3 and so on. 0 is the empty log.
    Position(u64),
    "@"
);

/// A place in the log of one partition: a position, and the term in which it was written. The order is that of the log,
/// even if a database was replaced by an older copy of itself: positions are then used again, but with greater terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPoint {
    /// The term in which the change was written.
    pub term: Term,
    /// The number of the change.
    pub position: Position,
}

impl LogPoint {
    /// The place of the change `position`, written in `term`.
    pub fn new(term: u64, position: u64) -> Self {
        Self { term: Term(term), position: Position(position) }
    }
}

impl fmt::Display for LogPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.term, self.position)
    }
}

impl Position {
    /// The position after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl StoreVersion {
    /// The greatest version, 2⁵³ − 1. Every JSON reader keeps it exactly, and as milliseconds since 1970 it is 285,000
    /// years away.
    pub const MAX: Self = Self((1 << 53) - 1);
}

impl PartitionId {
    /// The partition as a 0-based index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of a cluster's partitions: `1..=65_536`, fixed when the cluster is created.
///
/// The upper bound keeps per-partition tables (routing, files) small; the default of 1,536 is far above any supported
/// number of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionCount(u32);

impl PartitionCount {
    /// The most partitions of a cluster.
    pub const MAX: u32 = 65_536;

    /// Creates a count; `None` if `count` is zero or above [`PartitionCount::MAX`].
    pub fn new(count: u32) -> Option<Self> {
        (1..=Self::MAX).contains(&count).then_some(Self(count))
    }

    /// The count as a number.
    pub fn get(self) -> u32 {
        self.0
    }

    /// All partitions, ascending.
    pub fn iter(self) -> impl Iterator<Item = PartitionId> {
        (0..self.0).map(PartitionId)
    }
}

impl fmt::Display for PartitionCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
