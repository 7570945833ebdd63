//! Values by key: a version of a store on a node (Voldemort §5.5).

mod compression;
mod error;
mod frames;
mod location;
mod reader;
mod source;

pub use compression::{Compressor, frame_value_bytes, read_dictionary};
pub use error::ValueError;
pub use location::RecordLocation;
pub use reader::ValuesReader;
