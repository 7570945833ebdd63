//! The state of a graph or store that a query reads from start to end.

use kith_routing::{RoutingTable, StoreReach};
use kith_types::{NodeId, StoreVersion};
use kith_wire::documents::ServedDocument;
use std::{collections::BTreeMap, sync::Arc};

/// The graph or store that a query reads, in one state from start to end.
#[derive(Debug)]
pub struct PinnedState {
    /// The name of the graph or store.
    pub name: String,
    /// Its state.
    pub pin: Pin,
    /// The version of each of its components: a load replaces those that it brings.
    pub components: Arc<BTreeMap<String, StoreVersion>>,
    /// `graph` or `store`, for messages.
    pub what: &'static str,
    /// The replicas that hold this version. Others are not asked for it.
    pub reach: StoreReach,
}

/// The state of a graph or store that a query reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// One version, which never changes; 0 means that none is served yet.
    Version(u64),
    /// The state of a live graph: each partition at the position at which the query first reads it.
    Live {
        /// The identity of the graph ([`kith_live::GraphTypes::identity`]).
        identity: u64,
    },
}

impl Pin {
    /// The version; `None` for a live graph.
    pub fn version(self) -> Option<u64> {
        match self {
            Pin::Version(version) => Some(version),
            Pin::Live { .. } => None,
        }
    }
}

impl PinnedState {
    /// The version for requests to nodes, schemas and messages; 0 for a live graph, and for a store without versions.
    pub fn version(&self) -> u64 {
        self.pin.version().unwrap_or_default()
    }

    /// The same state, read from other replicas.
    #[must_use]
    pub fn with_reach(&self, reach: StoreReach) -> Self {
        let &Self { ref name, pin, ref components, what, .. } = self;
        Self { name: name.clone(), pin, components: Arc::clone(components), what, reach }
    }
}

/// The state of a graph or store at the version of a document.
pub(super) fn pinned(store: &ServedDocument, what: &'static str, table: &RoutingTable) -> Arc<PinnedState> {
    let excluded: Vec<NodeId> = store.excluded.iter().copied().map(NodeId).collect();
    let reach = StoreReach::new(table, &store.name, store.definition.replication, &excluded);
    let components = store.components.iter();
    let components = components.map(|component| (component.name.clone(), StoreVersion(component.version)));
    Arc::new(PinnedState {
        name: store.name.clone(),
        pin: Pin::Version(store.version),
        components: Arc::new(components.collect()),
        what,
        reach,
    })
}
