//! A live graph as Gremlin sees it: objects are vertices, and associations are edges.

mod amend;
mod changes;
mod check;
mod explain;
mod fields;
mod labels;
mod pages;
mod reach;
mod reads;
mod rows;
mod scan;
mod seek;
mod send;
mod writes;

pub(super) use check::check;
pub(super) use explain::{described, first};

use super::{
    fan_outs::FanOuts,
    ids::{number, number_id},
    traversal::Deadline,
};
use crate::{Session, session::Run};
use changes::Changes;
use futures::{FutureExt, future::BoxFuture};
use kith_gremlin::{
    GremlinError,
    value::{Direction, Edge, ElementId, Value, Vertex},
};
use kith_live::GraphTypes;
use kith_query::{QueryError, QueryOptions, Served};
use kith_traversal::{
    evaluate::{Limits, Meter, of_vertices},
    graph::{Answer, Expansion, Graph, Mutation, Notes, Sought, Wanted, ends},
};
use kith_wire::v1;
use parking_lot::Mutex as Lock;
use rows::unknown_vertex;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize},
    },
};
use tokio::sync::Mutex;

/// A live graph during one traversal. Each read shows the graph as it is at that time, with the changes that the traversal has
/// made.
pub(super) struct LiveGraph<'a> {
    session: &'a Session,
    name: String,
    /// The options of the traversal's reads.
    options: &'a QueryOptions,
    fan_outs: FanOuts<'a>,
    /// The types of the graph, as far as the traversal knows them: its writes may add types to an open graph.
    types: Lock<Arc<GraphTypes>>,
    deadline: Deadline,
    /// The number of elements that the traversal may see.
    elements_max: u64,
    /// Counts what the graph returns, before it is made.
    meter: Arc<Meter>,
    /// All ids in ascending order, once a scan has asked for them. They are forgotten after a vertex is added or
    /// removed.
    scanned: Mutex<Option<Arc<[u64]>>>,
    /// How many bytes are charged for them.
    scanned_bytes: AtomicU64,
    /// The labels of the vertices that the changes under way name.
    kinds: Lock<HashMap<u64, Arc<str>>>,
    changes: Changes,
    /// The number of writes that have been sent and whose outcome is not known yet.
    under_way: AtomicUsize,
}

impl<'a> LiveGraph<'a> {
    /// The graph with these types for one traversal, whose reads `run` sends.
    pub fn new(
        (session, options): (&'a Session, &'a QueryOptions),
        run: Run<'a>,
        types: &Arc<GraphTypes>,
        (limits, meter): (&Limits, Arc<Meter>),
    ) -> Self {
        Self {
            session,
            name: run.pinned().name.clone(),
            options,
            deadline: Deadline::of(&run),
            fan_outs: FanOuts::new(run.unpinned(), Arc::clone(&meter)),
            types: Lock::new(Arc::clone(types)),
            elements_max: limits.elements,
            meter,
            scanned: Mutex::default(),
            scanned_bytes: AtomicU64::new(0),
            kinds: Lock::default(),
            changes: Changes::default(),
            under_way: AtomicUsize::new(0),
        }
    }

    fn types(&self) -> Arc<GraphTypes> {
        Arc::clone(&self.types.lock())
    }

    /// Takes over the types that writes have added to an open graph.
    fn learn_types(&self) {
        let known = self.types();
        let topology = self.session.topology();
        if let Some(live) = topology.graph(&self.name).ok().and_then(|graph| graph.live.as_ref())
            && known.open
            && known.identity == live.types.identity
            && known.revision < live.types.revision
        {
            *self.types.lock() = Arc::clone(&live.types);
        }
    }

    /// The places in the logs that answered, and the timings if these were requested.
    pub fn finish(self) -> (Served, Option<v1::Profile>) {
        self.fan_outs.finish()
    }

    /// Whether the traversal has changed the graph, or may have.
    pub fn has_changes(&self) -> bool {
        self.changes.any() || self.changes.is_unknown()
    }

