//! The flags of `kith store push`.

use crate::{
    load::names::{node_wait, store_name},
    store::build::{DeleteFlags, RowFlags},
};
use clap::Args;
use kith_types::StoreVersion;

/// A new version of a store, served by the cluster.
#[derive(Clone, Debug, Args)]
pub struct PushFlags {
    /// The store
    #[arg(value_parser = store_name)]
    pub store: String,
    /// Files, folders or patterns of rows; or a folder or URL that `kith store build` made, which nodes then pull from
    #[arg(value_name = "INPUT", required_unless_present_any = ["delete", "cancel"])]
    pub inputs: Vec<String>,
    /// End the push of the store that is under way, or the one of this id, before it serves; graph loads too
    #[arg(long, value_name = "PUSH", num_args = 0..=1, require_equals = true, conflicts_with_all = ["inputs", "delta", "delete"])]
    pub cancel: Option<Option<String>>,
    /// The rows are changes of the current version: keys that are not named keep their values
    #[arg(long, conflicts_with_all = ["schema", "compress"])]
    pub delta: bool,
    /// What goes from the current version.
    #[command(flatten)]
    pub delete: DeleteFlags,
    /// The version's number, above all before [default: the time]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=StoreVersion::MAX.0))]
    pub version: Option<u64>,
    /// How many nodes may be left out if they fail; never all that hold a partition
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub allow_missing: u32,
    /// How long a node that is down is waited for, at most 1h; then the push fails, or goes on without it [default: 1m]
    #[arg(long = "node-wait", value_name = "DURATION", value_parser = node_wait)]
    pub node_wait_ms: Option<u64>,
    /// Nodes copy the version from each other: each partition comes from where it was built once, as to another data centre
    #[arg(long)]
    pub from_peers: bool,
    /// Skip the store's guards and the check of schema compatibility
    #[arg(long)]
    pub force: bool,
    /// How rows are read and written.
    #[command(flatten)]
    pub rows: RowFlags,
}
