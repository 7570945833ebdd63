//! The encodings of changes, intents and outcomes in a database (`docs/formats/change.md`): varints, and byte strings with
//! their lengths. Each encoding begins with the number of its format. The database is trusted to return the bytes that were
//! stored, but lengths are checked all the same.

mod outcome;
mod requests;

pub use requests::{
    associations_from_bytes, associations_to_bytes, objects_from_bytes, objects_to_bytes, queries_from_bytes,
    queries_to_bytes,
};

use crate::{
    Association, AssociationKey, Change, CompletedWrite, Data, Edge, EdgeContent, Effect, Intent, ListKey,
    Object, Pair, TypeId, WriteId, WriteName,
};
use kith_types::{
    LogPoint,
    delta::{put_varint, take_varint},
};
use thiserror::Error;

/// The number with which all encodings of this release begin.
const FORMAT: u64 = 1;

/// Bytes from a database or a peer cannot be decoded.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the bytes of {what} are damaged, or were written by a later release")]
pub struct GarbledBytes {
    /// The kind of value that the bytes should encode: `a change`, `an intent` and so on.
    pub what: &'static str,
}

type Taken<T> = Result<T, Unreadable>;

/// The bytes end too soon, or a number has no meaning.
struct Unreadable;

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend(bytes);
}

fn put_data(out: &mut Vec<u8>, data: &Data) {
    put_varint(out, u64::from(data.schema));
    put_bytes(out, &data.bytes);
}

fn put_point(out: &mut Vec<u8>, point: LogPoint) {
    put_varint(out, point.term.0);
    put_varint(out, point.position.0);
}

fn put_list(out: &mut Vec<u8>, list: ListKey) {
    put_varint(out, list.id1);
    put_varint(out, u64::from(list.kind.0));
}

fn put_key(out: &mut Vec<u8>, key: AssociationKey) {
    put_list(out, key.list);
    put_varint(out, key.id2);
}

fn put_object(out: &mut Vec<u8>, object: &Object) {
    put_varint(out, object.id);
    put_varint(out, u64::from(object.kind.0));
    put_point(out, object.stamp);
    put_data(out, &object.data);
}

fn put_association(out: &mut Vec<u8>, association: &Association) {
    put_varint(out, association.id2);
    put_varint(out, association.time);
    put_point(out, association.stamp);
    put_data(out, &association.data);
}

/// Writes the number of items, and the items.
fn put_many<T>(out: &mut Vec<u8>, items: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    put_varint(out, items.len() as u64);
    items.iter().for_each(|item| put(out, item));
}

/// The bytes that have not been read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn number(&mut self) -> Taken<u64> {
        take_varint(&mut self.0).map_err(|_| Unreadable)
    }

    fn small<T: TryFrom<u64>>(&mut self) -> Taken<T> {
        T::try_from(self.number()?).map_err(|_| Unreadable)
    }

    fn bytes(&mut self) -> Taken<&'a [u8]> {
        let length = self.small()?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Unreadable)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn data(&mut self) -> Taken<Data> {
        Ok(Data { schema: self.small()?, bytes: self.bytes()?.into() })
    }

    fn point(&mut self) -> Taken<LogPoint> {
        Ok(LogPoint::new(self.number()?, self.number()?))
    }

    fn list(&mut self) -> Taken<ListKey> {
        Ok(ListKey { id1: self.number()?, kind: TypeId(self.small()?) })
    }

    fn key(&mut self) -> Taken<AssociationKey> {
        Ok(self.list()?.to(self.number()?))
    }

    fn object(&mut self) -> Taken<Object> {
        Ok(Object {
            id: self.number()?,
            kind: TypeId(self.small()?),
            stamp: self.point()?,
            data: self.data()?,
        })
    }

    fn association(&mut self) -> Taken<Association> {
        Ok(Association {
            id2: self.number()?,
            time: self.number()?,
            stamp: self.point()?,
            data: self.data()?,
        })
    }

    fn flag(&mut self) -> Taken<bool> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Unreadable),
        }
    }

    /// Reads 0, which means `None`, or 1 and a value.
    fn optional<T>(&mut self, take: impl FnOnce(&mut Self) -> Taken<T>) -> Taken<Option<T>> {
        if self.flag()? { take(self).map(Some) } else { Ok(None) }
    }

    /// Reads the number of items, and the items. Each item must take at least one byte, so a number that is too large is
    /// refused at once.
    fn many<T>(&mut self, take: impl Fn(&mut Self) -> Taken<T>) -> Taken<Vec<T>> {
        let count: usize = self.small()?;
        if self.0.len() < count {
            return Err(Unreadable);
        }
        (0..count).map(|_| take(self)).collect()
    }
}

