//! Asks a graph twice: through a router, and directly from the nodes (the fast client).
//!
//! `cargo run -p kith-client --example ask -- HOST:PORT GRAPH MEMBER`, with the address of any router.

use kith_api::{QueryOptions, Service};
use kith_client::{FanOutLimit, RouterClient, Session, SessionSettings};
use kith_ops::{GraphAnswer, GraphQuery, Operand, Want};
use std::{env, error::Error};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [addr, graph, member] = arguments.as_slice() else {
        return Err("usage: ask HOST:PORT GRAPH MEMBER".into());
    };
    let query = GraphQuery {
        operand: Operand::Network { id: member.parse()?, want: Want::Size },
        edge_type: None,
        direction: None,
        workflow: Default::default(),
    };

    let router = RouterClient::connect(std::slice::from_ref(addr)).await?;
    report("router", &router, graph, &query).await?;
    let session = Session::connect(vec![addr.clone()], SessionSettings::default()).await?;
    report("direct", &session, graph, &query).await
}

async fn report(
    way: &str,
    service: &dyn Service,
    graph: &str,
    query: &GraphQuery,
) -> Result<(), Box<dyn Error>> {
    for fan_out in [FanOutLimit::Min, FanOutLimit::Max] {
        let options = QueryOptions { fan_out: fan_out.into(), profile: true, ..QueryOptions::default() };
        let answered = service.query(graph, query, &options).await?;
        let GraphAnswer::Network(network) = answered.answer else { return Err("not a network".into()) };
        let profile = answered.profile.unwrap_or_default();
        println!(
            "{way}: {} in the network, {} requests to {} groups",
            network.sizes.network(),
            profile.requests,
            profile.groups
        );
    }
    Ok(())
}
