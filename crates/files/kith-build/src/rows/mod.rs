//! Reads files of many formats: as keys and values of a store ([`read_rows`]), or as the edges, entities and members of
//! a graph ([`graph`]). Loads and `kith import` use it. It does not sort, find duplicate keys, hash or build.
//!
//! Formats are CSV and TSV, JSON lines, Parquet, Arrow IPC and raw `f32` vectors; plain, gzip or Zstandard. The first
//! bytes of a file determine its format, never its name.
//!
//! - `source`, `unpack`, `codec`: bytes from a [`RowSource`], their compression and format.
//! - `text`, `columnar`, `vectors`: the formats. `folders`: columns in the names of folders.
//! - `read`, `sink`, `wrong`, `fault`: the loop over all rows, and rows that do not fit.
//! - `key`, `value`, `encode`, `field_table`: keys, values and fields. `infer`, `inference`: the schema of files without one.
//! - `parquet_out`: rows as Parquet.
//!
//! Rows are read in the order of the files. Nothing is skipped silently: a row that does not fit is counted, and ends
//! the reading unless that many wrong rows are allowed.
//!
//! ```
//! use kith_build::rows::{KeyType, MemorySource, RowOptions, RowSource, ValueShape, infer_schema, read_rows};
//!
//! let source: Box<dyn RowSource> = Box::new(MemorySource::new("people.csv", "id,name,age\n7,Ada,36\n9,Bob,\n"));
//! let sources = [source];
//! let mut options = RowOptions { key_field: Some("id".to_owned()), ..RowOptions::new(KeyType::Id, ValueShape::Json) };
//!
//! let schema = infer_schema(&sources, &options, None).expect("the rows agree");
//! options.value = ValueShape::Record(schema.clone());
//!
//! let mut rows = Vec::new();
//! let report = read_rows(&sources, &options, |key, value| {
//!     let record = kith_schema::RecordView::new(&schema, value)?;
//!     rows.push((u64::from_le_bytes(key.try_into().expect("an id has eight bytes")), record.to_json()?));
//!     Ok::<(), kith_schema::RecordError>(())
//! });
//! assert_eq!(report.expect("all rows are good").rows, 2);
//! assert_eq!(rows[1], (9, r#"{"name":"Bob","age":null}"#.to_owned()));
//! ```
//!
//! To add a format, add a variant of [`Format`] with its arms in `read` and `infer`, and its first bytes in `unpack`.

// What only columnar files need is left unused without them.
#![cfg_attr(not(feature = "columnar"), allow(dead_code))]

mod codec;
#[cfg(feature = "columnar")]
mod columnar;
mod columns;
mod encode;
mod error;
mod fault;
mod field;
mod field_table;
mod folders;
mod foreign;
mod format;
pub mod graph;
mod id;
mod infer;
mod inference;
mod key;
mod limits;
#[cfg(not(feature = "columnar"))]
mod no_columnar;
mod options;
#[cfg(feature = "columnar")]
mod parquet_out;
mod read;
mod seen;
mod sink;
mod source;
mod text;
mod unpack;
mod value;
mod vectors;
mod wrong;

pub use codec::Codec;
pub use encode::{EncodedRow, RowEncoder, RowKey, RowValue};
pub use error::{ReadError, RowsError};
pub use fault::{RowError, RowErrors, RowFault, RowLocation};
pub use field::{EachRow, Field};
pub use field_table::FieldTable;
pub use format::{Format, UnknownFormat};
pub use infer::infer_schema;
pub use inference::{InferError, Inference, JsonFault};
pub use kith_schema::{KeyType, ValueType};
pub use limits::{ROW_BYTES_MAX, UNPACKED_FACTOR, UNPACKED_MIN};
pub use options::{FieldTimes, FormatChoice, HeaderMode, RowOptions, ValueShape, WrongTimes};
#[cfg(feature = "columnar")]
pub use parquet_out::{ParquetRows, WriteRowsError};
pub use read::read_rows;
pub use sink::RowReport;
pub use source::{FileSource, InputError, MemorySource, RowSource, find_files};
pub use wrong::{ROW_ERRORS_SHOWN, WrongRows};

#[cfg(not(feature = "columnar"))]
use no_columnar as columnar;
