//! Writes elements of graphs, paths and profiles.

use super::{Writer, code::TypeCode};
use crate::{
    error::Result,
    value::{Edge, Metrics, Path, Property, Value, Vertex, VertexProperty},
};
use std::sync::Arc;

impl Writer {
    /// An element or a path with its type. Other values write nothing.
    pub(super) fn element(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Vertex(vertex) => self.vertex(vertex),
            Value::Edge(edge) => self.edge(edge),
            Value::VertexProperty(property) => self.vertex_property(property),
            Value::Property(property) => self.property(property),
            Value::Path(path) => self.path(path),
            _ => Ok(()),
        }
    }

    fn vertex(&mut self, vertex: &Vertex) -> Result<()> {
        self.head(TypeCode::Vertex);
        self.value(&vertex.id)?;
        self.string(&vertex.label)?;
        self.properties(vertex.properties.as_deref(), Self::vertex_property)
    }

    fn edge(&mut self, edge: &Edge) -> Result<()> {
        self.head(TypeCode::Edge);
        self.value(&edge.id)?;
        self.string(&edge.label)?;
        for vertex in [&edge.in_vertex, &edge.out_vertex] {
            self.value(&vertex.id)?;
            self.string(&vertex.label)?;
        }
        self.null(); // The graph of the edge.
        self.properties(edge.properties.as_deref(), Self::property)
    }

    fn vertex_property(&mut self, property: &VertexProperty) -> Result<()> {
        self.head(TypeCode::VertexProperty);
        self.value(&property.id)?;
        self.string(&property.key)?;
        self.value(&property.value)?;
        self.null(); // The vertex, as in Java.
        let properties = Some(&property.properties[..]).filter(|properties| !properties.is_empty());
        self.properties(properties, Self::property)
    }

    fn property(&mut self, property: &Property) -> Result<()> {
        self.head(TypeCode::Property);
        self.string(&property.key)?;
        self.value(&property.value)?;
        self.null(); // The element, as in Java.
        Ok(())
    }

    /// A list of properties, or null.
    fn properties<T>(
        &mut self,
        properties: Option<&[Arc<T>]>,
        write: impl Fn(&mut Self, &T) -> Result<()>,
    ) -> Result<()> {
        let Some(properties) = properties else {
            self.null();
            return Ok(());
        };
        self.head(TypeCode::List);
        self.count(properties.len())?;
        properties.iter().try_for_each(|property| write(self, property))
    }

    fn path(&mut self, path: &Path) -> Result<()> {
        self.head(TypeCode::Path);
        self.head(TypeCode::List);
        self.count(path.labels.len())?;
        for labels in &path.labels {
            self.head(TypeCode::Set);
            self.values(labels.iter())?;
        }
        self.head(TypeCode::List);
        self.values(path.objects.iter())
    }

    /// The result of `profile()`, with its type. Other values write nothing.
    pub(super) fn profile(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Metrics(metrics) => self.metrics(metrics),
            Value::TraversalMetrics(metrics) => {
                self.head(TypeCode::TraversalMetrics);
                self.i64(metrics.nanos);
                self.many_metrics(&metrics.steps)
            }
            _ => Ok(()),
        }
    }

    fn metrics(&mut self, metrics: &Metrics) -> Result<()> {
        self.head(TypeCode::Metrics);
        self.string(&metrics.id)?;
        self.string(&metrics.name)?;
        self.i64(metrics.nanos);
        self.count(metrics.counts.len())?;
        for (name, count) in &metrics.counts {
            self.value(&Value::text(&**name))?;
            self.value(&Value::Long(*count))?;
        }
        self.count(metrics.annotations.len())?;
        for (name, value) in &metrics.annotations {
            self.value(&Value::text(&**name))?;
            self.value(value)?;
        }
        self.many_metrics(&metrics.nested)
    }

    fn many_metrics(&mut self, many: &[Metrics]) -> Result<()> {
        self.count(many.len())?;
        many.iter().try_for_each(|metrics| self.metrics(metrics))
    }
}
