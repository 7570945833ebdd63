//! The questions of a traversal to a graph.

use crate::{
    error::{GremlinError, Result},
    semantics::Test,
    value::{Cardinality, Direction, Edge, ElementId, Value, Vertex},
};
use futures::{FutureExt, future::BoxFuture};
use std::{
    collections::{BTreeSet, HashSet},
    fmt::{self, Display, Formatter},
    sync::Arc,
};

/// The label of a vertex at an end of an edge if the graph would have to look the vertex up to tell its label. The
/// evaluation asks for such a label where a traversal looks at it, and for those among its results at the end.
pub const UNKNOWN_LABEL: &str = "";

/// The answer to a question of a batch.
pub type GraphFuture<'a, T> = BoxFuture<'a, Result<T>>;

/// A graph, asked in batches: each method is one fan-out, however many elements it is about.
///
/// Ids come in any form in which users write them: as a whole number of any type, or as a text of digits. Answers about several
/// elements are in the order of the elements. An element that does not exist is `None`, or has no edges.
pub trait Graph: Send + Sync {
    /// The form in which the graph itself returns this id of a vertex; `None` if no vertex can have it, or if the graph has to
    /// look it up.
    fn canonical(&self, id: &ElementId) -> Option<ElementId>;

    /// As [`Graph::canonical`], for each id. A graph that computes numbers from ids which are texts must look these up.
    fn named(&self, ids: Vec<ElementId>) -> GraphFuture<'_, Vec<Option<ElementId>>> {
        let named = ids.iter().map(|id| self.canonical(id)).collect();
        std::future::ready(Ok(named)).boxed()
    }

    /// Notes that `addE` was given an id. Returns whether the graph ignores it; otherwise, the id is in the mutation.
    fn ignores_edge_id(&self) -> bool {
        false
    }

    /// Vertices by their ids, with the wanted properties.
    fn vertices(
        &self,
        ids: Vec<ElementId>,
        wanted: WantedProperties,
    ) -> GraphFuture<'_, Vec<Option<Arc<Vertex>>>>;

    /// Whether vertices exist and pass all tests, for each vertex.
    ///
    /// # Errors
    /// Also if a test cannot be made.
    fn passing(&self, ids: Vec<ElementId>, tests: Arc<[ElementTest]>) -> GraphFuture<'_, Vec<bool>> {
        let keys: Arc<[Arc<str>]> = tests.iter().filter_map(|test| test.key.clone()).collect();
        let vertices = self.vertices(ids, WantedProperties::Keys(keys));
        async move { passing(&vertices.await?, &tests) }.boxed()
    }

    /// Edges by their ids, with their properties.
    fn edges(&self, ids: Vec<ElementId>) -> GraphFuture<'_, Vec<Option<Arc<Edge>>>>;

    /// At most `limit` vertices after the one with id `after`, in the graph's own order, without properties. Fewer than
    /// `limit` mean that there are no more.
    fn scan_vertices(&self, after: Option<ElementId>, limit: usize) -> GraphFuture<'_, Vec<Arc<Vertex>>>;

    /// The vertices that have the wanted properties, without properties, each once and in any order; others may be among
    /// them, which the traversal sorts out. `None` if the graph has no index for the question, so that all vertices must be
    /// scanned.
    fn find_vertices(&self, sought: VertexSearch) -> GraphFuture<'_, Option<Vec<Arc<Vertex>>>> {
        let _ = sought;
        async { Ok(None) }.boxed()
    }

    /// The number of vertices with these labels that [`Graph::scan_vertices`] would return. `None` if the graph cannot say without
    /// reading them, so that they must be scanned.
    fn count_vertices(&self, labels: CountedLabels) -> GraphFuture<'_, Option<u64>> {
        let _ = labels;
        async { Ok(None) }.boxed()
    }

    /// The number of edges with these labels that [`Graph::scan_edges`] would return; `None` as in [`Graph::count_vertices`].
    fn count_edges(&self, labels: CountedLabels) -> GraphFuture<'_, Option<u64>> {
        let _ = labels;
        async { Ok(None) }.boxed()
    }

    /// Makes further reads show every write that was confirmed before the read. A traversal asks for this when a refused write
    /// proves that another one exists which its reads did not show.
    fn read_latest(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }

    /// About `limit` edges of all vertices, in the graph's own order, with their properties; those that follow `after`, if that
    /// is given.
    fn scan_edges(&self, after: Option<ScanPlace>, limit: usize) -> GraphFuture<'_, ScannedEdges>;

    /// The edges of vertices, with their properties if these are wanted, for each vertex. An edge from a vertex to itself
    /// occurs twice in [`Direction::Both`]. The vertices at the ends may have [`UNKNOWN_LABEL`]. The graph may leave out
    /// edges that do not pass the tests, but need not: the traversal tests all edges that it returns.
    fn expand(&self, expansion: Expansion) -> GraphFuture<'_, Vec<EdgeList>>;

    /// Checks changes that are about to be made in this order, before the first one is made: what is found to be wrong here
    /// changes nothing. A graph may fetch what it needs for all of them at once.
    fn prepare<'a>(&'a self, mutations: &'a [Mutation]) -> GraphFuture<'a, ()> {
        let _ = mutations;
        std::future::ready(Ok(())).boxed()
    }

    /// Returns the number of edges that [`Graph::expand`] would return, for each vertex.
    fn degrees(&self, expansion: Expansion) -> GraphFuture<'_, Vec<u64>> {
        let lists = self.expand(Expansion { with_properties: false, ..expansion });
        async move { Ok(lists.await?.iter().map(|list| list.edges.len() as u64).collect()) }.boxed()
    }

    /// The other ends of all edges that [`Graph::expand`] would return, each vertex once and in any order.
    fn reach(&self, expansion: Expansion) -> GraphFuture<'_, Vec<Arc<Vertex>>> {
        async move {
            let from = expansion.vertices.clone();
            Ok(ends(&from, &self.expand(Expansion { with_properties: false, ..expansion }).await?))
        }
        .boxed()
    }

    /// Whether edges with these labels, or all edges without labels, can be followed in a direction. [`Graph::expand`] fails
    /// where they cannot.
    fn follows(&self, direction: Direction, labels: &[Arc<str>]) -> bool {
        let _ = (direction, labels);
        true
    }

    /// Returns the number of vertices that [`Graph::reach`] would return.
    fn count_reached(&self, expansion: Expansion) -> GraphFuture<'_, u64> {
        async move { Ok(self.reach(expansion).await?.len() as u64) }.boxed()
    }

    /// Changes the graph, and returns the element that was added or changed. `None` if it did not exist, or was deleted.
    ///
    /// A graph may put a change off if it knows what this will return. Its answers show the change all the same, and
    /// [`Graph::settle`] makes it.
    fn write(&self, mutation: Mutation) -> GraphFuture<'_, Option<Value>>;

    /// Makes all changes that were put off. A traversal asks for this at its end, and where it has to know whether a change is
    /// refused.
    ///
    /// # Errors
    /// A change failed. Those that depend on it are not made.
    fn settle(&self) -> GraphFuture<'_, ()> {
        std::future::ready(Ok(())).boxed()
    }

    /// The work of the graph since this was called last. `profile` shows it with the step that asked. A graph that does not
    /// count returns nothing. Only asked where a traversal is profiled.
    fn take_notes(&self) -> Notes {
        Notes::default()
    }
}

