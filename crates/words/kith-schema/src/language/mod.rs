//! The language of schemas: parses JSON text, and writes one canonical form. `docs/formats/schema.md`.

mod canonical;
mod error;
mod object;
mod parse;

pub(crate) use canonical::canonical;
pub(crate) use error::did_you_mean;
pub use error::{SchemaFault, TypeError};
