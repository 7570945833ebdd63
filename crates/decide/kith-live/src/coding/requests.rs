//! The encodings of requests of leaders and replicas to a database in another process, and of the replies
//! (`docs/formats/change.md`). Both sides check what they receive, because the peer may be the wrong process.

use super::{
    GarbledBytes, Rest, Taken, Unreadable, begun, put_association, put_bytes, put_key, put_list, put_many,
    put_object, put_optional, put_pair, put_point, put_write_id, take_pair, take_write_id, whole,
};
use crate::{
    Association, Batch, BatchPart, Change, IndexEntry, IndexId, Intent, ListKey, ListPlace, LoggedChange,
    Object, RecordedOutcome, RowAnswer, RowQuery, RowWrite, RowsAt, TypeId,
};
use kith_types::{PartitionId, delta::put_varint};

impl Batch {
    /// Encodes the batch for the request that commits it.
    pub fn to_bytes(&self) -> Vec<u8> {
        begun(|out| {
            put_many(out, &self.parts, |out, part| part.put(out));
            put_many(out, &self.requires, |out, (partition, point)| {
                put_partition(out, *partition);
                put_point(out, *point);
            });
        })
    }

    /// Decodes a batch that [`Batch::to_bytes`] encoded.
    ///
    /// # Errors
    /// [`GarbledBytes`] if the bytes are damaged, or were written by a later release.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, GarbledBytes> {
        let required = |rest: &mut Rest<'_>| Ok((take_partition(rest)?, rest.point()?));
        whole("a transaction", bytes, |rest| {
            Ok(Self { parts: rest.many(BatchPart::take)?, requires: rest.many(required)? })
        })
    }
}

impl BatchPart {
    fn put(&self, out: &mut Vec<u8>) {
        put_partition(out, self.partition);
        put_point(out, self.expected);
        put_many(out, &self.changes, |out, logged| {
            logged.change.put(out);
            put_many(out, &logged.rows, |out, row| row.put(out));
        });
    }

    fn take(rest: &mut Rest<'_>) -> Taken<Self> {
        let logged = |rest: &mut Rest<'_>| {
            Ok(LoggedChange { change: Change::take(rest)?, rows: rest.many(RowWrite::take)? })
        };
        Ok(Self { partition: take_partition(rest)?, expected: rest.point()?, changes: rest.many(logged)? })
    }
}

impl RowWrite {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            RowWrite::PutObject(object) => {
                put_varint(out, 0);
                put_object(out, object);
            }
            RowWrite::DeleteObject(id) => {
                put_varint(out, 1);
                put_varint(out, *id);
            }
            RowWrite::PutAssociation(list, association) => {
                put_varint(out, 2);
                put_list(out, *list);
                put_association(out, association);
            }
            RowWrite::DeleteAssociation(key) => {
                put_varint(out, 3);
                put_key(out, *key);
            }
            RowWrite::SetCount(list, count) => {
                put_varint(out, 4);
                put_list(out, *list);
                put_varint(out, *count);
            }
            RowWrite::PutIntent(intent) => {
                put_varint(out, 5);
                intent.put(out);
            }
            RowWrite::DeleteIntent(stamp) => {
                put_varint(out, 6);
                put_point(out, *stamp);
            }
            RowWrite::PutPairStamp(pair, stamp) => {
                put_varint(out, 7);
                put_pair(out, *pair);
                put_point(out, *stamp);
            }
            RowWrite::DropPairStamps { from, before } => {
                put_varint(out, 8);
                put_partition(out, *from);
                put_point(out, *before);
            }
            RowWrite::SetFloor { from, before } => {
                put_varint(out, 9);
                put_partition(out, *from);
                put_point(out, *before);
            }
            RowWrite::PutOutcome(id, outcome) => {
                put_varint(out, 10);
                put_write_id(out, id);
                outcome.put(out);
            }
            RowWrite::PutEntry(entry) => {
                put_varint(out, 11);
                put_entry(out, entry);
            }
            RowWrite::DeleteEntry(entry) => {
                put_varint(out, 12);
                put_entry(out, entry);
            }
        }
    }

    fn take(rest: &mut Rest<'_>) -> Taken<Self> {
        Ok(match rest.number()? {
            0 => RowWrite::PutObject(rest.object()?),
            1 => RowWrite::DeleteObject(rest.number()?),
            2 => RowWrite::PutAssociation(rest.list()?, rest.association()?),
            3 => RowWrite::DeleteAssociation(rest.key()?),
            4 => RowWrite::SetCount(rest.list()?, rest.number()?),
            5 => RowWrite::PutIntent(Intent::take(rest)?),
            6 => RowWrite::DeleteIntent(rest.point()?),
            7 => RowWrite::PutPairStamp(take_pair(rest)?, rest.point()?),
            8 => RowWrite::DropPairStamps { from: take_partition(rest)?, before: rest.point()? },
            9 => RowWrite::SetFloor { from: take_partition(rest)?, before: rest.point()? },
            10 => RowWrite::PutOutcome(take_write_id(rest)?, RecordedOutcome::take(rest)?),
            11 => RowWrite::PutEntry(take_entry(rest)?),
            12 => RowWrite::DeleteEntry(take_entry(rest)?),
            _ => return Err(Unreadable),
        })
    }
}