/// The work of a graph for a step, under names that `profile` shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Counts, such as `requests`, which add up over the batches of a step.
    pub counts: Vec<(&'static str, i64)>,
    /// The part taken, such as the number of a group among `groups`. How many different ones took part in a step is shown.
    pub members: Vec<(&'static str, u64)>,
}

/// The properties of vertices that are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedProperties {
    /// No properties: whether the vertices exist, and their labels.
    None,
    /// All properties.
    All,
    /// The properties with these keys.
    Keys(Arc<[Arc<str>]>),
}

/// Vertices that are sought by their properties.
#[derive(Clone, Debug, PartialEq)]
pub struct VertexSearch {
    /// Each vertex has one of these labels; any label if empty.
    pub labels: Vec<Arc<str>>,
    /// Properties that each vertex has: their keys, and a value that is equal to that of the vertex. At least one.
    pub properties: Vec<(Arc<str>, Value)>,
    /// Whether the answer must show every write that was confirmed before, because the traversal adds what it does not find.
    pub latest: bool,
}

/// The vertices, and the edges of them that are wanted.
#[derive(Clone, Debug)]
pub struct Expansion {
    /// The ids of the vertices.
    pub vertices: Vec<ElementId>,
    /// In which direction the edges leave the vertices.
    pub direction: Direction,
    /// The labels of the edges. Edges of all labels if empty.
    pub labels: Arc<[Arc<str>]>,
    /// Whether the properties of the edges are wanted.
    pub with_properties: bool,
    /// Tests that the edges must pass to be wanted.
    pub tests: Arc<[ElementTest]>,
    /// If given, only the first edges of each vertex in this order are wanted, as many as the limit of the part says. A graph that
    /// does not sort may return any edges.
    pub top: Option<PropertyOrder>,
    /// The part of each vertex's edges that is wanted.
    pub part: ListPart,
}

