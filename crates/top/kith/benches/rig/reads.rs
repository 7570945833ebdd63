//! Reads of a store of values at a set rate. Every answer is checked.

use kith_client::{BatchKeys, QueryOptions, RouterClient, Service, TransportKind};
use kith_session::{Session, SessionSettings};
use kith_terminal::bench::{
    latency::Latencies,
    open_loop::{Schedule, drive},
};
use kith_types::fmix64;
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// The value of a key: a kibibyte of random bytes.
pub fn value(id: u64) -> Vec<u8> {
    (0..128).flat_map(|word| fmix64(id << 7 | word).to_le_bytes()).collect()
}

/// The rows with the ids from 0 on.
pub fn rows(count: u64) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    (0..count).map(|id| (id.to_le_bytes().to_vec(), value(id)))
}

/// One store, read through one service.
#[derive(Clone)]
pub struct Store {
    pub name: &'static str,
    pub service: Arc<dyn Service>,
}

/// Connects to the nodes directly.
pub async fn direct(ready: &Value) -> Arc<dyn Service> {
    direct_over(ready, TransportKind::Framed).await
}

/// Connects to the nodes over a given transport.
pub async fn direct_over(ready: &Value, transport: TransportKind) -> Arc<dyn Service> {
    let settings = SessionSettings { transport, ..SessionSettings::default() };
    let session = Session::connect(vec![router(ready)], settings).await;
    Arc::new(session.expect("the cluster is up"))
}

/// Connects through the router.
pub async fn routed(ready: &Value) -> Arc<dyn Service> {
    routed_over(ready, TransportKind::Framed).await
}

/// Connects through the router over a given transport.
pub async fn routed_over(ready: &Value, transport: TransportKind) -> Arc<dyn Service> {
    let client = RouterClient::connect(&[router(ready)]).await.expect("the router is up");
    Arc::new(client.with_transport(transport))
}

/// The address of the router.
pub fn router(ready: &Value) -> String {
    ready["router"].as_str().expect("an address").to_owned()
}

impl Store {
    /// Requests each group of keys when it is due.
    ///
    /// # Panics
    /// If an answer is wrong, a request failed, or one could not be sent.
    pub async fn read(&self, schedule: Schedule, keys: Vec<Vec<u64>>) -> Latencies {
        let keys = Arc::new(keys);
        let (store, asked) = (self.clone(), Arc::clone(&keys));
        let ask = move |index: usize| {
            let (store, keys) = (store.clone(), asked[index].clone());
            async move {
                store.service.multi_get(store.name, &BatchKeys::Ids(keys), &QueryOptions::default()).await
            }
        };
        let mut latencies = Latencies::default();
        for seen in drive(schedule, ask).await.observations {
            let answer = seen.outcome.expect("the cluster keeps up with the rate").expect("an answer");
            for (position, id) in keys[seen.index].iter().enumerate() {
                let got = answer.records.value(position).unwrap_or_else(|| panic!("key {id} has no value"));
                assert!(got == value(*id), "{} answered key {id} wrongly", self.name);
            }
            latencies.record(seen.latency, seen.lag);
        }
        latencies
    }

    /// Reads single keys that `draw` draws, at `rate` for `length`.
    pub async fn read_singles(
        &self,
        rate: f64,
        length: Duration,
        seed: u64,
        mut draw: impl FnMut() -> u64,
    ) -> Latencies {
        let schedule = Schedule::new(rate, length, seed);
        let keys = schedule.due.iter().map(|_| vec![draw()]).collect();
        self.read(schedule, keys).await
    }
}
