//! Follows the topology through routers and nodes.

pub use kith_api::topology::*;

use crate::{RouterClient, router_client::topology_of};
use kith_api::QueryError;
use kith_net::security::Dialer;
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

/// Pause before a lost watch of the topology is opened again.
const WATCH_RETRY: Duration = Duration::from_millis(200);

/// Follows the topology through any of `seeds`, routers or nodes, and goes on to the next when one goes away. Ends when
/// every receiver is dropped.
///
/// # Errors
/// If none of the seeds answers at first.
pub async fn follow(
    seeds: Vec<String>,
    dialer: Dialer,
) -> Result<watch::Receiver<Arc<Topology>>, QueryError> {
    let (client, first) = RouterClient::connect_and_look(&seeds, &dialer).await?;
    let first = Topology::from_document(Arc::new(topology_of(&first)?)).map_err(internal)?;
    let (sender, receiver) = watch::channel(Arc::new(first));
    tokio::spawn(async move {
        let mut client = Some(client);
        while !sender.is_closed() {
            let mut addrs = seeds.clone();
            addrs.extend(known_addresses(&sender.borrow()));
            let connected = match client.take() {
                Some(client) => Ok(client),
                None => RouterClient::connect_by(&addrs, &dialer).await,
            };
            if let Ok(connected) = connected {
                pass_on(&connected, &sender).await;
            }
            tokio::time::sleep(WATCH_RETRY).await;
        }
    });
    Ok(receiver)
}

fn known_addresses(topology: &Topology) -> Vec<String> {
    let nodes = topology.document.nodes.iter().map(|node| node.addr.clone());
    topology.routers.iter().cloned().chain(nodes).collect()
}

async fn pass_on(client: &RouterClient, sender: &watch::Sender<Arc<Topology>>) {
    let Ok(mut changes) = client.watch_topology().await else { return };
    loop {
        let change = tokio::select! {
            () = sender.closed() => return,
            change = changes.message() => change,
        };
        let Ok(Some(change)) = change else { return };
        match topology_of(&change) {
            // A seed that lags behind must not undo a newer topology.
            Ok(document) if sender.borrow().revision <= document.revision => {
                match Topology::from_document(Arc::new(document)) {
                    Ok(topology) => drop(sender.send_replace(Arc::new(topology))),
                    Err(error) => {
                        tracing::error!(%error, "a topology is invalid: keeping the previous one")
                    }
                }
            }
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "a topology cannot be read: keeping the previous one"),
        }
    }
}

fn internal(error: BadTopology) -> QueryError {
    QueryError::Internal { detail: error.to_string() }
}
