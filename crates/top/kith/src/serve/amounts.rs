//! Rates, ratios, sizes and the placement, as flags and keys of serving commands write them, with their default values.

use crate::names::{milliseconds, rate, size};
use clap::ValueEnum;
use kith_node::NodeOptions;
use kith_routing::{PaceOptions, Strategy};
use serde::{Deserialize, Serialize};
use std::{num::NonZeroU64, time::Duration};

/// The placement of replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementFlag {
    /// Replica groups that each hold every partition once
    #[default]
    Groups,
    /// One ring of all nodes: replicas are on the next nodes clockwise
    Ring,
}

impl PlacementFlag {
    /// Returns the placement strategy.
    pub fn strategy(self) -> Strategy {
        match self {
            PlacementFlag::Groups => Strategy::ReplicaGroups,
            PlacementFlag::Ring => Strategy::Ring,
        }
    }
}

/// The rate at which a node scrubs, in bytes per second; `None` turns scrubbing off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ScrubRate(pub(super) Option<u64>);

impl Default for ScrubRate {
    fn default() -> Self {
        Self(Some(NodeOptions::SCRUB_RATE_DEFAULT))
    }
}

impl TryFrom<String> for ScrubRate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        scrub_rate(&text)
    }
}

/// Parses `off` or a rate.
pub fn scrub_rate(text: &str) -> Result<ScrubRate, String> {
    match text {
        "off" => Ok(ScrubRate(None)),
        text => rate(text).map(|rate| ScrubRate(Some(rate))).map_err(|error| format!("{error}, or `off`")),
    }
}

/// The rate at which a node fetches, in bytes per second; `None` sets no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct FetchRate(pub(super) Option<NonZeroU64>);

impl FetchRate {
    /// The rate in bytes per second; 0 for no limit.
    pub fn or_zero(self) -> u64 {
        self.0.map_or(0, NonZeroU64::get)
    }
}

impl TryFrom<String> for FetchRate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        fetch_rate(&text)
    }
}

/// Parses `off` or a rate.
pub fn fetch_rate(text: &str) -> Result<FetchRate, String> {
    scrub_rate(text).map(|ScrubRate(rate)| FetchRate(rate.and_then(NonZeroU64::new)))
}

/// The multiple, in hundredths, of its normal value to which fetches may raise the p99 of a node's reads; `None` sets no
/// limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct FetchP99(Option<u32>);

impl Default for FetchP99 {
    fn default() -> Self {
        Self(Some((PaceOptions::P99_RATIO_MAX * 100.0) as u32))
    }
}

impl FetchP99 {
    /// The multiple as a ratio.
    pub fn ratio(self) -> Option<f64> {
        self.0.map(|hundredths| f64::from(hundredths) / 100.0)
    }
}

impl TryFrom<String> for FetchP99 {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        fetch_p99(&text)
    }
}

/// Parses `off` or a ratio.
pub fn fetch_p99(text: &str) -> Result<FetchP99, String> {
    if text == "off" {
        return Ok(FetchP99(None));
    }
    match text.parse::<f64>() {
        Ok(ratio) if (1.01..=100.0).contains(&ratio) => Ok(FetchP99(Some((ratio * 100.0).round() as u32))),
        _ => Err("expected a ratio from 1.01 to 100, such as 1.2, or `off`".to_owned()),
    }
}

/// The number of bytes of a new version that a node reads into memory before the version serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct WarmBytes(pub(super) u64);

impl Default for WarmBytes {
    fn default() -> Self {
        Self(NodeOptions::WARM_BYTES_DEFAULT)
    }
}

impl TryFrom<String> for WarmBytes {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        warm_bytes(&text)
    }
}

/// Parses a size.
pub fn warm_bytes(text: &str) -> Result<WarmBytes, String> {
    size(text).map(|bytes| WarmBytes(bytes as u64))
}

/// The time for which the changes of live graphs are kept in their logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct LogRetention(pub(super) Duration);

/// The shortest retention. In less time, a node cannot even notice that a log has grown.
const LOG_RETENTION_MIN: Duration = Duration::from_secs(1);

impl Default for LogRetention {
    fn default() -> Self {
        Self(NodeOptions::LOG_RETENTION_DEFAULT)
    }
}

impl TryFrom<String> for LogRetention {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        log_retention(&text)
    }
}

/// Parses a time of at least one second.
pub fn log_retention(text: &str) -> Result<LogRetention, String> {
    match Duration::from_millis(milliseconds(text)?) {
        time if time < LOG_RETENTION_MIN => Err(format!("{text} is less than the minimum of 1s")),
        time => Ok(LogRetention(time)),
    }
}

/// Memory for replies, as flags and the configuration file write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ReplyMemory(pub(super) usize);

/// The smallest reply memory. A smaller one would refuse ordinary requests.
const REPLY_MEMORY_MIN: usize = 16 << 20;

impl TryFrom<String> for ReplyMemory {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        reply_memory(&text)
    }
}

/// Parses a size of at least 16 MiB.
pub fn reply_memory(text: &str) -> Result<ReplyMemory, String> {
    match size(text)? {
        bytes if bytes < REPLY_MEMORY_MIN => Err(format!("{text} is less than the minimum of 16MiB")),
        bytes => Ok(ReplyMemory(bytes)),
    }
}
