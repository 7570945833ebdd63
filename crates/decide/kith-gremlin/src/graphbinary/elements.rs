//! Reads elements of graphs, paths and profiles.

use super::{Reader, code::TypeCode};
use crate::{
    assemble,
    error::Result,
    value::{Edge, Metrics, Property, TraversalMetrics, Value, Vertex, VertexProperty},
};
use std::sync::Arc;

/// Reads elements, paths and profiles from the bytes of a reader.
pub(super) struct ElementReader<'r, 'a>(pub(super) &'r mut Reader<'a>);

impl ElementReader<'_, '_> {
    /// A value of one of these types whose type and flag were read.
    pub(super) fn element(&mut self, code: TypeCode, start: usize) -> Result<Value> {
        Ok(match code {
            TypeCode::Vertex => Value::Vertex(Arc::new(Vertex {
                id: self.0.value()?,
                label: self.0.string()?,
                properties: self.properties(assemble::vertex_property)?,
            })),
            TypeCode::Edge => self.edge()?,
            TypeCode::VertexProperty => self.vertex_property()?,
            TypeCode::Property => Value::Property(Arc::new(Property {
                key: self.0.string()?,
                value: self.0.value()?,
                element: Some(self.0.value()?).filter(|element| *element != Value::Null),
            })),
            _ => {
                let before = self.0.taken();
                let labels = self.0.value()?;
                // The sets are copied.
                self.0.take_room(self.0.taken() - before)?;
                let objects = self.0.value()?;
                assemble::path(&labels, objects).map_err(|error| self.0.located(start, error))?
            }
        })
    }

    fn edge(&mut self) -> Result<Value> {
        let (id, label) = (self.0.value()?, self.0.string()?);
        let in_vertex = self.reference()?;
        let out_vertex = self.reference()?;
        self.0.value()?; // The graph of the edge, which is always null.
        let properties = self.properties(assemble::property)?;
        Ok(Value::Edge(Arc::new(Edge { id, label, out_vertex, in_vertex, properties })))
    }

    /// The id and the label of a vertex at an end of an edge.
    fn reference(&mut self) -> Result<Arc<Vertex>> {
        Ok(Arc::new(Vertex::reference(self.0.value()?, self.0.string()?)))
    }

    fn vertex_property(&mut self) -> Result<Value> {
        let (id, key, value) = (self.0.value()?, self.0.string()?, self.0.value()?);
        let vertex = match self.0.value()? {
            Value::Vertex(vertex) => Some(vertex),
            _ => None,
        };
        let properties = self.properties(assemble::property)?.unwrap_or_default();
        Ok(Value::VertexProperty(Arc::new(VertexProperty { id, key, value, vertex, properties })))
    }

    /// A list of properties; `None` if it is null.
    fn properties<T>(&mut self, of_value: impl Fn(Value) -> Result<T>) -> Result<Option<Vec<T>>> {
        let start = self.0.offset();
        let properties = match self.0.value()? {
            Value::Null => return Ok(None),
            Value::List(list) => Arc::unwrap_or_clone(list).into_iter().map(of_value).collect(),
            other => Err(assemble::wanted("the properties of an element", "a List", &other)),
        };
        properties.map(Some).map_err(|error| self.0.located(start, error))
    }

    /// The result of `profile()`.
    pub(super) fn profile(&mut self, code: TypeCode, start: usize) -> Result<Value> {
        if code == TypeCode::TraversalMetrics {
            let nanos = self.0.i64()?;
            let steps = self.nested_metrics(start)?;
            return Ok(Value::TraversalMetrics(Arc::new(TraversalMetrics { nanos, steps })));
        }
        let (id, name) = (self.0.string()?.to_string(), self.0.string()?.to_string());
        let nanos = self.0.i64()?;
        let counts = self.0.map()?;
        let counts = assemble::counts(counts).map_err(|error| self.0.located(start, error))?;
        let annotations = self.0.map()?.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
        let nested = self.nested_metrics(start)?;
        Ok(Value::Metrics(Arc::new(Metrics { id, name, nanos, counts, annotations, nested })))
    }

    fn nested_metrics(&mut self, start: usize) -> Result<Vec<Metrics>> {
        let values = self.0.list()?;
        let metrics: Result<_> = values.into_iter().map(assemble::metrics).collect();
        metrics.map_err(|error| self.0.located(start, error))
    }
}
