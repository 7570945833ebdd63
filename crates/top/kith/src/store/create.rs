//! The flags of `kith store create`.

use crate::{
    failure::Failure,
    names::{rate, size, store_name},
};
use clap::Args;
use kith_build::read_schema;
use kith_schema::{KeyType, ValueType};
use kith_wire::documents::{DefinitionDocument, HoldsDocument};
use std::{num::NonZeroU64, path::PathBuf};

/// The name and the definition of a new value store.
#[derive(Clone, Debug, Args)]
pub struct CreateFlags {
    /// Name of the store
    #[arg(value_parser = store_name)]
    pub store: String,
    /// Type of the keys: id (64-bit numbers), string or bytes
    #[arg(long, value_name = "TYPE", default_value_t = KeyType::String)]
    key: KeyType,
    /// Type of the values: text, bytes, json or record (of one schema)
    #[arg(long, value_name = "TYPE", default_value_t = ValueType::Text)]
    value: ValueType,
    /// Which field of the input is the key [default: key]
    #[arg(long, value_name = "NAME")]
    key_field: Option<String>,
    /// Schema of the records (docs/formats/schema.md) [default: inferred from the rows of the first push]
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// How many versions to keep besides the current one
    #[arg(long, default_value_t = DefinitionDocument::RETAIN_DEFAULT, value_name = "N")]
    retain: u32,
    /// Maximum bytes of all kept versions together at one replica, such as 10GiB
    #[arg(long, value_parser = size, value_name = "SIZE")]
    quota: Option<usize>,
    /// Maximum number of keys read per second, over all routers [default: no limit]
    #[arg(long, value_name = "N")]
    read_quota_keys: Option<NonZeroU64>,
    /// Maximum bytes of values read per second, over all routers, such as 10MiB [default: no limit]
    #[arg(long, value_parser = rate, value_name = "SIZE")]
    read_quota_bytes: Option<u64>,
    /// How many groups hold the store [default: all]
    #[arg(long, value_name = "N")]
    replication: Option<u32>,
    /// How many replicas must give the same answer
    #[arg(long, default_value_t = 1, value_name = "R")]
    required_reads: u32,
    /// Refuse versions with fewer records
    #[arg(long, default_value_t = 0, value_name = "N")]
    records_min: u64,
    /// Refuse versions whose number of records drops by more than this many per cent
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    drop_max: Option<u8>,
    /// The only user who may push to the store and, if callers show who they are, change or drop it
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
}

impl CreateFlags {
    /// Returns the definition, as the store's record holds it.
    ///
    /// # Errors
    /// `bad_schema` if the schema cannot be read; `usage` if there is a schema but the values are not records.
    pub fn definition(&self) -> Result<DefinitionDocument, Failure> {
        if let (Some(path), false) = (&self.schema, self.value == ValueType::Record) {
            let message = format!(
                "--schema {} applies only to records, but the values are {}",
                path.display(),
                self.value
            );
            return Err(Failure::usage(message, "add --value record, or leave it out"));
        }
        let schema = self.schema.as_deref().map(read_schema).transpose()?;
        Ok(DefinitionDocument {
            holds: HoldsDocument::Values {
                key: self.key.name().to_owned(),
                value: self.value.name().to_owned(),
                key_field: self.key_field.clone(),
            },
            retain: self.retain,
            replication: self.replication,
            required_reads: self.required_reads,
            quota_bytes: self.quota.map(|bytes| bytes as u64),
            read_quota_keys: self.read_quota_keys,
            read_quota_bytes: self.read_quota_bytes.and_then(NonZeroU64::new),
            records_min: self.records_min,
            drop_percent_max: self.drop_max,
            owner: self.owner.clone(),
            schema: schema.map(|schema| schema.canonical().to_owned()),
            properties: None,
        })
    }
}
