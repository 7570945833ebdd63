//! The flags of `kith store alter`: what of a store's definition can be changed while it serves.

use crate::load::names::{rate, store_name};
use clap::Args;
use kith_wire::v1;
use std::num::NonZeroU64;

/// A store that is there.
#[derive(Clone, Debug, Args)]
pub struct AlterFlags {
    /// The store
    #[arg(value_parser = store_name)]
    pub store: String,
    /// Keys that may be read a second, over all routers; `off`: any
    #[arg(long, value_name = "N", value_parser = quota_keys, required_unless_present = "read_quota_bytes")]
    read_quota_keys: Option<Quota>,
    /// Bytes of values that may be read a second, over all routers, as 10MiB; `off`: any
    #[arg(long, value_name = "SIZE", value_parser = quota_bytes)]
    read_quota_bytes: Option<Quota>,
}

/// So much a second; `None`: any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quota(Option<NonZeroU64>);

impl Quota {
    /// As requests have it; 0: any.
    fn or_zero(self) -> u64 {
        self.0.map_or(0, NonZeroU64::get)
    }
}

fn quota_keys(text: &str) -> Result<Quota, String> {
    match text {
        "off" => Ok(Quota(None)),
        text => match text.parse() {
            Ok(keys) => Ok(Quota(Some(keys))),
            Err(_) => Err("give a number of keys a second from 1, or `off`".to_owned()),
        },
    }
}

fn quota_bytes(text: &str) -> Result<Quota, String> {
    match text {
        "off" => Ok(Quota(None)),
        text => rate(text)
            .map(|bytes| Quota(NonZeroU64::new(bytes)))
            .map_err(|_| "give bytes a second, as 10MiB, or `off`".to_owned()),
    }
}

impl AlterFlags {
    /// As the wire has it.
    pub fn request(&self) -> v1::AlterStore {
        v1::AlterStore {
            read_quota_keys: self.read_quota_keys.map(Quota::or_zero),
            read_quota_bytes: self.read_quota_bytes.map(Quota::or_zero),
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
    }
}
