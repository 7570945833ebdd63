//! Types that every part of Kith shares: ids, the partition function, time, and the encoding of sorted id lists.
//!
//! Nothing here does I/O, reads a clock or allocates without the caller's knowledge. Member and entity ids are plain `u64`
//! everywhere (operations, wire, files). Partitions, nodes, groups, epochs and versions are newtypes.
//!
//! ```
//! use kith_types::{PartitionCount, partition_of_id};
//! let partitions = PartitionCount::new(24).expect("24 is a valid count");
//! assert_eq!(partition_of_id(1005, partitions).0, 17);
//! ```

mod causes;
mod checksum;
pub mod delta;
mod error_code;
mod hash;
mod ids;
mod keys;
mod mark;
mod names;
mod proof;
mod query;
mod time;

pub use causes::with_causes;
pub use checksum::{crc32c, crc32c_append};
pub use error_code::{ErrorClass, ErrorCode};
pub use hash::{
    fmix64, fmix64_inverse, partition_of_hash, partition_of_id, partition_of_key, position_of_key,
};
pub use ids::{Epoch, GroupId, LogPoint, NodeId, PartitionCount, PartitionId, Position, StoreVersion, Term};
pub use keys::{ByteKeys, KeyRef};
pub use mark::{Utf16, byte_order_mark, without_mark};
pub use names::{
    COMPONENT_NAME_CHARS_MAX, InvalidName, LABEL_BYTES_MAX, STORE_NAME_CHARS_MAX, check_component_name,
    check_folder_name, check_key, check_label, check_store_name, file_part,
};
pub use proof::ValueProof;
pub use query::{Direction, FanOutKind, OperationName, Workflow};
pub use time::Timestamp;
