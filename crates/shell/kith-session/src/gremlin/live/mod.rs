//! A live graph as Gremlin sees it: objects are vertices, and associations are edges.

mod amend;
mod changes;
mod check;
mod count;
mod explain;
mod fields;
mod ids;
mod labels;
mod pages;
mod parts;
mod queue;
mod reach;
mod reads;
mod rows;
mod scan;
mod seek;
mod send;
mod settle;
mod writes;

pub(super) use check::check;
pub(super) use explain::{described, first};

use super::{deadline::Deadline, fan_outs::FanOuts, ids::number_id};
use crate::{Session, session::Run};
use futures::{FutureExt, future::BoxFuture};
use ids::VertexName;
use kith_gremlin::{
    GremlinError,
    value::{Direction, Edge, ElementId, Value, Vertex},
};
use kith_live::{GraphTypes, ObjectAnswer};
use kith_query::{QueryError, QueryOptions, ServedGraph};
use kith_traversal::{
    evaluate::{Limits, Meter, of_vertices},
    graph::{
        self, CountedLabels, EdgeList, ElementTest, Expansion, Graph, GraphFuture, Mutation, Notes,
        ScanPlace, ScannedEdges, VertexSearch, WantedProperties, ends,
    },
};
use kith_wire::v1;
use parking_lot::Mutex;
use queue::WriteQueue;
use reads::LiveReads;
use rows::unknown_vertex;
use scan::Scan;
use send::Writes;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The warning about ids that `addE` was given.
const IGNORED_IDS: &str = "the ids that addE() was given are ignored: the id of an edge is OUT>LABEL>IN; use another key to keep \
                           them as a property";

/// A live graph during one traversal.
pub(super) struct LiveGraph<'a> {
    reads: LiveReads<'a>,
    scan: Scan,
    writes: Writes<'a>,
    /// The writes that have been put off.
    queue: Mutex<WriteQueue>,
    /// The new vertices among them, by their numbers.
    added: Mutex<HashMap<u64, ObjectAnswer>>,
    /// The vertices that the changes under way name, by their numbers.
    looked_up: Mutex<HashMap<u64, Arc<Vertex>>>,
    /// The numbers of ids in the changes under way that are texts.
    numbers: Mutex<HashMap<ElementId, u64>>,
    /// Whether ids that were given to edges have been ignored.
    has_ignored_ids: AtomicBool,
}

impl<'a> LiveGraph<'a> {
    /// The graph with these types for one traversal, whose reads `run` sends.
    pub fn new(
        (session, options): (&'a Session, &'a QueryOptions),
        run: Run<'a>,
        types: &Arc<GraphTypes>,
        (limits, meter): (&Limits, Arc<Meter>),
    ) -> Self {
        let writes = Writes::new(session, run.pinned().name.clone(), options, Deadline::of(&run));
        let reads = LiveReads {
            fan_outs: FanOuts::new(run.unpinned(), Arc::clone(&meter)),
            types: Mutex::new(Arc::clone(types)),
            count: session.topology().table.partition_count(),
            elements_max: limits.elements,
            meter,
        };
        Self {
            reads,
            scan: Scan::default(),
            writes,
            queue: Mutex::default(),
            added: Mutex::default(),
            looked_up: Mutex::default(),
            numbers: Mutex::default(),
            has_ignored_ids: AtomicBool::new(false),
        }
    }

    /// The points of the logs that answered, and the timings if these were requested.
    pub fn finish(self) -> (ServedGraph, Option<v1::Profile>) {
        self.reads.fan_outs.finish()
    }

    /// What the traversal did otherwise than it says.
    pub fn warnings(&self) -> Vec<String> {
        let has_ignored_ids = self.has_ignored_ids.load(Ordering::Relaxed);
        has_ignored_ids.then(|| IGNORED_IDS.to_owned()).into_iter().collect()
    }

    /// Whether the traversal has changed the graph, or may have.
    pub fn has_changes(&self) -> bool {
        self.writes.changes.any() || self.writes.changes.is_unknown()
    }

    /// Whether a write has been sent whose outcome is not known yet.
    pub fn is_writing(&self) -> bool {
        self.writes.is_writing()
    }

    /// Whether the traversal may succeed if it begins again. Waits, for a limited time, for what it needs.
    pub async fn begins_again(&self, error: &QueryError) -> bool {
        !self.has_changes() && self.reads.fan_outs.run().await.begins_again(error, false).await
    }

    /// The error of the fan-out or write that made an evaluation fail.
    pub fn cause(&self, error: &GremlinError) -> Option<QueryError> {
        self.reads.fan_outs.cause(error)
    }

    /// The error of a traversal that failed for this reason: it tells what the traversal has changed before.
    pub fn failure(&self, cause: QueryError) -> QueryError {
        match self.writes.changes.summary() {
            None => cause,
            Some(changes) => {
                let is_unknown = self.writes.changes.is_unknown();
                QueryError::PartlyWritten { cause: Box::new(cause), changes, is_unknown }
            }
        }
    }
}