/// Encodes queries for the request that reads rows.
pub fn queries_to_bytes(queries: &[RowQuery]) -> Vec<u8> {
    begun(|out| put_many(out, queries, |out, query| query.put(out)))
}

/// Decodes queries that [`queries_to_bytes`] encoded.
///
/// # Errors
/// [`GarbledBytes`] if the bytes are damaged, or were written by a later release.
pub fn queries_from_bytes(bytes: &[u8]) -> Result<Vec<RowQuery>, GarbledBytes> {
    whole("queries of rows", bytes, |rest| rest.many(RowQuery::take))
}

impl RowQuery {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            RowQuery::Object(id) => {
                put_varint(out, 0);
                put_varint(out, *id);
            }
            RowQuery::Association(key) => {
                put_varint(out, 1);
                put_key(out, *key);
            }
            RowQuery::Count(list) => {
                put_varint(out, 2);
                put_list(out, *list);
            }
            RowQuery::List { list, after, skip, limit } => {
                put_varint(out, 3);
                put_list(out, *list);
                put_optional(out, *after, |out, position| {
                    put_varint(out, position.time);
                    put_varint(out, position.id2);
                });
                put_varint(out, u64::from(*skip));
                put_varint(out, u64::from(*limit));
            }
            RowQuery::Intents => put_varint(out, 4),
            RowQuery::PairStamp(pair) => {
                put_varint(out, 5);
                put_pair(out, *pair);
            }
            RowQuery::Floor(ordered_by) => {
                put_varint(out, 6);
                put_partition(out, *ordered_by);
            }
            RowQuery::Outcome(id) => {
                put_varint(out, 7);
                put_write_id(out, id);
            }
            RowQuery::Entries { index, key, after, limit } => {
                put_varint(out, 8);
                put_varint(out, index.0.into());
                put_bytes(out, key);
                put_optional(out, *after, put_varint);
                put_varint(out, u64::from(*limit));
            }
            RowQuery::ObjectCount(kinds) => {
                put_varint(out, 9);
                put_many(out, kinds, |out, kind| put_varint(out, kind.0.into()));
            }
            RowQuery::AssociationCount { kinds, ascending } => {
                put_varint(out, 10);
                put_many(out, kinds, |out, kind| put_varint(out, kind.0.into()));
                put_varint(out, u64::from(*ascending));
            }
        }
    }

    fn take(rest: &mut Rest<'_>) -> Taken<Self> {
        let position = |rest: &mut Rest<'_>| Ok(ListPlace { time: rest.number()?, id2: rest.number()? });
        Ok(match rest.number()? {
            0 => RowQuery::Object(rest.number()?),
            1 => RowQuery::Association(rest.key()?),
            2 => RowQuery::Count(rest.list()?),
            3 => RowQuery::List {
                list: rest.list()?,
                after: rest.optional(position)?,
                skip: rest.small()?,
                limit: rest.small()?,
            },
            4 => RowQuery::Intents,
            5 => RowQuery::PairStamp(take_pair(rest)?),
            6 => RowQuery::Floor(take_partition(rest)?),
            7 => RowQuery::Outcome(take_write_id(rest)?),
            8 => RowQuery::Entries {
                index: IndexId(rest.small()?),
                key: rest.bytes()?.into(),
                after: rest.optional(Rest::number)?,
                limit: rest.small()?,
            },
            9 => RowQuery::ObjectCount(rest.many(take_type)?),
            10 => RowQuery::AssociationCount { kinds: rest.many(take_type)?, ascending: rest.flag()? },
            _ => return Err(Unreadable),
        })
    }
}

