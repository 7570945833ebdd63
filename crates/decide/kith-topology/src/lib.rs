//! The cluster as the documents of the metadata describe it. This crate converts between these documents and the types that
//! decide, and decides which versions must be held, by whom, and what may become of them. It reads no metadata itself.
//!
//! ```text
//! documents (kith-wire) ──► RoutingTable, Leaders, versions ──► metadata, nodes, routers
//!                      └──► Topology: graphs, stores ──► sessions, nodes, routers    (feature `graphs`)
//! ```
//!
//! - `table`: the routing table of a cluster document. `holding`: the versions that nodes hold, and the groups that
//!   hold a store.
//! - `live`: the identities and leaders of live graphs.
//! - [`versions`]: what may become of the versions of a store.
//! - `graphs`, behind the feature of that name: `Topology`, which a query pins from start to end, so that no answer mixes
//!   two versions; its graphs, stores, and types of live graphs.
//!
//! Without the feature, no schema and no type of a live graph is linked. The metadata (`kith-cluster`) is built so: it stores
//! definitions and never looks into them.
//!
//! To add a property of graphs or stores, add it to the document in `kith-wire`, and to `Graph` or `ValueStore`.

#[cfg(feature = "graphs")]
mod graphs;
mod holding;
mod live;
mod table;
pub mod versions;

#[cfg(feature = "graphs")]
pub use graphs::{
    BadTopology, Graph, LiveGraph, Pin, PinnedState, Topology, UnreadReason, ValueStore, column_documents,
    role_by_name, role_name, types_of_text, types_text,
};
pub use holding::{groups_of, placed, strategy_of, wanted};
pub use live::{identity_of, leaders_document, leaders_of};
pub use table::{
    BadTable, cluster_document, listed_document, listed_entry, role_of_group, role_text, table_of_document,
    table_parts,
};
