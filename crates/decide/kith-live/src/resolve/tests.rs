//! Tests of which partition orders a write, of its rows, and of checksums and derived ids.

use super::*;
use crate::fixture::{self, BLOCKS, FOLLOWED_BY, FOLLOWS, FRIEND};
use crate::{TextId, TextIdForm};
use kith_types::fmix64_inverse;

/// A hash in the lower half of all hashes.
const LOW: u64 = 1;

fn count() -> PartitionCount {
    PartitionCount::new(64).unwrap()
}

fn write(mutation: Mutation) -> Write {
    Write { mutation, conditions: Conditions::default(), write_id: Some("w".parse().unwrap()) }
}

fn add(id1: u64, kind: &str, id2: u64) -> Write {
    write(Mutation::AddAssociation { id1, kind: kind.to_owned(), id2, time: Some(1), data: None })
}

fn change(kind: &str, new_kind: &str) -> Write {
    let (kind, new_kind) = (kind.to_owned(), new_kind.to_owned());
    write(Mutation::ChangeType { id1: 9, kind, id2: 4, new_kind })
}

#[test]
fn two_sided_writes_go_to_the_smaller_id_and_one_sided_ones_to_id1() {
    let types = fixture::types();
    let ordered = |write: &Write| {
        let partition = ordering_partition(write, &types, count()).unwrap();
        assert_eq!(ResolvedWrite::new(write, &types, count()).unwrap().partition, partition);
        partition
    };
    for (kind, smaller) in [("follows", true), ("followed_by", true), ("friend", true), ("likes", false)] {
        let one = ordered(&add(9, kind, 4));
        assert_eq!(one, partition_of_id(if smaller { 4 } else { 9 }, count()), "{kind}");
        assert_eq!(ordered(&add(4, kind, 9)), partition_of_id(4, count()), "{kind}");
    }
    let near =
        Mutation::AddObject { kind: "user".to_owned(), data: None, id: None, near: Some(77), text_id: None };
    assert_eq!(ordered(&write(near)), partition_of_id(77, count()));
    let named =
        |id| Mutation::AddObject { kind: "user".to_owned(), data: None, id, near: None, text_id: None };
    assert_eq!(ordered(&write(named(Some(5)))), partition_of_id(5, count()));
    assert_eq!(ordered(&write(named(None))), ordered(&write(named(None))));
}

#[test]
fn an_edge_has_the_same_rows_from_both_ends() {
    let types = fixture::types();
    let keys = |id1, kind, id2| EdgeKeys::of(&types, id1, kind, id2).unwrap();
    let (there, back) = (keys(9, "follows", 4), keys(4, "followed_by", 9));
    assert_eq!((there.forward, there.inverse), (back.forward, back.inverse));
    assert_eq!(there.forward, ListKey { id1: 9, kind: FOLLOWS }.to(4));
    assert_eq!(there.inverse, Some(ListKey { id1: 4, kind: FOLLOWED_BY }.to(9)));
    let (there, back) = (keys(9, "friend", 4), keys(4, "friend", 9));
    assert_eq!((there.forward, there.inverse), (back.forward, back.inverse));
    assert_eq!(there.forward, ListKey { id1: 4, kind: FRIEND }.to(9));
    assert_eq!(
        keys(9, "friend", 9).rows().count(),
        1,
        "a symmetric edge of an object with itself is one row"
    );
    assert_eq!(keys(9, "follows", 9).rows().count(), 2);
    assert_eq!(keys(9, "blocks", 9).named.list.kind, BLOCKS);
}

#[test]
fn only_pairs_in_two_partitions_are_split() {
    let (types, two) = (fixture::types(), PartitionCount::new(2).unwrap());
    // Ids whose hashes are in the lower and the upper half.
    let [here, there] = [LOW, u64::MAX].map(fmix64_inverse);
    let beside = fmix64_inverse(LOW + 1);
    let split = |id1, kind, id2| ResolvedWrite::new(&add(id1, kind, id2), &types, two).unwrap().split;
    assert_eq!(split(here, "friend", there), Pair::of(here, there));
    assert_eq!(split(here, "friend", beside), None);
    assert_eq!(split(here, "friend", here), None);
    assert_eq!(split(here, "likes", there), None);
}

