//! The expected rows and the expected answers to reads, by a model of TAO's operations without partitions, logs, pairs or
//! faults.

use super::{GRAPH, LOOK, NODES, TIMEOUT, caller::CallerOutcome, cluster::Cluster, rows::check_directions};
use crate::live::{LiveGraph, errors::LiveError, rows::ReadNeed};
use kith_database::Database;
use kith_live::{
    AssociationAnswer, AssociationRead, AssociationsPlan, GraphTypes, ObjectFields, Outcome, Refusal,
    RowAnswer, RowQuery, Select, Ticket, Write,
    testing::{Edge, EdgeName, Model},
};
use kith_types::ErrorCode;
use std::{collections::BTreeMap, sync::Arc, time::Instant};

pub struct Truth {
    model: Model,
    /// The ticket of all acknowledged writes.
    ticket: Ticket,
}

impl Truth {
    pub fn new(types: &GraphTypes) -> Self {
        Self { model: Model::default(), ticket: Ticket::new(types.identity) }
    }

    /// Applies a write to the model, and checks that the caller got the right outcome.
    pub fn take(&mut self, write: &Write, outcome: CallerOutcome) {
        match outcome {
            CallerOutcome::Done(done, ticket) => {
                let expected = self.model.run(write, done.version, 0);
                assert_eq!(Outcome::Done(done), expected, "{write:?}");
                self.ticket.merge(&ticket);
            }
            CallerOutcome::Refused(code) => {
                let expected = match self.model.run(write, 0, 0) {
                    Outcome::Refused(Refusal::ObjectExists { .. }) => Some(ErrorCode::ObjectExists),
                    Outcome::Refused(_) => Some(ErrorCode::ConditionFailed),
                    Outcome::Done(_) => None,
                };
                assert_eq!(Some(code), expected, "{write:?}");
            }
            CallerOutcome::Nothing(_) => {}
        }
    }

    /// Waits until no intent is open. Then checks that the rows are those of the acknowledged writes, and that every node
    /// shows them to reads with the ticket.
    pub async fn check(&self, cluster: &Cluster, ids: (u64, u64), kinds: &[&str]) {
        settle(cluster).await;
        self.check_rows(cluster, ids).await;
        for node in 0..NODES {
            self.check_reads(cluster, node, ids, kinds).await;
        }
    }

    async fn check_rows(&self, cluster: &Cluster, ids: (u64, u64)) {
        let partitions = check_directions(cluster.rows(), &[ids.0, ids.1]).await;
        let types = &cluster.types;
        let objects = partitions.iter().flat_map(|tables| tables.objects.values());
        let objects = objects.map(|object| {
            let data: serde_json::Value = types
                .decode(object.kind, &object.data)
                .expect("it has fields")
                .parse()
                .expect("they are JSON");
            (object.id, (object.stamp.position.0, ["a", "b"].map(|name| data[name].as_i64())))
        });
        assert_eq!(objects.collect::<BTreeMap<_, _>>(), self.model.objects);
        let edges = partitions.iter().flat_map(|tables| &tables.associations);
        let edges = edges.map(|(key, row)| {
            let name = types.associations[&key.list.kind].name.clone();
            ((key.list.id1, name, key.id2), (row.stamp.position.0, row.time))
        });
        let expected = self.model.edges.iter().map(|(name, edge)| (name.clone(), (edge.0, edge.1)));
        assert_eq!(edges.collect::<BTreeMap<_, _>>(), expected.collect());
    }

    async fn check_reads(&self, cluster: &Cluster, node: usize, (id1, id2): (u64, u64), kinds: &[&str]) {
        let need = ReadNeed { after: self.ticket.points.clone(), critical: false };
        let graph = graph_of(cluster, node).await;
        let objects = insist(async || {
            Ok(graph.evaluator.elements.objects(&[id1, id2], &ObjectFields::All, &need).await?.0)
        })
        .await;
        let versions = objects.iter().map(|object| object.as_ref().map(|object| object.version));
        let stored = [id1, id2].map(|id| self.model.objects.get(&id).map(|object| object.0));
        assert_eq!(versions.collect::<Vec<_>>(), stored, "node {node}, objects {id1} and {id2}");
        for (from, to) in [(id1, id2), (id2, id1)] {
            for kind in kinds {
                let name = (from, (*kind).to_owned(), to);
                let expected = self.expected(&name);
                let selects = [
                    Select::Ids { ids: vec![to], high: None, low: None },
                    Select::Times { high: None, low: None, limit: None },
                    Select::Count,
                ];
                for select in selects {
                    let read = AssociationRead {
                        kind: (*kind).to_owned(),
                        select,
                        with_data: false,
                        with_versions: false,
                    };
                    let plan = AssociationsPlan::of(vec![read.clone()]);
                    let answer = insist(async || {
                        Ok(graph.evaluator.elements.associations(&[from], &plan, &need).await?.0)
                    })
                    .await;
                    let shown = match &answer[0][0] {
                        AssociationAnswer::Count(count) => *count == u64::from(expected.is_some()),
                        AssociationAnswer::List { out, .. } => {
                            let times = out.iter().map(|it| (it.id2, it.time));
                            times.eq(expected.iter().map(|edge| (to, edge.1)))
                        }
                    };
                    assert!(shown, "node {node}: {read:?} of {from}, but {expected:?}");
                }
            }
        }
    }

    fn expected(&self, name: &EdgeName) -> Option<Edge> {
        self.model.edges.get(name).copied()
    }
}

async fn graph_of(cluster: &Cluster, node: usize) -> Arc<LiveGraph> {
    let graphs = Arc::clone(&cluster.processes.lock()[node].1);
    let started = Instant::now();
    loop {
        if let Some(graph) = graphs.get(GRAPH) {
            return graph;
        }
        assert!(started.elapsed() < TIMEOUT, "node {node} does not open the graph");
        tokio::time::sleep(LOOK).await;
    }
}

/// Repeats a read until it is answered. Acknowledged writes are never lost, so the error `HistoryLost` fails the test.
async fn insist<T>(read: impl AsyncFn() -> Result<T, LiveError>) -> T {
    let started = Instant::now();
    loop {
        match read().await {
            Ok(answer) => return answer,
            Err(LiveError::HistoryLost) => panic!("a ticket is not honoured"),
            Err(error) => assert!(started.elapsed() < TIMEOUT, "{error}"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn settle(cluster: &Cluster) {
    let started = Instant::now();
    for partition in cluster.count.iter() {
        loop {
            let rows = cluster.database.read(partition, vec![RowQuery::Intents]).await;
            match &rows.expect("it can be read").answers[0] {
                RowAnswer::Intents(intents) if intents.is_empty() => break,
                open => assert!(started.elapsed() < TIMEOUT, "{partition}: {open:?}"),
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
