//! Converts the fields of objects and associations between JSON and records, and between the schemas of a type.

use super::open_record::{self, limited};
use super::record_id::RecordIds;
use crate::{ASSOCIATION_BYTES_MAX, Data, FieldsFault, GraphTypes, OBJECT_BYTES_MAX, TypeId};
use kith_schema::live::TextId;
use kith_schema::{EncodeError, Projection, RecordView, RecordWriter, Schema, TimeUnit};
use serde_json::{Map, Value, value::RawValue};
use std::collections::BTreeMap;

impl GraphTypes {
    /// Encodes a JSON object as a record with the latest schema of a type. `None` stands for an object without members.
    ///
    /// # Errors
    /// [`FieldsFault`] if the type does not exist, or if the fields do not fit its latest schema or are too large.
    pub fn encode(&self, kind: TypeId, fields: Option<&str>) -> Result<Data, FieldsFault> {
        self.encode_with_id(kind, None, fields)
    }

    /// Encodes a JSON object as a record that begins with the id of its object, if that is a text.
    ///
    /// # Errors
    /// As for [`GraphTypes::encode`]. The type must take such ids ([`super::ObjectType::takes_text_ids`]).
    pub fn encode_with_id(
        &self,
        kind: TypeId,
        id: Option<&TextId>,
        fields: Option<&str>,
    ) -> Result<Data, FieldsFault> {
        let coding = self.coding(kind)?;
        Ok(coding.ids.join(id, coding.encode(fields.unwrap_or("{}"))?))
    }

    /// Returns the id at the beginning of the record of an object, if its id is a text.
    ///
    /// # Errors
    /// [`FieldsFault`] if the type does not exist, or the record is damaged.
    pub fn text_id(&self, kind: TypeId, data: &Data) -> Result<Option<TextId>, FieldsFault> {
        Ok(self.coding(kind)?.ids.split(data)?.0)
    }

    /// The message about the first number in a field of times of a JSON object that is unlikely to be in milliseconds.
    pub fn unlikely_time(&self, kind: TypeId, fields: &str) -> Option<String> {
        let Coding { schemas, open, .. } = self.coding(kind).ok()?;
        let (_, latest) = last(schemas).filter(|_| !open)?;
        let mut writer = RecordWriter::new(latest);
        writer.write_json(fields, &mut Vec::new()).ok()?;
        let (field, number) = writer.unlikely_time()?;
        TimeUnit::doubt(field, number, |_| "write milliseconds or a date".to_owned())
    }

    /// Encodes a record with the latest schema of a type: it has the fields of a JSON object, and those of `base` that the
    /// JSON object lacks. In an open type, a field that is `null` in the JSON object is removed.
    ///
    /// # Errors
    /// [`FieldsFault`] as for [`GraphTypes::encode`], and if `base` cannot be read.
    pub fn encode_over(&self, kind: TypeId, base: &Data, fields: &str) -> Result<Data, FieldsFault> {
        let coding = self.coding(kind)?;
        let (id, base) = coding.ids.split(base)?;
        Ok(coding.ids.join(id.as_ref(), coding.encode_over(kind, &base, fields)?))
    }

    /// Decodes a record into a JSON object with the fields of the latest schema of its type.
    ///
    /// # Errors
    /// [`FieldsFault`] if the type does not exist, or if the record cannot be read.
    pub fn decode(&self, kind: TypeId, data: &Data) -> Result<String, FieldsFault> {
        let Coding { schemas, open, ids, .. } = self.coding(kind)?;
        let (_, data) = ids.split(data)?;
        if open {
            return open_record::decode(&data);
        }
        let Some((_, latest)) = last(schemas) else { return Ok("{}".to_owned()) };
        let latest_bytes = under_latest(kind, schemas, latest, &data)?;
        Ok(RecordView::new(latest, latest_bytes.as_deref().unwrap_or(&data.bytes))?.to_json()?)
    }

    /// As [`GraphTypes::decode`], with only the fields that are named.
    ///
    /// # Errors
    /// As [`GraphTypes::decode`].
    pub fn decode_named(&self, kind: TypeId, data: &Data, names: &[String]) -> Result<String, FieldsFault> {
        let text = self.decode(kind, data)?;
        // `decode` returns a JSON object.
        let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(&text).unwrap_or_default();
        fields.retain(|name, _| names.contains(name));
        Ok(serde_json::to_string(&fields).unwrap_or_default())
    }

