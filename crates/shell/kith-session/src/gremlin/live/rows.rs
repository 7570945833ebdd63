//! Objects and associations as elements of Gremlin.

use super::super::{ids::number_id, rows::edge_of};
use super::{ids::shown, labels::List};
use kith_gremlin::{
    plain,
    property::Properties,
    value::{Edge, ShownId, Value, Vertex, VertexProperty},
};
use kith_live::{GraphTypes, ListedAssociation, ObjectAnswer, field_values::to_gremlin};
use kith_schema::Schema;
use kith_traversal::graph::{UNKNOWN_LABEL, WantedProperties};
use serde_json::{Map, Value as Json};
use std::sync::Arc;

/// A vertex of which only the number is known.
pub(super) fn unknown_vertex(id: u64, shown: ShownId) -> Arc<Vertex> {
    Arc::new(Vertex { shown, ..Vertex::reference(number_id(id), UNKNOWN_LABEL) })
}

/// A vertex with its label, without properties.
pub(super) fn known_vertex(id: u64, kind: Arc<str>, shown: ShownId) -> Arc<Vertex> {
    Arc::new(Vertex { shown, ..Vertex::reference(number_id(id), kind) })
}

/// An object as a vertex, with the wanted properties.
pub(super) fn vertex_of(types: &GraphTypes, object: &ObjectAnswer, wanted: &WantedProperties) -> Arc<Vertex> {
    let shown = shown(object.text_id.as_ref());
    let reference = known_vertex(object.id, object.kind.as_str().into(), shown);
    if *wanted == WantedProperties::None {
        return reference;
    }
    let is_wanted = |key: &str| match wanted {
        WantedProperties::None => false,
        WantedProperties::All => true,
        WantedProperties::Keys(keys) => keys.iter().any(|wanted| &**wanted == key),
    };
    let kind = types.object(&object.kind).map(|(_, kind)| kind);
    let (schema, is_open) = (kind.and_then(|it| it.schemas.last()), kind.is_none_or(|kind| kind.open));
    let id = reference.known_id();
    let property = |(key, value): (Arc<str>, Value)| {
        Arc::new(VertexProperty {
            id: Value::text(format!("{id}>{key}")),
            key,
            value,
            vertex: Some(reference.clone()),
            properties: Vec::new(),
        })
    };
    let properties =
        properties_of((schema, is_open), &object.data, &is_wanted).into_iter().map(property).collect();
    Arc::new(Vertex { properties: Some(properties), ..(*reference).clone() })
}

/// An association in a list of the vertex `own` as an edge.
pub(super) fn edge_in(
    list: &List<'_>,
    label: &Arc<str>,
    own: &Arc<Vertex>,
    association: &ListedAssociation,
) -> Arc<Edge> {
    let other = unknown_vertex(association.id2, own.shown.clone());
    let (out_vertex, in_vertex) = if list.is_out { (own.clone(), other) } else { (other, own.clone()) };
    let data = association.data.as_deref().unwrap_or("{}");
    edge_of(
        label,
        out_vertex,
        in_vertex,
        properties_of((list.kind.schemas.last(), list.kind.open), data, &|_| true),
    )
}

/// The fields of a record as properties, in the order of its schema, or of keys if its type is open. Fields that are null are
/// left out.
fn properties_of(
    (schema, is_open): (Option<&Schema>, bool),
    data: &str,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Vec<(Arc<str>, Value)> {
    if is_open {
        // Nodes send only what property values can be; anything else has no properties.
        let properties = Properties::from_json(data).unwrap_or_default();
        let wanted = properties.iter().filter(|(key, value)| is_wanted(key) && **value != Value::Null);
        return wanted.map(|(key, value)| (key.clone(), value.clone())).collect();
    }
    // Nodes send JSON objects; anything else has no fields.
    let fields: Map<String, Json> = serde_json::from_str(data).unwrap_or_default();
    let known = |key: &str| schema.and_then(|schema| Some(&schema.fields()[schema.index_of(key)?]));
    let mut properties: Vec<(Option<usize>, Arc<str>, Value)> = Vec::with_capacity(fields.len());
    for (key, json) in fields.iter().filter(|(key, _)| is_wanted(key)) {
        let value = match known(key) {
            Some(field) => to_gremlin(field.field_type(), json),
            // A field that was added after this process last heard of the types.
            None => Some(plain::from_json(json)).filter(|value| *value != Value::Null),
        };
        let position = schema.and_then(|schema| schema.index_of(key));
        properties.extend(value.map(|value| (position, Arc::from(key.as_str()), value)));
    }
    properties.sort_by_key(|(position, _, _)| position.unwrap_or(usize::MAX));
    properties.into_iter().map(|(_, key, value)| (key, value)).collect()
}
