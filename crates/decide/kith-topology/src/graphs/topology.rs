//! The cluster at one revision, with its graphs and stores.

use super::{
    error::BadTopology,
    graph::{self, Graph},
    types::types_of_text,
    values::{ValueStore, value_store},
};
use crate::table_of_document;
use kith_live::GraphTypes;
use kith_routing::RoutingTable;
use kith_types::StoreVersion;
use kith_wire::LookupError;
use kith_wire::documents::{LiveGraphDocument, TopologyDocument};
use std::{collections::BTreeMap, sync::Arc};

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

/// The reason why a process does not have the types of a live graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnreadReason {
    /// It has not asked for them.
    Unasked,
    /// They could not be read, for this reason.
    Failed(String),
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
            let loaded = graph::loaded(graph, graph.definition.properties.clone(), &table)?;
            Ok((graph.name.clone(), Arc::new(loaded)))
        });
        let mut graphs = graphs.collect::<Result<BTreeMap<_, _>, BadTopology>>()?;
        let mut unread = BTreeMap::new();
        for graph in &document.live {
            match types_of(graph, &document, before) {
                Ok(types) => {
                    let live = graph::live(graph, types, &document.leaders, &table);
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
        let mut kept =
            kept.filter_map(|kept| graph::loaded(&kept.at, served.properties.clone(), &self.table).ok());
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

/// Returns the types of a graph: those of the topology before if they are the same, or else those in the text that this process
/// has read.
fn types_of(
    document: &LiveGraphDocument,
    topology: &TopologyDocument,
    before: Option<&Topology>,
) -> Result<Arc<GraphTypes>, UnreadReason> {
    let text = match topology.types.get(&document.name) {
        None => return Err(UnreadReason::Unasked),
        Some(Err(reason)) => return Err(UnreadReason::Failed(reason.clone())),
        Some(Ok(text)) => text,
    };
    if let Some(before) = before
        && let Some(Ok(known)) = before.document.types.get(&document.name)
        && Arc::ptr_eq(known, text)
        && let Some(live) = before.graphs.get(&document.name).and_then(|graph| graph.live.as_ref())
    {
        return Ok(Arc::clone(&live.types));
    }
    types_of_text(&document.types, text).map(Arc::new).map_err(UnreadReason::Failed)
}
