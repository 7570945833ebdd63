//! Which number an object whose id is a text gets, with a hash that gives many texts the same number.

use super::*;
use crate::{Data, DeclaredTypes, ResolvedMutation, TextId, TextIdForm, TypeId, text_id_numbers};

const PERSON: TypeId = TypeId(1);

/// The texts with the numbers that a weak hash gives them: all have the same first number.
const TEXTS: [(&str, u64, u64); 5] =
    [("a", 10, 11), ("b", 10, 12), ("c", 10, 11), ("d", 10, 12), ("e", 10, 13)];

fn text_id(text: &str) -> TextId {
    TextId::new(TextIdForm::Text, text).unwrap()
}

fn runner(text: &str) -> Runner {
    let mut runner = Runner::new(1);
    let declared: DeclaredTypes = text.parse().unwrap();
    runner.twin.types = GraphTypes::new(7, &declared).unwrap();
    runner
}

/// The write that adds an object of the first type with a text id, and the numbers that the hash of the test gives it.
fn add_text(runner: &Runner, (text, id, other): (&str, u64, u64)) -> ResolvedWrite {
    let id_given = Some(text_id(text));
    let data = runner.twin.types.encode_with_id(PERSON, id_given.as_ref(), None).unwrap();
    let step = ResolvedMutation::AddObject { id, other: Some(other), kind: PERSON, data };
    let (partition, conditions) = (PartitionId(0), Conditions::default());
    ResolvedWrite { partition, step, conditions, name: None, split: None }
}

fn decided(runner: &mut Runner, write: &ResolvedWrite) -> Result<Outcome, WriteFault> {
    let rows = runner.rows(write.partition, write.queries(runner.twin.count));
    match decide(write, &rows, runner.context(write.partition)).unwrap() {
        Decision::Nothing(outcome) => Ok(outcome),
        Decision::Changed(outcome, change) => {
            runner.commit(write.partition, change);
            Ok(outcome)
        }
        Decision::Invalid(fault) => Err(fault),
        other => panic!("{other:?}"),
    }
}

/// The texts of the objects that are stored, by their numbers.
fn stored(runner: &Runner) -> BTreeMap<u64, String> {
    let types = &runner.twin.types;
    let text =
        |data: &Data| types.text_id(PERSON, data).unwrap().map(|id| id.to_string()).unwrap_or_default();
    runner.twin.objects().into_iter().map(|(id, object)| (id, text(&object.data))).collect()
}

proptest! {
    #[test]
    fn texts_with_one_hash_get_two_numbers(
        steps in prop::collection::vec((0..TEXTS.len(), any::<bool>()), 1..40),
        is_declared: bool,
    ) {
        let mut runner = runner(if is_declared { "[object.person]\nids = 'text'" } else { "[object.person]\nopen = true" });
        let mut twin: BTreeMap<&str, u64> = BTreeMap::new();
        for (at, adds) in steps {
            let (text, first, second) = TEXTS[at];
            let holder = |number: u64, twin: &BTreeMap<&str, u64>| twin.values().any(|it| *it == number);
            if !adds {
                // Whoever deletes an object has looked its number up.
                if let Some(id) = twin.remove(text) {
                    let mutation = Mutation::DeleteObject { id };
                    runner.run(&Write { mutation, conditions: Conditions::default(), write_id: None });
                }
            } else {
                let write = add_text(&runner, TEXTS[at]);
                let outcome = decided(&mut runner, &write);
                if let Some(id) = twin.get(text) {
                    prop_assert_eq!(outcome, Ok(Outcome::Refused(Refusal::ObjectExists { id: *id })));
                } else if let Some(free) = [first, second].into_iter().find(|number| !holder(*number, &twin)) {
                    twin.insert(text, free);
                    prop_assert!(matches!(outcome, Ok(Outcome::Done(done)) if done.id == free), "{:?}", outcome);
                } else {
                    prop_assert_eq!(outcome, Err(WriteFault::TextIdUnlucky { id: text.to_owned() }));
                }
            }
            let expected: BTreeMap<u64, String> = twin.iter().map(|(text, id)| (*id, (*text).to_owned())).collect();
            prop_assert_eq!(stored(&runner), expected);
        }
    }
}

#[test]
fn a_number_is_no_text_with_its_hash() {
    let mut runner = runner("[object.person]\nopen = true");
    let number = Mutation::AddObject {
        kind: "person".to_owned(),
        data: None,
        id: Some(10),
        near: None,
        text_id: None,
    };
    runner.run(&Write { mutation: number.clone(), conditions: Conditions::default(), write_id: None });
    let write = add_text(&runner, TEXTS[0]);
    assert!(matches!(decided(&mut runner, &write), Ok(Outcome::Done(done)) if done.id == 11));
    let again = runner.run(&Write { mutation: number, conditions: Conditions::default(), write_id: None });
    assert_eq!(again, Outcome::Refused(Refusal::ObjectExists { id: 10 }));
}

#[test]
fn fields_change_and_the_text_stays() {
    let mut runner =
        runner("[object.person]\nids = 'text'\nfields = { age = { type = 'i32', nullable = true } }");
    let mutation = Mutation::AddObject {
        kind: "person".to_owned(),
        data: Some(r#"{"age":1}"#.to_owned()),
        id: None,
        near: None,
        text_id: Some(text_id("Ada")),
    };
    let write = |mutation| Write { mutation, conditions: Conditions::default(), write_id: None };
    let (id, _) = text_id_numbers(&text_id("Ada"), runner.twin.count);
    assert!(matches!(runner.run(&write(mutation)), Outcome::Done(done) if done.id == id));
    runner.run(&write(Mutation::UpdateObject { id, data: r#"{"age":2}"#.to_owned() }));
    let object = &runner.twin.objects()[&id];
    assert_eq!(runner.twin.types.decode(PERSON, &object.data).unwrap(), r#"{"age":2}"#);
    assert_eq!(stored(&runner)[&id], "Ada");
}
