//! Errors in declared types, and in changes to the types of a graph.

use super::{CAP_MAX, OPEN_TYPES_MAX, TEXT_BYTES_MAX, TYPES_MAX};
use kith_schema::{FieldType, Incompatible, SchemaError, TypeError};
use std::fmt;
use thiserror::Error;

/// Declared types are invalid, or a graph cannot change to them.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}{fault}", self.location())]
pub struct TypesError {
    /// The line of the text, counted from 1; `None` if the fault has no line.
    pub line: Option<usize>,
    /// The type or field that has the fault; `None` if the fault concerns the text or the document as a whole.
    pub subject: Option<Box<TypePart>>,
    /// The fault itself.
    pub fault: Box<TypesFault>,
}

/// A type, or one of its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypePart {
    /// Whether the type is an object type or an association type.
    pub kind: TypeKind,
    /// The name of the type.
    pub name: String,
    /// The name of the field; `None` if the type itself is meant.
    pub field: Option<String>,
}

/// The kind of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TypeKind {
    /// An object type.
    Object,
    /// An association type.
    Association,
}

/// A fault of declared types, of a change to types, or of a document of types.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum TypesFault {
    /// The text is longer than [`TEXT_BYTES_MAX`].
    #[error("the types take {bytes} bytes, and at most {TEXT_BYTES_MAX} are allowed")]
    TooLong { bytes: usize },
    /// The text is not TOML.
    #[error("the text is not valid TOML: {detail}")]
    Syntax { detail: String },
    /// A key has no meaning at its place.
    #[error("key {key:?} is unknown (known: {}){}", known.join(", "), did_you_mean(near.as_ref()))]
    UnknownKey { key: String, known: &'static [&'static str], near: Option<String> },
    /// A key has a value of the wrong type.
    #[error("{key:?} must be {expected}, not {found}")]
    Kind { key: String, expected: &'static str, found: &'static str },
    /// A type has a name that is not allowed.
    #[error("the name is not 1 to 64 letters, digits, '_' or '-'")]
    Name,
    /// An open type has a name that is not allowed.
    #[error(
        "the name of an open type has 1 to 255 bytes and no control characters, and does not begin with '~'"
    )]
    Label,
    /// The inverse of a type has a name that is not allowed.
    #[error(
        "a name that begins with '~' belongs to the inverse of the open type that is named after the '~'"
    )]
    InverseLabel,
    /// An open type declares fields.
    #[error("an open type takes any fields, so it declares none: remove \"fields\" or \"open\"")]
    OpenWithFields,
    /// A type would become open, or cease to be open.
    #[error(
        "the type {}, and the new text says that it {}: this cannot change, so declare a new type",
        openness(*was_open), openness(!*was_open)
    )]
    OpenChanged { was_open: bool },
    /// `ids` has a value that it cannot have.
    #[error("\"ids\" can only be \"text\": without this key, ids are whole numbers")]
    Ids,
    /// An open type declares its ids.
    #[error("objects of an open type have any ids: remove \"ids\"")]
    OpenWithIds,
    /// The ids of a type would become texts, or cease to be texts.
    #[error(
        "the ids of the type are {}, and the new text says otherwise: this cannot change, so declare a new type",
        if *were_texts { "texts" } else { "numbers" }
    )]
    IdsChanged { were_texts: bool },
    /// A label would become a type of a graph that is not open.
    #[error("the graph is not open, so writes add no types: declare the type with `kith schema apply`")]
    NotOpen,
    /// A label would become a type of a graph that has [`OPEN_TYPES_MAX`] types.
    #[error(
        "writes add types only up to {OPEN_TYPES_MAX}, and the graph has {got}: keep data in properties instead of labels"
    )]
    OpenTooMany { got: usize },
    /// A field is declared without a type.
    #[error("the field has no \"type\"")]
    NoFieldType,
    /// The type of a field cannot be read.
    #[error(transparent)]
    FieldType(TypeError),
    /// The fields do not form a valid schema.
    #[error(transparent)]
    Schema(SchemaError),
    /// A default contains a value that no field can hold.
    #[error("the default contains {found}, which no field can hold")]
    Default { found: &'static str },
    /// A cap is not a whole number from 1 to [`CAP_MAX`].
    #[error("\"cap\" must be a whole number from 1 to {CAP_MAX}")]
    Cap,
    /// Both `inverse` and `symmetric` are given.
    #[error("a symmetric type is its own inverse: remove \"inverse\" or \"symmetric\"")]
    SymmetricWithInverse,
    /// `inverse` names its own type.
    #[error("a type that is its own inverse is declared with \"symmetric = true\"")]
    OwnInverse,
    /// Two types name the same inverse.
    #[error("{inverse:?} is already the inverse of {forward:?}")]
    InverseTaken { inverse: String, forward: String },
    /// The table of an inverse has a key that only the table of its forward type may have.
    #[error("the type is the inverse of {forward:?}, which decides {key:?}: remove the key here")]
    InverseDeclares { forward: String, key: &'static str },
    /// There are more than [`TYPES_MAX`] types.
    #[error("a graph has at most {TYPES_MAX} types, not {got}")]
    TooMany { got: usize },
    /// The new text no longer declares a type of the graph.
    #[error(
        "the type is missing from the new text, and a type cannot be removed: keep its table, and delete its data \
         instead{}",
        did_you_mean(near.as_ref())
    )]
    Missing { near: Option<String> },
    /// The inverse of a type would change.
    #[error("the type {was}, and the new text says that it {now}: this cannot change, so declare a new type")]
    InverseChanged { was: String, now: String },
    /// Records with the last schema of a type could not be read with the new schema.
    #[error(transparent)]
    Incompatible(Incompatible),
    /// Records with an earlier schema of a type could not be read with the new schema.
    #[error("an earlier schema of the type does not allow this change: {0}")]
    IncompatibleEarlier(Incompatible),
    /// A type without fields gets a field that is not nullable and has no default, so that existing rows have no value for
    /// it.
    #[error("field {field:?} is new to a type without fields: make it nullable or give it a default")]
    FirstFields { field: String },
    /// A field with an index has a type whose values cannot be looked up.
    #[error("values of type {field_type} cannot have an index: only single values can")]
    NotIndexable { field_type: FieldType },
    /// A field of an association type has an index.
    #[error("only fields of object types can have an index: remove {key:?}")]
    IndexOfAssociation { key: &'static str },
    /// A field has unique values and no index.
    #[error("unique values need an index: remove \"index = false\"")]
    UniqueWithoutIndex,
    /// A field that may have values gets an index, or its values are to be unique.
    #[error(
        "objects may already have values in the field, and an index is not built from them: declare \"index\" or \
         \"unique\" together with a new type, or with a new nullable field without a default"
    )]
    IndexOnOldField,
    /// Rows without a value in a field with an index would be read as if they had the default.
    #[error(
        "objects without a value would get the default, which their index does not show: keep the field nullable, and without a default"
    )]
    IndexedDefault,
    /// The graph has had the maximum number of indexes.
    #[error("the graph has had 4,294,967,295 indexes, so it cannot have another one")]
    IndexesUsedUp,
    /// All fields of a type are removed.
    #[error("the type has fields, so at least one must remain")]
    NoFieldsLeft,
    /// The type already has the maximum number of schemas.
    #[error("the fields of the type have changed 65,535 times, so they cannot change again")]
    SchemasUsedUp,
    /// A document of types in the metadata store is damaged.
    #[error("the document of types is damaged: {detail}")]
    Document { detail: &'static str },
}

impl TypesError {
    pub(super) fn whole(fault: TypesFault) -> Self {
        Self { line: None, subject: None, fault: Box::new(fault) }
    }

    fn location(&self) -> String {
        let line = self.line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let subject = self.subject.as_ref().map(|subject| format!("{subject}: ")).unwrap_or_default();
        line + &subject
    }
}

impl TypePart {
    pub(super) fn new(kind: TypeKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), field: None }
    }

    /// A subject whose name may have any length. The beginning of a wrong name is enough to recognize it.
    pub(super) fn shortened(kind: TypeKind, name: &str) -> Self {
        Self::new(kind, name.chars().take(128).collect::<String>())
    }

    pub(super) fn is(self, fault: TypesFault) -> TypesError {
        TypesError { line: None, subject: Some(Box::new(self)), fault: Box::new(fault) }
    }
}

impl fmt::Display for TypePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} type {:?}", self.kind, self.name)?;
        match &self.field {
            Some(field) => write!(f, ", field {field:?}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for TypeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TypeKind::Object => "object",
            TypeKind::Association => "association",
        })
    }
}

fn openness(open: bool) -> &'static str {
    if open { "is open" } else { "is not open" }
}

fn did_you_mean(near: Option<&String>) -> String {
    near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default()
}
