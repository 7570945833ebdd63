//! `kith cluster fetch-rate`: shows or changes the rate at which nodes fetch, while they run.

use crate::{
    connect::{self, TargetFlags},
    failure::Exit,
    output::{self, Format},
    serve::{FetchRate, fetch_rate},
    table,
};
use anyhow::Context;
use clap::Args;
use kith_wire::v1;
use serde::Serialize;

/// The new rate, if any, and the node that it applies to.
#[derive(Args, Debug)]
pub struct FetchRateFlags {
    /// Set the limit of each node in bytes per second, such as 50MiB/s; `off`: no limit [default: only show the limits]
    #[arg(value_name = "RATE|off", value_parser = fetch_rate)]
    rate: Option<FetchRate>,
    /// Only this node
    #[arg(long, value_name = "N")]
    node: Option<u32>,
}

/// The fetch rates of all nodes that were asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FetchRatesReply {
    pub nodes: Vec<FetchRateReply>,
}

/// The fetch rate of one node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FetchRateReply {
    pub node: u32,
    /// The limit; `None` if there is none, or if the node did not answer.
    pub bytes_per_second: Option<u64>,
    /// Bytes requested from sources since the node started.
    pub bytes_fetched: u64,
    /// The rate that the node is slowed down to, below its limit, because reads got slower; `None` if it is not slowed down.
    pub held_back: Option<u64>,
    /// The number of requests that wait for their turn.
    pub waiting: u32,
    /// The reason why the node did not answer; empty if it did. The rate of a node that did not answer is unchanged.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
}

impl From<v1::NodeFetchRate> for FetchRateReply {
    fn from(wire: v1::NodeFetchRate) -> Self {
        let rate = wire.rate.unwrap_or_default();
        Self {
            node: wire.node,
            bytes_per_second: Some(rate.bytes_per_second).filter(|rate| 0 < *rate),
            bytes_fetched: rate.bytes_fetched,
            held_back: Some(rate.held_back).filter(|rate| 0 < *rate),
            waiting: rate.waiting,
            error: wire.error,
        }
    }
}

/// Shows or changes the rates. A change fails if any node does not answer; showing them fails only if no node answers.
///
/// # Errors
/// If there is no such node, or no router answers.
pub async fn run(target: &TargetFlags, format: Format, flags: &FetchRateFlags) -> anyhow::Result<Exit> {
    let router = connect::router(target).await?;
    let bytes_per_second = flags.rate.map(FetchRate::or_zero);
    let request =
        v1::FetchRatesRequest { rate: Some(v1::FetchRateRequest { bytes_per_second }), node: flags.node };
    let reply = router.fetch_rates(request).await.context("ask the nodes for their fetch rate")?;
    let reply = FetchRatesReply { nodes: reply.nodes.into_iter().map(FetchRateReply::from).collect() };
    output::print(format, &reply, table::cluster::fetch_rates)?;
    let mut answered = reply.nodes.iter().map(|node| node.error.is_empty());
    let done = if flags.rate.is_some() { answered.all(|it| it) } else { answered.any(|it| it) };
    Ok(if done { Exit::Done } else { Exit::Failed })
}
