//! Measures request rates: those of this process as a client of all nodes, and those of one node.

use super::sustained::{RateResult, Search};
use crate::{
    bench::{
        open_loop::{OpenLoopResult, Schedule, drive},
        population::{Draw, Population},
        stats::quantile,
    },
    connect::{self, TargetFlags},
    failure::Failure,
};
use anyhow::Context;
use kith_client::{QueryOptions, Service};
use kith_net::transport::{FramedTransport, Transport};
use kith_operators::Operator;
use kith_query::{ConnectionsQuery, GraphQuery, Operation, convert::operator_to_wire};
use kith_session::SessionSettings;
use kith_types::{ErrorCode, PartitionCount, Workflow, partition_of_id};
use kith_wire::{documents::TopologyDocument, v1};
use rand::{SeedableRng, rngs::StdRng};
use std::{sync::Arc, time::Duration};

/// The number of members that are queried.
const MEMBERS: usize = 20_000;
/// A request that takes longer than this counts as failed.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Measures D_RPS (equation 7) with single-key queries of one request each, over all nodes.
///
/// # Errors
/// If the cluster cannot be reached.
pub async fn client(
    target: &TargetFlags,
    graph: &str,
    population: &Population,
    length: Duration,
) -> anyhow::Result<Search> {
    let session = Arc::new(connect::session(target, SessionSettings::default()).await?);
    let members = Arc::new(members(population, |_| true)?);
    let graph: Arc<str> = graph.into();
    search(length, 0.0, move |index| {
        let (session, graph, id) = (Arc::clone(&session), Arc::clone(&graph), members[index % members.len()]);
        async move {
            let operation = Operation::Connections(ConnectionsQuery { id });
            let query =
                GraphQuery { operation, edge_type: None, direction: None, workflow: Workflow::Interactive };
            let options = QueryOptions { deadline: Some(TIMEOUT), ..QueryOptions::default() };
            session.query(&graph, &query, &options).await.is_ok()
        }
    })
    .await
}

/// Measures D_SRPS (equation 10) in the same way at one node, which has answered `seen` requests per second before.
///
/// # Errors
/// If the topology names no node that is up.
pub async fn node(
    topology: &TopologyDocument,
    graph: &str,
    population: &Population,
    length: Duration,
    seen: f64,
) -> anyhow::Result<Search> {
    let node = topology.nodes.first().ok_or_else(|| {
        Failure::new(ErrorCode::NoCluster, "no node has registered", "start nodes, or wait until they are up")
    })?;
    let partitions = PartitionCount::new(topology.cluster.partitions).context("read the partition count")?;
    let group = topology.cluster.groups.iter().find(|group| group.nodes.contains(&node.node));
    let owners = &group.context("find the node's group")?.owners;
    let members =
        members(population, |id| owners.get(partition_of_id(id, partitions).index()) == Some(&node.node))?;
    let base = expansion(topology, graph, population)?;
    let shared = Arc::new((FramedTransport::default(), node.addr.clone(), base, members));
    search(length, seen, move |index| {
        let shared = Arc::clone(&shared);
        async move {
            let (transport, addr, base, members) = &*shared;
            let request = v1::EvaluateRequest { keys: vec![members[index % members.len()]], ..base.clone() };
            transport.evaluate(addr, request).await.is_ok()
        }
    })
    .await
}

/// Builds a request for the lists of members, to which the members are added later.
fn expansion(
    topology: &TopologyDocument,
    graph: &str,
    population: &Population,
) -> anyhow::Result<v1::EvaluateRequest> {
    let expand = Operator::Expand {
        input: Box::new(Operator::Keys),
        edge: population.edge().clone(),
        longest: u64::MAX,
    };
    let header = v1::RequestHeader {
        epoch: topology.cluster.epoch,
        deadline_us: TIMEOUT.as_micros() as u64,
        client: rand::random(),
        ..Default::default()
    };
    Ok(v1::EvaluateRequest {
        header: Some(header),
        name: graph.to_owned(),
        version: topology.graph(graph).context("find the graph")?.version,
        plan: Some(operator_to_wire(&expand)),
        ..Default::default()
    })
}

/// The members to query, in a random order.
fn members(population: &Population, wanted: impl Fn(u64) -> bool) -> anyhow::Result<Vec<u64>> {
    let mut rng = StdRng::seed_from_u64(7);
    let drawn = (0..MEMBERS).map(|_| population.draw(Draw::Uniform, &mut rng));
    let members: Vec<u64> = drawn.filter(|id| wanted(*id)).collect();
    anyhow::ensure!(
        !members.is_empty(),
        Failure::new(ErrorCode::BadRequest, "the graph has no members on this node", "load a larger graph")
    );
    Ok(members)
}

async fn search<F>(
    length: Duration,
    seen: f64,
    ask: impl Fn(usize) -> F + Clone + Send + 'static,
) -> anyhow::Result<Search>
where
    F: Future<Output = bool> + Send + 'static,
{
    let mut search = Search::new(seen);
    // Opens connections and loads files into memory.
    drive(Schedule::new(200.0, Duration::from_millis(300), 0), ask.clone()).await;
    while let Some(rate) = search.next_rate() {
        let mut seen = measure(rate, length, ask.clone()).await;
        if !search.is_sustained(&seen) {
            seen = measure(rate, length, ask.clone()).await;
        }
        search.note(seen);
    }
    Ok(search)
}

async fn measure<F>(rate: f64, length: Duration, ask: impl Fn(usize) -> F + Send + 'static) -> RateResult
where
    F: Future<Output = bool> + Send + 'static,
{
    let schedule = Schedule::new(rate, length, rate.to_bits());
    let due = schedule.due.len();
    step(rate, due, length, &drive(schedule, ask).await)
}

fn step(rate: f64, due: usize, length: Duration, driven: &OpenLoopResult<bool>) -> RateResult {
    let answered = driven.observations.iter().filter(|seen| seen.outcome == Some(true)).count();
    let latencies: Vec<f64> =
        driven.observations.iter().map(|seen| seen.latency.as_micros() as f64).collect();
    // Answers after the end were late, so the sustained rate is computed over the whole time.
    let took = driven.wall.max(length).as_secs_f64();
    RateResult {
        due: rate,
        answered: answered as f64 / took * (rate * length.as_secs_f64() / due.max(1) as f64),
        p99_us: quantile(&latencies, 0.99).unwrap_or(0.0) as u64,
        errors: (due - answered) as u64,
        sustained: false,
        check: false,
    }
}
