//! A field of a schema: its name, its type, and its value in records that lack it.

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
    /// Creates a field that must have a value in every record.
    pub fn new(name: impl Into<String>, field_type: FieldType) -> Self {
        Field { name: name.into(), field_type, nullable: false, default: None }
    }

    /// Makes the field nullable.
    pub fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// Sets the value for records that lack the field. [`crate::Schema::new`] checks it.
    pub fn with_default(mut self, default: serde_json::Value) -> Self {
        self.default = Some(default);
        self
    }

    /// The name: 1 to [`NAME_BYTES_MAX`] bytes, no control characters.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of its values.
    pub fn field_type(&self) -> FieldType {
        self.field_type
    }

    /// Whether it may be null.
    pub fn is_nullable(&self) -> bool {
        self.nullable
    }

    /// Whether it has a default for records that lack it.
    pub fn has_default(&self) -> bool {
        self.default.is_some()
    }
}
