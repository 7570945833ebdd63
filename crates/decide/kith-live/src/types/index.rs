//! Indexes: which fields of object types have one, and the keys under which values stand in it.
//!
//! A key is bounded, but equal keys mean equal values: a long text or byte string is represented by its SHA-256.

use super::ObjectType;
use super::fault::{TypeKind, TypePart, TypesError, TypesFault};
use super::fields::written_under;
use crate::{Data, FieldsFault, IndexEntry, IndexId, TypeId, UnknownType};
use kith_schema::{
    EncodeError, Field, FieldType, RecordView, RecordWriter, Scalar, ScalarType, Schema, nearest,
};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// The longest text or byte string that an index contains as it is, in bytes.
const WHOLE_BYTES_MAX: usize = 64;
/// The maximum size of a key of an index, in bytes.
pub const INDEX_KEY_BYTES_MAX: usize = 1 + WHOLE_BYTES_MAX;
/// The most bytes of a value that an error shows.
const SHOWN_BYTES_MAX: usize = 64;

/// An index on a field of an object type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// The number of the index.
    pub number: IndexId,
    /// The name of the field.
    pub field: String,
    /// Whether no two objects of the graph may have the same value.
    pub unique: bool,
}

/// Whether a field has an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// The field has no index.
    None,
    /// The field has an index.
    Index,
    /// The field has an index, and its values are unique.
    Unique,
}

/// A request names a field that cannot be looked up, or a value that the field cannot have.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum FindFault {
    /// The graph has no such object type.
    #[error(transparent)]
    UnknownType(#[from] UnknownType),
    /// The object type has no such field.
    #[error("object type {kind:?} has no field {field:?}{}", near.as_ref().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default())]
    NoField { kind: String, field: String, near: Option<String> },
    /// The field has no index.
    #[error("field {field:?} of object type {kind:?} has no index")]
    NoIndex { kind: String, field: String },
    /// Null is looked up.
    #[error(
        "objects without a value for field {field:?} cannot be looked up, because null is not part of an index"
    )]
    Null { field: String },
    /// The field cannot have the value.
    #[error(transparent)]
    Value(#[from] EncodeError),
}

impl FindFault {
    /// Returns what the caller can do about the error.
    pub fn help(&self) -> String {
        match self {
            FindFault::UnknownType(unknown) => unknown.help(),
            FindFault::NoField { .. } | FindFault::NoIndex { .. } => {
                "`kith schema show --graph NAME` lists the fields that have `index = true` or `unique = true`"
                    .to_owned()
            }
            FindFault::Null { .. } => "give a value that the field has".to_owned(),
            FindFault::Value(_) => "`kith schema show --graph NAME` lists the types of fields".to_owned(),
        }
    }
}

impl fmt::Display for Indexing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Indexing::None => "no index",
            Indexing::Index => "an index",
            Indexing::Unique => "an index with unique values",
        })
    }
}

impl ObjectType {
    /// Returns the index on a field.
    pub fn index_of(&self, field: &str) -> Option<&Index> {
        self.indexes.iter().find(|index| index.field == field)
    }

    /// Says whether a field has an index.
    pub fn indexing(&self, field: &str) -> Indexing {
        match self.index_of(field) {
            None => Indexing::None,
            Some(Index { unique: false, .. }) => Indexing::Index,
            Some(Index { unique: true, .. }) => Indexing::Unique,
        }
    }

    /// Returns the entries of an object in the indexes of the type ([`super::GraphTypes::entries`]). `number` is the number of the type.
    pub(super) fn entries(
        &self,
        number: TypeId,
        id: u64,
        data: &Data,
    ) -> Result<Vec<IndexEntry>, FieldsFault> {
        let (_, data) = self.record_ids().split(data)?;
        if self.open || data.bytes.is_empty() {
            return Ok(Vec::new());
        }
        let schema = written_under(number, &self.schemas, &data)?;
        let view = RecordView::new(schema, &data.bytes)?;
        let mut entries = Vec::with_capacity(self.indexes.len());
        for index in &self.indexes {
            let Some(field) = schema.index_of(&index.field) else { continue };
            let value = view.at(field)?.and_then(|value| value.as_scalar());
            if let Some(value) = value {
                let (key, unique) = (key_of(value), index.unique);
                entries.push(IndexEntry { index: index.number, key, id, unique });
            }
        }
        Ok(entries)
    }

