//! Facts that the evaluation finds out about vertices: the labels and the ids that the graph left unknown, and the properties of
//! results.

use super::{context::Context, weight};
use crate::{
    error::Result,
    graph::{UNKNOWN_LABEL, WantedProperties},
    plan::{Label, keys},
    value::{Edge, ElementId, Path, Property, ShownId, Value, Vertex, VertexProperty, shown_edge_id},
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

fn is_unknown(vertex: &Vertex) -> bool {
    &*vertex.label == UNKNOWN_LABEL
}

/// Whether the label or the id of a vertex is not the one that users see.
fn is_incomplete(vertex: &Vertex) -> bool {
    is_unknown(vertex) || vertex.shown != ShownId::Same
}

/// What has been found out about a vertex.
#[derive(Debug)]
pub(super) struct Fact {
    label: Label,
    /// The id that its creator gave it; `None` if it is the one that the traversal calculates with.
    shown: Option<ElementId>,
}

/// Whether the id of a vertex that users see must be looked up.
fn has_unknown_id(vertex: &Vertex) -> bool {
    vertex.shown == ShownId::Unknown
}

impl Context<'_> {
    /// The label of a vertex. Those of vertices that the graph left unknown must have been learned.
    pub fn label(&self, vertex: &Vertex) -> Label {
        match is_unknown(vertex) {
            false => Arc::clone(&vertex.label),
            true => self
                .facts
                .lock()
                .get(&vertex.id)
                .map_or_else(|| keys::VERTEX.into(), |it| Arc::clone(&it.label)),
        }
    }

    /// The id of a vertex that users see. Those that the graph left unknown must have been learned.
    pub fn shown_id(&self, vertex: &Vertex) -> ElementId {
        let learned = || self.facts.lock().get(&vertex.id).and_then(|fact| fact.shown.clone());
        match &vertex.shown {
            ShownId::Same => vertex.id.clone(),
            ShownId::Given(id) => id.clone(),
            ShownId::Unknown => learned().unwrap_or_else(|| vertex.id.clone()),
        }
    }

    /// The id of an edge that users see. Those of its ends must have been learned.
    pub fn shown_edge_id(&self, edge: &Edge) -> ElementId {
        let ends = [&edge.out_vertex, &edge.in_vertex];
        match ends.map(|vertex| self.shown_id(vertex)) {
            [from, to] if from == edge.out_vertex.id && to == edge.in_vertex.id => edge.id.clone(),
            [from, to] => shown_edge_id(&from, &edge.label, &to),
        }
    }

    /// Learns the labels of the vertices among these values, as far as they are unknown.
    pub async fn learn_labels(&self, values: &[&Value]) -> Result<()> {
        let vertex = |value: &&Value| match value {
            Value::Vertex(vertex) => Some(Arc::clone(vertex)),
            _ => None,
        };
        self.learn(values.iter().filter_map(vertex).collect(), is_unknown).await
    }

    /// Learns the ids that users see of the elements among these values, as far as they are unknown.
    pub async fn learn_ids(&self, values: &[&Value]) -> Result<()> {
        let mut vertices = Vec::new();
        for value in values {
            match value {
                Value::Vertex(vertex) => vertices.push(vertex),
                Value::Edge(edge) => vertices.extend([&edge.out_vertex, &edge.in_vertex]),
                _ => {}
            }
        }
        let unknown = vertices.into_iter().filter(|vertex| has_unknown_id(vertex));
        self.learn(unknown.cloned().collect(), has_unknown_id).await
    }

    /// Learns the labels of vertices, and the ids that users see, as far as they are unknown.
    pub async fn learn_all(&self, vertices: Vec<Arc<Vertex>>) -> Result<()> {
        self.learn(vertices, |vertex| is_unknown(vertex) || has_unknown_id(vertex)).await
    }

    /// Looks up those vertices of which something that is needed is not known.
    async fn learn(&self, vertices: Vec<Arc<Vertex>>, lacks: fn(&Vertex) -> bool) -> Result<()> {
        let unknown: HashSet<ElementId> = {
            let known = self.facts.lock();
            let is_wanted = |vertex: &&Arc<Vertex>| lacks(vertex) && !known.contains_key(&vertex.id);
            vertices.iter().filter(is_wanted).map(|vertex| vertex.id.clone()).collect()
        };
        if unknown.is_empty() {
            return Ok(());
        }
        let ids: Vec<ElementId> = unknown.into_iter().collect();
        let found = self.graph.vertices(ids.clone(), WantedProperties::None).await?;
        self.work.count_elements(found.len())?;
        self.note_facts(ids.into_iter().zip(&found))
    }

    /// Remembers the labels and ids of vertices that the graph has returned. A vertex that does not exist has the label `vertex`: an
    /// edge may lead to it nevertheless.
    ///
    /// # Errors
    /// `too_large` if they take more memory than the traversal may have.
    pub fn note_facts<'v>(
        &self,
        found: impl Iterator<Item = (ElementId, &'v Option<Arc<Vertex>>)>,
    ) -> Result<()> {
        let mut facts = self.facts.lock();
        for (id, vertex) in found {
            let label = vertex.as_ref().map_or_else(|| keys::VERTEX.into(), |it| Arc::clone(&it.label));
            let shown = match vertex.as_ref().map(|vertex| &vertex.shown) {
                Some(ShownId::Given(id)) => Some(id.clone()),
                _ => None,
            };
            if !facts.contains_key(&id) {
                let given = shown.as_ref().map_or(0, weight::of_kept);
                self.work.count_bytes(weight::of_kept(&id) + given)?;
            }
            facts.insert(id, Fact { label, shown });
        }
        Ok(())
    }

    /// Gives results that are vertices their properties.
    pub async fn materialize(&self, results: &mut [(Value, i64)]) -> Result<()> {
        let is_reference = |value: &Value| match value {
            Value::Vertex(vertex) if vertex.properties.is_none() => Some(vertex.id.clone()),
            _ => None,
        };
        let ids: HashSet<ElementId> = results.iter().filter_map(|(value, _)| is_reference(value)).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let ids: Vec<ElementId> = ids.into_iter().collect();
        let found = self.graph.vertices(ids.clone(), WantedProperties::All).await?;
        let properties = found.iter().flatten().filter_map(|vertex| vertex.properties.as_deref());
        self.work.count_bytes(properties.map(weight::of_vertex_properties).sum())?;
        self.note_facts(ids.iter().cloned().zip(&found))?;
        let whole: HashMap<&ElementId, Arc<Vertex>> =
            ids.iter().zip(found).filter_map(|(id, vertex)| Some((id, vertex?))).collect();
        for (value, _) in results {
            if let Some(vertex) = is_reference(value).and_then(|id| whole.get(&id)) {
                *value = Value::Vertex(Arc::clone(vertex));
            }
        }
        Ok(())
    }

    /// Gives all vertices in results their labels and the ids that users see, wherever they are in a value.
    pub async fn complete_all(&self, results: &mut [(Value, i64)]) -> Result<()> {
        let mut incomplete = Vec::new();
        let is_incomplete = |value: &Value, found: &mut Vec<Arc<Vertex>>| {
            let before = found.len();
            find_incomplete(value, found);
            before < found.len()
        };
        let indexes: Vec<usize> = results
            .iter()
            .enumerate()
            .filter(|(_, (value, _))| is_incomplete(value, &mut incomplete))
            .map(|(index, _)| index)
            .collect();
        self.learn_all(incomplete).await?;
        for index in indexes {
            let (value, _) = &mut results[index];
            self.work.count_values(std::iter::once(&*value))?;
            *value = self.completed(value);
        }
        Ok(())
    }

    /// The value with the labels, and the ids that users see, of all vertices in it.
    fn completed(&self, value: &Value) -> Value {
        let each = |values: &[Value]| values.iter().map(|value| self.completed(value)).collect::<Vec<_>>();
        match value {
            Value::Vertex(vertex) => Value::Vertex(self.completed_vertex(vertex)),
            Value::Edge(edge) => Value::Edge(Arc::new(Edge {
                id: self.shown_edge_id(edge),
                out_vertex: self.completed_vertex(&edge.out_vertex),
                in_vertex: self.completed_vertex(&edge.in_vertex),
                ..(**edge).clone()
            })),
            Value::VertexProperty(property) => Value::VertexProperty(Arc::new(VertexProperty {
                vertex: property.vertex.as_ref().map(|vertex| self.completed_vertex(vertex)),
                ..(**property).clone()
            })),
            Value::Property(property) => Value::Property(Arc::new(Property {
                element: property.element.as_ref().map(|element| self.completed(element)),
                ..(**property).clone()
            })),
            Value::Path(path) => {
                Value::Path(Arc::new(Path { labels: path.labels.clone(), objects: each(&path.objects) }))
            }
            Value::List(values) => Value::list(each(values)),
            Value::Set(values) => {
                Value::Set(Arc::new(values.iter().map(|value| self.completed(value)).collect()))
            }
            Value::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| (self.completed(key), self.completed(value)));
                Value::Map(Arc::new(entries.collect()))
            }
            Value::Entry(entry) => {
                Value::Entry(Arc::new((self.completed(&entry.0), self.completed(&entry.1))))
            }
            Value::BulkSet(values) => {
                let values = values.iter().map(|(value, bulk)| (self.completed(value), *bulk));
                Value::BulkSet(Arc::new(values.collect()))
            }
            other => other.clone(),
        }
    }

    fn completed_vertex(&self, vertex: &Arc<Vertex>) -> Arc<Vertex> {
        match is_incomplete(vertex) {
            false => Arc::clone(vertex),
            true => {
                let (id, label) = (self.shown_id(vertex), self.label(vertex));
                Arc::new(Vertex { id, label, shown: ShownId::Same, properties: vertex.properties.clone() })
            }
        }
    }
}

