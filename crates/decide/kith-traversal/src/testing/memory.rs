//! A graph in memory that behaves as the graphs of a cluster do.

use super::adjacency::Adjacency;
use crate::{
    error::{GremlinError, Result},
    graph::{
        CountedLabels, EdgeList, EdgePlace, Expansion, Graph, GraphFuture, Mutation, ScanPlace, ScannedEdges,
        VertexSearch, WantedProperties,
    },
    semantics::equal,
    value::{Cardinality, Direction, Edge, ElementId, Property, Value, Vertex, VertexProperty},
};
use futures::FutureExt;
use indexmap::IndexMap;
use kith_types::ErrorCode;
use parking_lot::Mutex;
use std::{collections::HashSet, sync::Arc};

/// A graph in memory. Vertices have numbers or texts as ids. There is one edge for each label between two vertices in a
/// direction; its id is the text `OUT>LABEL>IN`.
#[derive(Debug, Default)]
pub struct MemoryGraph(Mutex<Elements>);

#[derive(Debug, Default)]
struct Elements {
    vertices: IndexMap<ElementId, VertexRow>,
    edges: IndexMap<ElementId, EdgeRow>,
    adjacency: Adjacency,
    last_id: i64,
    /// The keys of vertices that have an index.
    indexes: HashSet<Arc<str>>,
    /// The most edges of a vertex that are returned at a time where not all are wanted.
    part_max: Option<usize>,
}

#[derive(Debug)]
struct VertexRow {
    label: Arc<str>,
    properties: IndexMap<Arc<str>, Vec<Value>>,
}

#[derive(Debug)]
struct EdgeRow {
    label: Arc<str>,
    out_vertex: ElementId,
    in_vertex: ElementId,
    properties: IndexMap<Arc<str>, Value>,
}

/// The form in which a graph keeps an id: whole numbers are a `Long`, and texts of digits are numbers.
fn canonical(id: &Value) -> ElementId {
    match id {
        Value::Byte(id) => Value::Long(i64::from(*id)),
        Value::Short(id) => Value::Long(i64::from(*id)),
        Value::Int(id) => Value::Long(i64::from(*id)),
        Value::String(text) => text.parse().map_or_else(|_| id.clone(), Value::Long),
        other => other.clone(),
    }
}

impl MemoryGraph {
    /// Keeps an index of the values that vertices have under a key.
    pub fn index(&self, key: &str) {
        self.0.lock().indexes.insert(key.into());
    }

    /// Returns fewer edges of a vertex at a time than are wanted, if not all are, as a graph may do that reads them in pages.
    pub fn in_parts(&self, most: usize) {
        self.0.lock().part_max = Some(most);
    }
}

impl Elements {
    fn vertex(&self, id: &ElementId, wanted: &WantedProperties) -> Option<Arc<Vertex>> {
        let row = self.vertices.get(id)?;
        let reference = Arc::new(Vertex::reference(id.clone(), row.label.clone()));
        let is_wanted = |key: &str| match wanted {
            WantedProperties::None => false,
            WantedProperties::All => true,
            WantedProperties::Keys(keys) => keys.iter().any(|wanted| &**wanted == key),
        };
        if *wanted == WantedProperties::None {
            return Some(reference);
        }
        let mut properties = Vec::new();
        for (key, values) in row.properties.iter().filter(|(key, _)| is_wanted(key)) {
            for (at, value) in values.iter().enumerate() {
                properties.push(Arc::new(VertexProperty {
                    id: Value::text(format!("{id}>{key}>{at}")),
                    key: key.clone(),
                    value: value.clone(),
                    vertex: Some(reference.clone()),
                    properties: Vec::new(),
                }));
            }
        }
        Some(Arc::new(Vertex { properties: Some(properties), ..(*reference).clone() }))
    }

    fn edge(&self, id: &ElementId) -> Option<Arc<Edge>> {
        let row = self.edges.get(id)?;
        let end = |id: &ElementId| {
            let label = self.vertices.get(id).map_or_else(|| "vertex".into(), |row| row.label.clone());
            Arc::new(Vertex::reference(id.clone(), label))
        };
        let reference = Edge {
            id: id.clone(),
            label: row.label.clone(),
            out_vertex: end(&row.out_vertex),
            in_vertex: end(&row.in_vertex),
            properties: None,
        };
        let element = Value::Edge(Arc::new(reference.clone()));
        let property = |(key, value): (&Arc<str>, &Value)| {
            Arc::new(Property { key: key.clone(), value: value.clone(), element: Some(element.clone()) })
        };
        let properties = row.properties.iter().map(property).collect();
        Some(Arc::new(Edge { properties: Some(properties), ..reference }))
    }

