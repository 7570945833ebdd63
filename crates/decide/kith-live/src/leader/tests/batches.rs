//! Tests of the size of transactions.

use super::client::State;
use super::scenes::{add, begun};
use super::world::{PendingTask, World};
use super::*;
use crate::leader::limits::BATCH_BYTES_MAX;
use crate::leader::share::row_bytes;
use crate::{
    Batch, BatchPart, CommitResult, CompletedWrite, Data, Edge, EdgeContent, Event, Guards, Intent, ListKey,
    LoggedChange, Mutation, Pair, RowWrite, Write, fixture::FRIEND,
};
use kith_types::{LogPoint, PartitionId};

/// The maximum size of an association's record.
const FIELDS_BYTES: usize = 64 << 10;
/// The number of intents. Together they are larger than a transaction may be.
const INTENTS: u64 = 200;

/// Returns an intent that makes two objects friends, with large fields.
fn intent(low: u64, high: u64, stamp: LogPoint) -> Intent {
    let key = |id1, id2| ListKey { id1, kind: FRIEND }.to(id2);
    let data = Data { schema: 0, bytes: vec![0; FIELDS_BYTES].into() };
    let content = Some(EdgeContent { time: 1, data });
    Intent {
        pair: Pair::of(low, high).unwrap(),
        stamp,
        edges: vec![Edge { forward: key(low, high), inverse: key(high, low), content }],
        done: CompletedWrite { id: low, version: stamp.position.0, existed: false },
        name: None,
    }
}

/// Stores intents for many pairs of partitions 0 and 1, as an earlier leader of partition 0 would have begun them.
fn begin_pairs(world: &mut World) {
    let [mut low, high] = [0, 1].map(|partition| ids_in(PartitionId(partition), world.twin.count));
    let low = low.next().unwrap();
    let expected = world.twin.end(PartitionId(0));
    let begun = high.filter(|high| low < *high).zip(1..=INTENTS).map(|(high, index)| {
        let stamp = LogPoint::new(expected.term.0, expected.position.0 + index);
        LoggedChange { rows: vec![RowWrite::PutIntent(intent(low, high, stamp))], ..Default::default() }
    });
    let part = BatchPart { partition: PartitionId(0), expected, changes: begun.collect() };
    world.twin.commit(&Batch { parts: vec![part], requires: Vec::new() }).unwrap();
}

fn bytes(batch: &Batch) -> usize {
    let changes = batch.parts.iter().flat_map(|part| &part.changes);
    changes.flat_map(|change| &change.rows).map(row_bytes).sum()
}

#[test]
fn deliveries_and_completions_that_are_too_large_together_take_several_transactions() {
    let mut world = begun(Guards::default());
    begin_pairs(&mut world);
    world.elect(PartitionId(0), 2);
    // The new leader delivers all intents at once. All but the first therefore wait for a transaction together, and so do
    // the answers.
    let mut commits = 0;
    while let Some(pending) = world.take(|_| true) {
        if let PendingTask::Commit { batch, .. } = &pending {
            commits += 1;
            assert!(bytes(batch) <= BATCH_BYTES_MAX + FIELDS_BYTES, "{} bytes", bytes(batch));
        }
        world.happen(pending);
    }
    assert_eq!(world.twin.faults, [""; 0]);
    assert_eq!(world.twin.open_intents(), 0);
    assert_eq!(world.twin.associations().len(), 2 * INTENTS as usize);
    assert!(commits < 20, "{commits} transactions");
}

/// A size between that of the record of an association of the fixture, and that of an object.
const MOST: usize = 12;

/// Returns a write of a new object.
fn add_object(id: u64) -> Write {
    let mutation = Mutation::AddObject {
        kind: "account".to_owned(),
        data: None,
        id: Some(id),
        near: None,
        text_id: None,
    };
    Write { mutation, conditions: Default::default(), write_id: None }
}

/// Runs everything that waits, in a database that accepts values of at most `most` bytes. If `is_limit_known`, the database
/// reports this limit. Returns the number of transactions that it refused.
fn run_with(world: &mut World, most: usize, is_limit_known: bool) -> usize {
    let mut refused = 0;
    while let Some(pending) = world.take(|_| true) {
        let longest = |batch: &Batch| {
            let changes = batch.parts.iter().flat_map(|part| &part.changes);
            let rows = changes.flat_map(|change| &change.rows);
            rows.map(|row| row_bytes(row) - size_of::<RowWrite>()).max().unwrap_or_default()
        };
        match pending {
            PendingTask::Commit { node, commit, batch } if most < longest(&batch) => {
                refused += 1;
                let value_max = is_limit_known.then_some(most as u64);
                let result = CommitResult::TooLarge { value_max };
                world.tell(node, Event::Committed { commit, result });
            }
            other => world.happen(other),
        }
    }
    refused
}

#[test]
fn only_writes_with_values_that_the_database_does_not_accept_are_refused() {
    for is_limit_known in [true, false] {
        let mut world = begun(Guards::default());
        let ids: Vec<u64> = ids_in(PartitionId(0), world.twin.count).take(4).collect();
        // The first write goes alone, and the others wait for it together.
        let writes = [
            add((ids[0], 1), "likes", 1),
            add((ids[0], 2), "likes", 1),
            add_object(ids[1]),
            add((ids[1], 3), "likes", 1),
            add_object(ids[2]),
            add((ids[3], 4), "likes", 1),
        ];
        let sent = writes.map(|write| world.submit(0, write));
        assert_eq!(
            run_with(&mut world, MOST, is_limit_known),
            1,
            "both objects are refused at once; limit known: {is_limit_known}"
        );
        let failed = sent.map(|sent| world.client.operations[sent].state == State::Failed);
        assert_eq!(failed, [false, false, true, false, true, false], "limit known: {is_limit_known}");
        assert_eq!((world.twin.objects().len(), world.twin.associations().len()), (0, 4));
        let next = world.submit(0, add((ids[0], 5), "likes", 1));
        run_with(&mut world, MOST, is_limit_known);
        assert_eq!(world.client.operations[next].state, State::Done(false), "the leader goes on at once");
        assert_eq!(world.verdict_now(), [""; 0]);
    }
}
