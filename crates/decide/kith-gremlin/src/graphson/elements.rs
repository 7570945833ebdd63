//! Reads elements of graphs, paths and profiles.

use super::{Fields, JsonReader};
use crate::{
    assemble,
    error::Result,
    room::{ELEMENT, ENTRY},
    value::{Edge, Map, Metrics, Property, TraversalMetrics, Value, Vertex, VertexProperty},
};
use serde_json::value::RawValue;
use std::sync::Arc;

/// The label of a vertex whose label is unknown.
const LABEL_UNKNOWN: &str = "vertex";

/// The set of the labels of one object in a path has at least this many characters.
const LABEL_TEXT_BYTES_MIN: usize = 2;

/// Reads elements, paths and profiles from the text of a reader.
pub(super) struct ElementReader<'r, 'a>(pub(super) &'r mut JsonReader<'a>);

impl<'a> ElementReader<'_, 'a> {
    pub(super) fn element(&mut self, type_name: &str, raw: &'a RawValue) -> Result<Value> {
        self.0.with_fields(raw, |reader, fields| match type_name {
            "g:Vertex" => ElementReader(reader).vertex(raw, fields),
            "g:Edge" => ElementReader(reader).edge(raw, fields),
            "g:VertexProperty" => ElementReader(reader).vertex_property(raw, fields),
            "g:Property" => {
                let key = reader.string(reader.required(fields, "key", raw)?)?;
                let value = reader.value(reader.required(fields, "value", raw)?)?;
                let element = fields.get("element").map(|element| reader.value(element)).transpose()?;
                let element = element.filter(|element| *element != Value::Null);
                Ok(Value::Property(Arc::new(Property { key, value, element })))
            }
            _ => {
                let labels_raw = reader.required(fields, "labels", raw)?;
                // The sets are copied.
                reader.take_room(ENTRY * labels_raw.get().len() / LABEL_TEXT_BYTES_MIN)?;
                let labels = reader.value(labels_raw)?;
                let objects = reader.value(reader.required(fields, "objects", raw)?)?;
                assemble::path(&labels, objects).map_err(|error| reader.located(raw, error))
            }
        })
    }

    fn vertex(&mut self, raw: &'a RawValue, fields: &Fields<'a>) -> Result<Value> {
        let id = self.0.value(self.0.required(fields, "id", raw)?)?;
        let label = self.label(fields, "label", LABEL_UNKNOWN)?;
        let mut properties = fields.get("properties").map(|_| Vec::new());
        for (_, several) in self.optional_fields(fields, "properties")? {
            for value in self.0.list(several)? {
                let property =
                    assemble::vertex_property(value).map_err(|error| self.0.located(several, error))?;
                properties.get_or_insert_default().push(property);
            }
        }
        Ok(Value::Vertex(Arc::new(Vertex { id, label, properties })))
    }

    fn edge(&mut self, raw: &'a RawValue, fields: &Fields<'a>) -> Result<Value> {
        let id = self.0.value(self.0.required(fields, "id", raw)?)?;
        let label = self.label(fields, "label", "edge")?;
        let out_id = self.0.value(self.0.required(fields, "outV", raw)?)?;
        let out_vertex = Vertex::reference(out_id, self.label(fields, "outVLabel", LABEL_UNKNOWN)?);
        let in_id = self.0.value(self.0.required(fields, "inV", raw)?)?;
        let in_vertex = Vertex::reference(in_id, self.label(fields, "inVLabel", LABEL_UNKNOWN)?);
        let mut properties = fields.get("properties").map(|_| Vec::new());
        for (_, value) in self.optional_fields(fields, "properties")? {
            let property =
                assemble::property(self.0.value(value)?).map_err(|error| self.0.located(value, error))?;
            properties.get_or_insert_default().push(property);
        }
        let (out_vertex, in_vertex) = (Arc::new(out_vertex), Arc::new(in_vertex));
        Ok(Value::Edge(Arc::new(Edge { id, label, out_vertex, in_vertex, properties })))
    }

    fn vertex_property(&mut self, raw: &'a RawValue, fields: &Fields<'a>) -> Result<Value> {
        let id = self.0.value(self.0.required(fields, "id", raw)?)?;
        let key = self.0.string(self.0.required(fields, "label", raw)?)?;
        let value = self.0.value(self.0.required(fields, "value", raw)?)?;
        let vertex = fields.get("vertex").map(|id| self.0.value(id)).transpose()?;
        let vertex = vertex.map(|id| Arc::new(Vertex::reference(id, LABEL_UNKNOWN)));
        let mut properties = Vec::new();
        for (key, value) in self.optional_fields(fields, "properties")? {
            let value = self.0.value(value)?;
            self.0.take_room(ELEMENT)?;
            properties.push(Arc::new(Property { key: key.into(), value, element: None }));
        }
        Ok(Value::VertexProperty(Arc::new(VertexProperty { id, key, value, vertex, properties })))
    }

    fn label(&mut self, fields: &Fields<'a>, name: &str, unknown: &str) -> Result<Arc<str>> {
        fields.get(name).map_or_else(|| Ok(unknown.into()), |label| self.0.string(label))
    }

    /// The fields of an object that is itself a field; none if it is absent.
    fn optional_fields(&mut self, fields: &Fields<'a>, name: &str) -> Result<Vec<(String, &'a RawValue)>> {
        fields.get(name).map_or_else(|| Ok(Vec::new()), |raw| Ok(self.0.fields(raw)?.list))
    }

    /// The result of `profile()`: a map of names.
    pub(super) fn profile(&mut self, type_name: &str, raw: &'a RawValue) -> Result<Value> {
        let Value::Map(map) = self.0.value(raw)? else {
            return Err(self.0.error_at(raw, "metrics are no map"));
        };
        let mut map = Arc::unwrap_or_clone(map);
        let mut take = |name: &str| map.swap_remove(&Value::text(name)).unwrap_or_default();
        let built = if type_name == "g:TraversalMetrics" {
            traversal_metrics(take("dur"), take("metrics"))
        } else {
            let names = (take("id").to_string(), take("name").to_string());
            metrics(names, take("dur"), [take("counts"), take("annotations")], take("metrics"))
        };
        built.map_err(|error| self.0.located(raw, error))
    }
}

