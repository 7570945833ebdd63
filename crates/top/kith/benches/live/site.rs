//! A cluster with a live graph, and a client of it.

use crate::{rig::cpu::Parts, support::cluster::Cluster};
use futures::{StreamExt, stream};
use kith_client::{QueryOptions, RouterClient, Service};
use kith_live::{Conditions, Mutation, Write};
use kith_query::QueryError;
use kith_terminal::bench::stats::{Interval, median_interval};
use serde_json::Value;
use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

/// The name of the live graph.
pub const GRAPH: &str = "live";

/// A one-sided and a symmetric association type.
const TYPES: &str = r#"
[object.person]

[association.likes]
fields = { note = { type = "text", nullable = true } }

[association.friend]
symmetric = true
"#;

/// A cluster of processes with the live graph [`GRAPH`].
pub struct Site {
    pub cluster: Cluster,
    pub client: Arc<RouterClient>,
    /// The processes of the cluster by role, and this process as `client`.
    pub parts: Parts,
}

impl Site {
    /// Starts a cluster. The rows of the graph are in `storage`, or by default in the cluster's own database.
    pub async fn start(shape: &[&str], storage: Option<&str>) -> Self {
        let cluster = Cluster::start(&[&["--processes"], shape].concat());
        let folder = tempfile::tempdir().expect("a temporary folder");
        let types = folder.path().join("types.toml");
        fs::write(&types, TYPES).expect("the folder can be written");
        let mut command = vec!["schema", "apply", types.to_str().expect("UTF-8"), "--graph", GRAPH];
        command.extend(storage.into_iter().flat_map(|storage| ["--storage", storage]));
        cluster.must(&command);
        let ready = cluster.ready();
        let addr = ready["router"].as_str().expect("an address").to_owned();
        let client = RouterClient::connect(&[addr]).await.expect("the router is up");
        let pids = |field: &str| -> Vec<u32> {
            let all = ready[field].as_array().expect("a list").iter();
            all.map(|entry: &Value| entry["pid"].as_u64().expect("a process") as u32).collect()
        };
        let parts = vec![
            ("client", vec![std::process::id()]),
            ("router", pids("routers")),
            ("nodes", pids("nodes")),
            ("database", pids("databases")),
        ];
        Self { cluster, client: Arc::new(client), parts }
    }

    /// Adds an association, which must succeed.
    pub async fn add(&self, association: &Association) {
        let write = association.write();
        let added = self.client.write(GRAPH, &write, &QueryOptions::default()).await;
        added.unwrap_or_else(|error| panic!("{write:?}: {error}"));
    }

    /// Adds associations, with `in_flight` writes at a time. Returns the time that this took.
    pub async fn add_all(&self, associations: Vec<Association>, in_flight: usize) -> Duration {
        let started = Instant::now();
        stream::iter(associations)
            .for_each_concurrent(in_flight, async |association| self.add(&association).await)
            .await;
        started.elapsed()
    }

    /// Adds an association, and repeats the write after a temporary error until `timeout` is over. Returns the number of
    /// repeats.
    pub async fn add_at_last(&self, association: &Association, timeout: Duration) -> u32 {
        let (write, started) = (association.write(), Instant::now());
        let mut repeats = 0;
        loop {
            match self.client.write(GRAPH, &write, &QueryOptions::default()).await {
                Ok(_) => return repeats,
                Err(error) if started.elapsed() < timeout && is_passing(&error) => repeats += 1,
                Err(error) => panic!("{write:?}: {error}"),
            }
        }
    }
}

fn is_passing(error: &QueryError) -> bool {
    use kith_types::ErrorCode::{NotLeader, OutcomeUnknown, Unreachable};
    matches!(error.code(), NotLeader | OutcomeUnknown | Unreachable)
}

/// An association to add.
#[derive(Clone, Debug)]
pub struct Association {
    pub kind: &'static str,
    pub id1: u64,
    pub id2: u64,
    pub time: u64,
    /// The fields of the association, as a JSON object.
    pub data: Option<String>,
}

impl Association {
    pub fn write(&self) -> Write {
        let Self { kind, id1, id2, time, data } = self.clone();
        let mutation = Mutation::AddAssociation { id1, kind: kind.to_owned(), id2, time: Some(time), data };
        Write { mutation, conditions: Conditions::default(), write_id: None }
    }
}

/// Returns the duration of a call in microseconds, and its result.
pub async fn timed<T>(call: impl Future<Output = T>) -> (f64, T) {
    let started = Instant::now();
    let value = call.await;
    (started.elapsed().as_secs_f64() * 1e6, value)
}

/// Formats the median of the ratios of pairs and its confidence interval, such as `0.410 (0.400 to 0.430)`.
pub fn ratios(ours: &[f64], theirs: &[f64]) -> String {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
    let Interval { median, low, high, .. } =
        median_interval(&ratios).expect("at least one pair was measured");
    format!("{median:.3} ({low:.3} to {high:.3})")
}

pub fn median(values: &[f64]) -> f64 {
    median_interval(values).expect("at least one value was measured").median
}
