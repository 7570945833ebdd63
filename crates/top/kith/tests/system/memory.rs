//! A store several times as large as the memory that its node may use.

use crate::support;
use kith_client::{BatchKeys, QueryOptions, Service};
use kith_engine::{KeyType, ValueType};
use kith_session::{Session, SessionSettings};
use kith_types::fmix64;
use support::{
    cluster::{Cluster, metric_at},
    limits::MemoryGroup,
    values,
};

const VALUE_BYTES: u64 = 1_000;
const ROWS: u64 = 160_000;
/// The data is some 160 MB.
const MEMORY_BYTES: u64 = 64 << 20;

fn value(id: u64) -> Vec<u8> {
    (0..VALUE_BYTES / 8).flat_map(|word| fmix64(id << 8 | word).to_le_bytes()).collect()
}

#[test]
fn a_lookup_beyond_memory_costs_two_reads_of_the_disk_and_is_right() {
    let Some(group) = MemoryGroup::new(MEMORY_BYTES) else { return };
    let mut cluster = Cluster::start(&["--processes", "--groups", "1", "--nodes", "1", "--partitions", "4"]);
    group.add(cluster.node_pids(0)[0]);
    values::create(&cluster, "large", KeyType::Id, ValueType::Bytes);
    let rows = (0..ROWS).map(|id| (id.to_le_bytes().to_vec(), value(id)));
    values::push(&cluster, "large", (KeyType::Id, ValueType::Bytes), 1, rows);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let addr = cluster.ready()["router"].as_str().expect("an address").to_owned();
    let http = cluster.nodes_http().remove(0);
    let session =
        runtime.block_on(Session::connect(vec![addr], SessionSettings::default())).expect("it is up");
    let get = |keys: Vec<u64>| {
        let asked = BatchKeys::Ids(keys.clone());
        let answer = runtime.block_on(session.multi_get("large", &asked, &QueryOptions::default()));
        let records = answer.expect("an answer").records;
        for (index, id) in keys.into_iter().enumerate() {
            let got = records.value(index).map(|value| value.to_vec());
            assert_eq!(got, (id < ROWS).then(|| value(id)), "key {id}");
        }
    };
    cluster.wait_until("the node knows that not all is in memory", |_| {
        let ratio = metric_at(&http, "kith_node_resident_ratio{store=\"large\",version=\"1\"}");
        ratio.is_some_and(|ratio| ratio < 0.9)
    });

    // Half of the memory is the process's own, so that hardly any page is met again by chance.
    group.drop_caches();
    let before = group.disk_reads();
    let singles = 1_000;
    (0..singles).for_each(|draw| get(vec![fmix64(draw) % ROWS]));
    let reads = (group.disk_reads() - before) as f64 / singles as f64;
    println!("{reads:.2} reads of the disk a lookup, {} MiB in use", group.bytes() >> 20);
    assert!(0.5 < reads, "the lookups were to miss memory: {reads}");
    assert!(reads <= 2.0, "{reads} reads of the disk a lookup");

    // Batches, absent keys among them.
    (0..20).for_each(|batch| {
        get((0..500).map(|draw| fmix64(batch << 32 | draw) % (ROWS + ROWS / 10)).collect())
    });
}
