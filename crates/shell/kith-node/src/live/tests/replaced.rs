//! The database of a graph is replaced by an older copy of itself while a node reads.

use crate::live::{
    graph::{LiveGraph, LiveGraphParts},
    partitions::HeldPartitions,
};
use kith_cache::live::LiveCacheOptions;
use kith_database::{BeginTerm, Database, GraphIdentity, SqliteDatabase, SqliteOptions};
use kith_live::{
    Batch, BatchPart, Change, Effect, GraphTypes, LoggedChange, Object, RowWrite, Ticket, TypeId,
};
use kith_operators::{Operator, Value};
use kith_query::convert::operator_to_wire;
use kith_types::{ErrorCode, LogPoint, NodeId, PartitionCount, PartitionId, Term};
use kith_wire::v1;
use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(super) const P: PartitionId = PartitionId(0);

/// Creates a database whose log has the addition of an object in one term, and continues in another term. Returns it with
/// the point of the addition.
async fn database(folder: &Path, id: u64, (term, next): (u64, u64)) -> (Arc<dyn Database>, LogPoint) {
    let identity = GraphIdentity { graph: 7, partitions: PartitionCount::new(1).unwrap() };
    let file = folder.join(format!("{id}.sqlite"));
    let database = SqliteDatabase::create(&file, identity, SqliteOptions::default()).unwrap();
    let begin = |term| BeginTerm { partition: P, term: Term(term), leader: 1 };
    let expected = database.begin_term(begin(term)).await.unwrap();
    let at = LogPoint { position: expected.position.next(), ..expected };
    let object = Object { id, kind: TypeId(1), stamp: at, data: Default::default() };
    let change = Change { effects: vec![Effect::Object(object.clone())] };
    let changes = vec![LoggedChange { change, rows: vec![RowWrite::PutObject(object)] }];
    let parts = vec![BatchPart { partition: P, expected, changes }];
    database.commit(Batch { parts, ..Default::default() }).await.unwrap();
    database.begin_term(begin(next)).await.unwrap();
    (Arc::new(database), at)
}

/// A graph over a database, whose cache stays fresh.
pub(super) fn graph(database: Arc<dyn Database>) -> LiveGraph {
    graph_of(database, held())
}

fn graph_of(database: Arc<dyn Database>, partitions: Arc<HeldPartitions>) -> LiveGraph {
    let types = GraphTypes::new(7, &"[object.person]\n[association.follows]".parse().unwrap()).unwrap();
    graph_from(&Arc::new(types), database, partitions)
}

/// As [`graph`], with other types.
pub(super) fn graph_with(types: &Arc<GraphTypes>, database: Arc<dyn Database>) -> LiveGraph {
    graph_from(types, database, held())
}

fn graph_from(
    types: &Arc<GraphTypes>,
    database: Arc<dyn Database>,
    partitions: Arc<HeldPartitions>,
) -> LiveGraph {
    let parts = LiveGraphParts {
        name: "social".to_owned(),
        node: NodeId(0),
        count: PartitionCount::new(1).unwrap(),
        types: Arc::clone(types),
        database,
        partitions,
    };
    LiveGraph::new(parts, mpsc::unbounded_channel().0, CancellationToken::new())
}

/// Returns held partitions whose cache stays fresh even on a slow machine.
fn held() -> Arc<HeldPartitions> {
    let options = LiveCacheOptions { stale_max: Duration::from_secs(3_600), ..Default::default() };
    let held = HeldPartitions::new(options);
    held.hold(&BTreeSet::from([P]));
    Arc::new(held)
}

/// Returns a request for all members of the graph, with the ticket of a write.
fn members(written: LogPoint) -> v1::EvaluateRequest {
    members_with(&[written])
}

/// The same with the tickets of several writes.
fn members_with(written: &[LogPoint]) -> v1::EvaluateRequest {
    let mut ticket = Ticket::new(7);
    written.iter().for_each(|point| ticket.require(P, *point));
    let header = v1::RequestHeader { ticket: ticket.to_bytes().into(), ..Default::default() };
    v1::EvaluateRequest {
        header: Some(header),
        name: "social".to_owned(),
        partitions: vec![P.0],
        plan: Some(operator_to_wire(&Operator::ALL_MEMBERS)),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_later_write_does_not_hide_that_an_earlier_one_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (_, lost) = database(folder.path(), 1, (1, 2)).await;
    let (copy, written) = database(folder.path(), 2, (3, 4)).await;
    let graph = Arc::new(graph(copy));
    graph.list_builder().build(P).await.unwrap_or_else(|_| panic!("nothing else happens"));
    let shown = graph.evaluate(&members_with(&[written])).await.unwrap();
    assert_eq!(shown.value, Value::Set(vec![2]));
    for points in [[lost, written], [written, lost]] {
        let error = graph.evaluate(&members_with(&points)).await.err().expect("the earlier write is lost");
        assert_eq!(kith_wire::code_of(&error), ErrorCode::HistoryLost);
    }
    // The start of the next term is later, and the write before it is still there.
    let next = LogPoint::new(4, written.position.0);
    let shown = graph.evaluate(&members_with(&[written, next])).await.unwrap();
    assert_eq!(shown.value, Value::Set(vec![2]));
}

#[tokio::test]
async fn lists_of_an_older_copy_of_the_database_do_not_count_as_showing_a_lost_write() {
    let folder = tempfile::tempdir().unwrap();
    let (first, written) = database(folder.path(), 1, (1, 2)).await;
    let (copy, _) = database(folder.path(), 2, (3, 4)).await;
    let partitions = held();
    let graph = graph_of(first, Arc::clone(&partitions));
    graph.list_builder().build(P).await.unwrap_or_else(|_| panic!("nothing else happens"));
    let shown = graph.evaluate(&members(written)).await.unwrap();
    assert_eq!(shown.value, Value::Set(vec![1]));
    graph.freshener.freshen(vec![P]).await.unwrap();
    // The cache is fresh, and has found the write in the log. The lists are then built again from the copy.
    let graph = graph_of(copy, partitions);
    graph.list_builder().build(P).await.unwrap_or_else(|_| panic!("nothing else happens"));
    let error = graph.evaluate(&members(written)).await.err().expect("the write is lost");
    assert_eq!(kith_wire::code_of(&error), ErrorCode::HistoryLost);
}
