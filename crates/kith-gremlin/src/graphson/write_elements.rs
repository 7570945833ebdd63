//! Writes elements of graphs, paths and profiles.

use super::writer::{Writer, real, typed};
use crate::{
    error::Result,
    value::{Edge, Metrics, Path, Property, TraversalMetrics, Vertex, VertexProperty},
};
use serde_json::{Map, Value as Json, json};

impl Writer {
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
            labels.push(typed("g:Set", self.values(set.iter())?));
        }
        let objects = self.values(path.objects.iter())?;
        Ok(typed("g:Path", json!({"labels": typed("g:List", labels), "objects": typed("g:List", objects)})))
    }

    pub(super) fn traversal_metrics(&mut self, metrics: &TraversalMetrics) -> Result<Json> {
        let steps = self.many_metrics(&metrics.steps)?;
        let items = vec![json!("dur"), millis(metrics.nanos), json!("metrics"), steps];
        Ok(typed("g:TraversalMetrics", typed("g:Map", items)))
    }

    pub(super) fn metrics(&mut self, metrics: &Metrics) -> Result<Json> {
        let counts = metrics.counts.iter().flat_map(|(name, count)| [json!(name), typed("g:Int64", *count)]);
        let mut annotations = Vec::new();
        for (name, value) in &metrics.annotations {
            annotations.extend([json!(name), self.value(value)?]);
        }
        let fields = [
            ("dur", millis(metrics.nanos)),
            ("counts", typed("g:Map", counts.collect::<Vec<_>>())),
            ("name", json!(metrics.name)),
            ("annotations", typed("g:Map", annotations)),
            ("id", json!(metrics.id)),
            ("metrics", self.many_metrics(&metrics.nested)?),
        ];
        let items: Vec<Json> = fields.into_iter().flat_map(|(name, value)| [json!(name), value]).collect();
        Ok(typed("g:Metrics", typed("g:Map", items)))
    }

    fn many_metrics(&mut self, many: &[Metrics]) -> Result<Json> {
        let many = many.iter().map(|metrics| self.metrics(metrics)).collect::<Result<Vec<_>>>()?;
        Ok(typed("g:List", many))
    }
}

#[allow(clippy::cast_precision_loss, reason = "durations beyond 2⁵³ ns are rounded")]
fn millis(nanos: i64) -> Json {
    real("g:Double", nanos as f64 / 1e6)
}
