//! The flag that names the keys to delete from a version.

use clap::Args;

/// The keys to delete.
#[derive(Clone, Debug, Default, Args)]
pub struct DeleteFlags {
    /// A file or URL of keys to delete, one per line, bytes in base64
    #[arg(long, value_name = "FILE")]
    pub delete: Option<String>,
}
