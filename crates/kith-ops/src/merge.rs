//! How the nodes' parts of a fan-out become one value (Moolle §II-C: the client merges the results).

use crate::groups::Tally;
use crate::sets::{self, Scratch};
use crate::{EdgesEntry, Groups, ListEntry, MergeError, Operator, Part, Records, Value, ValueKind};
use kith_schema::compute::GroupBy;

/// What a key without an answer means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// The merge fails.
    #[default]
    Refuse,
    /// The caller accepts partial answers: lists become [`ListEntry::Unanswered`], sets go without.
    Allow,
}

impl Value {
    /// Merges the parts of a fan-out of `plan` over `key_count` keys (or partitions) into what one
    /// node that holds everything would give. An existence that is proven needs no further part.
    ///
    /// # Errors
    /// See [`MergeError`].
    pub fn merge(
        plan: &Operator,
        key_count: usize,
        mut parts: Vec<Part>,
        missing: Missing,
        scratch: &mut Scratch,
    ) -> Result<Value, MergeError> {
        let kind = plan.check()?;
        if let Some(part) = parts.iter().find(|part| part.value.kind() != kind) {
            return Err(MergeError::WrongValue { expected: kind.name(), got: part.value.kind().name() });
        }
        let proven = parts.iter().any(|part| part.value == Value::Exists(true));
        account(key_count, &parts, if proven { Missing::Allow } else { missing })?;
        if kind == ValueKind::Count && 1 < parts.len() && !disjoint_count(plan) {
            return Err(MergeError::Overlapping);
        }
        Ok(match kind {
            ValueKind::Lists => {
                let lists = parts.into_iter().map(|part| match part.value {
                    Value::Lists(lists) => (part.positions, lists),
                    _ => (part.positions, Vec::new()),
                });
                Value::Lists(place(key_count, lists, ListEntry::Unanswered)?)
            }
            ValueKind::Edges => {
                let edges = parts.into_iter().map(|part| match part.value {
                    Value::Edges(edges) => (part.positions, edges),
                    _ => (part.positions, Vec::new()),
                });
                Value::Edges(place(key_count, edges, EdgesEntry::Unanswered)?)
            }
            ValueKind::Set => {
                let mut ids = merge_sets(&mut parts, set_of, scratch);
                if let Operator::Limit { count, .. } = plan {
                    ids.truncate(usize::try_from(*count).unwrap_or(usize::MAX));
                }
                Value::Set(ids)
            }
            ValueKind::Neighbourhood => Value::Neighbourhood {
                ids: merge_sets(&mut parts, ids_of, scratch),
                union: merge_sets(&mut parts, union_of, scratch),
            },
            ValueKind::Tallies => merge_tallies(&mut parts),
            ValueKind::Count => Value::Count(parts.iter().map(|part| count_of(&part.value)).sum()),
            ValueKind::Exists => Value::Exists(proven),
            ValueKind::Records => Value::Records(place_records(key_count, parts)?),
            ValueKind::Groups => Value::Groups(merge_groups(plan, key_count, parts)?),
        })
    }
}

/// Checks that each position is answered once.
fn account(key_count: usize, parts: &[Part], missing: Missing) -> Result<(), MergeError> {
    let mut answered = vec![false; key_count];
    let mut left = key_count;
    for &position in parts.iter().flat_map(|part| &part.positions) {
        match answered.get_mut(position as usize) {
            Some(seen @ false) => *seen = true,
            _ => return Err(MergeError::Position { position, expected: key_count }),
        }
        left -= 1;
    }
    if 0 < left && missing == Missing::Refuse {
        return Err(MergeError::Missing { missing: left, expected: key_count });
    }
    Ok(())
}

fn disjoint_count(plan: &Operator) -> bool {
    matches!(plan, Operator::Count(input) if input.is_disjoint())
}

fn count_of(value: &Value) -> u64 {
    match value {
        Value::Count(count) => *count,
        _ => 0,
    }
}

