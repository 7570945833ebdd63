//! Asks a graph through a router, with few replica groups and with many.
//!
//! `cargo run -p kith-client --example ask -- HOST:PORT GRAPH MEMBER`, with the address of any router.

use kith_client::{QueryOptions, RouterClient, Service};
use kith_query::{GraphAnswer, GraphQuery, NetworkQuery, NetworkReturn, Operation};
use kith_types::FanOutLimit;
use std::{env, error::Error};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [addr, graph, member] = arguments.as_slice() else {
        return Err("usage: ask HOST:PORT GRAPH MEMBER".into());
    };
    let query = GraphQuery {
        operation: Operation::Network(NetworkQuery { id: member.parse()?, returns: NetworkReturn::Size }),
        edge_type: None,
        direction: None,
        workflow: Default::default(),
    };
    let router = RouterClient::connect(std::slice::from_ref(addr)).await?;
    for fan_out in [FanOutLimit::Min, FanOutLimit::Max] {
        let options = QueryOptions { fan_out: fan_out.into(), profile: true, ..QueryOptions::default() };
        let answered = router.query(graph, &query, &options).await?;
        let GraphAnswer::Network(network) = answered.answer else { return Err("not a network".into()) };
        let (size, profile) = (network.sizes.network(), answered.profile.unwrap_or_default());
        println!("{size} in the network, {} requests to {} groups", profile.requests, profile.groups);
    }
    Ok(())
}
