//! Properties as fields of types: which fields there are, and whether values fit them.

use kith_gremlin::{GremlinError, property, value::Value};
use kith_live::{
    FieldsFault, GraphTypes, Label, TypeId, TypeKind, UnknownType, WriteFault, field_values::to_json,
};
use kith_query::QueryError;
use kith_schema::{EncodeError, RecordWriter, Schema};
use kith_types::ErrorCode;
use serde_json::Value as Json;
use std::sync::Arc;

/// A type whose fields are written.
#[derive(Clone, Debug)]
pub(super) struct WrittenType {
    types: Arc<GraphTypes>,
    id: TypeId,
    name: String,
    /// The latest schema; `None` if the type has no fields, or is open.
    schema: Option<Schema>,
    is_open: bool,
}

impl WrittenType {
    /// The object type with this name, also if the first write adds it to an open graph.
    ///
    /// # Errors
    /// The graph has none, or is open and cannot have one.
    pub fn object(types: &Arc<GraphTypes>, name: &str) -> Result<Self, QueryError> {
        let types = types.on_first_use(TypeKind::Object, name);
        let named = types.object_named(name);
        let (id, kind) = named.map_err(|unknown| not_a_type(&types, TypeKind::Object, unknown))?;
        let (name, schema, is_open) = (kind.name.clone(), kind.schemas.last().cloned(), kind.open);
        Ok(Self { types, id, name, schema, is_open })
    }

    /// The association type with this name, also if the first write adds it to an open graph.
    ///
    /// # Errors
    /// The graph has none, or is open and cannot have one.
    pub fn association(types: &Arc<GraphTypes>, name: &str) -> Result<Self, QueryError> {
        let types = types.on_first_use(TypeKind::Association, name);
        let named = types.association_named(name);
        let (id, kind) = named.map_err(|unknown| not_a_type(&types, TypeKind::Association, unknown))?;
        let (name, schema, is_open) = (kind.name.clone(), kind.schemas.last().cloned(), kind.open);
        Ok(Self { types, id, name, schema, is_open })
    }

    /// The data of a new element with these properties.
    ///
    /// # Errors
    /// A property does not fit, or a field without a default has none.
    pub fn data(&self, properties: &[(Arc<str>, Value)]) -> Result<String, QueryError> {
        let field = |(key, value): &(Arc<str>, Value)| Ok((key.to_string(), self.json(key, value)?));
        let data = object_text(properties.iter().map(field).collect::<Result<_, QueryError>>()?);
        self.types.encode(self.id, Some(&data)).map_err(|fault| self.unfit(fault))?;
        Ok(data)
    }

    /// The value of a field as JSON, as it is stored.
    ///
    /// # Errors
    /// The type has no such field, or the value does not fit it.
    pub fn json(&self, key: &str, value: &Value) -> Result<String, QueryError> {
        if self.is_open {
            let refused = |error: GremlinError| bad_fields(format!("key {key:?}: {error}"));
            return property::to_json(value).map_err(refused);
        }
        let known = self.schema.as_ref().and_then(|schema| Some((schema, schema.index_of(key)?)));
        let Some((schema, index)) = known else { return Err(self.no_field(key)) };
        let field = &schema.fields()[index];
        let misfit = || {
            let (kind, got) = (field.field_type(), value.type_name());
            bad_fields(format!(
                "field {key:?} of {:?} is of type {kind}, which does not fit {value}, a value of type {got}",
                self.name
            ))
        };
        let json = to_json(field.field_type(), value).ok_or_else(misfit)?;
        if json.is_null() && !field.is_nullable() {
            return Err(bad_fields(format!(
                "field {key:?} of {:?} is not nullable, so it cannot be removed",
                self.name
            )));
        }
        let text = json.to_string();
        let fits = RecordWriter::new(schema).set_json(index, &text);
        fits.map_err(|fault| self.unfit(FieldsFault::Encode(fault)))?;
        Ok(text)
    }

    fn no_field(&self, key: &str) -> QueryError {
        let near = self.schema.as_ref().and_then(|schema| schema.nearest(key));
        let near = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        bad_fields(format!("{:?} has no field {key:?}{near}", self.name))
    }

    fn unfit(&self, fault: FieldsFault) -> QueryError {
        match fault {
            FieldsFault::Encode(fault) => self.unfit_value(&fault),
            fault => QueryError::Write(WriteFault::Fields(fault)),
        }
    }

    fn unfit_value(&self, fault: &EncodeError) -> QueryError {
        bad_fields(format!("{fault} ({:?})", self.name))
    }
}

/// A JSON object with these fields, whose values are JSON.
pub(super) fn object_text(fields: Vec<(String, String)>) -> String {
    let field = |(key, value): (String, String)| format!("{}:{value}", Json::from(key));
    format!("{{{}}}", fields.into_iter().map(field).collect::<Vec<_>>().join(","))
}

/// The error for a label that is not a type. Writes add new labels to an open graph, so such a graph cannot have this one.
fn not_a_type(types: &GraphTypes, kind: TypeKind, unknown: UnknownType) -> QueryError {
    let label = Label { kind, name: unknown.name.clone() };
    match types.with_labels(&[label]) {
        Err(error) if types.open => {
            let help = "use another label (docs/live-graph.md, \"Open graphs\")".to_owned();
            QueryError::Remote { code: ErrorCode::BadSchema, message: error.to_string(), help }
        }
        _ => WriteFault::Type(unknown).into(),
    }
}

fn bad_fields(message: String) -> QueryError {
    let help = "`kith schema show --graph NAME` lists the fields of each type".to_owned();
    QueryError::Remote { code: ErrorCode::BadFields, message, help }
}
