//! The fetch rates of nodes. The router reads or sets the rate of each node directly. Nothing is stored: after a
//! restart, a node uses the rate in its own settings.

use futures::future;
use kith_net::security::Dialer;
use kith_types::ErrorCode;
use kith_wire::{
    documents::{NodeDocument, TopologyDocument},
    v1::{self, node_client::NodeClient},
};
use std::time::Duration;
use tonic::Status;

/// The time to wait for the answer of a node.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Asks or changes one node, or all registered nodes concurrently. The reply has an answer or an error per node.
///
/// # Errors
/// If there is no such node.
pub(crate) async fn fetch_rates(
    topology: &TopologyDocument,
    dialer: &Dialer,
    request: v1::FetchRatesRequest,
) -> Result<v1::FetchRatesReply, Status> {
    let meant = |node: &&NodeDocument| request.node.is_none_or(|id| id == node.node);
    let mut nodes: Vec<&NodeDocument> = topology.nodes.iter().filter(meant).collect();
    if let (true, Some(node)) = (nodes.is_empty(), request.node) {
        let message = format!("no node {node} has registered");
        let help = "`kith cluster status` shows the nodes";
        return Err(kith_wire::status(ErrorCode::BadRequest, message, help));
    }
    nodes.sort_by_key(|node| node.node);
    let rate = request.rate.unwrap_or_default();
    let asked = nodes.into_iter().map(async |node| {
        let (rate, error) = match ask(dialer, &node.addr, rate).await {
            Ok(rate) => (Some(rate), String::new()),
            Err(status) => (None, status.message().to_owned()),
        };
        v1::NodeFetchRate { node: node.node, rate, error }
    });
    Ok(v1::FetchRatesReply { nodes: future::join_all(asked).await })
}

async fn ask(dialer: &Dialer, addr: &str, rate: v1::FetchRateRequest) -> Result<v1::FetchRateReply, Status> {
    let asked =
        async { Ok(NodeClient::new(dialer.connect(addr).await?).fetch_rate(rate).await?.into_inner()) };
    let late = |_| Status::deadline_exceeded(format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()));
    tokio::time::timeout(ANSWER_TIMEOUT, asked).await.map_err(late)?
}