impl RowsAt {
    /// Encodes the rows for the reply to queries.
    pub fn to_bytes(&self) -> Vec<u8> {
        begun(|out| {
            put_point(out, self.at);
            put_many(out, &self.answers, |out, answer| answer.put(out));
        })
    }

    /// Decodes rows that [`RowsAt::to_bytes`] encoded.
    ///
    /// # Errors
    /// [`GarbledBytes`] if the bytes are damaged, or were written by a later release.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, GarbledBytes> {
        let take = |rest: &mut Rest<'_>| Ok(Self { at: rest.point()?, answers: rest.many(RowAnswer::take)? });
        whole("rows", bytes, take)
    }
}

impl RowAnswer {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            RowAnswer::Object(object) => {
                put_varint(out, 0);
                put_optional(out, object.as_ref(), put_object);
            }
            RowAnswer::Association(association) => {
                put_varint(out, 1);
                put_optional(out, association.as_ref(), put_association);
            }
            RowAnswer::Count(count) => {
                put_varint(out, 2);
                put_varint(out, *count);
            }
            RowAnswer::List(associations) => {
                put_varint(out, 3);
                put_many(out, associations, put_association);
            }
            RowAnswer::Intents(intents) => {
                put_varint(out, 4);
                put_many(out, intents, |out, intent| intent.put(out));
            }
            RowAnswer::Point(point) => {
                put_varint(out, 5);
                put_point(out, *point);
            }
            RowAnswer::Outcome(outcome) => {
                put_varint(out, 6);
                put_optional(out, outcome.as_ref(), |out, outcome| outcome.put(out));
            }
            RowAnswer::Ids(ids) => {
                put_varint(out, 7);
                put_many(out, ids, |out, id| put_varint(out, *id));
            }
        }
    }

    fn take(rest: &mut Rest<'_>) -> Taken<Self> {
        Ok(match rest.number()? {
            0 => RowAnswer::Object(rest.optional(Rest::object)?),
            1 => RowAnswer::Association(rest.optional(Rest::association)?),
            2 => RowAnswer::Count(rest.number()?),
            3 => RowAnswer::List(rest.many(Rest::association)?),
            4 => RowAnswer::Intents(rest.many(Intent::take)?),
            5 => RowAnswer::Point(rest.point()?),
            6 => RowAnswer::Outcome(rest.optional(RecordedOutcome::take)?),
            7 => RowAnswer::Ids(rest.many(Rest::number)?),
            _ => return Err(Unreadable),
        })
    }
}

/// Encodes a page of objects.
pub fn objects_to_bytes(objects: &[Object]) -> Vec<u8> {
    begun(|out| put_many(out, objects, put_object))
}

/// Decodes objects that [`objects_to_bytes`] encoded.
///
/// # Errors
/// [`GarbledBytes`] if the bytes are damaged, or were written by a later release.
pub fn objects_from_bytes(bytes: &[u8]) -> Result<Vec<Object>, GarbledBytes> {
    whole("objects", bytes, |rest| rest.many(Rest::object))
}

/// Encodes a page of associations, each with its list.
pub fn associations_to_bytes(associations: &[(ListKey, Association)]) -> Vec<u8> {
    begun(|out| {
        put_many(out, associations, |out, (list, association)| {
            put_list(out, *list);
            put_association(out, association);
        });
    })
}

