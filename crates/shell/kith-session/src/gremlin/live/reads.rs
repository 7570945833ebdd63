//! The reads of traversals on live graphs.

use super::{
    ids::VertexName,
    labels::{self, List},
    pages::{WholeRead, associations, counts, whole_lists},
    parts::PartRead,
    rows::{edge_in, unknown_vertex, vertex_of},
};
use crate::gremlin::{
    fan_outs::FanOuts,
    ids::{number_id, split_edge},
    rows::unexpected,
};
use kith_gremlin::{
    GremlinError,
    value::{Edge, ElementId, ShownId, Value, Vertex, end_of_edge_id},
};
use kith_live::{
    AssociationRead, AssociationsPlan, ElementPart, ElementTest, FieldOrder, GraphTypes, ListedAssociation,
    ObjectAnswer, ObjectFields, Select, TypeKind,
};
use kith_operators::{ObjectEntry, Operator, Value as Evaluated};
use kith_query::QueryError;
use kith_traversal::{
    evaluate::{Meter, of_edges, of_json, of_vertices},
    graph::{self, EdgeList, Expansion, ListPart, WantedProperties},
};
use kith_types::PartitionCount;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// The number of edges that one fan-out looks up by their ids. It asks for all of them at each vertex at which one of
/// them begins.
const EDGES_AT_ONCE: usize = 64;

/// The list that an edge is in at its beginning, and its ends.
pub(super) type NamedEdge<'t> = (List<'t>, u64, u64);

/// The reads of one traversal of a live graph. Each shows the graph as it is at that time, with the changes that the
/// traversal has made.
pub(super) struct LiveReads<'a> {
    pub fan_outs: FanOuts<'a>,
    /// The types of the graph, as far as the traversal knows them: its writes may add types to an open graph.
    pub types: Mutex<Arc<GraphTypes>>,
    /// The number of partitions, which ids that are texts depend on.
    pub count: PartitionCount,
    /// The number of elements that the traversal may see.
    pub elements_max: u64,
    /// Counts what the graph returns, before it is made.
    pub meter: Arc<Meter>,
}

