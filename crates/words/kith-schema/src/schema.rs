//! A schema: its fields in order, the layout of a record, and the hash that identifies it.

use crate::field::{Field, NAME_BYTES_MAX};
use crate::language::canonical;
use crate::record::{EncodeError, FieldView, Layout, RecordError, write_field_json};
use crate::{RecordWriter, VALUE_BYTES_MAX, nearest};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

/// The most fields of a schema. It bounds the memory that a hostile schema makes a reader allocate.
pub const FIELDS_MAX: usize = 4_096;

/// Identifies a schema: the blake3 of its canonical form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchemaId(pub [u8; 32]);

/// An ordered list of fields. Immutable; clones share it. Two schemas are equal if their ids are.
#[derive(Clone)]
pub struct Schema(Arc<Inner>);

struct Inner {
    fields: Vec<Field>,
    /// The indexes of the fields, in the order of their names.
    by_name: Vec<u32>,
    layout: Layout,
    /// The encoded default of each field, if it has one.
    defaults: Vec<Option<Vec<u8>>>,
    canonical: String,
    id: SchemaId,
}

/// The reason why fields do not form a schema.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum SchemaError {
    /// There are no fields, or too many.
    #[error("a schema has at least one and at most 4096 fields, not {got}")]
    FieldCount { got: usize },
    /// A name is empty, too long or not printable.
    #[error("field name {name:?} is not of 1 to 255 bytes without control characters")]
    Name { name: String },
    /// Two fields have the same name.
    #[error("field {name:?} is there twice")]
    Duplicate { name: String },
    /// The fixed part alone is larger than a value may be.
    #[error("the fixed part of a record has {bytes} bytes, a value at most 67108864")]
    TooLarge { bytes: usize },
    /// A default is not a value of its field.
    #[error("the default of field {field:?} does not fit it")]
    Default {
        field: String,
        /// The reason why the default does not fit.
        source: EncodeError,
    },
}

/// The text is not a schema id.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("schema id {text:?} is not of 64 hexadecimal digits")]
pub struct SchemaIdError {
    /// The id as written.
    pub text: String,
}

impl Schema {
    /// Creates a schema with these fields in this order.
    ///
    /// # Errors
    /// [`SchemaError`] if the fields do not form a schema.
    pub fn new(mut fields: Vec<Field>) -> Result<Self, SchemaError> {
        if !(1..=FIELDS_MAX).contains(&fields.len()) {
            return Err(SchemaError::FieldCount { got: fields.len() });
        }
        let wrong =
            |name: &str| !(1..=NAME_BYTES_MAX).contains(&name.len()) || name.chars().any(char::is_control);
        if let Some(field) = fields.iter().find(|field| wrong(&field.name)) {
            return Err(SchemaError::Name { name: field.name.clone() });
        }
        let mut by_name: Vec<u32> = (0..fields.len() as u32).collect();
        by_name.sort_unstable_by_key(|&index| fields[index as usize].name.as_str());
        let name = |index: u32| fields[index as usize].name.as_str();
        if let Some(pair) = by_name.windows(2).find(|pair| name(pair[0]) == name(pair[1])) {
            return Err(SchemaError::Duplicate { name: name(pair[0]).to_owned() });
        }
        let layout = Layout::new(&fields);
        if VALUE_BYTES_MAX < layout.fixed_bytes() {
            return Err(SchemaError::TooLarge { bytes: layout.fixed_bytes() });
        }
        let (defaults, spelled) = coded_defaults(&fields)?;
        for (field, spelled) in fields.iter_mut().zip(&spelled) {
            // The canonical spelling is stored, so that different spellings of one default are equal.
            field.default = spelled.as_ref().map(|text| text.parse().expect("a default was printed as JSON"));
        }
        let canonical = canonical(&fields, &spelled);
        let id = SchemaId(*blake3::hash(canonical.as_bytes()).as_bytes());
        Ok(Schema(Arc::new(Inner { fields, by_name, layout, defaults, canonical, id })))
    }

