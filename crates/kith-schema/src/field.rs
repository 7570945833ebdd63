//! A field of a schema: its name, its type, and what stands for it where a record has none.

use crate::FieldType;

/// The longest name of a field, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// One field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub(crate) name: String,
    pub(crate) field_type: FieldType,
    pub(crate) nullable: bool,
    pub(crate) default: Option<serde_json::Value>,
}

impl Field {
    /// A field that must have a value in every record.
    pub fn new(name: impl Into<String>, field_type: FieldType) -> Self {
        Field { name: name.into(), field_type, nullable: false, default: None }
    }

    /// The same field, which may be null.
    pub fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// The same field, with a value for records that do not have it. Checked by [`crate::Schema::new`].
    pub fn with_default(mut self, default: serde_json::Value) -> Self {
        self.default = Some(default);
        self
    }

    /// Its name: 1 to [`NAME_BYTES_MAX`] bytes, no control characters.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it holds.
    pub fn field_type(&self) -> FieldType {
        self.field_type
    }

    /// Whether it may be null.
    pub fn is_nullable(&self) -> bool {
        self.nullable
    }

    /// Whether a record without it has a value for it all the same.
    pub fn has_default(&self) -> bool {
        self.default.is_some()
    }
}
