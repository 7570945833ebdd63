//! The text formats.

pub(crate) mod columns;
pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod table;
