//! A graph that remembers what it was asked.

use kith_gremlin::value::{Edge, ElementId, Value, Vertex};
use kith_traversal::{
    graph::{EdgeList, Expansion, Graph, GraphFuture, Mutation, ScanPlace, ScannedEdges, WantedProperties},
    testing::MemoryGraph,
};
use std::{
    fmt::Display,
    sync::{Arc, Mutex},
};

#[derive(Default)]
pub struct LoggingGraph {
    graph: MemoryGraph,
    questions: Mutex<Vec<String>>,
}

impl LoggingGraph {
    pub fn forget(&self) {
        self.questions.lock().expect("no panic").clear();
    }

    pub fn questions(&self) -> Vec<String> {
        self.questions.lock().expect("no panic").clone()
    }

    fn note(&self, what: &str, of: &[impl Display]) {
        let of: Vec<String> = of.iter().map(ToString::to_string).collect();
        let question = format!("{what} {}", of.join(" "));
        self.questions.lock().expect("no panic").push(question.trim_end().to_owned());
    }

    fn note_expansion(&self, what: &str, expansion: &Expansion) {
        let which =
            if expansion.labels.is_empty() { "all".to_owned() } else { expansion.labels.join(" and ") };
        let edges = format!("{what}{which} edges {:?} of", expansion.direction);
        self.note(&edges.to_lowercase(), &expansion.vertices);
    }
}

impl Graph for LoggingGraph {
    fn canonical(&self, id: &ElementId) -> Option<ElementId> {
        self.graph.canonical(id)
    }

    fn vertices(
        &self,
        ids: Vec<ElementId>,
        wanted: WantedProperties,
    ) -> GraphFuture<'_, Vec<Option<Arc<Vertex>>>> {
        let what = match &wanted {
            WantedProperties::None => "the vertices".to_owned(),
            WantedProperties::All => "all properties of".to_owned(),
            WantedProperties::Keys(keys) => format!("{} of", keys.join(" and ")),
        };
        self.note(&what, &ids);
        self.graph.vertices(ids, wanted)
    }

    fn edges(&self, ids: Vec<ElementId>) -> GraphFuture<'_, Vec<Option<Arc<Edge>>>> {
        self.note("the edges", &ids);
        self.graph.edges(ids)
    }

    fn scan_vertices(&self, after: Option<ElementId>, limit: usize) -> GraphFuture<'_, Vec<Arc<Vertex>>> {
        self.note("vertices of the graph, at most", &[limit]);
        self.graph.scan_vertices(after, limit)
    }

    fn scan_edges(&self, after: Option<ScanPlace>, limit: usize) -> GraphFuture<'_, ScannedEdges> {
        self.note("edges of the graph, at most", &[limit]);
        self.graph.scan_edges(after, limit)
    }

    fn expand(&self, expansion: Expansion) -> GraphFuture<'_, Vec<EdgeList>> {
        self.note_expansion("", &expansion);
        self.graph.expand(expansion)
    }

    fn degrees(&self, expansion: Expansion) -> GraphFuture<'_, Vec<u64>> {
        self.note_expansion("the numbers of ", &expansion);
        self.graph.degrees(expansion)
    }

    fn reach(&self, expansion: Expansion) -> GraphFuture<'_, Vec<Arc<Vertex>>> {
        self.note_expansion("the set of ends of ", &expansion);
        self.graph.reach(expansion)
    }

    fn write(&self, mutation: Mutation) -> GraphFuture<'_, Option<Value>> {
        self.graph.write(mutation)
    }
}
