//! The sorted adjacency of a live graph, for graph queries (`docs/design/0019-live-graph.md`).
//!
//! [`Adjacency`] holds, for each partition of a node, the sorted list of every member under each association type that
//! queries follow, and an inverted index of these lists. It is built from pages of the database ([`Build`]) and then
//! follows the log. It remembers recent changes, so that an [`AdjacencyReader`] can read all lists of a partition as of
//! one point while changes continue.
//!
//! Queries see the associations as follows:
//!
//! - A symmetric type is an undirected edge type. A type with an inverse is a directed one, whose `in` lists are the
//!   lists of the inverse type; therefore the lists of both are kept if either has adjacency. A type without an inverse
//!   is a directed one that can only be followed along `out`; every other direction fails with
//!   [`kith_schema::SourceError::OneSided`].
//! - An id is in the graph if it is an object, or if it has a non-empty list of its own under any type whose
//!   associations are kept. Being the id2 of a type without an inverse does not put an id in the graph, because the
//!   id's own partition does not know of the association.
//! - An association of an id with itself makes the id a member, but is not an edge.
//! - Associations have no columns.
//!
//! If the ends of an association lie in different partitions, its two directions are in two logs. Queries may then
//! briefly see one direction without the other.
//!
//! ```
//! use kith_cache::adjacency::{Adjacency, AdjacencyOptions, BuildNeed};
//! use kith_live::{Association, Change, Effect, GraphTypes, ListKey};
//! use kith_schema::{EdgeSelector, NeighbourSource};
//! use kith_types::{Direction, LogPoint, PartitionCount, PartitionId, Timestamp};
//! use std::ops::ControlFlow;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let declared = "[object.person]\n[association.follows]".parse()?;
//! let types = GraphTypes::new(7, &declared)?;
//! let (kind, _) = types.association("follows").ok_or("it was declared")?;
//! let one = PartitionCount::new(1).ok_or("1 is a valid count")?;
//! let graph = Adjacency::new(one, &types, AdjacencyOptions::default());
//!
//! let mut build = graph.open(PartitionId(0));
//! let at = LogPoint::new(1, 7);
//! assert_eq!(build.next(), BuildNeed::Objects { after: None });
//! build.objects(at, &[4, 5], true)?;
//! assert_eq!(build.next(), BuildNeed::Associations { after: None });
//! build.associations(at, &[ListKey { id1: 4, kind }.to(5)], true)?;
//! assert_eq!(build.next(), BuildNeed::Nothing);
//! graph.install(build)?;
//!
//! let before = graph.reader([(PartitionId(0), None)])?;
//! let now = Association { id2: 6, time: 1, stamp: LogPoint::new(1, 8), data: Default::default() };
//! let effect = Effect::Association { list: ListKey { id1: 4, kind }, now, was: None, count: 2 };
//! let _ = graph.apply(PartitionId(0), LogPoint::new(1, 8), &Change { effects: vec![effect] }, Timestamp::ZERO);
//! let after = graph.reader([(PartitionId(0), None)])?;
//!
//! let follows = EdgeSelector { kind: "follows".to_owned(), direction: Direction::Out, filter: None };
//! let list = |reader: &dyn NeighbourSource| {
//!     let mut ids = None;
//!     reader.lists(&follows, &[4], &mut |_, list| {
//!         ids = list.map(<[u64]>::to_vec);
//!         ControlFlow::Continue(())
//!     })?;
//!     Ok::<_, kith_schema::SourceError>(ids)
//! };
//! assert_eq!(list(&after)?, Some(vec![5, 6]));
//! assert_eq!(list(&before)?, Some(vec![5]), "the earlier state");
//! # Ok(())
//! # }
//! ```

mod build;
mod graph;
mod ids;
mod lock;
mod partition;
mod reader;
mod state;
mod types;
mod undo;

pub use crate::live::Progress;
pub use build::{Build, BuildError, BuildNeed};
pub use graph::{Adjacency, ClosedLists, InstallError};
pub use reader::AdjacencyReader;

use kith_types::LogPoint;
use std::time::Duration;

/// The amount of the past that an [`Adjacency`] remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdjacencyOptions {
    /// The time for which changes can be undone. This must be longer than any query takes.
    pub undo_for: Duration,
    /// The most changes of each partition that can be undone, at about 190 bytes each. A change of an association
    /// counts twice: once for its list, and once for the inverted index.
    pub undo_max: usize,
}

impl Default for AdjacencyOptions {
    /// A minute, and 16,384 changes: 3 MiB for each partition.
    fn default() -> Self {
        Self { undo_for: Duration::from_secs(60), undo_max: 16_384 }
    }
}

/// The points at which a partition can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The oldest point that undo information reaches.
    pub from: LogPoint,
    /// The newest point that was applied.
    pub to: LogPoint,
}
