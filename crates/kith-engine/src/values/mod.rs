//! Values by key: a version of a store as a node holds it (Voldemort §5.5).

mod compression;
mod reader;
mod source;

pub use compression::{Compressor, frame_value_bytes, read_dictionary};
pub use reader::{RecordLocation, ValueError, ValuesReader};
