//! Serves requests: every protocol's requests come in here, take the same steps, and leave as replies.
//!
//! - `frames`, `doors`: the protocols. `pieces` and `streams` send long replies in parts.
//! - `service`: what every protocol calls. `forward` sends a query to the router that owns its member.
//! - `pipeline`: the steps of every request. `admission` limits queries in flight and enforces quotas; `record` and
//!   `slow_log` write queries down; `counters` and `recent` count them.

mod admission;
mod counters;
mod doors;
mod forward;
mod frames;
mod pieces;
mod pipeline;
mod recent;
mod record;
mod service;
mod slow_log;
mod streams;

pub(crate) use admission::Admission;
pub(crate) use counters::RouterCounters;
pub(crate) use forward::Forwarder;
pub(crate) use pipeline::Pipeline;
pub(crate) use record::Recorder;
pub(crate) use service::GraphServer;
pub(crate) use slow_log::SlowLog;
