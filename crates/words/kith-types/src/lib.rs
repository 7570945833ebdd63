//! The words that every part of Kith shares. Every other crate depends on this one, and it depends on none of them. It
//! holds plain types and pure functions: nothing here does I/O. Only [`clock`] reads the time.
//!
//! - `ids`: partitions, nodes, groups, versions, terms and log points, each a type of its own. Member and entity ids
//!   are plain `u64` everywhere (in operations, on the wire and in files).
//! - `hash`: the partition of an id or a byte key, and the position of a key within an index.
//! - `error_code`: every stable error code, with its gRPC and HTTP status and exit code.
//! - `names`: the rules for names of stores, components, keys and labels.
//! - `query`: the names of operations, the kinds of fan-outs and the workflows, by which controllers are chosen.
//! - `limits`, `quota`: what a caller says about the fan-out of a query, and the refusal of a read beyond its quota.
//! - [`delta`]: the coding of sorted ids in files, on the wire and in caches.
//! - `keys`, `proof`, `checksum`: batches of byte keys, checksums of values, CRC-32C.
//! - `time`: time as an argument of decisions. [`clock`]: the time of day, for shells. `causes`, `mark`: errors on one line; byte order marks.
//!
//! ```
//! use kith_types::{PartitionCount, partition_of_id};
//! let partitions = PartitionCount::new(24).expect("24 is a valid count");
//! assert_eq!(partition_of_id(1005, partitions).0, 17);
//! ```
//!
//! The partition function never changes, because files and databases depend on it; `docs/formats/partition-function.md`
//! has test vectors. `docs/errors.md` explains each code.
//!
//! To add an error code, add a variant of [`ErrorCode`] and its section in `docs/errors.md`. The operations
//! themselves are in `kith-query`.

mod causes;
mod checksum;
pub mod clock;
pub mod delta;
mod error_code;
mod hash;
mod ids;
mod keys;
mod limits;
mod mark;
mod names;
mod proof;
mod query;
mod quota;
mod time;

pub use causes::with_causes;
pub use checksum::{crc32c, crc32c_append};
pub use error_code::{ErrorClass, ErrorCode};
pub use hash::{
    fmix64, fmix64_inverse, partition_of_hash, partition_of_id, partition_of_key, position_of_key,
};
pub use ids::{Epoch, GroupId, LogPoint, NodeId, PartitionCount, PartitionId, Position, StoreVersion, Term};
pub use keys::{ByteKeys, KeyRef};
pub use limits::{FanOutLimit, FanOutLimits, LimitError};
pub use mark::{Utf16, byte_order_mark, odd_line, without_mark};
pub use names::{
    COMPONENT_NAME_CHARS_MAX, InvalidName, LABEL_BYTES_MAX, STORE_NAME_CHARS_MAX, check_component_name,
    check_folder_name, check_key, check_label, check_store_name, file_part,
};
pub use proof::ValueProof;
pub use query::{Direction, FanOutKind, Hedging, OperationName, Workflow};
pub use quota::{QuotaKind, QuotaRefusal};
pub use time::Timestamp;
