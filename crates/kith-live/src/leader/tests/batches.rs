//! Tests of the size of transactions.

use super::scenes::begun;
use super::world::{Pending, World};
use super::*;
use crate::leader::limits::BATCH_BYTES_MAX;
use crate::leader::share::row_bytes;
use crate::{
    Batch, BatchPart, Data, Done, Edge, EdgeContent, Guards, Intent, ListKey, LoggedChange, Pair, RowWrite,
    fixture::FRIEND,
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
        done: Done { id: low, version: stamp.position.0, existed: false },
        name: None,
    }
}

/// Stores intents for many pairs of partitions 0 and 1, as an earlier leader of partition 0 would have begun them.
fn begin_pairs(world: &mut World) {
    let [mut low, high] = [0, 1].map(|partition| ids_in(PartitionId(partition), world.twin.count));
    let low = low.next().unwrap();
    let expected = world.twin.end(PartitionId(0));
    let begun = high.filter(|high| low < *high).zip(1..=INTENTS).map(|(high, place)| {
        let stamp = LogPoint::new(expected.term.0, expected.position.0 + place);
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
        if let Pending::Commit { batch, .. } = &pending {
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