impl LiveReads<'_> {
    /// The types of the graph.
    pub fn types(&self) -> Arc<GraphTypes> {
        Arc::clone(&self.types.lock())
    }

    /// The result of a check as a step passes it on.
    pub fn checked<T>(&self, result: Result<T, QueryError>) -> Result<T, GremlinError> {
        result.map_err(|error| self.fan_outs.error(error))
    }

    /// The id that users see of an object which has not been read.
    pub(super) fn unread(&self) -> ShownId {
        if self.types().take_text_ids() { ShownId::Unknown } else { ShownId::Same }
    }

    /// What ids name.
    pub(super) fn named(&self, ids: &[ElementId]) -> Vec<Option<VertexName>> {
        let keeps_texts = self.types().take_text_ids();
        ids.iter().map(|id| VertexName::of(id, keeps_texts)).collect()
    }

    /// The objects that these may name, in one fan-out, by their numbers. Those that are known are not looked up.
    pub(super) async fn candidates(
        &self,
        named: &[Option<VertexName>],
        is_known: impl Fn(u64) -> bool,
        fields: ObjectFields,
    ) -> Result<HashMap<u64, ObjectAnswer>, GremlinError> {
        let numbers = named.iter().flatten().flat_map(|named| named.numbers(self.count));
        self.objects(numbers.filter(|number| !is_known(*number)), fields).await
    }

    /// The numbers of the vertices with these ids. Objects are only looked up, in one fan-out, for ids that are texts.
    pub(super) async fn numbers(&self, ids: &[ElementId]) -> Result<Vec<Option<u64>>, GremlinError> {
        let named = self.named(ids);
        let is_text = |named: &Option<VertexName>| matches!(named, Some(VertexName::Text(_)));
        let texts: Vec<Option<VertexName>> = named.iter().filter(|named| is_text(named)).cloned().collect();
        let objects = self.candidates(&texts, |_| false, ObjectFields::None).await?;
        let number = |named: Option<VertexName>| match named? {
            VertexName::Number(number) => Some(number),
            text @ VertexName::Text(_) => text.object(&objects, self.count).map(|object| object.id),
        };
        Ok(named.into_iter().map(number).collect())
    }

    /// As [`LiveReads::numbers`], as ids with which a traversal calculates.
    pub(super) async fn canonical(&self, ids: &[ElementId]) -> Result<Vec<Option<ElementId>>, GremlinError> {
        Ok(self.numbers(ids).await?.into_iter().map(|number| number.map(number_id)).collect())
    }

    /// Returns the vertices with these ids. Objects are vertices; ids that only associations name are not.
    pub(super) async fn found_vertices(
        &self,
        ids: &[ElementId],
        wanted: &WantedProperties,
    ) -> Result<Vec<Option<Arc<Vertex>>>, GremlinError> {
        let named = self.named(ids);
        let fields = match wanted {
            WantedProperties::None => ObjectFields::None,
            WantedProperties::All => ObjectFields::All,
            WantedProperties::Keys(keys) => {
                ObjectFields::Named(keys.iter().map(|key| key.to_string()).collect())
            }
        };
        let objects = self.candidates(&named, |_| false, fields).await?;
        let types = self.types();
        let data = objects.values().map(|object| of_json(&object.data));
        let data = if *wanted == WantedProperties::None { 0 } else { data.sum() };
        self.meter.lend(of_vertices(objects.len()).saturating_add(data))?;
        let object = |named: &Option<VertexName>| named.as_ref()?.object(&objects, self.count);
        let vertex = |named| object(named).map(|object| vertex_of(&types, object, wanted));
        Ok(named.iter().map(vertex).collect())
    }

    /// Which of these vertices exist and pass all tests, in one fan-out, which nodes answer with the ids of those that do.
    pub(super) async fn passing(
        &self,
        ids: &[ElementId],
        tests: &[graph::ElementTest],
    ) -> Result<Option<Vec<bool>>, GremlinError> {
        let Some(tests) = element_tests(tests) else { return Ok(None) };
        let numbers = self.numbers(ids).await?;
        let keys: BTreeSet<u64> = numbers.iter().flatten().copied().collect();
        let keys: Vec<u64> = keys.into_iter().collect();
        if keys.is_empty() {
            return Ok(Some(vec![false; ids.len()]));
        }
        match self.fan_outs.ask_keys("tested vertices", &keys, Operator::Passing(tests)).await? {
            Evaluated::Set(passing) => {
                let passes =
                    |number: Option<u64>| number.is_some_and(|it| passing.binary_search(&it).is_ok());
                Ok(Some(numbers.into_iter().map(passes).collect()))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// The objects with these ids, in one fan-out.
    pub(super) async fn objects(
        &self,
        ids: impl Iterator<Item = u64>,
        fields: ObjectFields,
    ) -> Result<HashMap<u64, ObjectAnswer>, GremlinError> {
        let ids: Vec<u64> = ids.collect::<BTreeSet<u64>>().into_iter().collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        match self.fan_outs.ask_keys("vertices", &ids, Operator::Objects(fields)).await? {
            Evaluated::Objects(entries) if entries.len() == ids.len() => {
                let found = |entry: ObjectEntry| match entry {
                    ObjectEntry::Found(object) => Some((object.id, object)),
                    ObjectEntry::Absent | ObjectEntry::Unanswered => None,
                };
                Ok(entries.into_iter().filter_map(found).collect())
            }
            other => Err(unexpected(&other)),
        }
    }

    /// The edges of vertices: one fan-out for all labels and directions, and more for lists that are longer than one read
    /// returns.
    pub(super) async fn expanded(&self, expansion: &Expansion) -> Result<Vec<EdgeList>, GremlinError> {
        let types = self.types_with(&expansion.labels);
        let lists = labels::lists(&types, expansion.direction, &expansion.labels);
        let lists = lists.map_err(|error| self.fan_outs.error(error))?;
        // Nodes know the types of lists, and an inverse type has another name than its label.
        let (of_labels, of_fields): (Vec<_>, Vec<_>) =
            expansion.tests.iter().cloned().partition(|test| test.key.is_none());
        let lists = with_labels(lists, &of_labels)?;
        let own = self.numbers(&expansion.vertices).await?;
        if lists.is_empty() {
            return Ok(vec![EdgeList::default(); own.len()]);
        }
        if expansion.part == ListPart::WHOLE {
            return self.all_edges(expansion, &lists, own).await;
        }
        let (with_properties, limit) = (expansion.with_properties, expansion.part.limit);
        let (tests, top) = (element_tests(&of_fields), expansion.top.as_ref().map(field_order));
        let (tests, top) = (tests.as_deref().unwrap_or_default(), top.filter(|_| tests.is_some()));
        let wanted = PartRead { lists: &lists, with_properties, tests, top: top.as_ref(), limit };
        let known =
            own.iter().enumerate().filter_map(|(at, id)| Some((at, (*id)?, expansion.part.after(at))));
        let (known, vertices): (Vec<usize>, Vec<_>) = known.map(|(at, id, after)| (at, (id, after))).unzip();
        let parts = wanted.read(&self.fan_outs, &vertices).await?;
        self.lend_edges(parts.iter().flat_map(|(found, _)| found).map(|(_, association)| association))?;
        let unread = self.unread();
        let labels: Vec<Arc<str>> = lists.iter().map(|list| Arc::from(list.label)).collect();
        let mut each = vec![EdgeList::default(); own.len()];
        for ((at, (id, _)), (found, rest)) in known.into_iter().zip(vertices).zip(parts) {
            let own = unknown_vertex(id, unread.clone());
            let edge = |(list, it): &(usize, _)| edge_in(&lists[*list], &labels[*list], &own, it);
            each[at] = EdgeList { edges: found.iter().map(edge).collect(), rest };
        }
        Ok(each)
    }

    /// All edges of vertices in these lists.
    async fn all_edges(
        &self,
        expansion: &Expansion,
        lists: &[List<'_>],
        own: Vec<Option<u64>>,
    ) -> Result<Vec<EdgeList>, GremlinError> {
        let ids: Vec<u64> = own.iter().flatten().copied().collect::<BTreeSet<u64>>().into_iter().collect();
        if ids.is_empty() {
            return Ok(vec![EdgeList::default(); own.len()]);
        }
        let wanted =
            WholeRead { with_properties: expansion.with_properties, elements_max: self.elements_max };
        let unread = self.unread();
        let found = whole_lists(&self.fan_outs, &ids, lists, wanted).await?;
        self.lend_edges(found.iter().flatten().flatten())?;
        let labels: Vec<Arc<str>> = lists.iter().map(|list| Arc::from(list.label)).collect();
        let edges = |(id, found): (&u64, &Vec<Vec<ListedAssociation>>)| {
            let own = unknown_vertex(*id, unread.clone());
            let each = lists.iter().zip(&labels).zip(found);
            let edges = each.flat_map(|((list, label), associations)| {
                associations.iter().map(|association| edge_in(list, label, &own, association))
            });
            (*id, edges.collect::<Vec<_>>())
        };
        let edges: HashMap<u64, Vec<Arc<Edge>>> = ids.iter().zip(&found).map(edges).collect();
        let of = |id: Option<u64>| id.and_then(|id| edges.get(&id).cloned()).unwrap_or_default();
        Ok(own.into_iter().map(|id| of(id).into()).collect())
    }

    /// Charges edges before they are made.
    fn lend_edges<'l>(
        &self,
        associations: impl Iterator<Item = &'l ListedAssociation>,
    ) -> Result<(), GremlinError> {
        let (mut count, mut data) = (0, 0_u64);
        for association in associations {
            count += 1;
            data = data.saturating_add(association.data.as_deref().map_or(0, of_json));
        }
        self.meter.lend(of_edges(count, 0).saturating_add(data))
    }

    /// The types with those that labels stand for in an open graph, also if this process has not heard of them yet: nodes know
    /// whether there are such lists.
    pub(super) fn types_with(&self, labels: &[Arc<str>]) -> Arc<GraphTypes> {
        let with =
            |types: Arc<GraphTypes>, label: &Arc<str>| types.on_first_use(TypeKind::Association, label);
        labels.iter().fold(self.types(), with)
    }

    /// Counts the edges of each vertex in one fan-out, which nodes answer with the lengths of lists.
    pub(super) async fn counted(&self, expansion: &Expansion) -> Result<Vec<u64>, GremlinError> {
        let types = self.types_with(&expansion.labels);
        let lists = labels::lists(&types, expansion.direction, &expansion.labels);
        let lists = lists.map_err(|error| self.fan_outs.error(error))?;
        let own = self.numbers(&expansion.vertices).await?;
        let ids: BTreeSet<u64> = own.iter().flatten().copied().collect();
        let ids: Vec<u64> = ids.into_iter().collect();
        let mut degrees: HashMap<u64, u64> = HashMap::new();
        for lists in lists.chunks(Operator::LISTS_MAX).filter(|_| !ids.is_empty()) {
            let reads = lists.iter().map(|list| AssociationRead {
                kind: list.kind.name.clone(),
                select: Select::Count,
                with_data: false,
                with_versions: false,
            });
            let plan = Operator::Associations(Box::new(AssociationsPlan::of(reads.collect())));
            let counts = counts(self.fan_outs.ask_keys("degrees", &ids, plan).await?, ids.len())?;
            ids.iter().zip(counts).for_each(|(id, count)| *degrees.entry(*id).or_default() += count);
        }
        Ok(own.into_iter().map(|id| id.and_then(|id| degrees.get(&id).copied()).unwrap_or(0)).collect())
    }

    /// Returns the edges with these ids, with their properties.
    pub(super) async fn found_edges(
        &self,
        ids: &[ElementId],
    ) -> Result<Vec<Option<Arc<Edge>>>, GremlinError> {
        let types = self.types();
        let split: Vec<Option<[&str; 3]>> = ids.iter().map(|id| split_edge(id).map(Into::into)).collect();
        let ends = split.iter().flatten().flat_map(|[from, _, to]| [*from, *to]).map(end_of_edge_id);
        let ends: Vec<ElementId> = ends.map(Value::text).collect();
        let numbers = self.numbers(&ends).await?;
        let mut ends = numbers.chunks(2);
        let named = |split: &Option<[&str; 3]>| {
            let [_, label, _] = (*split)?;
            match ends.next()? {
                [Some(from), Some(to)] => labelled_edge(&types, label, *from, *to),
                _ => None,
            }
        };
        let named: Vec<Option<NamedEdge<'_>>> = split.iter().map(named).collect();
        let all: Vec<&NamedEdge<'_>> = named.iter().flatten().collect();
        let mut found = HashMap::new();
        for chunk in all.chunks(EDGES_AT_ONCE) {
            self.look_up(chunk, &mut found).await?;
        }
        let edge = |named: &Option<NamedEdge<'_>>| {
            let (list, from, to) = named.as_ref()?;
            found.get(&(list.label, *from, *to)).cloned()
        };
        Ok(named.iter().map(edge).collect())
    }

    /// Adds those of these edges that exist, in one fan-out.
    async fn look_up<'t>(
        &self,
        edges: &[&NamedEdge<'t>],
        found: &mut HashMap<(&'t str, u64, u64), Arc<Edge>>,
    ) -> Result<(), GremlinError> {
        let keys: BTreeSet<u64> = edges.iter().map(|(_, from, _)| *from).collect();
        let keys: Vec<u64> = keys.into_iter().collect();
        let mut lists: BTreeMap<&str, (List<'t>, BTreeSet<u64>)> = BTreeMap::new();
        for (list, _, to) in edges {
            lists.entry(list.label).or_insert_with(|| (*list, BTreeSet::new())).1.insert(*to);
        }
        let reads = lists.values().map(|(list, to)| AssociationRead {
            kind: list.kind.name.clone(),
            select: Select::Ids { ids: to.iter().copied().collect(), high: None, low: None },
            with_data: list.has_fields(),
            with_versions: false,
        });
        let plan = Operator::Associations(Box::new(AssociationsPlan::of(reads.collect())));
        let entries = associations(self.fan_outs.ask_keys("edges", &keys, plan).await?, keys.len())?;
        self.lend_edges(entries.iter().flatten().flat_map(|(out, _)| out))?;
        let unread = self.unread();
        for (from, answers) in keys.iter().zip(entries) {
            let own = unknown_vertex(*from, unread.clone());
            for ((list, _), (out, _)) in lists.values().zip(answers) {
                let label = Arc::from(list.label);
                let edge =
                    |it: &ListedAssociation| ((list.label, *from, it.id2), edge_in(list, &label, &own, it));
                found.extend(out.iter().map(edge));
            }
        }
        Ok(())
    }
}

/// The lists of edges whose labels pass all tests.
fn with_labels<'t>(
    lists: Vec<List<'t>>,
    tests: &[graph::ElementTest],
) -> Result<Vec<List<'t>>, GremlinError> {
    let mut passing = Vec::with_capacity(lists.len());
    for list in lists {
        let label = Value::text(list.label);
        let mut holds = true;
        for test in tests {
            holds = holds && test.test.holds(&label)?;
        }
        passing.extend(holds.then_some(list));
    }
    Ok(passing)
}

/// Tests as nodes make them; `None` if one of them cannot be sent.
fn element_tests(tests: &[graph::ElementTest]) -> Option<Vec<ElementTest>> {
    let test = |graph::ElementTest { key, test }: &graph::ElementTest| {
        let part = key.as_ref().map_or(ElementPart::Type, |key| ElementPart::Field(key.to_string()));
        Some(ElementTest { part, predicate: test.to_bytes()? })
    };
    tests.iter().map(test).collect()
}

fn field_order(order: &graph::PropertyOrder) -> FieldOrder {
    FieldOrder { field: order.key.to_string(), descending: order.descending }
}

/// The list that an edge with this id is in, and its ends. `None` if no edge can have the id. The ends are the numbers with which
/// a traversal calculates.
pub(super) fn named_edge<'t>(types: &'t GraphTypes, id: &ElementId) -> Option<NamedEdge<'t>> {
    let (from, label, to) = split_edge(id)?;
    labelled_edge(types, label, from.parse().ok()?, to.parse().ok()?)
}

/// The list that an edge with this label is in, and its ends. `None` if no edge can have the label.
fn labelled_edge<'t>(types: &'t GraphTypes, label: &str, from: u64, to: u64) -> Option<NamedEdge<'t>> {
    let (_, kind) = labels::labelled(types, label).ok()??;
    Some((List { kind, label: &kind.name, is_out: true }, from, to))
}