    /// Converts a record of type `from` into a record of type `to`, whose fields get the values of the fields with the same
    /// names. If one of the types is open, each value is written as the JSON that a read returns.
    ///
    /// # Errors
    /// [`FieldsFault`] if the record cannot be converted. A field that has a value is never dropped: if `to` lacks it, the
    /// error is [`FieldsFault::FieldLost`].
    pub fn convert(&self, from: TypeId, data: &Data, to: TypeId) -> Result<Data, FieldsFault> {
        let Coding { schemas, open, .. } = self.coding(from)?;
        let Coding { schemas: new_schemas, max, open: to_open, .. } = self.coding(to)?;
        if data.bytes.is_empty() {
            return self.encode(to, None);
        }
        if open && !to_open {
            let kept = |key: &str| last(new_schemas).is_some_and(|(_, new)| new.index_of(key).is_some());
            open_record::check_kept(data, kept)?;
        }
        if open || to_open {
            return self.encode(to, Some(&self.decode(from, data)?));
        }
        let old = written_under(from, schemas, data)?;
        let view = RecordView::new(old, &data.bytes)?;
        let new = last(new_schemas);
        for (index, field) in old.fields().iter().enumerate() {
            let is_kept = new.is_some_and(|(_, new)| new.index_of(field.name()).is_some());
            if !is_kept && view.at(index)?.is_some() {
                return Err(FieldsFault::FieldLost { field: field.name().to_owned() });
            }
        }
        let Some((schema, new)) = new else { return Ok(Data::default()) };
        let mut bytes = Vec::new();
        Projection::resolve(old, new)?.write(&data.bytes, &mut bytes)?;
        limited(schema, bytes, max)
    }

    fn coding(&self, kind: TypeId) -> Result<Coding<'_>, FieldsFault> {
        let object = self.objects.get(&kind).map(|kind| Coding {
            schemas: &kind.schemas,
            max: OBJECT_BYTES_MAX,
            open: kind.open,
            ids: kind.record_ids(),
        });
        let association = || {
            let kind = self.associations.get(&kind)?;
            let (schemas, max, open) = (&kind.schemas, ASSOCIATION_BYTES_MAX, kind.open);
            Some(Coding { schemas, max, open, ids: RecordIds::None })
        };
        object.or_else(association).ok_or(FieldsFault::NoType(kind))
    }
}

/// The schemas that the records of a type are coded with.
struct Coding<'a> {
    /// The schemas of the type, oldest first.
    schemas: &'a [Schema],
    /// The maximum size of its records, in bytes.
    max: usize,
    /// Whether the type is open, so that its records have no schema.
    open: bool,
    /// Whether its records begin with ids.
    ids: RecordIds,
}

impl Coding<'_> {
    /// Encodes a JSON object as fields without an id before them.
    fn encode(&self, fields: &str) -> Result<Data, FieldsFault> {
        if self.open {
            return open_record::encode(fields, self.max);
        }
        let Some((schema, latest)) = last(self.schemas) else { return no_fields(fields) };
        let mut bytes = Vec::new();
        RecordWriter::new(latest).write_json(fields, &mut bytes)?;
        limited(schema, bytes, self.max)
    }

    /// Encodes the fields of a JSON object and those of `base` that it lacks, without an id before them.
    fn encode_over(&self, kind: TypeId, base: &Data, fields: &str) -> Result<Data, FieldsFault> {
        if self.open {
            return open_record::encode_over(base, fields, self.max);
        }
        let Some((schema, latest)) = last(self.schemas) else { return no_fields(fields) };
        if base.bytes.is_empty() {
            return self.encode(fields);
        }
        let projection = Projection::resolve(written_under(kind, self.schemas, base)?, latest)?;
        let mut bytes = Vec::new();
        RecordWriter::new(latest).write_json_over(fields, &projection.view(&base.bytes)?, &mut bytes)?;
        limited(schema, bytes, self.max)
    }
}

/// Returns the latest schema and its index; `None` for a type without fields.
fn last(schemas: &[Schema]) -> Option<(u16, &Schema)> {
    let latest = schemas.last()?;
    Some((u16::try_from(schemas.len() - 1).ok()?, latest))
}

pub(super) fn written_under<'a>(
    kind: TypeId,
    schemas: &'a [Schema],
    data: &Data,
) -> Result<&'a Schema, FieldsFault> {
    schemas.get(usize::from(data.schema)).ok_or(FieldsFault::NoSchema { kind, schema: data.schema })
}

/// Converts a record to the latest schema; `None` if the record already has this schema.
fn under_latest(
    kind: TypeId,
    schemas: &[Schema],
    latest: &Schema,
    data: &Data,
) -> Result<Option<Vec<u8>>, FieldsFault> {
    let mut bytes = Vec::new();
    if data.bytes.is_empty() {
        RecordWriter::new(latest).write_json("{}", &mut bytes)?;
        return Ok(Some(bytes));
    }
    let old = written_under(kind, schemas, data)?;
    if old == latest {
        return Ok(None);
    }
    Projection::resolve(old, latest)?.write(&data.bytes, &mut bytes)?;
    Ok(Some(bytes))
}

