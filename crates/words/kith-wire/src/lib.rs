//! The wire contract: every byte that processes and clients of Kith exchange, and every document of the metadata store.
//! The compatibility of the protocol is handled here only. Types of other crates do not know the wire types; `kith-query`
//! converts between them. This crate codes bytes and checks limits; it opens no connection and reads no file.
//!
//! ```text
//! proto/kith.proto ──► v1: messages and services, the same bodies over gRPC and in frames
//!                      body: packed ids, keys and records inside these messages
//!                      frame: the framed protocol around them, without HTTP/2
//! metadata store  ◄──► documents: JSON, read by every process
//! Redis clients   ◄──► resp: commands and replies
//! ```
//!
//! - [`v1`] and [`etcd`]: generated code.
//! - [`body`], [`rope`](Rope), `around`: packed bodies, and long replies that are encoded without a copy.
//! - [`frame`]: headers, prefaces, and bodies in shared memory.
//! - [`documents`]: the shape of the cluster, stores, live graphs and rebalances.
//! - `lookup`: the reasons why a name leads to nothing that can be read.
//! - `error`: a gRPC status whose details carry Kith's stable code, and back.
//! - [`resp`]: decodes Redis commands and encodes replies.
//!
//! A reader ignores fields of documents that it does not know, and refuses a document of another `format`. Sizes are
//! bounded by [`MESSAGE_BYTES_MAX`], [`REQUEST_BYTES_MAX`] and [`BATCH_KEYS_MAX`].
//!
//! To add a message or method, edit `proto/kith.proto`; the build compiles it without `protoc`. To add a document,
//! implement [`documents::Document`].

mod around;
pub mod body;
mod codec;
pub mod documents;
mod error;
pub mod frame;
mod lookup;
pub mod millis;
pub mod resp;
mod rope;

/// The generated messages and services of package `kith.v1`, which `proto/kith.proto` documents.
#[allow(missing_docs, clippy::all, rust_2018_idioms)]
pub mod v1 {
    tonic::include_proto!("kith.v1");
}

/// The part of etcd's API that Kith calls, from `proto/etcd.proto`.
#[allow(missing_docs, clippy::all, rust_2018_idioms)]
pub mod etcd {
    tonic::include_proto!("etcdserverpb");
}

pub use around::{InSlices, around_records, around_slice};
pub use codec::MessageCodec;
pub use error::{code_of, detail_of, is_answer, status, too_slow, with_detail};
pub use lookup::LookupError;
pub use prost::Message;
pub use rope::Rope;

impl v1::Served {
    /// Names a store or graph at one version.
    pub fn of_version(name: String, version: u64) -> Self {
        Self { name, version, ..Self::default() }
    }
}

/// The encoded descriptors of the contract, for gRPC reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kith_descriptors.bin"));

/// The largest message that Kith sends or accepts, in bytes. It has room for 30 million packed ids, and limits how much
/// one request can make a process allocate.
pub const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// The largest request that a process accepts, in bytes: 64 MiB of keys and their framing. Replies may be longer.
pub const REQUEST_BYTES_MAX: usize = 80 << 20;

/// The most keys in one batch, whatever a session's settings (`keys-max`) allow. A request with that many ids has about
/// ten megabytes.
pub const BATCH_KEYS_MAX: usize = 1_000_000;

/// Returns the encoded length of a message, in bytes.
pub fn encoded_len(message: &impl prost::Message) -> usize {
    message.encoded_len()
}