/// Reads the number of the format, and then a value that takes the rest of `bytes`.
fn whole<'a, T>(
    what: &'static str,
    bytes: &'a [u8],
    take: impl FnOnce(&mut Rest<'a>) -> Taken<T>,
) -> Result<T, GarbledBytes> {
    let mut rest = Rest(bytes);
    let value = match rest.number() {
        Ok(FORMAT) => take(&mut rest),
        _ => Err(Unreadable),
    };
    match value {
        Ok(value) if rest.0.is_empty() => Ok(value),
        _ => Err(GarbledBytes { what }),
    }
}

/// Writes the number of the format, and then a value.
fn begun(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, FORMAT);
    put(&mut out);
    out
}

fn put_optional<T>(out: &mut Vec<u8>, value: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    put_varint(out, u64::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

impl Change {
    /// Encodes the change for the table of changes.
    pub fn to_bytes(&self) -> Vec<u8> {
        begun(|out| self.put(out))
    }

    /// Decodes a change that [`Change::to_bytes`] encoded.
    ///
    /// # Errors
    /// [`GarbledBytes`] if the bytes are damaged, or were written by a later release.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, GarbledBytes> {
        whole("a change", bytes, Self::take)
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_many(out, &self.effects, |out, effect| effect.put(out));
    }

    fn take(rest: &mut Rest<'_>) -> Taken<Self> {
        Ok(Self { effects: rest.many(Effect::take)? })
    }
}

impl Effect {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Effect::Object(object) => {
                put_varint(out, 0);
                put_object(out, object);
            }
            Effect::LargeObject(id) => {
                put_varint(out, 1);
                put_varint(out, *id);
            }
            Effect::NoObject(id) => {
                put_varint(out, 2);
                put_varint(out, *id);
            }
            Effect::Association { list, now, was, count } => {
                put_varint(out, 3);
                put_list(out, *list);
                put_association(out, now);
                put_optional(out, *was, put_varint);
                put_varint(out, *count);
            }
            Effect::NoAssociation { list, id2, was, count } => {
                put_varint(out, 4);
                put_list(out, *list);
                put_varint(out, *id2);
                put_varint(out, *was);
                put_varint(out, *count);
            }
        }
    }

    fn take(rest: &mut Rest<'_>) -> Taken<Self> {
        Ok(match rest.number()? {
            0 => Effect::Object(rest.object()?),
            1 => Effect::LargeObject(rest.number()?),
            2 => Effect::NoObject(rest.number()?),
            3 => Effect::Association {
                list: rest.list()?,
                now: rest.association()?,
                was: rest.optional(Rest::number)?,
                count: rest.number()?,
            },
            4 => Effect::NoAssociation {
                list: rest.list()?,
                id2: rest.number()?,
                was: rest.number()?,
                count: rest.number()?,
            },
            _ => return Err(Unreadable),
        })
    }
}

impl Intent {
    /// Encodes the intent for the table of intents, and for the request that delivers it.
    pub fn to_bytes(&self) -> Vec<u8> {
        begun(|out| self.put(out))
    }

