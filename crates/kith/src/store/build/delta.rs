//! The flag about keys that go from one version to the next.

use clap::Args;

/// Keys that go.
#[derive(Clone, Debug, Default, Args)]
pub struct DeleteFlags {
    /// A file or URL of keys to delete, one per line, bytes in base64
    #[arg(long, value_name = "FILE")]
    pub delete: Option<String>,
}
