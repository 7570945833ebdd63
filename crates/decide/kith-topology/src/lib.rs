//! The cluster at one revision of the metadata, as clients and processes know it: routing table, addresses, graphs and
//! stores of values. It converts between these and the documents of the metadata, and decides which versions must be
//! held, and by whom. It reads no metadata itself.
//!
//! ```text
//! TopologyDocument (kith-wire) ──► Topology::from_document ──► graphs, stores, RoutingTable ──► sessions, nodes, routers
//! ```
//!
//! - [`Topology`]: what a query pins from start to end, so that no answer mixes two versions.
//! - `table`: the routing table of a cluster document. `holding`: the versions that nodes hold, and the groups that
//!   hold a store.
//! - `live`, `types`: live graphs, their leaders, and their types as texts of their own.
//! - [`versions`]: what may become of the versions of a store.
//!
//! To add a property of graphs or stores, add it to the document in `kith-wire`, and to [`Graph`] or [`ValueStore`].

mod holding;
mod live;
mod table;
mod types;
pub mod versions;

pub use holding::{groups_of, placed, strategy_of, wanted};
pub use live::{LiveGraph, leaders_document, leaders_of};
pub use table::{cluster_document, listed_document, listed_entry, role_of_group, role_text, table_parts};
pub use types::{identity_of, types_of_text, types_text};

use kith_routing::{QuotaRates, RoutingTable, StoreReach, TableError};
use kith_schema::{
    Column, GraphSchema, KeyType, KindRole, KindSchema, SchemaId, SchemaIdError, UnknownKind, ValueType,
};
use kith_types::{NodeId, StoreVersion};
use kith_wire::LookupError;
use kith_wire::documents::{ColumnDocument, HoldsDocument, ServedDocument, TopologyDocument};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};
use thiserror::Error;

/// The cluster at one metadata revision. Immutable: a query holds one from start to end.
#[derive(Debug)]
pub struct Topology {
    /// The revision.
    pub revision: u64,
    /// The routing table.
    pub table: Arc<RoutingTable>,
    /// Graphs by name.
    pub graphs: BTreeMap<String, Arc<Graph>>,
    /// Live graphs whose types this process has not read, by name. [`Topology::graph`] refuses them.
    pub unread: BTreeMap<String, UnreadReason>,
    /// Stores of values by name, including those without a version yet.
    pub stores: BTreeMap<String, Arc<ValueStore>>,
    /// Routers' gRPC addresses, in the order of their ids.
    pub routers: Vec<String>,
    /// The document that it was made from.
    pub document: Arc<TopologyDocument>,
}

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

/// The reason why a process does not have the types of a live graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnreadReason {
    /// It has not asked for them.
    Unasked,
    /// They could not be read, for this reason.
    Failed(String),
}

/// One store of values at the version that reads pin.
#[derive(Debug)]
pub struct ValueStore {
    /// Its name and version.
    pub pinned: Arc<PinnedState>,
    /// The type of its keys.
    pub key: KeyType,
    /// The type of its values.
    pub value: ValueType,
    /// For records: the schema of this version.
    pub schema: Option<SchemaId>,
    /// The number of answers to a key that must agree; at least 1.
    pub required_reads: u32,
    /// The amounts of it that may be read per second, through all routers together.
    pub read_quota: QuotaRates,
}

/// The reason why a topology document is invalid.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum BadTopology {
    /// The number of partitions is invalid.
    #[error("{0} partitions")]
    Partitions(u32),
    /// The table's strategy or a group's role is invalid, or of a newer release.
    #[error("unknown {what} {name:?}")]
    Word {
        /// The kind of word that is expected.
        what: &'static str,
        /// The word in the document.
        name: String,
    },
    /// A component's role is invalid, or of a newer release.
    #[error("component {component:?} of graph {graph:?} has unknown role {role:?}")]
    Role { graph: String, component: String, role: String },
    /// The type of a store's keys or values is invalid, or of a newer release.
    #[error("store {store:?}")]
    Kind {
        store: String,
        /// The word that is wrong.
        #[source]
        source: UnknownKind,
    },
    /// The schema id of a store's records is invalid.
    #[error("store {store:?}")]
    Schema {
        store: String,
        /// The reason why the id is invalid.
        #[source]
        source: SchemaIdError,
    },
    /// The owners do not form a valid table.
    #[error("routing table")]
    Table(#[from] TableError),
}

impl Topology {
    /// Decodes a document. A node that has not registered yet has an empty address and cannot be asked.
    ///
    /// # Errors
    /// If the document is invalid.
    pub fn from_document(document: Arc<TopologyDocument>) -> Result<Self, BadTopology> {
        Self::after(None, document)
    }

