//! Schemas of records: what fields a record has, how they lie in bytes, and how one schema may follow another.
//!
//! A record's bytes mean nothing without the schema they were written under; that schema travels with the store
//! version (`docs/design/0005-stores.md`) and is named by the hash of its canonical form. A field is read without
//! decoding the others: `docs/formats/record.md` draws the bytes, `docs/formats/schema.md` the language.
//!
//! Nothing here does I/O, reads a clock or logs. What it does not do: nested records, unions, and schemas found
//! by number; a value that needs those is a `json` value.
//!
//! ```
//! use kith_schema::{RecordView, RecordWriter, Scalar, Schema};
//!
//! let schema: Schema = r#"{"fields":[
//!     {"name":"title","type":"text"},
//!     {"name":"score","type":"f32","nullable":true},
//!     {"name":"embed","type":"vector<f32,3>"}]}"#.parse().expect("the schema is valid");
//!
//! let mut writer = RecordWriter::new(&schema);
//! let mut bytes = Vec::new();
//! writer.write_json(r#"{"title":"Kith","embed":[1,0.5,-2]}"#, &mut bytes).expect("the record fits");
//!
//! let view = RecordView::new(&schema, &bytes).expect("the bytes are a record");
//! let title = view.field("title").expect("undamaged").and_then(|field| field.as_text());
//! assert_eq!(title, Some("Kith"));
//! let embed = view.field("embed").expect("undamaged").and_then(|field| field.as_vector()).expect("not null");
//! assert_eq!(embed.iter().collect::<Vec<f32>>(), [1.0, 0.5, -2.0]);
//! assert_eq!(view.to_json().expect("undamaged"), r#"{"title":"Kith","score":null,"embed":[1.0,0.5,-2.0]}"#);
//! ```

mod column;
pub mod compute;
mod evolution;
mod field;
mod half;
mod hint;
mod infer;
mod kinds;
mod language;
mod projection;
mod record;
mod schema;
mod types;

pub use column::{Column, ColumnKind, ColumnNumber};
pub use evolution::{Change, Changes, Incompatible, Mismatch, compatible};
pub use field::{Field, NAME_BYTES_MAX};
pub use half::{f16_from_f32, f32_from_f16};
pub use hint::nearest;
pub use infer::{InferError, Inference, JsonFault};
pub use kinds::{KEY_BYTES_MAX, KeyType, UnknownKind, VALUE_BYTES_MAX, ValueType};
pub use language::{SchemaFault, TypeError};
pub use projection::{ProjectedView, Projection};
pub use record::{
    EncodeError, FieldView, ListView, MapView, RecordError, RecordView, RecordWriter, Scalar, ValueFault,
    VectorView,
};
pub use schema::{FIELDS_MAX, Schema, SchemaError, SchemaId, SchemaIdError};
pub use types::{DIMENSIONS_MAX, ElementType, FieldType, ScalarType};
