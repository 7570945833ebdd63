//! The frame that all binary files of a component share: header, body, one
//! crc32c per block, trailer. Drawn in `docs/formats/sealed-file.md`.
//!
//! The trailer seals the checksum table and is itself listed in the manifest, so
//! that opening proves in constant time *which* file this is, and any part of
//! the body can be proven later by itself.

mod header;
mod reader;
mod seal;
mod table;
mod trailer;
mod writer;

pub use header::{HEADER_BYTES, Header};
pub use reader::{RECORD_BYTES_SHORT, SealedFile};
pub use seal::FileSeal;
pub use table::BlockTable;
pub use trailer::{TRAILER_BYTES, Trailer, body_bytes};
pub use writer::SealedWriter;

/// The format version of every kind of sealed file.
pub const FORMAT_VERSION: u32 = 1;
