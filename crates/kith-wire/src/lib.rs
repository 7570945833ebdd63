//! The wire contract: generated messages and services, packed bodies, error details.
//!
//! This crate is the only home of protocol compatibility. Inner types do not know
//! it; `kith-api` converts.

mod around;
pub mod body;
pub mod documents;
mod error;
pub mod frame;
pub mod millis;
pub mod resp;
mod rope;

/// Generated messages and services of package `kith.v1`; documented in `proto/kith.proto`.
#[allow(missing_docs, clippy::all, rust_2018_idioms)]
pub mod v1 {
    tonic::include_proto!("kith.v1");
}

/// The part of etcd's API that Kith calls; `proto/etcd.proto`.
#[allow(missing_docs, clippy::all, rust_2018_idioms)]
pub mod etcd {
    tonic::include_proto!("etcdserverpb");
}

pub use around::{InSlices, around_records, around_slice};
pub use error::{code_of, detail_of, is_answer, status, too_slow, with_detail};
pub use prost::Message;
pub use rope::Rope;

impl v1::Served {
    /// A store or graph at one version.
    pub fn of_version(name: String, version: u64) -> Self {
        Self { name, version, ..Self::default() }
    }
}

/// The encoded descriptors of the contract, for gRPC reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kith_descriptors.bin"));

/// The largest message that Kith sends or accepts, in bytes: room for 30 million packed ids,
/// and a bound on what one request can make a process allocate.
pub const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// The largest request that a process takes, in bytes: 64 MiB of keys, and what is written around them. Replies are longer.
pub const REQUEST_BYTES_MAX: usize = 80 << 20;

/// The most keys that a batch can have, whatever a session's settings allow (`keys-max`): of ids, a request of ten megabytes.
pub const BATCH_KEYS_MAX: usize = 1_000_000;

/// How many bytes a message takes on the wire.
pub fn encoded_len(message: &impl prost::Message) -> usize {
    message.encoded_len()
}
