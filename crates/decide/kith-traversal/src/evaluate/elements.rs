//! Elements as they are in the graph: their properties, also after the traversal has changed them.

use super::{by, context::Context, weight};
use crate::{
    error::Result,
    graph::{Mutation, WantedProperties},
    value::{Edge, ElementId, Property, Value, Vertex, VertexProperty},
};
use std::{collections::HashMap, sync::Arc};

impl Context<'_> {
    /// Makes one change.
    async fn write(&self, mutation: Mutation) -> Result<Option<Value>> {
        let changed = match &mutation {
            Mutation::SetEdgeProperty { edge, .. } => Some(edge.clone()),
            Mutation::RemoveProperty { element: Value::Edge(edge), .. } => Some(edge.id.clone()),
            _ => None,
        };
        let is_edge_added = matches!(mutation, Mutation::AddEdge { .. });
        if matches!(mutation, Mutation::AddVertex { .. } | Mutation::RemoveVertex { .. }) {
            self.facts.lock().clear();
        }
        let written = self.graph.write(mutation).await?;
        let added = match &written {
            Some(Value::Edge(edge)) if is_edge_added => Some(edge.id.clone()),
            _ => None,
        };
        self.changed_edges.lock().extend(changed.or(added));
        Ok(written)
    }

    /// Makes changes in their order, after all of them have been checked. Returns what each of them returned.
    pub async fn write_all(&self, mutations: Vec<Mutation>) -> Result<Vec<Option<Value>>> {
        self.graph.prepare(&mutations).await?;
        let mut written = Vec::with_capacity(mutations.len());
        for mutation in mutations {
            written.push(self.write(mutation).await?);
        }
        Ok(written)
    }

    /// The properties of elements, for each element. Values that are no elements have none. They are charged until the end,
    /// because values of them may stay.
    pub async fn properties(
        &self,
        elements: &[&Value],
        wanted: &WantedProperties,
    ) -> Result<Vec<Vec<Value>>> {
        let properties = self.read_properties(elements, wanted).await?;
        for property in properties.iter().flatten() {
            self.work.count_values(by::property_value(property).into_iter())?;
        }
        Ok(properties)
    }

    /// As [`Context::properties`], for a step that only looks at them: they are not charged any more once it has returned.
    pub async fn read_properties(
        &self,
        elements: &[&Value],
        wanted: &WantedProperties,
    ) -> Result<Vec<Vec<Value>>> {
        let mut ids: Vec<Value> = Vec::new();
        let mut indexes: HashMap<&Value, usize> = HashMap::new();
        for element in elements {
            if let Value::Vertex(vertex) = element
                && vertex.properties.is_none()
                && !indexes.contains_key(&vertex.id)
            {
                indexes.insert(&vertex.id, ids.len());
                ids.push(vertex.id.clone());
            }
        }
        let fetched = match ids.is_empty() {
            true => Vec::new(),
            false => self.graph.vertices(ids.clone(), wanted.clone()).await?,
        };
        self.work.count_elements(fetched.len())?;
        let properties = fetched.iter().flatten().filter_map(|vertex| vertex.properties.as_deref());
        let bytes = properties.map(weight::of_vertex_properties).sum();
        self.work.note_effort(bytes / weight::VALUE_BYTES);
        self.work.meter.lend(bytes)?;
        self.note_facts(ids.into_iter().zip(&fetched))?;
        let changed = self.changed(elements.iter().copied()).await?;
        let of = |element: &&Value| match element {
            Value::Vertex(vertex) => {
                let fetched = indexes.get(&vertex.id).and_then(|at| fetched[*at].as_ref());
                of_vertex(fetched.unwrap_or(vertex), wanted)
            }
            Value::Edge(edge) => {
                let edge = changed.get(&edge.id).unwrap_or(edge);
                of_element(edge.properties.as_deref().unwrap_or_default(), wanted)
            }
            Value::VertexProperty(property) => of_element(&property.properties, wanted),
            _ => Vec::new(),
        };
        Ok(elements.iter().map(of).collect())
    }

    /// Gives edges among results the properties that they have by now.
    pub async fn refresh(&self, results: &mut [(Value, i64)]) -> Result<()> {
        let changed = self.changed(results.iter().map(|(value, _)| value)).await?;
        for (value, _) in results {
            if let Value::Edge(edge) = value
                && let Some(edge) = changed.get(&edge.id)
            {
                *value = Value::Edge(Arc::clone(edge));
            }
        }
        Ok(())
    }

    /// Those of these elements that are edges which the traversal has changed, as they are by now.
    async fn changed(&self, elements: impl Iterator<Item = &Value>) -> Result<HashMap<ElementId, Arc<Edge>>> {
        let ids: Vec<ElementId> = {
            let changed = self.changed_edges.lock();
            let id = |element: &Value| match element {
                Value::Edge(edge) if changed.contains(&edge.id) => Some(edge.id.clone()),
                _ => None,
            };
            if changed.is_empty() { Vec::new() } else { elements.filter_map(id).collect() }
        };
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let edges = self.graph.edges(ids).await?;
        self.work.count_elements(edges.len())?;
        Ok(edges.into_iter().flatten().map(|edge| (edge.id.clone(), edge)).collect())
    }
}

fn is_wanted(key: &str, wanted: &WantedProperties) -> bool {
    match wanted {
        WantedProperties::None => false,
        WantedProperties::All => true,
        WantedProperties::Keys(keys) => keys.iter().any(|wanted| &**wanted == key),
    }
}

fn of_vertex(vertex: &Vertex, wanted: &WantedProperties) -> Vec<Value> {
    let all = vertex.properties.as_deref().unwrap_or_default().iter();
    let wanted = all.filter(|property: &&Arc<VertexProperty>| is_wanted(&property.key, wanted));
    wanted.map(|property| Value::VertexProperty(Arc::clone(property))).collect()
}

fn of_element(properties: &[Arc<Property>], wanted: &WantedProperties) -> Vec<Value> {
    let wanted = properties.iter().filter(|property| is_wanted(&property.key, wanted));
    wanted.map(|property| Value::Property(Arc::clone(property))).collect()
}