    /// The fields, in order.
    pub fn fields(&self) -> &[Field] {
        &self.0.fields
    }

    /// The index of the field with this name. `O(log fields)`.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        let fields = &self.0.fields;
        let found = self.0.by_name.binary_search_by(|&index| fields[index as usize].name.as_str().cmp(name));
        found.ok().map(|position| self.0.by_name[position] as usize)
    }

    /// The index of a field that is read from a record. `O(log fields)`.
    ///
    /// # Errors
    /// [`RecordError::UnknownField`] if there is no such field.
    pub(crate) fn read_index(&self, name: &str) -> Result<usize, RecordError> {
        let unknown = || RecordError::UnknownField { field: name.to_owned(), near: self.nearest(name) };
        self.index_of(name).ok_or_else(unknown)
    }

    /// The name of a field that is similar to `name`, for messages.
    pub fn nearest(&self, name: &str) -> Option<String> {
        nearest(name, self.0.fields.iter().map(Field::name))
    }

    /// The hash of [`Schema::canonical`].
    pub fn id(&self) -> SchemaId {
        self.0.id
    }

    /// The canonical text of this schema: compact JSON, which [`str::parse`] reads again.
    pub fn canonical(&self) -> &str {
        &self.0.canonical
    }

    /// The schema of some of the fields, in the given order.
    ///
    /// # Errors
    /// [`SchemaError`] if `indexes` is empty or contains one twice.
    ///
    /// # Panics
    /// If an index is not below the number of fields.
    pub fn select(&self, indexes: &[usize]) -> Result<Schema, SchemaError> {
        Schema::new(indexes.iter().map(|&index| self.0.fields[index].clone()).collect())
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.0.layout
    }

    pub(crate) fn default_bytes(&self, index: usize) -> Option<&[u8]> {
        self.0.defaults[index].as_deref()
    }
}

type Coded = (Vec<Option<Vec<u8>>>, Vec<Option<String>>);

/// Each default as bytes and in its canonical spelling. Both are obtained by writing and reading a record of that field
/// alone.
fn coded_defaults(fields: &[Field]) -> Result<Coded, SchemaError> {
    let (mut coded, mut spelled) = (Vec::new(), Vec::new());
    for field in fields {
        let Some(default) = &field.default else {
            coded.push(None);
            spelled.push(None);
            continue;
        };
        let fault = |source| SchemaError::Default { field: field.name.clone(), source };
        let alone = Schema::new(vec![Field::new(field.name.as_str(), field.field_type)])?;
        let mut writer = RecordWriter::new(&alone);
        let mut record = Vec::new();
        let object = serde_json::json!({ field.name.as_str(): default });
        writer.write_json(&object.to_string(), &mut record).map_err(fault)?;
        let value = alone.layout().value(0, &record).expect("a written record can be read");
        let bytes = value.expect("a field that is never null has a value").to_vec();
        let mut text = Vec::new();
        // Both succeed, because the writer has just written these bytes.
        let view = FieldView::of(field.field_type, &bytes).expect("a written value can be read");
        write_field_json(&view, &mut text).expect("a written value can be printed");
        spelled.push(Some(String::from_utf8(text).expect("JSON is text")));
        coded.push(Some(bytes));
    }
    Ok((coded, spelled))
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.canonical())
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({})", self.canonical())
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.id() == other.id()
    }
}

impl Eq for Schema {}

impl fmt::Display for SchemaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SchemaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SchemaId({self})")
    }
}

impl FromStr for SchemaId {
    type Err = SchemaIdError;

    /// Parses 64 hexadecimal digits, as [`fmt::Display`] writes them.
    fn from_str(text: &str) -> Result<Self, SchemaIdError> {
        let hash = blake3::Hash::from_hex(text).map_err(|_| SchemaIdError { text: text.to_owned() })?;
        Ok(SchemaId(*hash.as_bytes()))
    }
}
