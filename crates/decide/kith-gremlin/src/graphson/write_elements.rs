//! Writes elements of graphs, paths and profiles.

use super::writer::{JsonWriter, real, typed};
use crate::{
    error::Result,
    value::{Edge, Metrics, Path, Property, TraversalMetrics, Vertex, VertexProperty},
};
use serde_json::{Map, Value as Json, json};

impl JsonWriter {
    pub(super) fn vertex(&mut self, vertex: &Vertex) -> Result<Json> {
        let mut fields = Map::new();
        fields.insert("id".to_owned(), self.value(&vertex.id)?);
        fields.insert("label".to_owned(), json!(&*vertex.label));
        if let Some(properties) = &vertex.properties {
            let mut by_key = Map::new();
            for property in properties {
                let written = self.vertex_property(property)?;
                match by_key.entry(&*property.key).or_insert_with(|| json!([])) {
                    Json::Array(several) => several.push(written),
                    other => *other = json!([written]),
                }
            }
            fields.insert("properties".to_owned(), Json::Object(by_key));
        }
        Ok(typed("g:Vertex", fields))
    }

    pub(super) fn edge(&mut self, edge: &Edge) -> Result<Json> {
        let mut fields = Map::new();
        fields.insert("id".to_owned(), self.value(&edge.id)?);
        fields.insert("label".to_owned(), json!(&*edge.label));
        for (id, label, vertex) in
            [("outV", "outVLabel", &edge.out_vertex), ("inV", "inVLabel", &edge.in_vertex)]
        {
            fields.insert(id.to_owned(), self.value(&vertex.id)?);
            fields.insert(label.to_owned(), json!(&*vertex.label));
        }
        if let Some(properties) = &edge.properties {
            let by_key =
                properties.iter().map(|property| Ok((property.key.to_string(), self.property(property)?)));
            fields.insert("properties".to_owned(), Json::Object(by_key.collect::<Result<_>>()?));
        }
        Ok(typed("g:Edge", fields))
    }

    pub(super) fn vertex_property(&mut self, property: &VertexProperty) -> Result<Json> {
        let mut fields = Map::new();
        fields.insert("id".to_owned(), self.value(&property.id)?);
        fields.insert("label".to_owned(), json!(&*property.key));
        fields.insert("value".to_owned(), self.value(&property.value)?);
        if !property.properties.is_empty() {
            let properties = property.properties.iter().map(|inner| (inner.key.to_string(), &inner.value));
            fields.insert("properties".to_owned(), self.object(properties)?);
        }
        Ok(typed("g:VertexProperty", fields))
    }

    pub(super) fn property(&mut self, property: &Property) -> Result<Json> {
        Ok(typed("g:Property", json!({"key": &*property.key, "value": self.value(&property.value)?})))
    }

    pub(super) fn path(&mut self, path: &Path) -> Result<Json> {
        let mut labels = Vec::with_capacity(path.labels.len());
        for set in &path.labels {
            let set = self.values(set.iter())?;
            labels.push(self.collection("g:Set", set));
        }
        let objects = self.values(path.objects.iter())?;
        let (labels, objects) = (self.collection("g:List", labels), self.collection("g:List", objects));
        Ok(typed("g:Path", json!({"labels": labels, "objects": objects})))
    }

    pub(super) fn traversal_metrics(&mut self, metrics: &TraversalMetrics) -> Result<Json> {
        let steps = self.many_metrics(&metrics.steps)?;
        let fields = [("dur", millis(metrics.nanos)), ("metrics", steps)];
        Ok(typed("g:TraversalMetrics", self.named(fields)))
    }

    pub(super) fn metrics(&mut self, metrics: &Metrics) -> Result<Json> {
        let counts = metrics.counts.iter().map(|(name, count)| (name.as_str(), typed("g:Int64", *count)));
        let mut annotations = Vec::new();
        for (name, value) in &metrics.annotations {
            annotations.push((name.as_str(), self.value(value)?));
        }
        let fields = [
            ("dur", millis(metrics.nanos)),
            ("counts", self.named(counts)),
            ("name", json!(metrics.name)),
            ("annotations", self.named(annotations)),
            ("id", json!(metrics.id)),
            ("metrics", self.many_metrics(&metrics.nested)?),
        ];
        Ok(typed("g:Metrics", self.named(fields)))
    }

    fn many_metrics(&mut self, many: &[Metrics]) -> Result<Json> {
        let many = many.iter().map(|metrics| self.metrics(metrics)).collect::<Result<Vec<_>>>()?;
        Ok(self.collection("g:List", many))
    }
}

#[allow(clippy::cast_precision_loss, reason = "durations beyond 2⁵³ ns are rounded")]
fn millis(nanos: i64) -> Json {
    real("g:Double", nanos as f64 / 1e6)
}
