//! Tests with addresses that no routing table names any longer.

use super::*;
use kith_session::Fleet;
use kith_topology::Topology;
use kith_wire::documents::{ClusterDocument, DOCUMENT_FORMAT, GroupDocument, NodeDocument, TopologyDocument};

/// A routing table of one group, whose nodes have these addresses.
fn topology(revision: u64, addrs: &[&str]) -> Arc<Topology> {
    let nodes: Vec<u32> = (0..addrs.len() as u32).collect();
    let owners = (0..4).map(|partition| nodes[partition % nodes.len()]).collect();
    let cluster = ClusterDocument {
        format: DOCUMENT_FORMAT,
        cluster_id: String::new(),
        epoch: revision,
        partitions: 4,
        groups: vec![GroupDocument { group: 0, nodes, owners, role: String::new() }],
        object_store: String::new(),
        strategy: String::new(),
        listed: vec![],
        partition_epochs: vec![],
    };
    let nodes = (0..).zip(addrs).map(|(node, addr)| NodeDocument {
        format: DOCUMENT_FORMAT,
        node,
        addr: (*addr).to_owned(),
        http: String::new(),
        resp: String::new(),
        pid: 0,
        zone: String::new(),
        rack: String::new(),
        region: String::new(),
    });
    let document = TopologyDocument {
        format: DOCUMENT_FORMAT,
        revision,
        cluster,
        nodes: nodes.collect(),
        routers: vec![],
        stores: vec![],
        kept: vec![],
        live: vec![],
        types: Default::default(),
        leaders: vec![],
        databases: vec![],
        rebalance: None,
    };
    Arc::new(Topology::from_document(Arc::new(document)).expect("it makes sense"))
}

#[tokio::test]
async fn an_address_that_no_table_names_is_let_go_of_and_what_is_under_way_there_goes_on() {
    for (name, transport) in transports() {
        let (stays, leaves) = (Server::start(), Server::start());
        let (tables, followed) = watch::channel(topology(1, &[&stays.addr, &leaves.addr]));
        let fleet = Fleet::new(followed, Arc::clone(&transport), false);
        fleet.warm().await;
        assert_eq!(transport.addresses(), 2, "{name}");
        let under_way = tokio::spawn({
            let (transport, addr) = (Arc::clone(&transport), leaves.addr.clone());
            async move { transport.evaluate(&addr, asking(WAIT, 7)).await }
        });
        leaves.until_waiting(1).await;
        tables.send_replace(topology(2, &[&stays.addr]));
        while transport.addresses() != 1 {
            tokio::task::yield_now().await;
        }
        leaves.open_gate();
        let answered = under_way.await.expect("no panic").expect("an answer");
        assert_eq!(count_of(answered), 7, "{name}");
        // A query that began with the old table may still send requests there.
        let again = transport.evaluate(&leaves.addr, asking(ECHO, 8)).await;
        assert_eq!(count_of(again.expect("an answer")), 8, "{name}");
        while transport.addresses() != 1 {
            tokio::task::yield_now().await;
        }
    }
}