/// Puts the entries of each part where their keys are.
fn place<T: Clone>(
    key_count: usize,
    parts: impl Iterator<Item = (Vec<u32>, Vec<T>)>,
    unanswered: T,
) -> Result<Vec<T>, MergeError> {
    let mut placed = vec![unanswered; key_count];
    for (positions, entries) in parts {
        if entries.len() != positions.len() {
            return Err(MergeError::WrongValue {
                expected: "one list per key",
                got: "another number of lists",
            });
        }
        for (position, entry) in positions.into_iter().zip(entries) {
            placed[position as usize] = entry;
        }
    }
    Ok(placed)
}

/// Puts each part's records where their keys are; values are not copied.
fn place_records(key_count: usize, parts: Vec<Part>) -> Result<Records, MergeError> {
    let mut records = Records::unanswered(key_count);
    for Part { positions, value } in parts {
        let Value::Records(part) = value else { continue };
        if part.len() != positions.len() {
            return Err(MergeError::WrongValue {
                expected: "one record per key",
                got: "another number of records",
            });
        }
        records.place(&positions, part);
    }
    Ok(records)
}

/// Adds up exact counts; what is wanted of them is cut out of the sum, never before.
fn merge_groups(plan: &Operator, key_count: usize, parts: Vec<Part>) -> Result<Groups, MergeError> {
    let wrong = || MergeError::WrongValue { expected: "the plan's groups", got: "other groups" };
    let Operator::Aggregate(plan) = plan else { return Err(wrong()) };
    let buckets = match &plan.by {
        GroupBy::Bucket(buckets) => Some(buckets.len()),
        GroupBy::Value { .. } => None,
    };
    let (mut tally, mut states) = (Tally::new(buckets), Vec::with_capacity(parts.len()));
    for Part { positions, value } in parts {
        let Value::Groups(groups) = value else { continue };
        if !groups.fits(&plan.by) {
            return Err(wrong());
        }
        tally.add(&groups);
        states.push(Part { positions, value: Value::Records(groups.records) });
    }
    Ok(tally.finish(place_records(key_count, states)?))
}

fn set_of(value: &mut Value) -> Option<&mut Vec<u64>> {
    if let Value::Set(ids) = value { Some(ids) } else { None }
}

fn ids_of(value: &mut Value) -> Option<&mut Vec<u64>> {
    if let Value::Neighbourhood { ids, .. } = value { Some(ids) } else { None }
}

fn union_of(value: &mut Value) -> Option<&mut Vec<u64>> {
    if let Value::Neighbourhood { union, .. } = value { Some(union) } else { None }
}

/// The union of the sets that `of` picks; a single one is taken as it is.
fn merge_sets(
    parts: &mut [Part],
    of: fn(&mut Value) -> Option<&mut Vec<u64>>,
    scratch: &mut Scratch,
) -> Vec<u64> {
    let mut sets: Vec<&mut Vec<u64>> = parts.iter_mut().filter_map(|part| of(&mut part.value)).collect();
    if let [ids] = sets.as_mut_slice() {
        return std::mem::take(ids);
    }
    let sets: Vec<&[u64]> = sets.iter().map(|ids| ids.as_slice()).collect();
    let mut out = Vec::new();
    sets::merge(&sets, scratch, &mut out);
    out
}

fn merge_tallies(parts: &mut [Part]) -> Value {
    if let [Part { value: tallies @ Value::Tallies { .. }, .. }] = parts {
        return std::mem::replace(tallies, Value::Exists(false));
    }
    let tallies: Vec<(&[u64], &[u32])> = parts
        .iter()
        .filter_map(|part| match &part.value {
            Value::Tallies { ids, counts } => Some((ids.as_slice(), counts.as_slice())),
            _ => None,
        })
        .collect();
    let (ids, counts) = sets::merge_tallies(&tallies);
    Value::Tallies { ids, counts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EdgeSelector;
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
        Value::merge(plan, keys, parts, Missing::Refuse, &mut Scratch::new())
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
        let partial = Value::merge(&expand(), 2, parts(), Missing::Allow, &mut Scratch::new());
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
        let of =
            |ids: &[u64], union: &[u64]| Value::Neighbourhood { ids: ids.to_vec(), union: union.to_vec() };
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
}
