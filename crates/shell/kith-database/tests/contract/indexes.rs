//! The part of the contract about indexes: entries of partitions, and values that are unique in the whole graph.

use crate::{
    read,
    support::{P, Q, association, batch, change, each, lead, object, part, write},
};
use kith_database::{CommitError, Database, DatabaseError};
use kith_live::{
    Batch, IndexEntry, IndexId, ListKey, Object, RowAnswer, RowQuery, RowWrite, TypeId, UniqueHolder,
};
use kith_types::{ErrorCode, LogPoint, PartitionId};
use std::sync::Arc;

const PLAIN: IndexId = IndexId(1);
const UNIQUE: IndexId = IndexId(u32::MAX);

fn entry(index: IndexId, key: &[u8], id: u64) -> IndexEntry {
    IndexEntry { index, key: key.into(), id, unique: index == UNIQUE }
}

fn put(key: &[u8], id: u64) -> RowWrite {
    RowWrite::PutEntry(entry(UNIQUE, key, id))
}

fn delete(key: &[u8], id: u64) -> RowWrite {
    RowWrite::DeleteEntry(entry(UNIQUE, key, id))
}

fn holder(key: &[u8], id: u64) -> UniqueHolder {
    UniqueHolder { index: UNIQUE, key: key.into(), id }
}

fn entries(index: IndexId, key: &[u8], after: Option<u64>, limit: u32) -> RowQuery {
    RowQuery::Entries { index, key: key.into(), after, limit }
}

