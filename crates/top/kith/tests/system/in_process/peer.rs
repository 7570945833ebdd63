//! Tests of fetching from a node that serves.

use super::{start, village};
use kith_engine::{FetchError, FetchOptions, fetch, verify_component};
use kith_net::security::Dialer;
use kith_node::PeerSource;
use kith_types::PartitionId;
use std::ops::ControlFlow;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_gives_its_partitions_to_a_peer_and_no_others() {
    let cluster = start(1, 2).await;
    cluster.load("village", &village("edges.csv.gz"), None).await;
    let topology = cluster.router.topology().await.unwrap();
    let component = topology.graph("village").unwrap().components[0].clone();
    let node = &topology.nodes[0];
    let owners = &topology.cluster.groups[0].owners;
    let of = |owner: bool| {
        let partitions = (0u32..).zip(owners).filter(|(_, node_id)| (**node_id == node.node) == owner);
        partitions.map(|(partition, _)| PartitionId(partition)).collect::<Vec<_>>()
    };
    let (own, foreign) = (of(true), of(false));
    let source =
        PeerSource::new(&Dialer::default(), &node.addr, "village", &component.name, component.version)
            .unwrap();
    let other =
        PeerSource::new(&Dialer::default(), &node.addr, "village", &component.name, component.version + 1)
            .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("7");
    let options =
        FetchOptions { manifest_hash: Some(component.manifest_hash.clone()), ..FetchOptions::default() };
    tokio::task::spawn_blocking(move || {
        let mut go_on = |_: &_| ControlFlow::Continue(());
        fetch(&source, &target, &own, &options, &mut go_on).unwrap();
        assert!(verify_component(&target, Some(&own)).unwrap().damages.is_empty());
        let refused = fetch(&source, &target, &foreign, &options, &mut go_on);
        assert!(matches!(refused, Err(FetchError::Damaged(_))), "{refused:?}");
        let refused = fetch(&other, &target.with_file_name("8"), &own, &options, &mut go_on);
        assert!(matches!(refused, Err(FetchError::Manifest(_))), "{refused:?}");
    })
    .await
    .unwrap();
}
