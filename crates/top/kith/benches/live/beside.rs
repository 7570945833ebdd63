//! Single-key reads of a store at a fixed rate, alternately alone and during 1,000 writes per second to a live graph on the
//! same nodes. Reader and writer are clients of their own. The threads of the writer have a low priority: on the machine of a
//! real writer they would not compete with the reader.

use super::site::{Association, GRAPH, Site};
use crate::{
    rig::{
        self, cpu,
        reads::{self, Store},
    },
    support::values,
};
use kith_client::{QueryOptions, RouterClient, Service};
use kith_cluster::background;
use kith_engine::{KeyType, ValueType};
use kith_terminal::bench::{
    latency::Latencies,
    open_loop::{Schedule, drive},
    stats::median_interval,
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{sync::Arc, time::Duration};
use tokio::runtime::{Builder, Handle, Runtime};

const SHAPE: [&str; 6] = ["--groups", "1", "--nodes", "2", "--partitions", "24"];
const STORE: &str = "people";
const TYPES: (KeyType, ValueType) = (KeyType::Id, ValueType::Bytes);
const ROWS: u64 = 20_000;
const WRITES_PER_SECOND: f64 = 1_000.0;
const STRETCH: Duration = Duration::from_secs(2);

pub async fn run() {
    let site = Site::start(&SHAPE, None).await;
    tokio::task::block_in_place(|| {
        values::create(&site.cluster, STORE, TYPES.0, TYPES.1);
        values::push(&site.cluster, STORE, TYPES, 1, reads::rows(ROWS));
    });
    let store = Store { name: STORE, service: reads::direct(&site.cluster.ready()).await };
    let rate = rig::setting("KITH_BENCH_RATE", 500) as f64;
    let pairs = rig::setting("KITH_BENCH_PAIRS", 20) as u64;
    let (mut p50, mut p99) = (Vec::new(), Vec::new());
    let mut all = [Latencies::default(), Latencies::default()];
    let writer = Writer::of(&site);
    read(&store, rate, u64::MAX).await;
    writer.write(u64::MAX).await;
    let mut used = [Vec::new(), Vec::new()];
    for pair in 0..pairs {
        let mut one = [Latencies::default(), Latencies::default()];
        for beside in [pair % 2, 1 - pair % 2] {
            let before = cpu::now(&site.parts);
            one[beside as usize] = match beside {
                0 => read(&store, rate, pair).await,
                _ => tokio::join!(read(&store, rate, pair), writer.write(pair)).0,
            };
            used[beside as usize].push((before, cpu::now(&site.parts)));
        }
        let ratio = |share| one[1].quantile_us(share) as f64 / one[0].quantile_us(share) as f64;
        p50.push(ratio(0.5));
        p99.push(ratio(0.99));
        all.iter_mut().zip(&one).for_each(|(all, one)| all.add(one));
    }
    println!(
        "{rate} lookups/s; ratio of the latency during {WRITES_PER_SECOND} writes/s to the latency alone"
    );
    for (quantile, share, ratios) in [("p50", 0.5, &p50), ("p99", 0.99, &p99)] {
        let ratio = median_interval(ratios).expect("at least one pair was measured");
        println!(
            "  {quantile} {:.2} ({:.2} to {:.2}, {} pairs); {} and {} us",
            ratio.median,
            ratio.low,
            ratio.high,
            ratio.pairs,
            all[1].quantile_us(share),
            all[0].quantile_us(share)
        );
    }
    let seconds = STRETCH.as_secs() as usize * pairs as usize;
    for (name, used) in [("alone", &used[0]), ("during writes", &used[1])] {
        println!("  CPU per second, {name}: {}", cpu::describe(&site.parts, &cpu::sums(used), seconds));
    }
    writer.runtime.shutdown_background();
}

async fn read(store: &Store, rate: f64, seed: u64) -> Latencies {
    let mut rng = StdRng::seed_from_u64(seed);
    store.read_singles(rate, STRETCH, seed, || rng.random_range(0..ROWS)).await
}

/// A client that writes, and its threads.
struct Writer {
    runtime: Runtime,
    client: Arc<RouterClient>,
}

impl Writer {
    fn of(site: &Site) -> Self {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.on_thread_start(background::give_way).enable_all().build().expect("a runtime");
        let router = reads::router(&site.cluster.ready());
        let connecting = runtime.spawn(async move { RouterClient::connect(&[router]).await });
        let connected = tokio::task::block_in_place(|| Handle::current().block_on(connecting));
        let client = connected.expect("it does not panic").expect("the router is up");
        Self { runtime, client: Arc::new(client) }
    }

    /// Adds associations at the fixed rate. Each write must succeed.
    async fn write(&self, seed: u64) {
        let client = Arc::clone(&self.client);
        let schedule = Schedule::new(WRITES_PER_SECOND, STRETCH, seed.wrapping_add(1));
        let add = move |index: usize| {
            let (client, time) = (Arc::clone(&client), index as u64);
            let id1 = time % ROWS;
            let id2 = ROWS + seed.wrapping_mul(1 << 20).wrapping_add(time) % (1 << 40);
            let association = Association { kind: "likes", id1, id2, time, data: None };
            async move { client.write(GRAPH, &association.write(), &QueryOptions::default()).await.map(drop) }
        };
        let driven = self.runtime.spawn(drive(schedule, add)).await.expect("it does not panic");
        for seen in driven.observations {
            seen.outcome.expect("the cluster keeps up with the writes").expect("a write succeeds");
        }
    }
}