fn taken(result: Result<(), CommitError>) -> Vec<UniqueHolder> {
    match result {
        Err(error @ CommitError::Taken { .. }) => {
            assert_eq!(error.code(), ErrorCode::UniqueTaken);
            let CommitError::Taken { holders } = error else { return Vec::new() };
            holders
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_index_has_the_ids_under_a_key_in_their_order() {
    each(|database| async move {
        let (long, zero) = (vec![0xff; 65], [0]);
        let ids = [u64::MAX, 5, 1 << 63, 7];
        let mut rows: Vec<_> = ids.iter().map(|id| RowWrite::PutEntry(entry(PLAIN, b"it's", *id))).collect();
        rows.push(RowWrite::PutEntry(entry(PLAIN, &long, 1)));
        rows.push(RowWrite::PutEntry(entry(PLAIN, &[], 2)));
        rows.push(RowWrite::PutEntry(entry(PLAIN, &zero, 3)));
        rows.push(RowWrite::PutEntry(entry(IndexId(2), b"it's", 9)));
        let end = write(&*database, P, lead(&*database, P, 1).await, rows).await;
        let other = RowWrite::PutEntry(entry(PLAIN, b"it's", 6));
        write(&*database, Q, lead(&*database, Q, 1).await, vec![other]).await;
        let queries = vec![
            entries(PLAIN, b"it's", None, 9),
            entries(PLAIN, b"it's", None, 2),
            entries(PLAIN, b"it's", Some(7), 9),
            entries(PLAIN, b"IT'S", None, 9),
            entries(PLAIN, &long, None, 9),
            entries(PLAIN, &[], None, 9),
            entries(PLAIN, &zero, None, 9),
            entries(IndexId(2), b"it's", None, 9),
            entries(PLAIN, b"it's", Some(u64::MAX), 9),
        ];
        let ids = |ids: &[u64]| RowAnswer::Ids(ids.to_vec());
        let high = [1 << 63, u64::MAX];
        let expected = [
            ids(&[5, 7, high[0], high[1]]),
            ids(&[5, 7]),
            ids(&high),
            ids(&[]),
            ids(&[1]),
            ids(&[2]),
            ids(&[3]),
            ids(&[9]),
            ids(&[]),
        ];
        assert_eq!(read(&*database, queries).await, expected);
        let rows = vec![
            RowWrite::DeleteEntry(entry(PLAIN, b"it's", 5)),
            RowWrite::PutEntry(entry(PLAIN, b"it's", 7)),
            RowWrite::DeleteEntry(entry(PLAIN, b"it's", 1)),
        ];
        write(&*database, P, end, rows).await;
        let rest = vec![entries(PLAIN, b"it's", None, 9)];
        assert_eq!(read(&*database, rest).await, [ids(&[7, high[0], high[1]])]);
    })
    .await;
}

#[tokio::test]
async fn rows_are_counted_by_their_types() {
    each(|database| async move {
        let of = |kind| TypeId(kind);
        let kind = |kind, id: u64| RowWrite::PutObject(Object { kind: of(kind), ..object(id, "") });
        let list = |kind, id1| ListKey { kind: of(kind), id1 };
        let edge = |kind, id1, id2| RowWrite::PutAssociation(list(kind, id1), association(id2, 1));
        let high = 1 << 63;
        let rows = vec![
            kind(1, 1),
            kind(1, u64::MAX),
            kind(2, 3),
            edge(4, 1, 2),
            edge(4, 1, high),
            RowWrite::SetCount(list(4, 1), 2),
            edge(4, high, 7),
            RowWrite::SetCount(list(4, high), 1),
            // From a vertex to itself, and to greater and smaller ids.
            edge(5, 3, 3),
            edge(5, 3, u64::MAX),
            edge(5, u64::MAX, 3),
            edge(5, high, 9),
            RowWrite::SetCount(list(5, 3), u64::from(u32::MAX) + 7),
        ];
        write(&*database, P, lead(&*database, P, 1).await, rows).await;
        write(&*database, Q, lead(&*database, Q, 1).await, vec![kind(1, 6)]).await;
        let objects = |kinds: &[u16]| RowQuery::ObjectCount(kinds.iter().copied().map(TypeId).collect());
        let edges = |kinds: &[u16], ascending| RowQuery::AssociationCount {
            kinds: kinds.iter().copied().map(TypeId).collect(),
            ascending,
        };
        let queries = vec![
            objects(&[]),
            objects(&[1]),
            objects(&[2, 1]),
            objects(&[3]),
            edges(&[4], false),
            edges(&[4, 5], false),
            edges(&[], false),
            edges(&[], true),
            edges(&[4], true),
            edges(&[5], true),
        ];
        let counts = [3, 2, 3, 0, 3, u64::from(u32::MAX) + 10, 0, 0, 2, 2].map(RowAnswer::Count);
        assert_eq!(read(&*database, queries).await, counts);
        let others = database.read(Q, vec![objects(&[]), edges(&[4], false)]).await;
        assert_eq!(others.expect("the read succeeds").answers, [1, 0].map(RowAnswer::Count));
    })
    .await;
}

#[tokio::test]
async fn a_unique_value_is_taken_in_the_whole_graph_until_it_is_given_up() {
    each(|database| async move {
        let (p, q) = (lead(&*database, P, 1).await, lead(&*database, Q, 1).await);
        let p = write(&*database, P, p, vec![put(b"a", 1), put(b"b", 2), put(b"c", u64::MAX)]).await;
        // All values that are taken are named, and nothing of the transaction is written.
        let rows = vec![put(b"c", 3), put(b"d", 4), put(b"a", 5)];
        let refused = taken(database.commit(batch(Q, q, rows)).await);
        assert_eq!(refused, [holder(b"a", 1), holder(b"c", u64::MAX)]);
        let read = database.read(Q, vec![entries(UNIQUE, b"d", None, 9)]).await.expect("the read succeeds");
        assert_eq!((read.at, &read.answers[..]), (q, &[RowAnswer::Ids(vec![])][..]));
        // The end of the log is checked first.
        let early = database.commit(batch(Q, LogPoint::new(1, 9), vec![put(b"a", 5)])).await;
        assert!(matches!(early, Err(CommitError::Moved { .. })), "{early:?}");
        // An object keeps its value, and only its holder gives it up.
        let p = write(&*database, P, p, vec![put(b"a", 1), delete(b"b", 9)]).await;
        assert_eq!(taken(database.commit(batch(Q, q, vec![put(b"b", 4)])).await), [holder(b"b", 2)]);
        let p = write(&*database, P, p, vec![delete(b"a", 1)]).await;
        let q = write(&*database, Q, q, vec![put(b"a", 5)]).await;
        assert_eq!(taken(database.commit(batch(P, p, vec![put(b"a", 1)])).await), [holder(b"a", 5)]);
        // Both partitions in one transaction.
        let parts = vec![
            part(P, p, vec![change(vec![delete(b"b", 2)]), change(vec![put(b"e", 2)])]),
            part(Q, q, vec![change(vec![put(b"f", 7)])]),
        ];
        database.commit(Batch { parts, requires: Vec::new() }).await.expect("all values are free");
        let (p, q) = (LogPoint::new(1, p.position.0 + 2), LogPoint::new(1, q.position.0 + 1));
        let twice =
            vec![part(P, p, vec![change(vec![put(b"g", 1)])]), part(Q, q, vec![change(vec![put(b"g", 2)])])];
        let twice = database.commit(Batch { parts: twice, requires: Vec::new() }).await;
        assert!(matches!(twice, Err(CommitError::NotWritten(DatabaseError::Invalid { .. }))), "{twice:?}");
    })
    .await;
}

/// Commits many transactions of one partition, each with several values that other partitions want too. Returns the number of
/// transactions that took effect. A partition gives up what it has got.
async fn compete(database: Arc<dyn Database>, partition: PartitionId, rounds: u64) -> u64 {
    let mut end = lead(&*database, partition, 1).await;
    let mut done = 0;
    for round in 0..rounds {
        // Each partition begins at another value, so that locks are not asked for in one order by chance.
        let key = |at: u64| [u8::try_from((at * 5 + round + u64::from(partition.0)) % 7).expect("small")];
        let id = (u64::from(partition.0) << 32) + round;
        let rows = (0..3).map(|at| put(&key(at), id)).collect();
        match database.commit(batch(partition, end, rows)).await {
            Ok(()) => {
                end.position = end.position.next();
                done += 1;
                let rows = (0..3).map(|at| delete(&key(at), id)).collect();
                end = write(&*database, partition, end, rows).await;
            }
            Err(CommitError::Taken { holders }) => {
                assert!(
                    holders.iter().all(|holder| holder.id >> 32 != u64::from(partition.0)),
                    "{holders:?}"
                );
            }
            Err(error) => panic!("{error}"),
        }
    }
    done
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn partitions_that_want_the_same_values_at_the_same_time_only_refuse_each_other() {
    each(|database| async move {
        let partitions = (0..4).map(PartitionId);
        let tasks: Vec<_> =
            partitions.map(|partition| tokio::spawn(compete(Arc::clone(&database), partition, 40))).collect();
        let mut done = 0;
        for task in tasks {
            done += task.await.expect("no transaction fails");
        }
        assert!(0 < done);
        // In the end, all values are free again.
        let end = database.points(vec![P]).await.expect("the read succeeds")[0];
        let rows = (0..7).map(|key| put(&[key], 1)).collect();
        write(&*database, P, end, rows).await;
    })
    .await;
}
