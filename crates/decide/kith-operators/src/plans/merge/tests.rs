//! Merges one value of each type, and refuses invalid parts.

use super::*;
use kith_schema::EdgeSelector;
use kith_types::Direction;

fn edge() -> EdgeSelector {
    EdgeSelector { kind: "connection".into(), direction: Direction::Both, filter: None }
}

fn expand() -> Box<Operator> {
    Box::new(Operator::Expand { input: Box::new(Operator::Keys), edge: edge(), longest: u64::MAX })
}

fn part(positions: &[u32], value: Value) -> Part {
    Part { positions: positions.to_vec(), value }
}

fn merge(plan: &Operator, keys: usize, parts: Vec<Part>) -> Result<Value, MergeError> {
    Value::merge(plan, keys, parts, MissingKeyRule::Refuse, &mut Scratch::new())
}

fn list(ids: &[u64]) -> ListEntry {
    ListEntry::Ids(ids.to_vec())
}

#[test]
fn lists_come_in_the_order_of_the_keys() {
    let parts = vec![
        part(&[2, 0], Value::Lists(vec![list(&[7]), ListEntry::NotInGraph])),
        part(&[1], Value::Lists(vec![ListEntry::Longer(9)])),
    ];
    let merged = merge(&expand(), 3, parts);
    assert_eq!(merged, Ok(Value::Lists(vec![ListEntry::NotInGraph, ListEntry::Longer(9), list(&[7])])));
}

#[test]
fn a_key_without_an_answer_is_an_error_unless_partial_answers_are_wanted() {
    let parts = || vec![part(&[1], Value::Lists(vec![list(&[7])]))];
    assert_eq!(merge(&expand(), 2, parts()), Err(MergeError::Missing { missing: 1, expected: 2 }));
    let partial = Value::merge(&expand(), 2, parts(), MissingKeyRule::Allow, &mut Scratch::new());
    assert_eq!(partial, Ok(Value::Lists(vec![ListEntry::Unanswered, list(&[7])])));
}

#[test]
fn a_key_answered_twice_is_an_error() {
    let union = Operator::Union(expand());
    let parts = vec![part(&[0], Value::Set(vec![])), part(&[0], Value::Set(vec![]))];
    assert_eq!(merge(&union, 1, parts), Err(MergeError::Position { position: 0, expected: 1 }));
    let beyond = vec![part(&[1], Value::Set(vec![]))];
    assert_eq!(merge(&union, 1, beyond), Err(MergeError::Position { position: 1, expected: 1 }));
}

#[test]
fn sets_unite_tallies_add_up_and_limits_cut_again() {
    let sets = || vec![part(&[0], Value::Set(vec![1, 3])), part(&[1], Value::Set(vec![2, 3]))];
    assert_eq!(merge(&Operator::Union(expand()), 2, sets()), Ok(Value::Set(vec![1, 2, 3])));
    let limit = Operator::Limit { input: Box::new(Operator::Union(expand())), count: 2 };
    assert_eq!(merge(&limit, 2, sets()), Ok(Value::Set(vec![1, 2])));
    let tallies = vec![
        part(&[0], Value::Tallies { ids: vec![1, 3], counts: vec![2, 1] }),
        part(&[1], Value::Tallies { ids: vec![3], counts: vec![4] }),
    ];
    let expected = Value::Tallies { ids: vec![1, 3], counts: vec![2, 5] };
    assert_eq!(merge(&Operator::Tally(expand()), 2, tallies), Ok(expected));
}

#[test]
fn neighbourhoods_unite_on_either_side() {
    let postings = Box::new(Operator::Postings { id: 1, edge: edge() });
    let plan = Operator::Neighbourhood { input: postings, edge: edge() };
    let of = |ids: &[u64], union: &[u64]| Value::Neighbourhood { ids: ids.to_vec(), union: union.to_vec() };
    let parts = vec![part(&[1], of(&[2, 9], &[1, 4])), part(&[0], of(&[5], &[1, 3]))];
    assert_eq!(merge(&plan, 2, parts), Ok(of(&[2, 5, 9], &[1, 3, 4])));
    assert_eq!(merge(&plan, 1, vec![part(&[0], of(&[5], &[1]))]), Ok(of(&[5], &[1])));
}

#[test]
fn one_proof_of_existence_needs_no_other_answer() {
    let postings = Operator::Postings { id: 1, edge: edge() };
    let exists = Operator::Exists(Box::new(postings));
    let yes = || part(&[3], Value::Exists(true));
    assert_eq!(merge(&exists, 24, vec![yes()]), Ok(Value::Exists(true)));
    let no = merge(&exists, 24, vec![part(&[3], Value::Exists(false))]);
    assert_eq!(no, Err(MergeError::Missing { missing: 23, expected: 24 }));
}

#[test]
fn only_counts_of_disjoint_sets_add_up() {
    let counts = || vec![part(&[0], Value::Count(2)), part(&[1], Value::Count(3))];
    let postings = Operator::Count(Box::new(Operator::Postings { id: 1, edge: edge() }));
    assert_eq!(merge(&postings, 2, counts()), Ok(Value::Count(5)));
    let neighbours = Operator::Count(Box::new(Operator::Union(expand())));
    assert_eq!(merge(&neighbours, 2, counts()), Err(MergeError::Overlapping));
}

#[test]
fn a_node_that_sends_another_type_is_an_error() {
    let got = merge(&expand(), 1, vec![part(&[0], Value::Count(2))]);
    assert_eq!(got, Err(MergeError::WrongValue { expected: "lists", got: "a count" }));
}
