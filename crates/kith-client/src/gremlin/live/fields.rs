//! Properties as fields of types: which fields there are, and whether values fit them.

use crate::gremlin::values::to_json;
use kith_api::QueryError;
use kith_gremlin::value::Value;
use kith_live::{FieldsFault, GraphTypes, TypeId, WriteFault};
use kith_schema::{EncodeError, RecordWriter, Schema};
use kith_types::ErrorCode;
use serde_json::{Map, Value as Json};
use std::sync::Arc;

/// A type whose fields are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Typed<'t> {
    pub types: &'t GraphTypes,
    pub id: TypeId,
    pub name: &'t str,
    /// The latest schema; `None` if the type has no fields.
    pub schema: Option<&'t Schema>,
}

impl<'t> Typed<'t> {
    /// The object type with this name.
    ///
    /// # Errors
    /// The graph has none.
    pub fn object(types: &'t GraphTypes, name: &str) -> Result<Self, QueryError> {
        let (id, kind) = types.object_named(name).map_err(WriteFault::Type)?;
        Ok(Self { types, id, name: &kind.name, schema: kind.schemas.last() })
    }

    /// The association type with this name.
    ///
    /// # Errors
    /// The graph has none.
    pub fn association(types: &'t GraphTypes, name: &str) -> Result<Self, QueryError> {
        let (id, kind) = types.association_named(name).map_err(WriteFault::Type)?;
        Ok(Self { types, id, name: &kind.name, schema: kind.schemas.last() })
    }

    /// The data of a new element with these properties.
    ///
    /// # Errors
    /// A property does not fit, or a field without a default has none.
    pub fn data(&self, properties: &[(Arc<str>, Value)]) -> Result<String, QueryError> {
        let mut fields = Map::new();
        for (key, value) in properties {
            fields.insert(key.to_string(), self.json(key, value)?);
        }
        let data = Json::Object(fields).to_string();
        self.types.encode(self.id, Some(&data)).map_err(|fault| self.unfit(fault))?;
        Ok(data)
    }

    /// The value of a field as it is stored.
    ///
    /// # Errors
    /// The type has no such field, or the value does not fit it.
    pub fn json(&self, key: &str, value: &Value) -> Result<Json, QueryError> {
        let place = self.schema.and_then(|schema| Some((schema, schema.index_of(key)?)));
        let Some((schema, index)) = place else { return Err(self.no_field(key)) };
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
        let fits = RecordWriter::new(schema).set_json(index, &json.to_string());
        fits.map_err(|fault| self.unfit(FieldsFault::Encode(fault)))?;
        Ok(json)
    }

    fn no_field(&self, key: &str) -> QueryError {
        let near = self.schema.and_then(|schema| schema.nearest(key));
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

fn bad_fields(message: String) -> QueryError {
    let help = "`kith schema show --graph NAME` lists the fields of each type".to_owned();
    QueryError::Remote { code: ErrorCode::BadFields, message, help }
}