fn traversal_metrics(millis: Value, steps: Value) -> Result<Value> {
    let metrics = TraversalMetrics { nanos: nanos(&millis)?, steps: many_metrics(steps)? };
    Ok(Value::TraversalMetrics(Arc::new(metrics)))
}

fn metrics(
    (id, name): (String, String),
    millis: Value,
    [counts, annotations]: [Value; 2],
    nested: Value,
) -> Result<Value> {
    let counts = assemble::counts(map_of(counts)?)?;
    let annotations = map_of(annotations)?.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
    let (nanos, nested) = (nanos(&millis)?, many_metrics(nested)?);
    Ok(Value::Metrics(Arc::new(Metrics { id, name, nanos, counts, annotations, nested })))
}

fn many_metrics(values: Value) -> Result<Vec<Metrics>> {
    match values {
        Value::Null => Ok(Vec::new()),
        Value::List(list) => Arc::unwrap_or_clone(list).into_iter().map(assemble::metrics).collect(),
        other => Err(assemble::wanted("the metrics of steps", "a List", &other)),
    }
}

fn map_of(value: Value) -> Result<Map> {
    match value {
        Value::Null => Ok(Map::new()),
        Value::Map(map) => Ok(Arc::unwrap_or_clone(map)),
        other => Err(assemble::wanted("a part of metrics", "a Map", &other)),
    }
}

/// Nanoseconds from milliseconds.
#[allow(clippy::cast_possible_truncation, reason = "a conversion from a float to an integer saturates")]
fn nanos(millis: &Value) -> Result<i64> {
    match millis {
        Value::Double(millis) => Ok((millis * 1e6).round() as i64),
        other => Err(assemble::wanted("the duration of metrics", "a Double", other)),
    }
}