    /// Decodes a document. Types that the topology before has too are not decoded again.
    ///
    /// # Errors
    /// If the document is invalid.
    pub fn after(before: Option<&Topology>, document: Arc<TopologyDocument>) -> Result<Self, BadTopology> {
        let table = table_of_document(&document)?;
        let graphs = document.graphs().map(|graph| {
            let (pinned, schema) = (pinned(graph, "graph", &table), schema_of(graph)?);
            let properties = graph.definition.properties.clone();
            Ok((graph.name.clone(), Arc::new(Graph { pinned, schema, live: None, properties })))
        });
        let mut graphs = graphs.collect::<Result<BTreeMap<_, _>, BadTopology>>()?;
        let mut unread = BTreeMap::new();
        for graph in &document.live {
            match live::types(graph, &document, before) {
                Ok(types) => {
                    let live = live::graph(graph, types, &document.leaders, &table);
                    graphs.insert(graph.name.clone(), Arc::new(live));
                }
                Err(reason) => drop(unread.insert(graph.name.clone(), reason)),
            }
        }
        let stores = document.stores.iter().filter_map(|store| value_store(store, &table).transpose());
        let stores = stores.map(|store| store.map(|store| (store.pinned.name.clone(), Arc::new(store))));
        Ok(Self {
            revision: document.revision,
            graphs,
            unread,
            stores: stores.collect::<Result<_, BadTopology>>()?,
            table: Arc::new(table),
            routers: document.routers.iter().map(|router| router.addr.clone()).collect(),
            document,
        })
    }

    /// Looks up the graph of this name.
    ///
    /// # Errors
    /// [`LookupError::UnknownGraph`] if there is none; [`LookupError::TypesUnavailable`] if its types have not been read.
    pub fn graph(&self, name: &str) -> Result<&Arc<Graph>, LookupError> {
        if let Some(graph) = self.graphs.get(name) {
            return Ok(graph);
        }
        let (graph, reason) = match self.unread.get(name) {
            Some(UnreadReason::Failed(reason)) => (name.to_owned(), reason.clone()),
            Some(UnreadReason::Unasked) => (name.to_owned(), "they have not been read yet".to_owned()),
            None => {
                let mut known: Vec<_> = self.graphs.keys().chain(self.unread.keys()).cloned().collect();
                known.sort_unstable();
                return Err(LookupError::UnknownGraph { name: name.to_owned(), known });
            }
        };
        Err(LookupError::TypesUnavailable { graph, reason })
    }

    /// Looks up the graph of this name at a version in which an edge type (`None`: the first) has this version of its own:
    /// the served version, or else a kept one, which nodes hold too. Returns the served version if neither has it.
    ///
    /// # Errors
    /// [`LookupError::UnknownGraph`] if there is no such graph.
    pub fn graph_with(
        &self,
        name: &str,
        edge_type: Option<&str>,
        version: StoreVersion,
    ) -> Result<Arc<Graph>, LookupError> {
        let served = self.graph(name)?;
        let has = |graph: &Graph| {
            let kind = match edge_type {
                Some(name) => graph.schema.kind(name),
                None => graph.schema.default_edge_type(),
            };
            kind.is_some_and(|kind| kind.version == version)
        };
        if has(served) {
            return Ok(Arc::clone(served));
        }
        let kept = self.document.kept.iter().filter(|kept| kept.is_whole && kept.at.name == name);
        let mut kept = kept.filter_map(|kept| {
            let (pinned, schema) = (pinned(&kept.at, "graph", &self.table), schema_of(&kept.at).ok()?);
            let properties = served.properties.clone();
            Some(Graph { pinned, schema, live: None, properties })
        });
        Ok(kept.find(has).map_or_else(|| Arc::clone(served), Arc::new))
    }

    /// Looks up the store of values of this name, which must serve a version.
    ///
    /// # Errors
    /// [`LookupError::UnknownStore`]; [`LookupError::NotValues`] for a graph; [`LookupError::NoVersion`] if no version is
    /// served yet.
    pub fn store(&self, name: &str) -> Result<&Arc<ValueStore>, LookupError> {
        let store = self.stores.get(name).filter(|store| store.pinned.version() != 0);
        store.ok_or_else(|| LookupError::of_values(&self.document, name))
    }
}

/// Decodes a store of values; `None` for a graph.
fn value_store(store: &ServedDocument, table: &RoutingTable) -> Result<Option<ValueStore>, BadTopology> {
    let HoldsDocument::Values { key, value, .. } = &store.definition.holds else { return Ok(None) };
    let kind = |source| BadTopology::Kind { store: store.name.clone(), source };
    let schema = store.components.iter().find_map(|component| component.schema.as_deref());
    let schema = schema.map(str::parse).transpose();
    Ok(Some(ValueStore {
        schema: schema.map_err(|source| BadTopology::Schema { store: store.name.clone(), source })?,
        pinned: pinned(store, "store", table),
        key: key.parse().map_err(kind)?,
        value: value.parse().map_err(kind)?,
        required_reads: store.definition.required_reads.max(1),
        read_quota: QuotaRates {
            keys: store.definition.read_quota_keys,
            bytes: store.definition.read_quota_bytes,
        },
    }))
}

fn pinned(store: &ServedDocument, what: &'static str, table: &RoutingTable) -> Arc<PinnedState> {
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
            let unknown = |_| BadTopology::Word { what: "kind of column", name: column.kind.clone() };
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

/// The table with addresses. If the table lists a node without labels, it gets the labels that it registered with.
///
/// # Errors
/// If the document is invalid.
pub fn table_of_document(document: &TopologyDocument) -> Result<RoutingTable, BadTopology> {
    let mut parts = table_parts(&document.cluster)?;
    for entry in &mut parts.nodes {
        let Some(known) = document.nodes.iter().find(|known| known.node == entry.id.0) else { continue };
        entry.address.clone_from(&known.addr);
        if entry.zone.is_empty() && entry.rack.is_empty() && entry.region.is_empty() {
            entry.zone.clone_from(&known.zone);
            entry.rack.clone_from(&known.rack);
            entry.region.clone_from(&known.region);
        }
    }
    Ok(RoutingTable::new(parts)?)
}
