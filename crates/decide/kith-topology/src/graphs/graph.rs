//! Graphs in a topology, and the schemas of loaded graphs.

use super::{
    error::BadTopology,
    live::{self, LiveGraph},
    pinned::{Pin, PinnedState, pinned},
};
use crate::leaders_of;
use kith_live::GraphTypes;
use kith_routing::{RoutingTable, StoreReach};
use kith_schema::{Column, GraphSchema, KindRole, KindSchema};
use kith_types::StoreVersion;
use kith_wire::documents::{ColumnDocument, LeadersDocument, LiveGraphDocument, ServedDocument};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

/// One graph in the state that queries pin.
#[derive(Debug)]
pub struct Graph {
    /// Its name and state.
    pub pinned: Arc<PinnedState>,
    /// Its edge types and entity kinds.
    pub schema: GraphSchema,
    /// For a live graph: its types and leaders.
    pub live: Option<LiveGraph>,
    /// For a loaded graph: the store of records whose fields are the properties of its members.
    pub properties: Option<String>,
}

impl Graph {
    /// The edge types and entity kinds, for a query that may name an edge type. In an open graph, a type that does not exist is a
    /// directed edge type without edges.
    pub fn schema_for(&self, edge_type: Option<&str>) -> Cow<'_, GraphSchema> {
        match (&self.live, edge_type) {
            (Some(live), Some(name)) => live::schema_for(&self.schema, &live.types, name),
            _ => Cow::Borrowed(&self.schema),
        }
    }
}

/// Decodes a loaded graph, whose members have the fields of the store `properties`.
pub(super) fn loaded(
    graph: &ServedDocument,
    properties: Option<String>,
    table: &RoutingTable,
) -> Result<Graph, BadTopology> {
    let (pinned, schema) = (pinned(graph, "graph", table), schema_of(graph)?);
    Ok(Graph { pinned, schema, live: None, properties })
}

/// Decodes a live graph with these types.
pub(super) fn live(
    document: &LiveGraphDocument,
    types: Arc<GraphTypes>,
    leaders: &[LeadersDocument],
    table: &RoutingTable,
) -> Graph {
    let leaders = leaders.iter().find(|leaders| leaders.graph == document.name);
    let pinned = PinnedState {
        name: document.name.clone(),
        pin: Pin::Live { identity: types.identity },
        components: Arc::new(BTreeMap::new()),
        what: "graph",
        reach: StoreReach::new(table, &document.name, None, &[]),
    };
    Graph {
        pinned: Arc::new(pinned),
        schema: live::schema_of(&types),
        live: Some(LiveGraph { types, leaders: leaders.map(leaders_of).unwrap_or_default() }),
        properties: None,
    }
}

/// Encodes the columns of a component for documents.
pub fn column_documents(columns: &[Column]) -> Vec<ColumnDocument> {
    let document =
        |column: &Column| ColumnDocument { name: column.name.clone(), kind: column.kind.name().to_owned() };
    columns.iter().map(document).collect()
}

/// The role's name in documents.
pub fn role_name(role: KindRole) -> &'static str {
    match role {
        KindRole::Undirected => "undirected",
        KindRole::Directed => "directed",
        KindRole::Entity => "entity",
        KindRole::MembersOnly => "members-only",
    }
}

/// The role of this name.
pub fn role_by_name(name: &str) -> Option<KindRole> {
    [KindRole::Undirected, KindRole::Directed, KindRole::Entity, KindRole::MembersOnly]
        .into_iter()
        .find(|role| role_name(*role) == name)
}

fn schema_of(graph: &ServedDocument) -> Result<GraphSchema, BadTopology> {
    let kinds = graph.components.iter().map(|component| {
        let role = role_by_name(&component.role).ok_or_else(|| BadTopology::Role {
            graph: graph.name.clone(),
            component: component.name.clone(),
            role: component.role.clone(),
        })?;
        let columns = component.columns.iter().map(|column| {
            let unknown = |_| BadTopology::Column { kind: column.kind.clone() };
            Ok(Column { name: column.name.clone(), kind: column.kind.parse().map_err(unknown)? })
        });
        Ok(KindSchema {
            name: component.name.clone(),
            role,
            version: StoreVersion(component.version),
            columns: columns.collect::<Result<_, BadTopology>>()?,
            one_sided: false,
        })
    });
    Ok(GraphSchema { kinds: kinds.collect::<Result<_, BadTopology>>()? })
}
