//! The flags that say where a cluster's metadata store is. Every command that connects to it has them.

use crate::failure::Failure;
use clap::Args;
use kith_cluster::metadata::MetadataTarget;
use std::path::PathBuf;

/// How to reach a cluster's metadata store. Each flag is also a key of the `--config` file.
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
    /// Returns these flags, with those of a file in place of missing ones.
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

    /// Returns the flags as the server takes them.
    ///
    /// # Errors
    /// If the address of the metadata store is missing.
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

/// The error for a required flag that is neither given nor in the file.
pub fn missing(flag: &str, key: &str) -> Failure {
    Failure::usage(
        format!("{flag} is missing, and the --config file has no `{key}`"),
        "see docs/operating/machines.md",
    )
}
