//! The encoding of records: `docs/formats/record.md` draws it byte by byte.

mod collections;
mod error;
mod items;
mod json_in;
mod json_out;
mod json_value;
mod layout;
mod number;
mod scalar;
#[cfg(test)]
mod tests;
mod vector;
mod view;
mod writer;

pub use collections::{ListView, MapView};
pub use error::{EncodeError, RecordError, ValueFault};
pub(crate) use json_out::write_field_json;
pub(crate) use layout::{Layout, Piece, assemble};
pub use scalar::Scalar;
pub use vector::VectorView;
pub use view::{FieldView, RecordView};
pub use writer::RecordWriter;