    fn expand(&self, vertex: &ElementId, after: Option<EdgePlace>, expansion: &Expansion) -> EdgeList {
        let all = self.adjacency.edges(vertex, expansion.direction, &expansion.labels);
        let (before, limit) = (after.map_or(0, |position| position.read), expansion.part.limit);
        let limit = self.part_max.filter(|_| limit != usize::MAX).map_or(limit, |most| most.min(limit));
        let mut edges: Vec<_> = all.filter_map(|id| self.edge(id)).skip(before).collect();
        let has_more = limit < edges.len();
        edges.truncate(limit);
        let rest = EdgePlace { list: 0, last: None, read: before + edges.len() };
        EdgeList { edges, rest: has_more.then_some(rest) }
    }

    fn remove_edge(&mut self, id: &ElementId) {
        if let Some(row) = self.edges.shift_remove(id) {
            self.adjacency.remove(id, &row.label, &row.out_vertex, &row.in_vertex);
        }
    }

    fn write(&mut self, mutation: Mutation) -> Result<Option<Value>> {
        match mutation {
            Mutation::AddVertex { id, label, properties } => self.add_vertex(id, label, properties).map(Some),
            Mutation::AddEdge { id: Some(_), .. } => {
                Err(GremlinError::unsupported("an id that is given to an edge"))
            }
            Mutation::AddEdge { id: None, label, out_vertex, in_vertex, properties, replaces } => {
                let ends = [canonical(&out_vertex), canonical(&in_vertex)];
                self.add_edge(label, ends, properties, replaces).map(Some)
            }
            Mutation::SetVertexProperty { vertex, cardinality, key, value } => {
                let Some(row) = self.vertices.get_mut(&vertex) else { return Ok(None) };
                let values = row.properties.entry(key).or_default();
                match cardinality {
                    Cardinality::Single => *values = vec![value],
                    _ => return Err(GremlinError::unsupported("more than one value of a key")),
                }
                Ok(self.vertex(&vertex, &WantedProperties::None).map(Value::Vertex))
            }
            Mutation::SetEdgeProperty { edge, key, value } => {
                let Some(row) = self.edges.get_mut(&edge) else { return Ok(None) };
                row.properties.insert(key, value);
                Ok(self.edge(&edge).map(Value::Edge))
            }
            Mutation::RemoveProperty { element, key } => Ok(self.remove_property(&element, &key)),
            Mutation::RemoveVertex { vertex } => {
                let edges: Vec<_> = self.adjacency.edges(&vertex, Direction::Both, &[]).cloned().collect();
                edges.iter().for_each(|id| self.remove_edge(id));
                self.vertices.shift_remove(&vertex);
                Ok(None)
            }
            Mutation::RemoveEdge { edge } => {
                self.remove_edge(&edge);
                Ok(None)
            }
        }
    }

    fn add_vertex(
        &mut self,
        id: Option<ElementId>,
        label: Arc<str>,
        properties: Vec<(Arc<str>, Value)>,
    ) -> Result<Value> {
        let id = match id {
            Some(id) => canonical(&id),
            None => {
                while self.vertices.contains_key(&Value::Long(self.last_id)) {
                    self.last_id += 1;
                }
                Value::Long(self.last_id)
            }
        };
        if self.vertices.contains_key(&id) {
            return Err(GremlinError::new(
                ErrorCode::ObjectExists,
                format!("Vertex with id already exists: {id}"),
            ));
        }
        let mut row = VertexRow { label, properties: IndexMap::new() };
        for (key, value) in properties {
            row.properties.insert(key, vec![value]);
        }
        self.vertices.insert(id.clone(), row);
        Ok(self.vertex(&id, &WantedProperties::None).map(Value::Vertex).unwrap_or_default())
    }

    fn add_edge(
        &mut self,
        label: Arc<str>,
        [out_vertex, in_vertex]: [ElementId; 2],
        properties: Vec<(Arc<str>, Value)>,
        replaces: bool,
    ) -> Result<Value> {
        for id in [&out_vertex, &in_vertex] {
            if !self.vertices.contains_key(id) {
                return Err(GremlinError::bad(format!("there is no vertex {id}")));
            }
        }
        let id = Value::text(format!("{out_vertex}>{label}>{in_vertex}"));
        if !replaces && self.edges.contains_key(&id) {
            return Err(GremlinError::new(ErrorCode::ObjectExists, format!("edge {id} exists already")));
        }
        self.adjacency.insert(&id, &label, &out_vertex, &in_vertex);
        let row = EdgeRow { label, out_vertex, in_vertex, properties: properties.into_iter().collect() };
        self.edges.insert(id.clone(), row);
        Ok(self.edge(&id).map(Value::Edge).unwrap_or_default())
    }

