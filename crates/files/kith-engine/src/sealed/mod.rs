//! The frame of all binary files of a component: header, body, one crc32c per block, trailer. Drawn in
//! `docs/formats/sealed-file.md`.
//!
//! The trailer seals the checksum table, and the manifest lists the checksum of the trailer. So opening a file proves its
//! identity in constant time, and any part of the body can be verified separately later.

mod header;
mod reader;
mod seal;
mod table;
mod trailer;
mod writer;

pub use header::{HEADER_BYTES, Header};
pub(crate) use reader::populate_within;
pub use reader::{RECORD_BYTES_SHORT, SealedFile};
pub use seal::FileSeal;
pub use table::BlockTable;
pub use trailer::{TRAILER_BYTES, Trailer, body_bytes};
pub use writer::SealedWriter;

/// The format version of every kind of sealed file.
pub const FORMAT_VERSION: u32 = 1;
