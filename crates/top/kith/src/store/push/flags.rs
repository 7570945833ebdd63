//! The flags of `kith store push`.

use crate::{
    names::{node_wait, store_name},
    store::build::{DeleteFlags, RowFlags},
};
use clap::Args;
use kith_types::StoreVersion;

/// A new version of a store, to be served by the cluster.
#[derive(Clone, Debug, Args)]
pub struct PushFlags {
    /// The store
    #[arg(value_parser = store_name)]
    pub store: String,
    /// Files, folders or glob patterns of rows; or the folder or URL of a version that `kith store build` made, which
    /// nodes fetch from there
    #[arg(value_name = "INPUT", required_unless_present_any = ["delete", "cancel"])]
    pub inputs: Vec<String>,
    /// Cancel the push or graph load under way, or the one with this id, before it is served
    #[arg(long, value_name = "PUSH", num_args = 0..=1, require_equals = true, conflicts_with_all = ["inputs", "delta", "delete"])]
    pub cancel: Option<Option<String>>,
    /// Apply the rows as changes to the current version: all other keys keep their values
    #[arg(long, conflicts_with_all = ["schema", "compress"])]
    pub delta: bool,
    /// The keys to delete from the current version.
    #[command(flatten)]
    pub delete: DeleteFlags,
    /// The version's number, higher than any before [default: the time]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=StoreVersion::MAX.0))]
    pub version: Option<u64>,
    /// How many failing nodes may be left out; never all nodes that hold a partition
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub allow_missing: u32,
    /// How long to wait for a node that is down, at most 1h, before the push fails or leaves it out [default: 1m]
    #[arg(long = "node-wait", value_name = "DURATION", value_parser = node_wait)]
    pub node_wait_ms: Option<u64>,
    /// Have nodes copy the version from each other, so that each partition is read from its source once, for example by
    /// another data centre
    #[arg(long)]
    pub from_peers: bool,
    /// Skip the store's guards and the check of schema compatibility
    #[arg(long)]
    pub force: bool,
    /// How rows are read and written.
    #[command(flatten)]
    pub rows: RowFlags,
}
