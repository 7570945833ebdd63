//! The part of the contract about logs and pages of tables.

use crate::{
    read,
    support::{P, Q, association, batch, change, each, lead, list, object, part, twin::trim_before, write},
};
use kith_database::{CommitError, DatabaseError, LogError, Trim};
use kith_live::{AssociationKey, Batch, ListKey, LoggedChange, Object, RowAnswer, RowQuery, RowWrite};
use kith_types::{ErrorCode, LogPoint, PartitionId, Position};

#[tokio::test]
async fn a_log_is_read_on_from_where_its_reader_is() {
    each(|database| async move {
        let put = |id| change(vec![RowWrite::PutObject(object(id, "here"))]);
        let start = lead(&*database, P, 1).await;
        let parts = vec![part(P, start, vec![put(1), LoggedChange::default(), put(3)])];
        database.commit(Batch { parts, ..Default::default() }).await.expect("nobody else writes");
        write(&*database, P, lead(&*database, P, 4).await, put(4).rows).await;
        let end = lead(&*database, P, 6).await;
        assert_eq!(end, LogPoint::new(6, 4));

        let all = database.changes(P, LogPoint::default(), usize::MAX).await.expect("the log reaches back");
        assert_eq!(all.end, end);
        let places: Vec<_> = all.changes.iter().map(|entry| entry.at).collect();
        let expected = [(1, 1), (1, 2), (1, 3), (4, 4)].map(|(term, position)| LogPoint::new(term, position));
        assert_eq!(places, expected);
        assert_eq!(all.changes[2].change, put(3).change);
        let bytes = all.changes[0].change.to_bytes().len();
        for (bytes_max, count) in [(0, 1), (bytes, 1), (3 * bytes, 3)] {
            let some = database.changes(P, start, bytes_max).await.expect("the log reaches back");
            assert_eq!((some.changes.len(), some.end), (count, end), "{bytes_max} bytes");
        }
        for (term, position, count) in [(1, 0, 4), (1, 2, 2), (1, 3, 1), (4, 3, 1), (4, 4, 0), (6, 4, 0)] {
            let rest = database.changes(P, LogPoint::new(term, position), usize::MAX).await;
            assert_eq!(
                rest.expect("the point is in the log").changes,
                all.changes[4 - count..],
                "{term} {position}"
            );
        }
        for (term, position) in [(1, 4), (4, 2), (4, 5), (6, 3), (6, 5), (5, 4), (7, 4), (0, 1)] {
            let lost = LogPoint::new(term, position);
            let error = database.changes(P, lost, usize::MAX).await.expect_err("the point is not in the log");
            assert_eq!(error, LogError::HistoryLost { partition: P, point: lost, end });
            assert_eq!(error.code(), ErrorCode::HistoryLost);
        }
    })
    .await;
}