/// Encodes the fields of a type without fields, for which the JSON object must have no members.
fn no_fields(fields: &str) -> Result<Data, FieldsFault> {
    let members: Map<String, Value> = serde_json::from_str(fields).map_err(|error| EncodeError::Json {
        detail: "expected an object".to_owned(),
        column: error.column(),
    })?;
    match members.into_iter().next() {
        None => Ok(Data::default()),
        Some((field, _)) => Err(EncodeError::UnknownField { field, near: None }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AssociationType, Inverse, ObjectType};

    const USER: TypeId = TypeId(1);
    const TAG: TypeId = TypeId(2);
    const LIKES: TypeId = TypeId(3);
    const LOVES: TypeId = TypeId(4);

    fn schema(fields: &str) -> Schema {
        format!("{{\"fields\":[{fields}]}}").parse().unwrap()
    }

    fn association(name: &str, fields: &str) -> AssociationType {
        AssociationType {
            name: name.to_owned(),
            schemas: vec![schema(fields)],
            inverse: Inverse::None,
            cap: AssociationType::CAP_DEFAULT,
            adjacency: false,
            open: false,
        }
    }

    fn types() -> GraphTypes {
        let mut types = GraphTypes { identity: 1, revision: 1, ..GraphTypes::default() };
        let name = r#"{"name":"name","type":"text"}"#;
        let score = r#"{"name":"score","type":"f64","nullable":true}"#;
        let schemas = vec![schema(name), schema(&format!("{name},{score}"))];
        types.objects.insert(USER, ObjectType { name: "user".to_owned(), schemas, ..ObjectType::default() });
        types.objects.insert(TAG, ObjectType { name: "tag".to_owned(), ..ObjectType::default() });
        types.associations.insert(LIKES, association("likes", score));
        types.associations.insert(LOVES, association("loves", name));
        types
    }

    #[test]
    fn fields_come_back_as_they_were_given_also_from_older_schemas() {
        let types = types();
        let new = types.encode(USER, Some(r#"{"name":"Ann","score":0.1}"#)).unwrap();
        assert_eq!(types.decode(USER, &new).unwrap(), r#"{"name":"Ann","score":0.1}"#);
        let mut bytes = Vec::new();
        RecordWriter::new(&types.objects[&USER].schemas[0])
            .write_json(r#"{"name":"Bo"}"#, &mut bytes)
            .unwrap();
        let old = Data { schema: 0, bytes: bytes.into() };
        assert_eq!(types.decode(USER, &old).unwrap(), r#"{"name":"Bo","score":null}"#);
        let over = types.encode_over(USER, &old, r#"{"score":2}"#).unwrap();
        assert_eq!(types.decode(USER, &over).unwrap(), r#"{"name":"Bo","score":2.0}"#);
        let nulled = types.encode_over(USER, &over, r#"{"score":null}"#).unwrap();
        assert_eq!(types.decode(USER, &nulled).unwrap(), r#"{"name":"Bo","score":null}"#);
    }

    #[test]
    fn a_type_without_fields_has_records_without_bytes() {
        let types = types();
        assert_eq!(types.encode(TAG, None), Ok(Data::default()));
        assert_eq!(types.decode(TAG, &Data::default()).unwrap(), "{}");
        let error = types.encode(TAG, Some(r#"{"a":1}"#)).unwrap_err();
        assert_eq!(error.to_string(), "field \"a\" is not in the schema");
        assert!(types.encode(TAG, Some("[]")).is_err());
    }

    #[test]
    fn what_cannot_be_stored_is_named() {
        let types = types();
        let why = |kind, fields: &str| types.encode(kind, Some(fields)).unwrap_err().to_string();
        assert_eq!(why(USER, r#"{"nam":"x"}"#), "field \"nam\" is not in the schema; did you mean \"name\"?");
        assert_eq!(why(USER, "{}"), "field \"name\" is missing");
        assert_eq!(why(USER, r#"{"name":7}"#), "field \"name\": expected text, got number 7");
        let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(70_000));
        assert!(types.encode(USER, Some(&long)).is_ok());
        let why = why(LOVES, &long);
        assert!(why.ends_with("bytes, and at most 65536 are allowed"), "{why}");
        let unknown = types.object_named("usr").unwrap_err().to_string();
        assert_eq!(unknown, "the graph has no object type \"usr\"; did you mean \"user\"?");
    }

    #[test]
    fn another_type_takes_over_fields_of_the_same_name_and_loses_none() {
        let types = types();
        let scored = types.encode(LIKES, Some(r#"{"score":1}"#)).unwrap();
        let lost = types.convert(LIKES, &scored, LOVES).unwrap_err();
        assert_eq!(lost, FieldsFault::FieldLost { field: "score".to_owned() });
        let unscored = types.encode(LIKES, None).unwrap();
        assert!(matches!(types.convert(LIKES, &unscored, LOVES), Err(FieldsFault::Incompatible(_))));
        assert_eq!(types.convert(LIKES, &scored, LIKES), Ok(scored));
    }
}