/// Collects the vertices in a value whose labels or ids are not those that users see.
fn find_incomplete(value: &Value, found: &mut Vec<Arc<Vertex>>) {
    let mut add = |vertex: &Arc<Vertex>| {
        if is_incomplete(vertex) {
            found.push(Arc::clone(vertex));
        }
    };
    match value {
        Value::Vertex(vertex) => add(vertex),
        Value::Edge(edge) => {
            add(&edge.out_vertex);
            add(&edge.in_vertex);
        }
        Value::VertexProperty(property) => property.vertex.iter().for_each(add),
        Value::Property(property) => {
            property.element.iter().for_each(|element| find_incomplete(element, found));
        }
        Value::Path(path) => path.objects.iter().for_each(|object| find_incomplete(object, found)),
        Value::List(values) => values.iter().for_each(|value| find_incomplete(value, found)),
        Value::Set(values) => values.iter().for_each(|value| find_incomplete(value, found)),
        Value::Map(entries) => entries.iter().for_each(|(key, value)| {
            find_incomplete(key, found);
            find_incomplete(value, found);
        }),
        Value::Entry(entry) => {
            find_incomplete(&entry.0, found);
            find_incomplete(&entry.1, found);
        }
        Value::BulkSet(values) => values.iter().for_each(|(value, _)| find_incomplete(value, found)),
        _ => {}
    }
}