    /// Decodes an intent that [`Intent::to_bytes`] encoded.
    ///
    /// # Errors
    /// [`GarbledBytes`] if the bytes are damaged, or were written by a later release.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, GarbledBytes> {
        whole("an intent", bytes, Self::take)
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_pair(out, self.pair);
        put_point(out, self.stamp);
        put_done(out, self.done);
        put_optional(out, self.name.as_ref(), |out, name| {
            put_write_id(out, &name.id);
            put_varint(out, name.checksum);
        });
        put_many(out, &self.edges, |out, edge| {
            put_key(out, edge.forward);
            put_key(out, edge.inverse);
            put_optional(out, edge.content.as_ref(), |out, content| {
                put_varint(out, content.time);
                put_data(out, &content.data);
            });
        });
    }

    fn take(rest: &mut Rest<'_>) -> Taken<Self> {
        Ok(Self {
            pair: take_pair(rest)?,
            stamp: rest.point()?,
            done: take_done(rest)?,
            name: rest.optional(take_name)?,
            edges: rest.many(take_edge)?,
        })
    }
}

fn put_pair(out: &mut Vec<u8>, pair: Pair) {
    put_varint(out, pair.low());
    put_varint(out, pair.high());
}

fn take_pair(rest: &mut Rest<'_>) -> Taken<Pair> {
    Pair::of(rest.number()?, rest.number()?).ok_or(Unreadable)
}

fn put_write_id(out: &mut Vec<u8>, id: &WriteId) {
    put_bytes(out, id.as_str().as_bytes());
}

fn take_write_id(rest: &mut Rest<'_>) -> Taken<WriteId> {
    let text = std::str::from_utf8(rest.bytes()?).map_err(|_| Unreadable)?;
    text.parse().map_err(|_| Unreadable)
}

fn take_edge(rest: &mut Rest<'_>) -> Taken<Edge> {
    let content = |rest: &mut Rest<'_>| Ok(EdgeContent { time: rest.number()?, data: rest.data()? });
    Ok(Edge { forward: rest.key()?, inverse: rest.key()?, content: rest.optional(content)? })
}

fn take_name(rest: &mut Rest<'_>) -> Taken<WriteName> {
    Ok(WriteName { id: take_write_id(rest)?, checksum: rest.number()? })
}

fn put_done(out: &mut Vec<u8>, done: CompletedWrite) {
    put_varint(out, done.id);
    put_varint(out, done.version);
    put_varint(out, u64::from(done.existed));
}

