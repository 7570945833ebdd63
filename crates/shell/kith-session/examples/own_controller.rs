//! A custom fan-out controller: interactive network queries get one group per hundred keys while this client's request rate
//! is low.
//!
//! `cargo run -p kith-session --example own_controller -- HOST:PORT GRAPH MEMBER`, with the address of any router.

use kith_query::{GraphQuery, NetworkQuery, NetworkReturn, Operation, QueryOptions, Service};
use kith_routing::{FanOutController, LoadSnapshot, QueryShape, fan_out::ControllerState};
use kith_session::{Session, SessionSettings};
use std::{env, error::Error, sync::Arc};

#[derive(Debug)]
struct ByKeys {
    keys_per_group: u32,
    requests_per_second_max: f64,
}

impl FanOutController for ByKeys {
    fn name(&self) -> &'static str {
        "by-keys"
    }

    fn groups(&self, query: &QueryShape, load: &LoadSnapshot, _: &mut ControllerState) -> u32 {
        let is_busy = self.requests_per_second_max < load.client_rps();
        if is_busy { 1 } else { query.keys.div_ceil(self.keys_per_group) }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [addr, graph, member] = arguments.as_slice() else {
        return Err("usage: own_controller HOST:PORT GRAPH MEMBER".into());
    };
    rounds(addr, graph, member.parse()?).await?.iter().for_each(|round| println!("{round}"));
    Ok(())
}

/// Returns the rounds of a network query, as planned and as run.
pub async fn rounds(addr: &str, graph: &str, member: u64) -> Result<Vec<String>, Box<dyn Error>> {
    let controller = Arc::new(ByKeys { keys_per_group: 100, requests_per_second_max: 5_000.0 });
    let settings = SessionSettings::default().with_controller("network@interactive", controller)?;
    let session = Session::connect(vec![addr.to_owned()], settings).await?;
    let operation = Operation::Network(NetworkQuery { id: member, returns: NetworkReturn::Size });
    let query = GraphQuery { operation, edge_type: None, direction: None, workflow: Default::default() };
    let options = QueryOptions { profile: true, ..QueryOptions::default() };
    let planned = session.explain(graph, &query, &options).await?.plan;
    let ran = session.query(graph, &query, &options).await?.profile;
    let rounds = [planned, ran].into_iter().flatten().flat_map(|profile| profile.rounds);
    let lines = rounds.map(|round| {
        let (name, keys, by, selector) = (round.name, round.keys, round.controller, round.selector);
        let (allowed, asked) = (round.groups_allowed, round.groups_asked);
        format!("{name}: {keys} keys, {allowed} groups by {by} for {selector}, which asked for {asked}")
    });
    Ok(lines.collect())
}
