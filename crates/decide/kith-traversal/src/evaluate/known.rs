//! Facts that the evaluation finds out about vertices of which it has only the ids: the labels that the graph left unknown, and the
//! properties of results.

use super::{context::Context, weight};
use crate::{
    error::Result,
    graph::{UNKNOWN_LABEL, WantedProperties},
    plan::{Label, keys},
    value::{Edge, ElementId, Path, Property, Value, Vertex, VertexProperty},
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

fn is_unknown(vertex: &Vertex) -> bool {
    &*vertex.label == UNKNOWN_LABEL
}

impl Context<'_> {
    /// The label of a vertex. Those of vertices that the graph left unknown must have been learned.
    pub fn label(&self, vertex: &Vertex) -> Label {
        match is_unknown(vertex) {
            false => Arc::clone(&vertex.label),
            true => self.labels.lock().get(&vertex.id).cloned().unwrap_or_else(|| keys::VERTEX.into()),
        }
    }

    /// Learns the labels of the vertices among these values, as far as they are unknown.
    pub async fn learn_labels(&self, values: &[&Value]) -> Result<()> {
        let vertex = |value: &&Value| match value {
            Value::Vertex(vertex) => Some(Arc::clone(vertex)),
            _ => None,
        };
        self.learn_labels_of(values.iter().filter_map(vertex).collect()).await
    }

    /// Learns the labels of vertices, as far as they are unknown.
    pub async fn learn_labels_of(&self, vertices: Vec<Arc<Vertex>>) -> Result<()> {
        let unknown: HashSet<ElementId> = {
            let known = self.labels.lock();
            let is_wanted = |vertex: &&Arc<Vertex>| is_unknown(vertex) && !known.contains_key(&vertex.id);
            vertices.iter().filter(is_wanted).map(|vertex| vertex.id.clone()).collect()
        };
        if unknown.is_empty() {
            return Ok(());
        }
        let ids: Vec<ElementId> = unknown.into_iter().collect();
        let found = self.graph.vertices(ids.clone(), WantedProperties::None).await?;
        self.work.count_elements(found.len())?;
        self.note_labels(ids.into_iter().zip(&found))
    }

    /// Remembers the labels of vertices that the graph has returned. A vertex that does not exist has the label `vertex`: an
    /// edge may lead to it nevertheless.
    ///
    /// # Errors
    /// `too_large` if the labels take more memory than the traversal may have.
    pub fn note_labels<'v>(
        &self,
        found: impl Iterator<Item = (ElementId, &'v Option<Arc<Vertex>>)>,
    ) -> Result<()> {
        let label = |vertex: &Option<Arc<Vertex>>| {
            vertex.as_ref().map_or_else(|| keys::VERTEX.into(), |vertex| Arc::clone(&vertex.label))
        };
        let mut labels = self.labels.lock();
        for (id, vertex) in found {
            if labels.get(&id).is_none() {
                self.work.count_bytes(weight::of_kept(&id))?;
            }
            labels.insert(id, label(vertex));
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
        self.note_labels(ids.iter().cloned().zip(&found))?;
        let whole: HashMap<&ElementId, Arc<Vertex>> =
            ids.iter().zip(found).filter_map(|(id, vertex)| Some((id, vertex?))).collect();
        for (value, _) in results {
            if let Some(vertex) = is_reference(value).and_then(|id| whole.get(&id)) {
                *value = Value::Vertex(Arc::clone(vertex));
            }
        }
        Ok(())
    }

    /// Gives all vertices in results their labels, wherever they are in a value.
    pub async fn label_all(&self, results: &mut [(Value, i64)]) -> Result<()> {
        let mut unlabelled = Vec::new();
        let is_unlabelled = |value: &Value, found: &mut Vec<Arc<Vertex>>| {
            let before = found.len();
            find_unknown(value, found);
            before < found.len()
        };
        let indexes: Vec<usize> = results
            .iter()
            .enumerate()
            .filter(|(_, (value, _))| is_unlabelled(value, &mut unlabelled))
            .map(|(index, _)| index)
            .collect();
        self.learn_labels_of(unlabelled).await?;
        for index in indexes {
            let (value, _) = &mut results[index];
            self.work.count_values(std::iter::once(&*value))?;
            *value = self.labelled(value);
        }
        Ok(())
    }

    /// The value with the labels of all vertices in it.
    fn labelled(&self, value: &Value) -> Value {
        let each = |values: &[Value]| values.iter().map(|value| self.labelled(value)).collect::<Vec<_>>();
        match value {
            Value::Vertex(vertex) => Value::Vertex(self.labelled_vertex(vertex)),
            Value::Edge(edge) => Value::Edge(Arc::new(Edge {
                out_vertex: self.labelled_vertex(&edge.out_vertex),
                in_vertex: self.labelled_vertex(&edge.in_vertex),
                ..(**edge).clone()
            })),
            Value::VertexProperty(property) => Value::VertexProperty(Arc::new(VertexProperty {
                vertex: property.vertex.as_ref().map(|vertex| self.labelled_vertex(vertex)),
                ..(**property).clone()
            })),
            Value::Property(property) => Value::Property(Arc::new(Property {
                element: property.element.as_ref().map(|element| self.labelled(element)),
                ..(**property).clone()
            })),
            Value::Path(path) => {
                Value::Path(Arc::new(Path { labels: path.labels.clone(), objects: each(&path.objects) }))
            }
            Value::List(values) => Value::list(each(values)),
            Value::Set(values) => {
                Value::Set(Arc::new(values.iter().map(|value| self.labelled(value)).collect()))
            }
            Value::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| (self.labelled(key), self.labelled(value)));
                Value::Map(Arc::new(entries.collect()))
            }
            Value::Entry(entry) => Value::Entry(Arc::new((self.labelled(&entry.0), self.labelled(&entry.1)))),
            Value::BulkSet(values) => {
                let values = values.iter().map(|(value, bulk)| (self.labelled(value), *bulk));
                Value::BulkSet(Arc::new(values.collect()))
            }
            other => other.clone(),
        }
    }

    fn labelled_vertex(&self, vertex: &Arc<Vertex>) -> Arc<Vertex> {
        match is_unknown(vertex) {
            false => Arc::clone(vertex),
            true => Arc::new(Vertex { label: self.label(vertex), ..(**vertex).clone() }),
        }
    }
}

/// Collects the vertices in a value whose labels are unknown.
fn find_unknown(value: &Value, found: &mut Vec<Arc<Vertex>>) {
    let mut add = |vertex: &Arc<Vertex>| {
        if is_unknown(vertex) {
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
            property.element.iter().for_each(|element| find_unknown(element, found));
        }
        Value::Path(path) => path.objects.iter().for_each(|object| find_unknown(object, found)),
        Value::List(values) => values.iter().for_each(|value| find_unknown(value, found)),
        Value::Set(values) => values.iter().for_each(|value| find_unknown(value, found)),
        Value::Map(entries) => entries.iter().for_each(|(key, value)| {
            find_unknown(key, found);
            find_unknown(value, found);
        }),
        Value::Entry(entry) => {
            find_unknown(&entry.0, found);
            find_unknown(&entry.1, found);
        }
        Value::BulkSet(values) => values.iter().for_each(|(value, _)| find_unknown(value, found)),
        _ => {}
    }
}