/// Decodes associations that [`associations_to_bytes`] encoded, each with its list.
///
/// # Errors
/// [`GarbledBytes`] if the bytes are damaged, or were written by a later release.
pub fn associations_from_bytes(bytes: &[u8]) -> Result<Vec<(ListKey, Association)>, GarbledBytes> {
    whole("associations", bytes, |rest| rest.many(|rest| Ok((rest.list()?, rest.association()?))))
}

fn put_entry(out: &mut Vec<u8>, entry: &IndexEntry) {
    put_varint(out, entry.index.0.into());
    put_bytes(out, &entry.key);
    put_varint(out, entry.id);
    put_varint(out, u64::from(entry.unique));
}

fn take_entry(rest: &mut Rest<'_>) -> Taken<IndexEntry> {
    Ok(IndexEntry {
        index: IndexId(rest.small()?),
        key: rest.bytes()?.into(),
        id: rest.number()?,
        unique: rest.flag()?,
    })
}

fn take_type(rest: &mut Rest<'_>) -> Taken<TypeId> {
    u16::try_from(rest.number()?).map(TypeId).map_err(|_| Unreadable)
}

fn put_partition(out: &mut Vec<u8>, partition: PartitionId) {
    put_varint(out, u64::from(partition.0));
}

fn take_partition(rest: &mut Rest<'_>) -> Taken<PartitionId> {
    Ok(PartitionId(rest.small()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Pair, WriteId,
        coding::tests::{data, effect, intent, list, outcome, point},
    };
    use proptest::{collection::vec, option, prelude::*, sample::Index};

    fn object() -> impl Strategy<Value = Object> {
        (any::<u64>(), any::<u16>(), point(), data()).prop_map(|(id, kind, stamp, data)| Object {
            id,
            kind: TypeId(kind),
            stamp,
            data,
        })
    }

    fn association() -> impl Strategy<Value = Association> {
        (any::<u64>(), any::<u64>(), point(), data()).prop_map(|(id2, time, stamp, data)| Association {
            id2,
            time,
            stamp,
            data,
        })
    }

    fn kind() -> impl Strategy<Value = TypeId> {
        any::<u16>().prop_map(TypeId)
    }

    fn pair() -> impl Strategy<Value = Pair> {
        (any::<u64>(), 1u64..).prop_map(|(low, gap)| Pair::of(low, low ^ gap).expect("the ids differ"))
    }

    fn partition() -> impl Strategy<Value = PartitionId> {
        any::<u32>().prop_map(PartitionId)
    }

    fn write_id() -> impl Strategy<Value = WriteId> {
        "[!-~]{1,64}".prop_map(|text| text.parse().expect("the text is a write id"))
    }

    fn entry() -> impl Strategy<Value = IndexEntry> {
        (any::<u32>(), vec(any::<u8>(), 0..9), any::<u64>(), any::<bool>()).prop_map(
            |(index, key, id, unique)| IndexEntry { index: IndexId(index), key: key.into(), id, unique },
        )
    }

    fn row() -> impl Strategy<Value = RowWrite> {
        prop_oneof![
            object().prop_map(RowWrite::PutObject),
            any::<u64>().prop_map(RowWrite::DeleteObject),
            (list(), association()).prop_map(|(list, it)| RowWrite::PutAssociation(list, it)),
            (list(), any::<u64>()).prop_map(|(list, id2)| RowWrite::DeleteAssociation(list.to(id2))),
            (list(), any::<u64>()).prop_map(|(list, count)| RowWrite::SetCount(list, count)),
            intent().prop_map(RowWrite::PutIntent),
            point().prop_map(RowWrite::DeleteIntent),
            (pair(), point()).prop_map(|(pair, stamp)| RowWrite::PutPairStamp(pair, stamp)),
            (partition(), point()).prop_map(|(from, before)| RowWrite::DropPairStamps { from, before }),
            (partition(), point()).prop_map(|(from, before)| RowWrite::SetFloor { from, before }),
            (write_id(), outcome()).prop_map(|(id, outcome)| RowWrite::PutOutcome(id, outcome)),
            entry().prop_map(RowWrite::PutEntry),
            entry().prop_map(RowWrite::DeleteEntry),
        ]
    }

    fn batch() -> impl Strategy<Value = Batch> {
        let change = (vec(effect(), 0..3), vec(row(), 0..4))
            .prop_map(|(effects, rows)| LoggedChange { change: Change { effects }, rows });
        let part = (partition(), point(), vec(change, 0..3))
            .prop_map(|(partition, expected, changes)| BatchPart { partition, expected, changes });
        let requires = vec((any::<u32>().prop_map(PartitionId), point()), 0..3);
        (vec(part, 0..3), requires).prop_map(|(parts, requires)| Batch { parts, requires })
    }

    fn query() -> impl Strategy<Value = RowQuery> {
        let position = (any::<u64>(), any::<u64>()).prop_map(|(time, id2)| ListPlace { time, id2 });
        prop_oneof![
            any::<u64>().prop_map(RowQuery::Object),
            (list(), any::<u64>()).prop_map(|(list, id2)| RowQuery::Association(list.to(id2))),
            list().prop_map(RowQuery::Count),
            (list(), option::of(position), any::<u32>(), any::<u32>())
                .prop_map(|(list, after, skip, limit)| RowQuery::List { list, after, skip, limit }),
            Just(RowQuery::Intents),
            pair().prop_map(RowQuery::PairStamp),
            partition().prop_map(RowQuery::Floor),
            write_id().prop_map(RowQuery::Outcome),
            (entry(), option::of(any::<u64>()), any::<u32>()).prop_map(|(entry, after, limit)| {
                RowQuery::Entries { index: entry.index, key: entry.key, after, limit }
            }),
            vec(kind(), 0..4).prop_map(RowQuery::ObjectCount),
            (vec(kind(), 0..4), any::<bool>())
                .prop_map(|(kinds, ascending)| RowQuery::AssociationCount { kinds, ascending }),
        ]
    }

    fn answer() -> impl Strategy<Value = RowAnswer> {
        prop_oneof![
            option::of(object()).prop_map(RowAnswer::Object),
            option::of(association()).prop_map(RowAnswer::Association),
            any::<u64>().prop_map(RowAnswer::Count),
            vec(association(), 0..4).prop_map(RowAnswer::List),
            vec(intent(), 0..3).prop_map(RowAnswer::Intents),
            point().prop_map(RowAnswer::Point),
            option::of(outcome()).prop_map(RowAnswer::Outcome),
            vec(any::<u64>(), 0..4).prop_map(RowAnswer::Ids),
        ]
    }

    proptest! {
        #[test]
        fn a_batch_is_read_as_it_was_written(batch in batch(), cut: Index) {
            let bytes = batch.to_bytes();
            prop_assert_eq!(Batch::from_bytes(&bytes), Ok(batch));
            prop_assert!(Batch::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        }

        #[test]
        fn queries_are_read_as_they_were_written(queries in vec(query(), 0..6), cut: Index) {
            let bytes = queries_to_bytes(&queries);
            prop_assert_eq!(queries_from_bytes(&bytes), Ok(queries));
            prop_assert!(queries_from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        }

        #[test]
        fn rows_are_read_as_they_were_written(at in point(), answers in vec(answer(), 0..6), cut: Index) {
            let rows = RowsAt { at, answers };
            let bytes = rows.to_bytes();
            prop_assert_eq!(RowsAt::from_bytes(&bytes), Ok(rows));
            prop_assert!(RowsAt::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        }

        #[test]
        fn pages_are_read_as_they_were_written(
            objects in vec(object(), 0..4),
            associations in vec((list(), association()), 0..4),
            cut: Index,
        ) {
            let bytes = objects_to_bytes(&objects);
            prop_assert_eq!(objects_from_bytes(&bytes), Ok(objects));
            prop_assert!(objects_from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
            let bytes = associations_to_bytes(&associations);
            prop_assert_eq!(associations_from_bytes(&bytes), Ok(associations));
            prop_assert!(associations_from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..64)) {
            let _ = Batch::from_bytes(&bytes);
            let _ = queries_from_bytes(&bytes);
            let _ = RowsAt::from_bytes(&bytes);
            let _ = objects_from_bytes(&bytes);
            let _ = associations_from_bytes(&bytes);
        }
    }
}
