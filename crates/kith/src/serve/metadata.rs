//! Where a cluster's metadata is: the flags of every command that speaks to it.

use crate::failure::Failure;
use clap::Args;
use kith_metadata::MetadataTarget;
use std::path::PathBuf;

/// Where a cluster's metadata is. Each flag is a key of the file of `--config` too.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "Metadata")]
pub struct MetadataFlags {
    /// The metadata store: etcd://HOST:PORT,HOST:PORT, or HOST:PORT of a `kith dev`
    #[arg(long, value_name = "ADDRESS")]
    pub metadata: Option<String>,
    /// etcd: name of the cluster, if several share one etcd [default: default]
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// etcd: use TLS and trust these certificate authorities (PEM)
    #[arg(long, value_name = "FILE")]
    pub etcd_ca: Option<PathBuf>,
    /// etcd: TLS client certificate of this machine (PEM)
    #[arg(long, value_name = "FILE")]
    pub etcd_cert: Option<PathBuf>,
    /// etcd: private key of the client certificate (PEM)
    #[arg(long, value_name = "FILE")]
    pub etcd_key: Option<PathBuf>,
    /// etcd: user name
    #[arg(long, value_name = "NAME")]
    pub etcd_user: Option<String>,
    /// etcd: file with the user's password
    #[arg(long, value_name = "FILE")]
    pub etcd_password_file: Option<PathBuf>,
}

impl MetadataFlags {
    /// These, where they are given; else those of a file.
    pub fn or(self, file: Self) -> Self {
        Self {
            metadata: self.metadata.or(file.metadata),
            cluster: self.cluster.or(file.cluster),
            etcd_ca: self.etcd_ca.or(file.etcd_ca),
            etcd_cert: self.etcd_cert.or(file.etcd_cert),
            etcd_key: self.etcd_key.or(file.etcd_key),
            etcd_user: self.etcd_user.or(file.etcd_user),
            etcd_password_file: self.etcd_password_file.or(file.etcd_password_file),
        }
    }

    /// As the server has it.
    ///
    /// # Errors
    /// If nothing says where the metadata is.
    pub fn target(self) -> Result<MetadataTarget, Failure> {
        Ok(MetadataTarget {
            address: self.metadata.ok_or_else(|| missing("--metadata", "metadata"))?,
            cluster: self.cluster,
            etcd_ca: self.etcd_ca,
            etcd_cert: self.etcd_cert,
            etcd_key: self.etcd_key,
            etcd_user: self.etcd_user,
            etcd_password_file: self.etcd_password_file,
        })
    }
}

/// A flag that is needed, and is not in the file either.
pub fn missing(flag: &str, key: &str) -> Failure {
    Failure::usage(
        format!("{flag} is missing, and the --config file has no `{key}`"),
        "see docs/operating/machines.md",
    )
}