fn take_done(rest: &mut Rest<'_>) -> Taken<CompletedWrite> {
    Ok(CompletedWrite { id: rest.number()?, version: rest.number()?, existed: rest.flag()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, RecordedOutcome, Refusal};
    use kith_types::PartitionId;
    use proptest::prelude::*;

    pub(super) fn data() -> impl Strategy<Value = Data> {
        (any::<u16>(), proptest::collection::vec(any::<u8>(), 0..9))
            .prop_map(|(schema, bytes)| Data { schema, bytes: bytes.into() })
    }

    pub(super) fn point() -> impl Strategy<Value = LogPoint> {
        (any::<u64>(), any::<u64>()).prop_map(|(term, position)| LogPoint::new(term, position))
    }

    pub(super) fn list() -> impl Strategy<Value = ListKey> {
        (any::<u64>(), any::<u16>()).prop_map(|(id1, kind)| ListKey { id1, kind: TypeId(kind) })
    }

    pub(super) fn effect() -> impl Strategy<Value = Effect> {
        prop_oneof![
            (any::<u64>(), any::<u16>(), point(), data()).prop_map(|(id, kind, stamp, data)| {
                Effect::Object(Object { id, kind: TypeId(kind), stamp, data })
            }),
            any::<u64>().prop_map(Effect::LargeObject),
            any::<u64>().prop_map(Effect::NoObject),
            (list(), any::<u64>(), any::<u64>(), point(), data(), any::<Option<u64>>(), any::<u64>())
                .prop_map(|(list, id2, time, stamp, data, was, count)| Effect::Association {
                    list,
                    now: Association { id2, time, stamp, data },
                    was,
                    count,
                }),
            (list(), any::<u64>(), any::<u64>(), any::<u64>())
                .prop_map(|(list, id2, was, count)| Effect::NoAssociation { list, id2, was, count }),
        ]
    }

    fn done() -> impl Strategy<Value = CompletedWrite> {
        (any::<u64>(), any::<u64>(), any::<bool>()).prop_map(|(id, version, existed)| CompletedWrite {
            id,
            version,
            existed,
        })
    }

    pub(super) fn intent() -> impl Strategy<Value = Intent> {
        let edge = (list(), list(), any::<u64>(), proptest::option::of((any::<u64>(), data()))).prop_map(
            |(forward, inverse, id2, content)| Edge {
                forward: forward.to(id2),
                inverse: inverse.to(forward.id1),
                content: content.map(|(time, data)| EdgeContent { time, data }),
            },
        );
        let name = ("[!-~]{1,64}", any::<u64>()).prop_map(|(text, checksum)| WriteName {
            id: text.parse().expect("the text is a write id"),
            checksum,
        });
        let name = proptest::option::of(name);
        (any::<u64>(), 1u64.., point(), done(), name, proptest::collection::vec(edge, 0..3)).prop_map(
            |(low, gap, stamp, done, name, edges)| Intent {
                pair: Pair::of(low, low ^ gap).expect("the ids differ"),
                stamp,
                edges,
                done,
                name,
            },
        )
    }

    pub(super) fn outcome() -> impl Strategy<Value = RecordedOutcome> {
        let refusal = prop_oneof![
            (any::<u64>(), any::<u64>()).prop_map(|(found, wanted)| Refusal::OtherVersion { found, wanted }),
            Just(Refusal::Absent),
            any::<u64>().prop_map(|version| Refusal::Present { version }),
            any::<u64>().prop_map(|id| Refusal::ObjectExists { id }),
            (".{0,9}", ".{0,9}", any::<u64>()).prop_map(|(field, value, id)| Refusal::UniqueTaken {
                field,
                value,
                id
            }),
        ];
        let outcome = prop_oneof![done().prop_map(Outcome::Done), refusal.prop_map(Outcome::Refused)];
        let elsewhere = proptest::option::of((any::<u32>().prop_map(PartitionId), point()));
        (any::<u64>(), any::<u64>(), outcome, elsewhere)
            .prop_map(|(write, at, outcome, elsewhere)| RecordedOutcome { write, at, outcome, elsewhere })
    }

    proptest! {
        #[test]
        fn a_change_is_read_as_it_was_written(effects in proptest::collection::vec(effect(), 0..4), cut: proptest::sample::Index) {
            let change = Change { effects };
            let bytes = change.to_bytes();
            prop_assert_eq!(Change::from_bytes(&bytes), Ok(change));
            prop_assert!(Change::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        }

        #[test]
        fn an_intent_is_read_as_it_was_written(intent in intent(), cut: proptest::sample::Index) {
            let bytes = intent.to_bytes();
            prop_assert_eq!(Intent::from_bytes(&bytes), Ok(intent));
            prop_assert!(Intent::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        }

        #[test]
        fn an_outcome_is_read_as_it_was_written(outcome in outcome(), cut: proptest::sample::Index) {
            let bytes = outcome.to_bytes();
            prop_assert_eq!(RecordedOutcome::from_bytes(&bytes), Ok(outcome));
            prop_assert!(RecordedOutcome::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Change::from_bytes(&bytes);
            let _ = Intent::from_bytes(&bytes);
            let _ = RecordedOutcome::from_bytes(&bytes);
        }
    }
}
