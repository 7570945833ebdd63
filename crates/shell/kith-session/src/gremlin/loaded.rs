//! A loaded graph as Gremlin sees it: members and entities are vertices, and the lists of edge types and entity kinds are
//! edges, whose properties are columns.

use super::{
    count,
    edge_scan::EdgeScan,
    fan_outs::{FanOuts, of_keys, union_of_keys},
    id_pages::{IdPage, IdPages},
    ids::{VertexKey, number, parse_edge, vertex_key},
    joined::{JoinedVersion, Properties},
    rows::{expand, lists, selector},
    to_gremlin_error,
};
use crate::session::Run;
use futures::FutureExt;
use kith_gremlin::{
    GremlinError,
    value::{Direction, Edge, ElementId, Value, Vertex},
};
use kith_operators::{ListEntry, Operator};
use kith_query::{FanOut, QueryError, ServedGraph};
use kith_schema::{GraphSchema, KindRole, KindSchema};
use kith_topology::Graph as Known;
use kith_traversal::{
    evaluate::{Meter, of_vertices},
    explain::StepQuestion,
    graph::{
        CountedLabels, EdgeList, Expansion, Graph, GraphFuture, ListPart, Mutation, Notes, ScanPlace,
        ScannedEdges, WantedProperties,
    },
};
use kith_types::Direction as Side;
use kith_wire::v1;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};
use tokio::sync::OnceCell;

/// The first fan-out that answers a question about vertices with these ids, as far as it matters for where it goes. `None` if
/// none of the ids is a member's, or the graph has no lists.
pub(super) fn first(ids: &[ElementId], asks: &StepQuestion, schema: &GraphSchema) -> Option<FanOut> {
    let member = |id: &ElementId| match VertexKey::parse(id, schema) {
        Some(VertexKey::Member(id)) => Some(id),
        _ => None,
    };
    let members: BTreeSet<u64> = ids.iter().filter_map(member).collect();
    if members.is_empty() {
        return None;
    }
    let members: Vec<u64> = members.into_iter().collect();
    let hop = |purpose| of_keys(purpose, &members, Operator::Keys);
    match asks {
        StepQuestion::Vertices { .. } => existence(None, members.clone(), schema),
        StepQuestion::Hop { .. } => Some(hop("neighbours")),
        StepQuestion::Degree { .. } => Some(hop("degrees")),
        StepQuestion::Reach { .. } | StepQuestion::CountReached { .. } => {
            Some(union_of_keys("reached vertices", &members, Operator::Keys))
        }
        _ => None,
    }
}

/// The fan-out that counts the lists of members, or of entities of a kind. `None` if the graph has no lists.
fn existence(entity_kind: Option<&str>, ids: Vec<u64>, schema: &GraphSchema) -> Option<FanOut> {
    let is_listed = |kind: &&KindSchema| kind.role != KindRole::MembersOnly;
    let edge = match entity_kind {
        Some(kind) => selector(kind, Side::In),
        None => schema.kinds.iter().find(is_listed)?.default_edge(),
    };
    Some(of_keys("vertices", &ids, Operator::Count(Box::new(expand(edge, 0)))))
}

/// A version of a loaded graph, pinned for one traversal.
pub(super) struct LoadedGraph<'a> {
    pub(super) fan_outs: FanOuts<'a>,
    known: Arc<Known>,
    /// Counts what the graph returns, before it is made.
    meter: Arc<Meter>,
    members: IdPages,
    /// The store of members' properties, once a step has asked for these.
    joined: OnceCell<JoinedVersion<'a>>,
}

impl<'a> LoadedGraph<'a> {
    pub fn new(run: Run<'a>, known: Arc<Known>, meter: Arc<Meter>) -> Self {
        Self {
            fan_outs: FanOuts::new(run, Arc::clone(&meter)),
            known,
            meter,
            members: IdPages::default(),
            joined: OnceCell::new(),
        }
    }

    /// The version that answered, and the timings if these were requested.
    pub fn finish(self) -> (ServedGraph, Option<v1::Profile>) {
        let mut run = self.fan_outs.into_run();
        if let Some(joined) = self.joined.into_inner() {
            run.absorb(joined.into_run());
        }
        run.into_served()
    }

    /// The wanted properties of members; of members that do not exist, none.
    async fn properties(
        &self,
        keys: &[Option<VertexKey>],
        wanted: &WantedProperties,
    ) -> Result<Properties, GremlinError> {
        let Some(store) = &self.known.properties else { return Ok(Properties::new()) };
        let member = |key: &VertexKey| match key {
            VertexKey::Member(id) => Some(*id),
            VertexKey::Entity { .. } => None,
        };
        let members: BTreeSet<u64> = keys.iter().flatten().filter_map(member).collect();
        if members.is_empty() {
            return Ok(Properties::new());
        }
        let pin = async || {
            let run = self.fan_outs.run().await;
            let known = Arc::clone(run.topology().store(store)?);
            let beside = run.beside(&known.pinned);
            drop(run);
            JoinedVersion::pin(beside, known, Arc::clone(&self.meter)).await
        };
        let joined = self.joined.get_or_try_init(pin).await.map_err(|error| self.fan_outs.error(error))?;
        joined.fetch(members, wanted).await
    }

