//! The flags of `kith store alter`: the parts of a store's definition that can be changed while it serves.

use crate::names::{rate, store_name};
use clap::{ArgGroup, Args};
use kith_wire::v1;
use std::num::NonZeroU64;

/// The changes to an existing store.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("altered").required(true).multiple(true).args([
    "read_quota_keys", "read_quota_bytes", "retain", "quota", "records_min", "drop_max", "owner",
]))]
pub struct AlterFlags {
    /// The store
    #[arg(value_parser = store_name)]
    pub store: String,
    /// Maximum number of keys read per second, over all routers; `off`: no limit
    #[arg(long, value_name = "N", value_parser = quota_keys)]
    read_quota_keys: Option<Quota>,
    /// Maximum bytes of values read per second, over all routers, such as 10MiB; `off`: no limit
    #[arg(long, value_name = "SIZE", value_parser = quota_bytes)]
    read_quota_bytes: Option<Quota>,
    /// How many versions to keep besides the current one; surplus versions are removed at once
    #[arg(long, value_name = "N")]
    retain: Option<u32>,
    /// Maximum bytes of all kept versions together at one replica, such as 10GiB; `off`: no limit
    #[arg(long, value_name = "SIZE", value_parser = quota_bytes)]
    quota: Option<Quota>,
    /// Refuse versions with fewer records
    #[arg(long, value_name = "N")]
    records_min: Option<u64>,
    /// Refuse versions whose number of records drops by more than this many per cent; `off`: refuse none
    #[arg(long, value_name = "PERCENT", value_parser = drop_max)]
    drop_max: Option<DropMax>,
    /// The only user who may push to the store and, if callers show who they are, change or drop it; `off`: anybody
    /// with the right
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
}

/// The most per cent by which the number of records may drop; `None` for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DropMax(Option<u8>);

fn drop_max(text: &str) -> Result<DropMax, String> {
    match (text, text.parse()) {
        ("off", _) => Ok(DropMax(None)),
        (_, Ok(percent @ 0..=100)) => Ok(DropMax(Some(percent))),
        _ => Err("expected a number from 0 to 100, or `off`".to_owned()),
    }
}

/// The value in a request that removes the limit.
const NO_DROP_MAX: u32 = 101;

/// A quota, per second or in total; `None` for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quota(Option<NonZeroU64>);

impl Quota {
    /// The value in a request; 0 for no limit.
    fn or_zero(self) -> u64 {
        self.0.map_or(0, NonZeroU64::get)
    }
}

fn quota_keys(text: &str) -> Result<Quota, String> {
    match text {
        "off" => Ok(Quota(None)),
        text => match text.parse() {
            Ok(keys) => Ok(Quota(Some(keys))),
            Err(_) => Err("expected a number of keys per second from 1, or `off`".to_owned()),
        },
    }
}

fn quota_bytes(text: &str) -> Result<Quota, String> {
    match text {
        "off" => Ok(Quota(None)),
        text => rate(text)
            .map(|bytes| Quota(NonZeroU64::new(bytes)))
            .map_err(|_| "expected bytes, such as 10MiB, or `off`".to_owned()),
    }
}

impl AlterFlags {
    /// Returns the request for a router.
    pub fn request(&self) -> v1::AlterStore {
        v1::AlterStore {
            read_quota_keys: self.read_quota_keys.map(Quota::or_zero),
            read_quota_bytes: self.read_quota_bytes.map(Quota::or_zero),
            retain: self.retain,
            quota_bytes: self.quota.map(Quota::or_zero),
            records_min: self.records_min,
            drop_percent_max: self.drop_max.map(|most| most.0.map_or(NO_DROP_MAX, u32::from)),
            owner: self
                .owner
                .as_ref()
                .map(|owner| if owner == "off" { String::new() } else { owner.clone() }),
            properties: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_numbers_or_off() {
        assert_eq!(quota_keys("5000").map(Quota::or_zero), Ok(5_000));
        assert_eq!(quota_bytes("2MiB").map(Quota::or_zero), Ok(2 << 20));
        assert_eq!((quota_keys("off"), quota_bytes("off")), (Ok(Quota(None)), Ok(Quota(None))));
        for bad in ["0", "-1", "many", ""] {
            assert!(quota_keys(bad).is_err() && quota_bytes(bad).is_err(), "{bad}");
        }
        assert_eq!((drop_max("0"), drop_max("off")), (Ok(DropMax(Some(0))), Ok(DropMax(None))));
        assert!(drop_max("101").is_err() && drop_max("half").is_err());
    }
}
