//! Zones of a cluster: one is lost, and replicas that would share one.

use super::support::{
    self,
    cluster::{kith, signal, text},
};
use super::{Machines, NODES, ROUTERS, ZONES, refusal};
use kith_cluster::testing::Etcd;
use std::fs;

#[test]
fn the_loss_of_a_zone_loses_no_answer() {
    let machines = Machines::start();
    let edges = support::root().join("testdata/kith-village/edges.csv.gz");
    machines.must(0, &["load", "graph", edges.to_str().expect("UTF-8"), "--graph", "village"]);
    machines.must(0, &["store", "create", "people"]);
    machines.must_push(0, "1");
    machines.must(0, &["store", "create", "ids", "--key", "id"]);
    let ids = machines.folder.path().join("ids.csv");
    // Some in each of the 24 partitions.
    let keys: Vec<String> = (0..500).map(|id| id.to_string()).collect();
    let rows: String = keys.iter().map(|id| format!("{id},{id}\n")).collect();
    fs::write(&ids, format!("key,value\n{rows}")).expect("written");
    machines.must(0, &["store", "push", "ids", ids.to_str().expect("UTF-8")]);
    let listed = machines.folder.path().join("keys.txt");
    fs::write(&listed, keys.join("\n")).expect("written");
    let asked = ["mget", "ids", "--keys-from", listed.to_str().expect("UTF-8")];
    assert_eq!(machines.must(0, &asked)["footer"]["found"], keys.len());

    for (zone, name) in ZONES.iter().enumerate() {
        let lost = || machines.nodes.iter().take(NODES as usize).skip(zone).step_by(ZONES.len());
        let pids: Vec<u32> = lost().map(|machine| machine.child.as_ref().expect("it runs").id()).collect();
        assert_eq!(pids.len(), 2);
        pids.iter().for_each(|pid| signal(*pid, "STOP"));
        machines.assert_answers("1");
        for router in 0..ROUTERS as usize {
            assert_eq!(machines.must(router, &asked)["footer"]["found"], keys.len(), "without zone {name}");
        }
        pids.iter().for_each(|pid| signal(*pid, "CONT"));
        machines.wait_until("the zone is back", |all| {
            (0..ROUTERS as usize).all(|router| all.nodes_up(router) == NODES as usize)
        });
    }
}

#[test]
fn a_cluster_that_a_zone_can_take_down_is_not_made_unless_forced() {
    let etcd = Etcd::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("kith.toml");
    let places = [(0, "a"), (1, "a"), (2, "a"), (3, "b")];
    let nodes = places.map(|(node, zone)| format!("[[node]]\nnode = {node}\nzone = \"{zone}\"\n")).concat();
    let objects = folder.path().join("objects");
    let file =
        format!("metadata = \"etcd://{}\"\nobject-store = \"{}\"\n{nodes}", etcd.host(), objects.display());
    fs::write(&config, file).expect("written");
    let create = |flags: &[&str]| {
        let shape = ["--groups", "2", "--nodes", "2", "--partitions", "24", "-o", "json"];
        let config = ["cluster", "create", "--config", config.to_str().expect("UTF-8")];
        kith(&[&config[..], &shape, flags].concat()).output().expect("kith runs")
    };
    let refused = create(&[]);
    assert_eq!(refusal(&refused), "replicas_together");
    assert!(text(&refused).contains("12 of 24 partitions"), "{}", text(&refused));
    assert!(create(&["--allow-shared-zones"]).status.success());
}