impl Graph for LiveGraph<'_> {
    fn canonical(&self, id: &ElementId) -> Option<ElementId> {
        match VertexName::of(id, self.reads.types().take_text_ids())? {
            VertexName::Number(number) => Some(number_id(number)),
            VertexName::Text(_) => None,
        }
    }

    fn named(&self, ids: Vec<ElementId>) -> GraphFuture<'_, Vec<Option<ElementId>>> {
        async move {
            settle::showing(self, &ids, false).await?;
            self.reads.canonical(&ids).await
        }
        .boxed()
    }

    fn ignores_edge_id(&self) -> bool {
        self.has_ignored_ids.store(true, Ordering::Relaxed);
        true
    }

    fn vertices(
        &self,
        ids: Vec<ElementId>,
        wanted: WantedProperties,
    ) -> GraphFuture<'_, Vec<Option<Arc<Vertex>>>> {
        async move {
            settle::showing(self, &ids, false).await?;
            self.reads.found_vertices(&ids, &wanted).await
        }
        .boxed()
    }

    fn passing(&self, ids: Vec<ElementId>, tests: Arc<[ElementTest]>) -> GraphFuture<'_, Vec<bool>> {
        async move {
            settle::showing(self, &ids, false).await?;
            match self.reads.passing(&ids, &tests).await? {
                Some(passing) => Ok(passing),
                None => {
                    let keys = tests.iter().filter_map(|test| test.key.clone()).collect();
                    let vertices = self.reads.found_vertices(&ids, &WantedProperties::Keys(keys)).await?;
                    graph::passing(&vertices, &tests)
                }
            }
        }
        .boxed()
    }

    fn edges(&self, ids: Vec<ElementId>) -> GraphFuture<'_, Vec<Option<Arc<Edge>>>> {
        async move {
            settle::settled(self).await?;
            self.reads.found_edges(&ids).await
        }
        .boxed()
    }

    fn scan_vertices(&self, after: Option<ElementId>, limit: usize) -> GraphFuture<'_, Vec<Arc<Vertex>>> {
        async move {
            settle::settled(self).await?;
            self.scan.vertices(&self.reads, after, limit).await
        }
        .boxed()
    }

    fn find_vertices(&self, sought: VertexSearch) -> GraphFuture<'_, Option<Vec<Arc<Vertex>>>> {
        async move {
            settle::settled(self).await?;
            self.reads.sought_vertices(&sought).await
        }
        .boxed()
    }

    fn count_vertices(&self, labels: CountedLabels) -> GraphFuture<'_, Option<u64>> {
        async move {
            settle::settled(self).await?;
            count::vertices(&self.reads, &labels).await.map(Some)
        }
        .boxed()
    }

    fn count_edges(&self, labels: CountedLabels) -> GraphFuture<'_, Option<u64>> {
        async move {
            settle::settled(self).await?;
            count::edges(&self.reads, &labels).await.map(Some)
        }
        .boxed()
    }

    fn read_latest(&self) -> BoxFuture<'_, ()> {
        async move {
            self.reads.fan_outs.run().await.read_latest();
            self.scan.forget().await;
        }
        .boxed()
    }

    fn scan_edges(&self, after: Option<ScanPlace>, limit: usize) -> GraphFuture<'_, ScannedEdges> {
        async move {
            settle::settled(self).await?;
            self.scan.edges(&self.reads, after, limit).await
        }
        .boxed()
    }

    fn expand(&self, expansion: Expansion) -> GraphFuture<'_, Vec<EdgeList>> {
        async move {
            settle::showing(self, &expansion.vertices, true).await?;
            self.reads.expanded(&expansion).await
        }
        .boxed()
    }

    fn degrees(&self, expansion: Expansion) -> GraphFuture<'_, Vec<u64>> {
        async move {
            settle::showing(self, &expansion.vertices, true).await?;
            self.reads.counted(&expansion).await
        }
        .boxed()
    }

    fn reach(&self, expansion: Expansion) -> GraphFuture<'_, Vec<Arc<Vertex>>> {
        async move {
            settle::showing(self, &expansion.vertices, true).await?;
            match self.reads.reached(&expansion).await? {
                Some(ids) => {
                    self.reads.meter.lend(of_vertices(ids.len()))?;
                    let unread = self.reads.unread();
                    Ok(ids.into_iter().map(|id| unknown_vertex(id, unread.clone())).collect())
                }
                None => Ok(ends(&expansion.vertices, &self.reads.expanded(&expansion).await?)),
            }
        }
        .boxed()
    }

    fn follows(&self, direction: Direction, labels: &[Arc<str>]) -> bool {
        labels::lists(&self.reads.types_with(labels), direction, labels).is_ok()
    }

    fn count_reached(&self, expansion: Expansion) -> GraphFuture<'_, u64> {
        async move {
            settle::showing(self, &expansion.vertices, true).await?;
            match self.reads.reached(&expansion).await? {
                Some(ids) => Ok(ids.len() as u64),
                None => Ok(self.reach(expansion).await?.len() as u64),
            }
        }
        .boxed()
    }

    fn take_notes(&self) -> Notes {
        self.reads.fan_outs.take_notes()
    }

    fn prepare<'a>(&'a self, mutations: &'a [Mutation]) -> GraphFuture<'a, ()> {
        async move { self.prepared(mutations).await }.boxed()
    }

    fn write(&self, mutation: Mutation) -> GraphFuture<'_, Option<Value>> {
        async move { self.changed(mutation).await }.boxed()
    }

    fn settle(&self) -> GraphFuture<'_, ()> {
        async move { settle::settled(self).await }.boxed()
    }
}
