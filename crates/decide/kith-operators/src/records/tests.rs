//! Tests of records: their places, their proofs, and the agreement of several answers.

use super::*;

fn part(values: &[Option<&str>]) -> Records {
    let mut builder = RecordsBuilder::with_capacity(values.len());
    for value in values {
        match value {
            Some(value) => assert!(builder.found(value.as_bytes())),
            None => builder.absent(),
        }
    }
    builder.finish()
}

#[test]
fn parts_find_their_places_and_every_key_is_counted() {
    let mut records = Records::unanswered(5);
    records.place(&[4, 1], part(&[Some("four"), None]));
    records.place(&[0], part(&[Some("")]));
    records.fail(2, RecordError::Damaged);
    let expected = [
        Record::Found(b""),
        Record::Absent,
        Record::Error(RecordError::Damaged),
        Record::Unanswered,
        Record::Found(b"four"),
    ];
    assert_eq!(records.iter().collect::<Vec<_>>(), expected);
    assert_eq!(records.counts(), RecordCounts { found: 2, absent: 1, error: 1, unanswered: 1 });
    assert_eq!((records.value_bytes(), records.value(4)), (4, Some(Bytes::from_static(b"four"))));
    assert_eq!((records.value(1), records.get(5)), (None, None));
}

#[test]
fn values_lie_end_to_end_as_they_were_built_and_not_once_some_are_gone() {
    let mut records = part(&[Some("a"), None, Some(""), Some("bc")]);
    records.fail(1, RecordError::Damaged);
    assert_eq!(records.end_to_end(), Some(Bytes::from_static(b"abc")));
    assert_eq!(part(&[None]).end_to_end(), Some(Bytes::new()));
    let mut fewer = records.clone();
    fewer.fail(3, RecordError::Damaged);
    assert_eq!(fewer.end_to_end(), None, "there are bytes that are nobody's");
    records.fail(0, RecordError::Damaged);
    assert_eq!(records.end_to_end(), None);
    let mut placed = Records::unanswered(2);
    placed.place(&[1], part(&[Some("b")]));
    assert_eq!(placed.end_to_end(), Some(Bytes::from_static(b"b")));
    placed.place(&[0], part(&[Some("a")]));
    assert_eq!(placed.end_to_end(), None, "they lie in two places");
}

#[test]
fn several_answers_agree_key_by_key_or_it_is_an_error() {
    let one = part(&[Some("a"), Some("b"), None, None, Some("e"), Some("f")]);
    let mut two = part(&[Some("a"), Some("x"), None, Some("d"), Some("e"), Some("f")]);
    two.fail(4, RecordError::Damaged);
    let mut three = Records::unanswered(6);
    three.place(&[0, 1, 2, 3, 4], part(&[Some("a"), Some("b"), None, None, Some("e")]));
    let expected = [
        Record::Found(b"a"),
        Record::Error(RecordError::Disagreeing),
        Record::Absent,
        Record::Error(RecordError::Disagreeing),
        Record::Error(RecordError::Damaged),
        Record::Unanswered,
    ];
    for answers in [vec![one.clone(), two.clone(), three.clone()], vec![three.clone(), one.clone(), two]] {
        assert_eq!(Records::agreed(answers).iter().collect::<Vec<_>>(), expected);
    }
    assert_eq!(Records::agreed(vec![one.clone()]), one);
}

#[test]
fn values_whose_proofs_do_not_hold_are_damaged_and_the_others_as_they_were() {
    let key = |index: usize| KeyRef::Id(index as u64);
    let mut unproven = part(&[Some("a"), None, Some(""), Some("bc")]);
    assert_eq!(unproven.prove(key), [0, 2, 3], "values without proofs");
    let mut sound = RecordsBuilder::with_capacity(4);
    for (index, value) in [Some("a"), None, Some(""), Some("bc")].into_iter().enumerate() {
        match value.map(str::as_bytes) {
            Some(value) => assert!(sound.found_with(value, Some(ValueProof::of(key(index), value)))),
            None => sound.absent(),
        }
    }
    let sound = sound.finish();
    let proof = |index| sound.proof(index);
    assert_eq!((sound.clone().prove(key), proof(1)), (vec![], None));
    let sent = |bytes: &'static [u8]| {
        let mut over = RecordsOver::new(4, Bytes::from_static(bytes));
        assert!(over.found_with(1, proof(0)));
        over.absent();
        assert!(over.found_with(0, proof(2)) && over.found_with(2, proof(3)));
        over.finish().unwrap()
    };
    let mut flipped = sent(b"abb");
    assert_eq!(flipped.prove(key), [3]);
    let expected =
        [Record::Found(b"a"), Record::Absent, Record::Found(b""), Record::Error(RecordError::Damaged)];
    assert_eq!(flipped.iter().collect::<Vec<_>>(), expected);
    assert_eq!(sent(b"abc").prove(|index| KeyRef::Id(index as u64 + 1)).len(), 3, "answers to other keys");
    let mut placed = Records::unanswered(4);
    placed.place(&[3, 2, 1, 0], sent(b"abc"));
    assert!(placed.prove(|index| KeyRef::Id(3 - index as u64)).is_empty(), "proofs go with their values");
    placed.drop_proofs();
    assert_eq!(placed.proof(0), None);
}

#[test]
fn damaged_records_are_taken_out_with_their_positions() {
    let mut builder = RecordsBuilder::with_capacity(0);
    builder.error(RecordError::Damaged);
    assert!(builder.found(b"v"));
    builder.error(RecordError::Unsuitable);
    let (mut records, mut positions) = (builder.finish(), vec![7, 3, 5]);
    assert_eq!(records.split_damaged(&mut positions), [7]);
    assert_eq!(positions, [3, 5]);
    let expected = [Record::Found(b"v"), Record::Error(RecordError::Unsuitable)];
    assert_eq!(records.iter().collect::<Vec<_>>(), expected);
    assert!(records.split_damaged(&mut positions).is_empty());
}
