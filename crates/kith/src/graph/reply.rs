//! Graphs as commands print them.

use kith_wire::documents::{ComponentDocument, ServedDocument};
use serde::Serialize;

/// A graph at the version that queries pin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GraphReply {
    pub graph: String,
    pub version: u64,
    pub components: Vec<ComponentReply>,
}

/// An edge type, entity kind or list of members.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComponentReply {
    pub name: String,
    pub role: String,
    pub version: u64,
    pub members: u64,
    pub edges: u64,
    pub bytes: u64,
    pub columns: Vec<String>,
    pub loaded_at: u64,
}

impl From<ServedDocument> for GraphReply {
    fn from(document: ServedDocument) -> Self {
        let components = document.components.into_iter().map(ComponentReply::from);
        Self { graph: document.name, version: document.version, components: components.collect() }
    }
}

impl From<ComponentDocument> for ComponentReply {
    fn from(document: ComponentDocument) -> Self {
        let ComponentDocument { name, role, version, columns, members, edges, bytes, loaded_at, .. } =
            document;
        let columns = columns.into_iter().map(|column| column.name).collect();
        Self { name, role, version, members, edges, bytes, columns, loaded_at }
    }
}
