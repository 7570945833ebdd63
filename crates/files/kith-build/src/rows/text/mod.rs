//! The text formats.

pub(crate) mod csv;
pub(crate) mod json;
mod quotes;
pub(crate) mod table;