    /// Returns the vertices with these ids. Those with properties come from hops or from an earlier look-up, so these
    /// are not looked up again to find out whether they exist.
    async fn found_vertices(
        &self,
        ids: &[ElementId],
        wanted: &WantedProperties,
    ) -> Result<Vec<Option<Arc<Vertex>>>, GremlinError> {
        let keys: Vec<_> = ids.iter().map(|id| VertexKey::parse(id, self.schema())).collect();
        self.meter.lend(of_vertices(keys.len()))?;
        if *wanted == WantedProperties::None {
            let found = self.existing(&keys.iter().flatten().cloned().collect()).await?;
            let vertex = |key: VertexKey| found.contains(&key).then(|| key.vertex());
            return Ok(keys.into_iter().map(|key| key.and_then(vertex)).collect());
        }
        let found = self.properties(&keys, wanted).await?;
        let whole = |key: VertexKey| {
            let properties = match key {
                VertexKey::Member(id) => found.get(&id).cloned().unwrap_or_default(),
                VertexKey::Entity { .. } => Vec::new(),
            };
            Arc::new(Vertex { properties: Some(properties), ..(*key.vertex()).clone() })
        };
        Ok(keys.into_iter().map(|key| key.map(whole)).collect())
    }

    /// What counts the memory of the traversal.
    pub(super) fn meter(&self) -> &Meter {
        &self.meter
    }

    pub(super) fn schema(&self) -> &GraphSchema {
        &self.known.schema
    }

    /// The vertices among these that exist. An entity exists if a member has an edge to it.
    async fn existing(&self, keys: &HashSet<VertexKey>) -> Result<HashSet<VertexKey>, GremlinError> {
        let mut found = HashSet::new();
        let mut asked: BTreeMap<Option<&str>, Vec<u64>> = BTreeMap::new();
        for key in keys {
            match key {
                VertexKey::Member(id) => asked.entry(None).or_default().push(*id),
                VertexKey::Entity { kind, id } => asked.entry(Some(kind)).or_default().push(*id),
            }
        }
        for (entity_kind, mut ids) in asked {
            ids.sort_unstable();
            let Some(fan_out) = existence(entity_kind, ids.clone(), self.schema()) else { continue };
            let entries = lists(self.fan_outs.ask(fan_out).await?, ids.len())?;
            for (id, entry) in ids.into_iter().zip(entries) {
                match (entity_kind, entry) {
                    (_, ListEntry::NotInGraph) => {}
                    (Some(_), ListEntry::Longer(0)) => {}
                    (Some(kind), _) => drop(found.insert(VertexKey::Entity { kind: kind.to_owned(), id })),
                    (None, _) => drop(found.insert(VertexKey::Member(id))),
                }
            }
        }
        Ok(found)
    }

    /// The kinds and sides of the lists that lead from vertices of a sort, and whether the vertices are where the edges begin.
    pub(super) fn lists_of(
        &self,
        entity_kind: Option<&str>,
        expansion: &Expansion,
    ) -> Vec<(&KindSchema, Side, bool)> {
        let (is_out, is_in) = (expansion.direction != Direction::In, expansion.direction != Direction::Out);
        let is_wanted = |kind: &&KindSchema| {
            expansion.labels.is_empty() || expansion.labels.iter().any(|label| **label == *kind.name)
        };
        let mut found = Vec::new();
        for kind in self.schema().kinds.iter().filter(is_wanted) {
            match (kind.role, entity_kind) {
                // `out`, `in` and `both` are the same, and yield each edge once.
                (KindRole::Undirected, None) => found.push((kind, Side::Both, is_out)),
                (KindRole::Directed, None) => {
                    found.extend(is_out.then_some((kind, Side::Out, true)));
                    found.extend(is_in.then_some((kind, Side::In, false)));
                }
                (KindRole::Entity, None) if is_out => found.push((kind, Side::Out, true)),
                (KindRole::Entity, Some(own)) if is_in && kind.name == own => {
                    found.push((kind, Side::In, false))
                }
                _ => {}
            }
        }
        found
    }

    async fn scanned_vertices(
        &self,
        after: Option<ElementId>,
        limit: usize,
    ) -> Result<Vec<Arc<Vertex>>, GremlinError> {
        let from = match after.and_then(|id| VertexKey::parse(&id, self.schema())) {
            Some(VertexKey::Member(id)) => id.checked_add(1),
            _ => Some(0),
        };
        let Some(from) = from else { return Ok(Vec::new()) };
        let IdPage { ids, .. } = self.members.from(from, limit, &self.fan_outs).await?;
        let rest = &ids[ids.partition_point(|id| *id < from)..];
        Ok(rest.iter().take(limit).map(|id| VertexKey::Member(*id).vertex()).collect())
    }

