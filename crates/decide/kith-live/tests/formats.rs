//! Golden bytes of changes, intents, outcomes and tickets; `testdata/formats/README.md` lists them.

// The lint exempts functions that are marked as tests, but not the helpers that they call.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use kith_live::{
    Association, Change, CompletedWrite, Data, Edge, EdgeContent, Effect, Intent, ListKey, Object, Outcome,
    Pair, RecordedOutcome, Refusal, Ticket, TypeId, WriteName,
};
use kith_sim::golden;
use kith_types::{LogPoint, PartitionId};

const FRIEND: TypeId = TypeId(3);

fn data(bytes: &[u8]) -> Data {
    Data { schema: 2, bytes: bytes.into() }
}

fn list(id1: u64) -> ListKey {
    ListKey { id1, kind: FRIEND }
}

fn changes() -> Vec<(String, Change)> {
    let object = Object { id: 300, kind: TypeId(1), stamp: LogPoint::new(4, 1_000), data: data(&[0, 7]) };
    let now =
        Association { id2: 301, time: 1_700_000_000_000, stamp: LogPoint::new(4, 1_001), data: data(&[]) };
    let new = Effect::Association { list: list(300), now: now.clone(), was: None, count: 1 };
    let overwritten = Effect::Association { list: list(300), now, was: Some(128), count: 1 };
    let gone = Effect::NoAssociation { list: list(u64::MAX), id2: 300, was: 128, count: 0 };
    let objects = vec![Effect::Object(object), Effect::LargeObject(301), Effect::NoObject(302)];
    let of = |what: &str, effects| (what.to_owned(), Change { effects });
    vec![
        of("empty change", vec![]),
        of("object written, large object written, object gone", objects),
        of("association added", vec![new]),
        of("association overwritten, another one gone", vec![overwritten, gone]),
    ]
}

fn intents() -> Vec<(String, Intent)> {
    let edge = |kind, content| {
        let row = |id1, id2| ListKey { id1, kind }.to(id2);
        Edge { forward: row(5, 300), inverse: row(300, 5), content }
    };
    let content = EdgeContent { time: 7, data: data(&[9]) };
    let intent = |edges, name: Option<&str>| Intent {
        pair: Pair::of(300, 5).unwrap(),
        stamp: LogPoint::new(4, 1_002),
        edges,
        done: CompletedWrite { id: 300, version: 1_002, existed: true },
        name: name.map(|id| WriteName { id: id.parse().unwrap(), checksum: u64::MAX }),
    };
    let change = vec![edge(FRIEND, None), edge(TypeId(4), Some(content))];
    vec![
        ("intent to delete".to_owned(), intent(vec![edge(FRIEND, None)], None)),
        ("intent to change the type, with a write id".to_owned(), intent(change, Some("order-17"))),
    ]
}

fn outcomes() -> Vec<(String, RecordedOutcome)> {
    let record = |what: &str, outcome, elsewhere| {
        let record =
            RecordedOutcome { write: 0x1234_5678_9abc_def0, at: 1_700_000_000_000, outcome, elsewhere };
        (what.to_owned(), record)
    };
    let refused = |what, refusal| record(what, Outcome::Refused(refusal), None);
    let done = Outcome::Done(CompletedWrite { id: 300, version: 1_000, existed: false });
    vec![
        record("done", done.clone(), None),
        record("done in two partitions", done, Some((PartitionId(1_535), LogPoint::new(3, 77)))),
        refused("refused, other version", Refusal::OtherVersion { found: 9, wanted: 8 }),
        refused("refused, absent", Refusal::Absent),
        refused("refused, present", Refusal::Present { version: 9 }),
        refused("refused, object exists", Refusal::ObjectExists { id: 300 }),
        refused(
            "refused, unique value taken",
            Refusal::UniqueTaken { field: "email".to_owned(), value: "\"a@b\"".to_owned(), id: 300 },
        ),
    ]
}

fn tickets() -> Vec<(String, Ticket)> {
    let mut two = Ticket::new(0x0102_0304_0506_0708);
    two.require(PartitionId(3), LogPoint::new(4, 1_002));
    two.require(PartitionId(1_535), LogPoint::new(3, 77));
    vec![("empty ticket".to_owned(), Ticket::new(7)), ("ticket of two partitions".to_owned(), two)]
}

/// Compares the encodings of values with a file, and the values that are decoded from the file with the originals.
fn check<T, E>(
    (file, page): (&str, &str),
    values: &[(String, T)],
    write: impl Fn(&T) -> Vec<u8>,
    read: impl Fn(&[u8]) -> Result<T, E>,
) where
    T: PartialEq + std::fmt::Debug,
    E: std::fmt::Debug,
{
    let comment = format!("docs/formats/{page}. The test is\ncrates/decide/kith-live/tests/formats.rs.");
    let made: Vec<_> = values.iter().map(|(what, value)| (what.clone(), write(value))).collect();
    for ((_, bytes), (what, value)) in golden::hex(file, &comment, &made).iter().zip(values) {
        assert_eq!(&read(bytes).unwrap(), value, "{what}");
    }
}

#[test]
fn changes_intents_outcomes_and_tickets() {
    check(("live/changes.txt", "change.md"), &changes(), Change::to_bytes, Change::from_bytes);
    check(("live/intents.txt", "change.md"), &intents(), Intent::to_bytes, Intent::from_bytes);
    let outcomes = outcomes();
    check(
        ("live/outcomes.txt", "change.md"),
        &outcomes,
        RecordedOutcome::to_bytes,
        RecordedOutcome::from_bytes,
    );
    check(("live/tickets.txt", "ticket.md"), &tickets(), Ticket::to_bytes, Ticket::from_bytes);
}

#[test]
fn a_later_format_is_refused() {
    let (_, change) = &changes()[1];
    let mut bytes = change.to_bytes();
    bytes[0] = 2;
    assert_eq!(
        Change::from_bytes(&bytes).unwrap_err().to_string(),
        "the bytes of a change are damaged, or were written by a later release"
    );
}