    fn remove_property(&mut self, element: &Value, key: &str) -> Option<Value> {
        match element {
            Value::Vertex(vertex) => {
                self.vertices.get_mut(&vertex.id)?.properties.shift_remove(key)?;
            }
            Value::Edge(edge) => {
                self.edges.get_mut(&edge.id)?.properties.shift_remove(key)?;
            }
            _ => return None,
        }
        Some(element.clone())
    }
}

fn page<T>(ids: &IndexMap<ElementId, T>, after: Option<&ElementId>, limit: usize) -> Vec<ElementId> {
    let from = after.map_or(0, |id| ids.get_index_of(id).map_or(ids.len(), |at| at + 1));
    ids.keys().skip(from).take(limit).cloned().collect()
}

impl Graph for MemoryGraph {
    fn canonical(&self, id: &ElementId) -> Option<ElementId> {
        Some(canonical(id))
    }

    fn ignores_edge_id(&self) -> bool {
        true
    }

    fn vertices(
        &self,
        ids: Vec<ElementId>,
        wanted: WantedProperties,
    ) -> GraphFuture<'_, Vec<Option<Arc<Vertex>>>> {
        let elements = self.0.lock();
        let found = ids.iter().map(|id| elements.vertex(&canonical(id), &wanted)).collect();
        async move { Ok(found) }.boxed()
    }

    fn edges(&self, ids: Vec<ElementId>) -> GraphFuture<'_, Vec<Option<Arc<Edge>>>> {
        let elements = self.0.lock();
        let found = ids.iter().map(|id| elements.edge(id)).collect();
        async move { Ok(found) }.boxed()
    }

    fn scan_vertices(&self, after: Option<ElementId>, limit: usize) -> GraphFuture<'_, Vec<Arc<Vertex>>> {
        let elements = self.0.lock();
        let ids = page(&elements.vertices, after.as_ref(), limit);
        let found = ids.iter().filter_map(|id| elements.vertex(id, &WantedProperties::None)).collect();
        async move { Ok(found) }.boxed()
    }

    fn find_vertices(&self, sought: VertexSearch) -> GraphFuture<'_, Option<Vec<Arc<Vertex>>>> {
        let elements = self.0.lock();
        let indexed = sought.properties.iter().find(|(key, _)| elements.indexes.contains(key));
        let found = indexed.map(|(key, value)| {
            let has_it = |row: &VertexRow| {
                row.properties.get(key).is_some_and(|values| values.iter().any(|it| equal(it, value)))
            };
            let ids = elements.vertices.iter().filter(|(_, row)| has_it(row)).map(|(id, _)| id);
            ids.filter_map(|id| elements.vertex(id, &WantedProperties::None)).collect()
        });
        async move { Ok(found) }.boxed()
    }

    fn count_vertices(&self, labels: CountedLabels) -> GraphFuture<'_, Option<u64>> {
        let elements = self.0.lock();
        let count = elements.vertices.values().filter(|row| labels.contain(&row.label)).count() as u64;
        async move { Ok(Some(count)) }.boxed()
    }

    fn count_edges(&self, labels: CountedLabels) -> GraphFuture<'_, Option<u64>> {
        let elements = self.0.lock();
        let count = elements.edges.values().filter(|row| labels.contain(&row.label)).count() as u64;
        async move { Ok(Some(count)) }.boxed()
    }

    fn scan_edges(&self, after: Option<ScanPlace>, limit: usize) -> GraphFuture<'_, ScannedEdges> {
        let elements = self.0.lock();
        // The place of a scan is the edge at which it ends.
        let after = after.map(|position| position.vertex);
        let ids = page(&elements.edges, after.as_ref(), limit);
        let rest = ids.last().filter(|_| ids.len() == limit).cloned();
        let edges = ids.iter().filter_map(|id| elements.edge(id)).collect();
        let rest = rest.map(|vertex| ScanPlace { vertex, edges: None });
        async move { Ok(ScannedEdges { edges, rest }) }.boxed()
    }

    fn expand(&self, expansion: Expansion) -> GraphFuture<'_, Vec<EdgeList>> {
        let elements = self.0.lock();
        let each = expansion.vertices.iter().enumerate();
        let list = |(at, vertex)| elements.expand(&canonical(vertex), expansion.part.after(at), &expansion);
        let found = each.map(list).collect();
        async move { Ok(found) }.boxed()
    }

    fn write(&self, mutation: Mutation) -> GraphFuture<'_, Option<Value>> {
        let written = self.0.lock().write(mutation);
        async move { written }.boxed()
    }
}