#[test]
fn writes_that_make_no_sense_are_refused() {
    let types = fixture::types();
    let why = |write: &Write| ResolvedWrite::new(write, &types, count()).unwrap_err().to_string();
    assert_eq!(
        why(&add(1, "freind", 2)),
        "the graph has no association type \"freind\"; did you mean \"friend\"?"
    );
    assert_eq!(why(&change("friend", "friend")), "the new type is the same as the old one");
    assert_eq!(
        why(&change("friend", "likes")),
        "an association cannot change from \"friend\" to \"likes\": only one of these types has an inverse"
    );
    assert!(ResolvedWrite::new(&change("friend", "follows"), &types, count()).is_ok());
    let object =
        |id, near| Mutation::AddObject { kind: "user".to_owned(), data: None, id, near, text_id: None };
    let text_id = |text| TextId::new(TextIdForm::Text, text).ok();
    let with_text = |id, text| Mutation::AddObject {
        kind: "user".to_owned(),
        data: None,
        id,
        near: None,
        text_id: text_id(text),
    };
    assert_eq!(why(&write(with_text(Some(1), "x"))), "an object can have one id, as a number or as a text");
    assert!(why(&write(with_text(None, "x"))).contains("ids = \"text\""));
    assert_eq!(why(&write(object(Some(1), Some(2)))), "an object can have \"id\" or \"near\", but not both");
    let nameless = Write { write_id: None, ..write(object(None, None)) };
    assert_eq!(why(&nameless), "an object without an id needs a write_id, from which its id is derived");
}

#[test]
fn the_numbers_of_a_text_lie_in_one_partition() {
    for count in [1, 3, 64, 65_536].map(|count| PartitionCount::new(count).unwrap()) {
        for at in 0..200 {
            let id = TextId::new(TextIdForm::Text, &format!("person-{at}")).unwrap();
            let (first, second) = text_id_numbers(&id, count);
            let second = second.unwrap();
            assert_eq!(partition_of_id(first, count), partition_of_id(second, count));
            assert!(first != second && [first, second].iter().all(|it| i64::try_from(*it).is_err()), "{id}");
        }
    }
    let digits = TextId::new(TextIdForm::Text, "40").unwrap();
    assert_eq!(text_id_numbers(&digits, count()), (40, None));
}

#[test]
fn texts_of_every_form_have_the_numbers_of_their_bytes_in_every_release() {
    let numbers = |form, text| text_id_numbers(&TextId::new(form, text).unwrap(), count());
    assert_eq!(numbers(TextIdForm::Number, "-1"), numbers(TextIdForm::Text, "-1"));
    assert_eq!(
        numbers(TextIdForm::Text, "Ada"),
        (13_339_703_848_261_208_219, Some(16_479_478_556_144_575_256))
    );
    // Two texts with one hash, which the tests of clusters use too.
    let twins = ["genaebkdpddhcgpc", "nkgaobikigjmmghf"].map(|text| numbers(TextIdForm::Text, text));
    assert_eq!(twins[0].0, twins[1].0);
    assert_ne!(twins[0].1, twins[1].1);
}

#[test]
fn checksums_tell_writes_apart() {
    let one = add(1, "friend", 2);
    let exists = Conditions { if_exists: Some(false), ..Conditions::default() };
    let others = [
        add(2, "friend", 1),
        add(1, "likes", 2),
        Write { conditions: exists, ..one.clone() },
        change("friend", "follows"),
        write(Mutation::DeleteAssociation { id1: 1, kind: "friend".to_owned(), id2: 2 }),
    ];
    for other in others {
        assert_ne!(one.checksum(), other.checksum(), "{other:?}");
    }
    assert_eq!(one.checksum(), Write { write_id: None, ..one.clone() }.checksum());
}

#[test]
fn ids_and_checksums_are_the_same_in_every_release() {
    let write_id: WriteId = "order-17".parse().unwrap();
    assert_eq!(new_object_id(&write_id, None, count()), 6_189_143_431_148_096_296);
    assert_eq!(new_object_id(&write_id, Some(PartitionId(63)), count()), 1_404_774_658_682_761_385);
    let full = Mutation::AddAssociation {
        id1: 300,
        kind: "friend".to_owned(),
        id2: 5,
        time: None,
        data: Some(r#"{"n":1}"#.to_owned()),
    };
    let conditions = Conditions { if_version: Some(9), if_exists: Some(true) };
    assert_eq!(Write { conditions, ..write(full) }.checksum(), 10_057_506_012_325_489_106);
    assert_eq!(write(Mutation::DeleteObject { id: 7 }).checksum(), 8_774_906_641_518_433_962);
}
