//! A graph that does not know the labels of the vertices at the ends of edges.

use crate::{
    graph::{
        EdgeList, Expansion, Graph, GraphFuture, Mutation, ScanPlace, ScannedEdges, UNKNOWN_LABEL,
        WantedProperties,
    },
    value::{Edge, ElementId, Value, Vertex},
};
use futures::FutureExt;
use parking_lot::Mutex;
use std::sync::Arc;

/// The graph inside, as one that stores edges apart from vertices shows it: [`Graph::expand`] returns the vertices at the ends
/// with [`UNKNOWN_LABEL`].
#[derive(Debug, Default)]
pub struct UnlabelledGraph<G> {
    graph: G,
    looked_up: Mutex<Vec<ElementId>>,
}

impl<G> UnlabelledGraph<G> {
    /// Hides the labels of a graph.
    pub fn new(graph: G) -> Self {
        Self { graph, looked_up: Mutex::default() }
    }

    /// The ids of the vertices that [`Graph::vertices`] was asked for since the last call, in ascending order of their texts.
    pub fn take_looked_up(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.looked_up.lock().drain(..).map(|id| id.to_string()).collect();
        ids.sort();
        ids
    }
}

fn unlabelled(edge: &Arc<Edge>) -> Arc<Edge> {
    let hidden = |vertex: &Vertex| Arc::new(Vertex::reference(vertex.id.clone(), UNKNOWN_LABEL));
    let (out_vertex, in_vertex) = (hidden(&edge.out_vertex), hidden(&edge.in_vertex));
    Arc::new(Edge { out_vertex, in_vertex, ..(**edge).clone() })
}

impl<G: Graph> Graph for UnlabelledGraph<G> {
    fn canonical(&self, id: &ElementId) -> Option<ElementId> {
        self.graph.canonical(id)
    }

    fn vertices(
        &self,
        ids: Vec<ElementId>,
        wanted: WantedProperties,
    ) -> GraphFuture<'_, Vec<Option<Arc<Vertex>>>> {
        self.looked_up.lock().extend(ids.iter().cloned());
        self.graph.vertices(ids, wanted)
    }

    fn edges(&self, ids: Vec<ElementId>) -> GraphFuture<'_, Vec<Option<Arc<Edge>>>> {
        self.graph.edges(ids)
    }

    fn scan_vertices(&self, after: Option<ElementId>, limit: usize) -> GraphFuture<'_, Vec<Arc<Vertex>>> {
        self.graph.scan_vertices(after, limit)
    }

    fn scan_edges(&self, after: Option<ScanPlace>, limit: usize) -> GraphFuture<'_, ScannedEdges> {
        self.graph.scan_edges(after, limit)
    }

    fn expand(&self, expansion: Expansion) -> GraphFuture<'_, Vec<EdgeList>> {
        async move {
            let lists = self.graph.expand(expansion).await?;
            let hidden =
                |list: EdgeList| EdgeList { edges: list.edges.iter().map(unlabelled).collect(), ..list };
            Ok(lists.into_iter().map(hidden).collect())
        }
        .boxed()
    }

    fn prepare<'a>(&'a self, mutations: &'a [Mutation]) -> GraphFuture<'a, ()> {
        self.graph.prepare(mutations)
    }

    fn write(&self, mutation: Mutation) -> GraphFuture<'_, Option<Value>> {
        self.graph.write(mutation)
    }
}