    /// Returns the name of the field that an index is on, and its value in an object: as JSON, cut off if it is long. `json` has
    /// the fields of the object.
    pub(super) fn shown(&self, index: IndexId, json: Option<String>) -> (String, String) {
        let Some(index) = self.indexes.iter().find(|it| it.number == index) else {
            return Default::default();
        };
        let json: Option<serde_json::Value> = json.and_then(|json| serde_json::from_str(&json).ok());
        let value = json.and_then(|json| json.get(&index.field).map(ToString::to_string)).unwrap_or_default();
        (index.field.clone(), cut(value))
    }

    /// Returns the index on a field, and the key under which it has a value, which is given as JSON.
    pub(super) fn find_key(&self, field: &str, value: &str) -> Result<(IndexId, Arc<[u8]>), FindFault> {
        let schema = self.schemas.last();
        let Some(declared) = schema.and_then(|schema| Some(&schema.fields()[schema.index_of(field)?])) else {
            let near = schema.and_then(|it| nearest(field, it.fields().iter().map(Field::name)));
            return Err(FindFault::NoField { kind: self.name.clone(), field: field.to_owned(), near });
        };
        let Some(index) = self.index_of(field) else {
            return Err(FindFault::NoIndex { kind: self.name.clone(), field: field.to_owned() });
        };
        let key = key_of_json(declared, value)?.ok_or_else(|| FindFault::Null { field: field.to_owned() })?;
        Ok((index.number, key))
    }
}

/// Returns the key of a value that is given as JSON; `None` for null.
fn key_of_json(field: &Field, value: &str) -> Result<Option<Arc<[u8]>>, EncodeError> {
    let alone = Schema::new(vec![Field::new(field.name(), field.field_type()).nullable()]);
    let alone = alone.expect("a field of a schema is a schema by itself");
    let (mut writer, mut bytes) = (RecordWriter::new(&alone), Vec::new());
    writer.set_json(0, value)?;
    writer.finish(&mut bytes)?;
    let view = RecordView::new(&alone, &bytes)?;
    Ok(view.at(0)?.and_then(|value| value.as_scalar()).map(key_of))
}

/// Returns the key of a value. Equal values have equal keys, also if a field is widened from `i32` to `i64` or from `f32`
/// to `f64`; different values of one field have different keys.
fn key_of(value: Scalar<'_>) -> Arc<[u8]> {
    // Adding 0 turns -0 into 0, which is equal to it.
    let float = |number: f64| (number + 0.0).to_bits().to_be_bytes().to_vec();
    match value {
        Scalar::Bool(truth) => vec![u8::from(truth)],
        Scalar::I32(number) => i64::from(number).to_be_bytes().to_vec(),
        Scalar::I64(number) | Scalar::Timestamp(number) => number.to_be_bytes().to_vec(),
        Scalar::U64(number) => number.to_be_bytes().to_vec(),
        Scalar::F32(number) => float(number.into()),
        Scalar::F64(number) => float(number),
        Scalar::Text(text) => key_of_bytes(text.as_bytes()),
        Scalar::Bytes(bytes) => key_of_bytes(bytes),
    }
    .into()
}

/// A first byte tells values that are in the key as they are (0) from those that are hashed (1).
fn key_of_bytes(bytes: &[u8]) -> Vec<u8> {
    match bytes.len() <= WHOLE_BYTES_MAX {
        true => [&[0], bytes].concat(),
        false => [&[1], &*Sha256::digest(bytes)].concat(),
    }
}

