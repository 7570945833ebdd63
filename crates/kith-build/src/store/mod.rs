//! Versions of stores: rows in, a folder of files out.

mod assemble;
mod builder;
mod delete;
mod inputs;
mod partition;
mod rows;
mod settings;
mod shape;
mod sources;

pub use assemble::assemble_version;
pub use builder::StoreBuilder;
pub use inputs::object;
pub use partition::{PARTITION_PREFIX, publish_partition};
pub use rows::{Base, Built, Destination, Rows, Target};
pub use settings::{RowSettings, SchemaFrom};
pub use shape::{Shape, read_schema};
