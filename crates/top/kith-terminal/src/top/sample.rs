//! Samples: the counters of all processes at about the same time.

use crate::connect::{self, TargetFlags};
use anyhow::Context;
use futures::future::join_all;
use kith_client::{RouterClient, security::Dialer};
use kith_wire::v1;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// A router that does not answer within this time is shown as down.
const ROUTER_TIMEOUT: Duration = Duration::from_millis(500);

/// The counters of all processes, read at about the same time.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// The time since the sampler started.
    pub at: Duration,
    /// The status of the cluster, with the counters of its nodes.
    pub status: v1::ClusterStatus,
    /// The counters of routers by address; `None`: the router does not answer.
    pub routers: BTreeMap<String, Option<v1::RouterCounters>>,
}

/// Reads samples from a cluster.
pub struct Sampler<'a> {
    target: &'a TargetFlags,
    started: Instant,
    /// The dialer for connections to routers.
    dialer: Dialer,
    /// The router that reports on the nodes.
    router: RouterClient,
    /// The clients of the routers that have answered, by address.
    routers: BTreeMap<String, RouterClient>,
}

impl<'a> Sampler<'a> {
    /// Connects to the cluster that `target` names.
    ///
    /// # Errors
    /// If no router answers.
    pub async fn connect(target: &'a TargetFlags) -> anyhow::Result<Self> {
        let router = connect::router(target).await?;
        let dialer = target.security.dialer()?;
        Ok(Self { target, started: Instant::now(), dialer, router, routers: BTreeMap::new() })
    }

    /// Reads the counters of all processes.
    ///
    /// # Errors
    /// If neither the router nor another one that was named answers.
    pub async fn sample(&mut self) -> anyhow::Result<Sample> {
        let request = v1::StatusRequest { counters: true, own: false };
        let status = match self.router.counted(request).await {
            Ok(status) => status,
            Err(_) => {
                self.router = connect::router(self.target).await?;
                self.router.counted(request).await.context("read the cluster's status")?
            }
        };
        let at = self.started.elapsed();
        let asked = status.routers.iter().map(|router| {
            let known = self.routers.get(&router.addr).cloned();
            ask(router.addr.clone(), known, &self.dialer)
        });
        let answers = join_all(asked).await;
        self.routers =
            answers.iter().filter_map(|answer| Some((answer.0.clone(), answer.1.clone()?))).collect();
        let routers = answers.into_iter().map(|(addr, _, counters)| (addr, counters)).collect();
        Ok(Sample { at, status, routers })
    }
}

/// Asks a router for its counters. Returns its address, its client if it answers, and the counters.
async fn ask(
    addr: String,
    known: Option<RouterClient>,
    dialer: &Dialer,
) -> (String, Option<RouterClient>, Option<v1::RouterCounters>) {
    let answer = async {
        let client = match known {
            Some(client) => client,
            None => RouterClient::connect_by(std::slice::from_ref(&addr), dialer).await?,
        };
        let status = client.counted(v1::StatusRequest { counters: true, own: true }).await?;
        Ok::<_, kith_client::QueryError>((client, status.counters))
    };
    match tokio::time::timeout(ROUTER_TIMEOUT, answer).await {
        Ok(Ok((client, counters))) => (addr, Some(client), counters),
        Ok(Err(_)) | Err(_) => (addr, None, None),
    }
}
