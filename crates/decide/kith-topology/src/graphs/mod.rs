//! Graphs and stores of values with their schemas, as queries pin them.
//!
//! - `topology`: the cluster at one revision, and the search for a graph or store in it. `pinned`: the state that a query
//!   reads. `error`: the reasons why a document is invalid.
//! - `graph`: loaded and live graphs. `live`: the schema of a live graph. `values`: stores of values.
//! - `types`: the types of live graphs as texts of their own.

mod error;
mod graph;
mod live;
mod pinned;
mod topology;
mod types;
mod values;

pub use error::BadTopology;
pub use graph::{Graph, column_documents, role_by_name, role_name};
pub use live::LiveGraph;
pub use pinned::{Pin, PinnedState};
pub use topology::{Topology, UnreadReason};
pub use types::{types_of_text, types_text};
pub use values::ValueStore;