    /// Whether the traversal may succeed if it begins again. Waits, for a limited time, for what it needs.
    pub async fn begins_again(&self, error: &QueryError) -> bool {
        !self.has_changes() && self.fan_outs.run().await.begins_again(error, false).await
    }

    /// The error of the fan-out or write that made an evaluation fail.
    pub fn cause(&self, error: &GremlinError) -> Option<QueryError> {
        self.fan_outs.cause(error)
    }

    /// The error of a traversal that failed for this reason: it tells what the traversal has changed before.
    pub fn failure(&self, cause: QueryError) -> QueryError {
        match self.changes.told() {
            None => cause,
            Some(changes) => {
                let is_unknown = self.changes.is_unknown();
                QueryError::PartlyWritten { cause: Box::new(cause), changes, is_unknown }
            }
        }
    }
}

impl Graph for LiveGraph<'_> {
    fn canonical(&self, id: &ElementId) -> Option<ElementId> {
        number(id).map(number_id)
    }

    fn vertices(&self, ids: Vec<ElementId>, wanted: Wanted) -> Answer<'_, Vec<Option<Arc<Vertex>>>> {
        async move { self.found_vertices(&ids, &wanted).await }.boxed()
    }

    fn edges(&self, ids: Vec<ElementId>) -> Answer<'_, Vec<Option<Arc<Edge>>>> {
        async move { self.found_edges(&ids).await }.boxed()
    }

    fn scan_vertices(&self, after: Option<ElementId>, limit: usize) -> Answer<'_, Vec<Arc<Vertex>>> {
        async move { self.scanned_vertices(after, limit).await }.boxed()
    }

    fn find_vertices(&self, sought: Sought) -> Answer<'_, Option<Vec<Arc<Vertex>>>> {
        async move { self.sought_vertices(&sought).await }.boxed()
    }

    fn read_latest(&self) -> BoxFuture<'_, ()> {
        async move {
            self.fan_outs.run().await.read_latest();
            *self.scanned.lock().await = None;
        }
        .boxed()
    }

    fn scan_edges(&self, after: Option<ElementId>, limit: usize) -> Answer<'_, Vec<Arc<Edge>>> {
        async move { self.scanned_edges(after, limit).await }.boxed()
    }

    fn expand(&self, expansion: Expansion) -> Answer<'_, Vec<Vec<Arc<Edge>>>> {
        async move { self.expanded(&expansion).await }.boxed()
    }

    fn degrees(&self, expansion: Expansion) -> Answer<'_, Vec<u64>> {
        async move { self.counted(&expansion).await }.boxed()
    }

    fn reach(&self, expansion: Expansion) -> Answer<'_, Vec<Arc<Vertex>>> {
        async move {
            match self.reached(&expansion).await? {
                Some(ids) => {
                    self.meter.lend(of_vertices(ids.len()))?;
                    Ok(ids.into_iter().map(unknown_vertex).collect())
                }
                None => Ok(ends(&expansion.vertices, &self.expanded(&expansion).await?)),
            }
        }
        .boxed()
    }

    fn follows(&self, direction: Direction, labels: &[Arc<str>]) -> bool {
        labels::lists(&self.types_with(labels), direction, labels).is_ok()
    }

    fn count_reached(&self, expansion: Expansion) -> Answer<'_, u64> {
        async move {
            match self.reached(&expansion).await? {
                Some(ids) => Ok(ids.len() as u64),
                None => Ok(self.reach(expansion).await?.len() as u64),
            }
        }
        .boxed()
    }

    fn take_notes(&self) -> Notes {
        self.fan_outs.take_notes()
    }

    fn prepare<'a>(&'a self, mutations: &'a [Mutation]) -> Answer<'a, ()> {
        async move { self.prepared(mutations).await }.boxed()
    }

    fn write(&self, mutation: Mutation) -> Answer<'_, Option<Value>> {
        async move { self.changed(mutation).await }.boxed()
    }
}
