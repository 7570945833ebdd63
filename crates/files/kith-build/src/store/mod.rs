//! Builds versions of stores: reads rows, and writes a folder of files.

mod assemble;
mod builder;
mod delete;
mod inputs;
mod partition;
mod rows;
mod scratch;
mod settings;
mod shape;
mod sources;
mod version;

pub use assemble::assemble_version;
pub use builder::StoreBuilder;
pub(crate) use inputs::object;
pub use partition::{PARTITION_PREFIX, publish_partition};
pub use rows::Rows;
pub use settings::{RowSettings, SchemaFrom};
pub use shape::{Shape, read_schema};
pub use version::{Base, BuiltVersion, Destination, Target};