fn cut(mut text: String) -> String {
    if let Some(end) = (0..=SHOWN_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end))
        && end < text.len()
    {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Checks that a field can have an index.
pub(super) fn check_indexable(field_type: FieldType) -> Result<(), TypesFault> {
    match field_type {
        FieldType::Scalar(
            ScalarType::Bool
            | ScalarType::I32
            | ScalarType::I64
            | ScalarType::U64
            | ScalarType::F32
            | ScalarType::F64
            | ScalarType::Text
            | ScalarType::Bytes
            | ScalarType::Timestamp,
        ) => Ok(()),
        FieldType::Vector { .. } | FieldType::List(_) | FieldType::Map(_) => {
            Err(TypesFault::NotIndexable { field_type })
        }
    }
}

/// An object type whose indexes are changed, with its schemas as they were before the change.
pub(super) struct IndexChange<'a> {
    pub(super) kind: &'a mut ObjectType,
    /// The schemas before the change; `None` for a new type.
    pub(super) before: Option<&'a [Schema]>,
    /// The greatest number of an index so far.
    pub(super) made: &'a mut u32,
}

impl IndexChange<'_> {
    /// Gives the type the declared indexes: by field, whether its values are unique. Returns the fields whose index is new,
    /// gone or changed, with what they had and have.
    pub(super) fn apply(
        self,
        declared: &BTreeMap<String, bool>,
    ) -> Result<Vec<(String, Indexing, Indexing)>, TypesError> {
        let Self { kind, before, made } = self;
        let subject = |field: &str| TypePart {
            field: Some(field.to_owned()),
            ..TypePart::new(TypeKind::Object, kind.name.as_str())
        };
        let mut indexes = Vec::new();
        let mut changes = Vec::new();
        for index in &kind.indexes {
            let was = kind.indexing(&index.field);
            match declared.get(&index.field) {
                None => changes.push((index.field.clone(), was, Indexing::None)),
                Some(unique) => {
                    let fault = kept(kind, before, index, *unique);
                    fault.map_or(Ok(()), |fault| Err(subject(&index.field).is(fault)))?;
                    if index.unique != *unique {
                        changes.push((index.field.clone(), was, Indexing::Index));
                    }
                    indexes.push(Index { unique: *unique, ..index.clone() });
                }
            }
        }
        for (field, unique) in declared.iter().filter(|(field, _)| kind.index_of(field).is_none()) {
            if before.is_some_and(|before| has_values(before, kind.schemas.last(), field)) {
                return Err(subject(field).is(TypesFault::IndexOnOldField));
            }
            *made = made.checked_add(1).ok_or_else(|| subject(field).is(TypesFault::IndexesUsedUp))?;
            indexes.push(Index { number: IndexId(*made), field: field.clone(), unique: *unique });
            changes.push((
                field.clone(),
                Indexing::None,
                if *unique { Indexing::Unique } else { Indexing::Index },
            ));
        }
        kind.indexes = indexes;
        Ok(changes)
    }
}

/// Returns why an index cannot stay as it is declared; `None` if it can.
fn kept(kind: &ObjectType, before: Option<&[Schema]>, index: &Index, unique: bool) -> Option<TypesFault> {
    if unique && !index.unique {
        return Some(TypesFault::IndexOnOldField);
    }
    let field = |schema: &Schema| schema.index_of(&index.field).map(|at| schema.fields()[at].clone());
    let (old, new) = (before?.last().and_then(field)?, kind.schemas.last().and_then(field)?);
    let reads_as_default =
        old.is_nullable() && (!new.is_nullable() || (new.has_default() && !old.has_default()));
    reads_as_default.then_some(TypesFault::IndexedDefault)
}

/// Whether objects may have a value in a field that the type gets: because an earlier schema has the field, or because the
/// field has a default.
fn has_values(before: &[Schema], now: Option<&Schema>, field: &str) -> bool {
    let known = before.iter().any(|schema| schema.index_of(field).is_some());
    let declared = now.and_then(|schema| Some(&schema.fields()[schema.index_of(field)?]));
    known || declared.is_some_and(Field::has_default)
}