    async fn scanned_edges(
        &self,
        after: Option<ScanPlace>,
        limit: usize,
    ) -> Result<ScannedEdges, GremlinError> {
        let mut scan = EdgeScan::new(after, limit);
        while let Some((from, count)) = scan.wanted() {
            let members = self.members.from(from, count, &self.fan_outs).await?;
            let expansion = scan.expansion(&members);
            scan.take(self.expanded(&expansion).await?, |edge| self.is_listed_here(edge));
        }
        Ok(scan.finish())
    }

    /// Whether a scan returns an edge at its `out_vertex`: one without a direction is in the lists of both ends, and is returned
    /// at the smaller id.
    fn is_listed_here(&self, edge: &Edge) -> bool {
        let kind = self.schema().kind(&edge.label);
        let is_undirected = kind.is_some_and(|kind| kind.role == KindRole::Undirected);
        !is_undirected || number(&edge.out_vertex.id) <= number(&edge.in_vertex.id)
    }

    async fn found_edges(&self, ids: &[ElementId]) -> Result<Vec<Option<Arc<Edge>>>, GremlinError> {
        let named: Vec<_> = ids.iter().map(|id| parse_edge(id, self.schema())).collect();
        let mut labels: BTreeMap<&str, Vec<ElementId>> = BTreeMap::new();
        for (out_vertex, label, _) in named.iter().flatten() {
            labels.entry(label).or_default().push(out_vertex.id());
        }
        let mut found: HashMap<ElementId, Arc<Edge>> = HashMap::new();
        for (label, vertices) in labels {
            let (direction, labels) = (Direction::Out, [Arc::from(label)].into());
            let (tests, top, part) = ([].into(), None, ListPart::WHOLE);
            let expansion =
                Expansion { vertices, direction, labels, with_properties: true, tests, top, part };
            let edges = self.expanded(&expansion).await?.into_iter().flat_map(|list| list.edges);
            found.extend(edges.map(|edge| (edge.id.clone(), edge)));
        }
        Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
    }
}

impl Graph for LoadedGraph<'_> {
    fn canonical(&self, id: &ElementId) -> Option<ElementId> {
        VertexKey::parse(id, self.schema()).map(|key| key.id())
    }

    fn vertices(
        &self,
        ids: Vec<ElementId>,
        wanted: WantedProperties,
    ) -> GraphFuture<'_, Vec<Option<Arc<Vertex>>>> {
        async move { self.found_vertices(&ids, &wanted).await }.boxed()
    }

    fn edges(&self, ids: Vec<ElementId>) -> GraphFuture<'_, Vec<Option<Arc<Edge>>>> {
        async move { self.found_edges(&ids).await }.boxed()
    }

    fn scan_vertices(&self, after: Option<ElementId>, limit: usize) -> GraphFuture<'_, Vec<Arc<Vertex>>> {
        async move { self.scanned_vertices(after, limit).await }.boxed()
    }

    fn scan_edges(&self, after: Option<ScanPlace>, limit: usize) -> GraphFuture<'_, ScannedEdges> {
        async move { self.scanned_edges(after, limit).await }.boxed()
    }

    fn count_vertices(&self, labels: CountedLabels) -> GraphFuture<'_, Option<u64>> {
        async move { count::vertices(&self.fan_outs, &labels).await.map(Some) }.boxed()
    }

    fn count_edges(&self, labels: CountedLabels) -> GraphFuture<'_, Option<u64>> {
        async move { count::edges(&self.fan_outs, self.schema(), &labels).await.map(Some) }.boxed()
    }

    fn expand(&self, expansion: Expansion) -> GraphFuture<'_, Vec<EdgeList>> {
        async move { self.expanded(&expansion).await }.boxed()
    }

    fn degrees(&self, expansion: Expansion) -> GraphFuture<'_, Vec<u64>> {
        async move { self.counted(&expansion).await }.boxed()
    }

    fn reach(&self, expansion: Expansion) -> GraphFuture<'_, Vec<Arc<Vertex>>> {
        async move {
            let vertices = |(kind, ids): (Option<String>, Vec<u64>)| {
                ids.into_iter().map(move |id| vertex_key(kind.as_deref(), id).vertex())
            };
            let reached = self.reached(&expansion).await?;
            self.meter.lend(of_vertices(reached.values().map(Vec::len).sum()))?;
            Ok(reached.into_iter().flat_map(vertices).collect())
        }
        .boxed()
    }

    fn count_reached(&self, expansion: Expansion) -> GraphFuture<'_, u64> {
        async move { Ok(self.reached(&expansion).await?.values().map(|ids| ids.len() as u64).sum()) }.boxed()
    }

    fn take_notes(&self) -> Notes {
        let mut notes = self.fan_outs.take_notes();
        let joined = self.joined.get().map(JoinedVersion::take_notes).unwrap_or_default();
        notes.counts.extend(joined.counts);
        notes.members.extend(joined.members);
        notes
    }

    fn write(&self, _mutation: Mutation) -> GraphFuture<'_, Option<Value>> {
        let name = self.known.pinned.name.clone();
        let error = QueryError::LoadedGraph { name, what: "a traversal cannot change it" };
        async move { Err(to_gremlin_error(&error)) }.boxed()
    }
}
