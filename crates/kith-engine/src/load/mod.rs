//! Bulk load: graph text in, component files out (`docs/design/0001-seams.md`).

pub mod input;
