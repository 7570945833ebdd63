//! Schemas of records: the fields of a record, their layout in bytes, and the rules for one schema to follow another.
//! Builders write records with this crate, nodes compute on them, and clients print them. It does no I/O, reads no
//! clock and does not log.
//!
//! - `language`, `schema`, `types`, `field`: the text of a schema, its checked form, and its canonical hash.
//! - `record`: writes records from JSON or typed values, and reads fields in place.
//! - `evolution`, `projection`: whether a schema may follow another, and reading old records under a new schema.
//! - [`compute`]: read compute, which scores, filters and counts records.
//! - `kinds`, `column`: the types of keys and values of stores, and of columns beside neighbour lists.
//! - [`live`]: the words of live graphs: writes, reads, answers and tickets.
//! - `source`: the traits through which nodes read lists and values.
//!
//! Bytes have a meaning only under the schema that they were written with. That schema travels with the store version
//! and is identified by its hash. `docs/formats/record.md` draws the bytes. There are no nested records and no unions:
//! a value that needs them must be a `json` value.
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
//!
//! To add a function of read compute, begin with [`compute::ComputeFunction`]. To add a type of field, begin with
//! [`FieldType`].

mod column;
pub mod compute;
mod evolution;
mod field;
mod graph;
mod half;
mod hint;
mod kinds;
mod language;
pub mod live;
mod projection;
mod record;
mod schema;
mod source;
mod time;
mod types;

pub use column::{Column, ColumnKind, ColumnNumber};
pub use evolution::{Change, Changes, Incompatible, Mismatch, VersionMisfit, compatible, may_follow};
pub use field::{Field, NAME_BYTES_MAX};
pub use graph::{ColumnRange, EdgeSelector, GraphSchema, KindRole, KindSchema};
pub use half::{f16_from_f32, f32_from_f16};
pub use hint::nearest;
pub use kinds::{KEY_BYTES_MAX, KeyType, UnknownKind, VALUE_BYTES_MAX, ValueType};
pub use language::{SchemaFault, TypeError};
pub use projection::{ProjectedView, Projection};
pub use record::{
    EncodeError, FieldView, ListView, MapView, RecordError, RecordView, RecordWriter, Scalar, ValueFault,
    VectorView,
};
pub use schema::{FIELDS_MAX, Schema, SchemaError, SchemaId, SchemaIdError};
pub use source::{
    EachEdges, EachLength, EachList, EdgeList, LookupKeys, NeighbourSource, SourceError, SourceResult,
    SourceValue, ValueSource, sum_of_lengths,
};
pub use time::{TimeUnit, text_of_time, time_of_text};
pub use types::{DIMENSIONS_MAX, ElementType, FieldType, ScalarType};