/// A part of the edges of each of several vertices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPart {
    /// The place of each vertex after which its edges are wanted; `None` from the first edge on. Empty if all begin there.
    pub after: Vec<Option<EdgePlace>>,
    /// The greatest number of edges of each vertex; the graph may return fewer at a time. `usize::MAX` stands for all of them.
    pub limit: usize,
}

impl ListPart {
    /// All edges.
    pub const WHOLE: Self = Self { after: Vec::new(), limit: usize::MAX };

    /// The place after which the edges of a vertex are wanted, which is the one at this index.
    pub fn after(&self, index: usize) -> Option<EdgePlace> {
        self.after.get(index).copied().flatten()
    }
}

/// A place among the edges of a vertex. Only the graph knows what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EdgePlace {
    /// Which of the lists that the edges are in.
    pub list: usize,
    /// The last edge before the place; `None` at the beginning of the list.
    pub last: Option<[u64; 2]>,
    /// The number of edges of the list that were before the place when it was read.
    pub read: usize,
}

/// Edges of a vertex.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EdgeList {
    /// The edges.
    pub edges: Vec<Arc<Edge>>,
    /// The place at which these end, if others may follow.
    pub rest: Option<EdgePlace>,
}

impl From<Vec<Arc<Edge>>> for EdgeList {
    /// All edges of a vertex.
    fn from(edges: Vec<Arc<Edge>>) -> Self {
        Self { edges, rest: None }
    }
}

/// A place in a scan of all edges.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanPlace {
    /// The vertex whose edges come next.
    pub vertex: ElementId,
    /// The place among its edges; `None` before the first.
    pub edges: Option<EdgePlace>,
}

/// A page of a scan of all edges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScannedEdges {
    /// The edges.
    pub edges: Vec<Arc<Edge>>,
    /// The place at which the page ends, if others may follow.
    pub rest: Option<ScanPlace>,
}

/// A test of an element.
#[derive(Clone, Debug)]
pub struct ElementTest {
    /// The key of the property that is tested; `None` for the label. An element without the property does not pass.
    pub key: Option<Arc<str>>,
    /// The predicate.
    pub test: Arc<Test>,
}

/// An order of elements by the values of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyOrder {
    /// The key of the property. Elements without it are left out.
    pub key: Arc<str>,
    /// Whether the greatest value comes first.
    pub descending: bool,
}

