//! Follows the topology through routers and nodes.

use kith_client::{KnownTypes, RouterClient, topology_of};
use kith_net::security::Dialer;
use kith_query::QueryError;
use kith_topology::{BadTopology, Topology};
use parking_lot::Mutex;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::sync::{Notify, watch};

/// Pause before a lost watch of the topology is opened again.
const WATCH_RETRY: Duration = Duration::from_millis(200);
/// The pause before types that could not be fetched are fetched again.
const TYPES_RETRY: Duration = Duration::from_millis(500);

/// The live graphs whose types a process has asked for. Only those are fetched.
#[derive(Debug, Default)]
pub(crate) struct WantedTypes {
    names: Mutex<BTreeSet<String>>,
    added: Notify,
}

impl WantedTypes {
    /// Adds a graph. Its types come with one of the next topologies.
    pub fn add(&self, graph: &str) {
        if self.names.lock().insert(graph.to_owned()) {
            self.added.notify_one();
        }
    }

    fn has(&self, graph: &str) -> bool {
        self.names.lock().contains(graph)
    }
}

/// Follows the topology through any of `seeds`, routers or nodes, and goes on to the next when one goes away. Ends when
/// every receiver is dropped. Of live graphs, only those in `asked` get their types.
///
/// # Errors
/// If none of the seeds answers at first.
pub(crate) async fn follow(
    seeds: Vec<String>,
    dialer: Dialer,
    asked: Arc<WantedTypes>,
) -> Result<watch::Receiver<Arc<Topology>>, QueryError> {
    let (client, first) = RouterClient::connect_and_look(&seeds, &dialer).await?;
    let first = Topology::from_document(Arc::new(topology_of(&first)?)).map_err(internal)?;
    let (sender, receiver) = watch::channel(Arc::new(first));
    tokio::spawn(async move {
        let mut client = Some(client);
        let mut types = KnownTypes::default();
        while !sender.is_closed() {
            let mut addrs = seeds.clone();
            addrs.extend(known_addresses(&sender.borrow()));
            let connected = match client.take() {
                Some(client) => Ok(client),
                None => RouterClient::connect_by(&addrs, &dialer).await,
            };
            if let Ok(connected) = connected {
                pass_on(&connected, &sender, (&asked, &mut types)).await;
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

async fn pass_on(
    connected: &RouterClient,
    sender: &watch::Sender<Arc<Topology>>,
    (asked, types): (&WantedTypes, &mut KnownTypes),
) {
    let Ok(mut changes) = connected.watch_topology().await else { return };
    let mut lacks_types = false;
    loop {
        let change = tokio::select! {
            () = sender.closed() => return,
            () = asked.added.notified() => None,
            () = tokio::time::sleep(TYPES_RETRY), if lacks_types => None,
            change = changes.message() => match change {
                Ok(Some(change)) => Some(change),
                _ => return,
            },
        };
        let document = match change.map(|change| topology_of(&change)) {
            None => Ok((*sender.borrow().document).clone()),
            Some(document) => document,
        };
        match document {
            // A seed that lags behind must not undo a newer topology.
            Ok(mut document) if sender.borrow().revision <= document.revision => {
                lacks_types = types.add_to(connected, &mut document, |graph| asked.has(graph)).await;
                let next = Topology::after(Some(&sender.borrow()), Arc::new(document));
                match next {
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