#[tokio::test]
async fn a_transaction_may_require_that_other_logs_contain_places() {
    each(|database| async move {
        let put = |id| vec![RowWrite::PutObject(object(id, "here"))];
        let one = write(&*database, P, lead(&*database, P, 1).await, put(1)).await;
        write(&*database, P, lead(&*database, P, 4).await, put(2)).await;
        let (end, mut q) = (lead(&*database, P, 6).await, lead(&*database, Q, 1).await);
        let required = |expected, requires| Batch { requires, ..batch(Q, expected, put(3)) };
        for (term, position) in [(1, 2), (4, 0), (4, 3), (6, 1), (6, 3), (5, 2), (7, 2), (0, 1)] {
            let point = LogPoint::new(term, position);
            let refused = database.commit(required(q, vec![(P, one), (P, point)])).await;
            assert_eq!(refused, Err(CommitError::Lacks { partition: P, point, end }));
            assert_eq!(refused.expect_err("a place is missing").code(), ErrorCode::HistoryLost);
        }
        assert_eq!(database.points(vec![P, Q]).await, Ok(vec![end, q]), "nothing was written");
        assert_eq!(database.trim(P, trim_before(3)).await.map(|it| it.changes), Ok(2));
        let contained = [(0, 0), (1, 0), (1, 1), (4, 1), (4, 2), (6, 2)];
        let contained = contained.map(|(term, position)| (P, LogPoint::new(term, position)));
        database.commit(required(q, contained.to_vec())).await.expect("the log has all of them");
        q.position = q.position.next();
        assert_eq!(database.points(vec![P, Q]).await, Ok(vec![end, q]));
        let none = (PartitionId(4), LogPoint::default());
        let refused = database.commit(required(q, vec![none])).await;
        assert!(
            matches!(refused, Err(CommitError::NotWritten(DatabaseError::Invalid { .. }))),
            "{refused:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_trimmed_log_says_where_it_begins() {
    each(|database| async move {
        let mut end = lead(&*database, P, 1).await;
        for id in 1..=5 {
            end = write(&*database, P, end, vec![RowWrite::PutObject(object(id, ""))]).await;
        }
        let young = Trim { changes_before: Position(9), ..Default::default() };
        assert_eq!(database.trim(P, young).await.map(|it| it.changes), Ok(0), "all were written just now");
        assert_eq!(database.trim(P, trim_before(3)).await.map(|it| it.changes), Ok(2));
        let error =
            database.changes(P, LogPoint::new(1, 1), usize::MAX).await.expect_err("position 2 is gone");
        let trimmed = |position, first| {
            let after = LogPoint::new(1, position);
            LogError::Trimmed { partition: P, after, first: Position(first) }
        };
        assert_eq!(error, trimmed(1, 3));
        assert_eq!(error.code(), ErrorCode::LogTrimmed);
        let rest = database.changes(P, LogPoint::new(1, 2), usize::MAX).await.expect("position 3 exists");
        assert_eq!(rest.changes.len(), 3);
        assert_eq!(database.trim(P, trim_before(u64::MAX)).await.map(|it| it.changes), Ok(3));
        let error = database.changes(P, LogPoint::new(1, 4), usize::MAX).await;
        assert_eq!(error, Err(trimmed(4, 6)));
        let none = database.changes(P, end, usize::MAX).await.expect("nothing follows");
        assert_eq!((none.changes.len(), none.end), (0, end));
        assert_eq!(
            read(&*database, vec![RowQuery::Object(1)]).await,
            [RowAnswer::Object(Some(object(1, "")))]
        );
    })
    .await;
}

#[tokio::test]
async fn scans_return_every_row_once_in_the_order_of_keys() {
    each(|database| async move {
        let ids = [3, 0, u64::MAX, 1 << 63, 7];
        let mut rows: Vec<_> = ids.iter().map(|id| RowWrite::PutObject(object(*id, ""))).collect();
        for id1 in ids {
            rows.extend(
                [9, 1, u64::MAX].map(|id2| RowWrite::PutAssociation(list(id1), association(id2, id2))),
            );
        }
        let end = write(&*database, P, lead(&*database, P, 1).await, rows).await;
        for limit in [1, 2, 4, 99] {
            let (mut objects, mut associations) = (Vec::new(), Vec::new());
            loop {
                let after = objects.last().map(|it: &Object| it.id);
                let page = database.scan_objects(P, after, limit).await.expect("the read succeeds");
                assert_eq!(page.at, end);
                let is_last = page.objects.len() < limit as usize;
                objects.extend(page.objects);
                if is_last {
                    break;
                }
            }
            loop {
                let after = associations.last().map(|(list, id2): &(ListKey, u64)| list.to(*id2));
                let page = database.scan_associations(P, after, limit).await.expect("the read succeeds");
                let is_last = page.associations.len() < limit as usize;
                associations.extend(page.associations.into_iter().map(|(list, it)| (list, it.id2)));
                if is_last {
                    break;
                }
            }
            let found: Vec<_> = objects.iter().map(|it| it.id).collect();
            assert_eq!(found, [0, 3, 7, 1 << 63, u64::MAX]);
            let keys: Vec<AssociationKey> = associations.iter().map(|(list, id2)| list.to(*id2)).collect();
            assert!(keys.len() == 15 && keys.is_sorted(), "{keys:?}");
        }
        let other = database.scan_objects(Q, None, 9).await.expect("the read succeeds");
        assert_eq!((other.at, other.objects.len()), (LogPoint::default(), 0));
    })
    .await;
}