/// Which of these vertices, which have the properties that are tested, pass all tests. Those that do not exist do not.
///
/// # Errors
/// A test cannot be made.
pub fn passing(vertices: &[Option<Arc<Vertex>>], tests: &[ElementTest]) -> Result<Vec<bool>> {
    let passes = |vertex: &Option<Arc<Vertex>>| {
        let Some(vertex) = vertex else { return Ok(false) };
        for ElementTest { key, test } in tests {
            let mut values = vertex.properties.iter().flatten().filter(|it| Some(&it.key) == key.as_ref());
            let holds = match key {
                None => test.holds(&Value::String(Arc::clone(&vertex.label)))?,
                Some(_) => {
                    values.try_fold(false, |any, it| Ok::<_, GremlinError>(any || test.holds(&it.value)?))?
                }
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    };
    vertices.iter().map(passes).collect()
}

impl Display for ElementTest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key.as_deref().unwrap_or("label"), self.test)
    }
}

/// The labels of elements that are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedLabels(Option<Arc<[Arc<str>]>>);

impl CountedLabels {
    /// All labels.
    pub const ALL: Self = Self(None);

    /// These labels, each of which is taken once.
    pub fn of(labels: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self(Some(labels.into_iter().collect::<BTreeSet<_>>().into_iter().collect()))
    }

    /// Those of these labels that are also among others.
    #[must_use]
    pub fn among(&self, others: Vec<Arc<str>>) -> Self {
        Self::of(others.into_iter().filter(|label| self.contain(label)))
    }

    /// The labels; `None` for all.
    pub fn named(&self) -> Option<&[Arc<str>]> {
        self.0.as_deref()
    }

    /// Whether elements with a label are counted.
    pub fn contain(&self, label: &str) -> bool {
        self.named().is_none_or(|named| named.iter().any(|it| **it == *label))
    }
}

/// A change of a graph.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Mutation {
    /// Adds a vertex. Without an id, the graph gives it one.
    AddVertex { id: Option<ElementId>, label: Arc<str>, properties: Vec<(Arc<str>, Value)> },
    /// Adds an edge. An id is an error in graphs that name edges by their ends.
    ///
    /// An edge with this label that joins the two vertices already is an error (`object_exists`), unless `replaces` is set: the
    /// new edge then takes its place. The graph decides this when it writes, whatever its reads have shown.
    AddEdge {
        id: Option<ElementId>,
        label: Arc<str>,
        out_vertex: ElementId,
        in_vertex: ElementId,
        properties: Vec<(Arc<str>, Value)>,
        replaces: bool,
    },
    /// Sets a property of a vertex.
    SetVertexProperty { vertex: ElementId, cardinality: Cardinality, key: Arc<str>, value: Value },
    /// Sets a property of an edge.
    SetEdgeProperty { edge: ElementId, key: Arc<str>, value: Value },
    /// Removes a property of a vertex or an edge.
    RemoveProperty { element: Value, key: Arc<str> },
    /// Removes a vertex and all its edges.
    RemoveVertex { vertex: ElementId },
    /// Removes an edge.
    RemoveEdge { edge: ElementId },
}

/// The other ends of the edges of vertices, each vertex once.
pub fn ends(from: &[ElementId], lists: &[EdgeList]) -> Vec<Arc<Vertex>> {
    let (mut seen, mut reached) = (HashSet::new(), Vec::new());
    for (from, list) in from.iter().zip(lists) {
        let ends = list.edges.iter().map(|edge| other_end(edge, from));
        reached.extend(ends.filter(|end| seen.insert(end.id.clone())));
    }
    reached
}

/// The other end of an edge.
pub(crate) fn other_end(edge: &Edge, from: &ElementId) -> Arc<Vertex> {
    if edge.out_vertex.id == *from { Arc::clone(&edge.in_vertex) } else { Arc::clone(&edge.out_vertex) }
}
