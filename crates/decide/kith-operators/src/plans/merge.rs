//! Merges the nodes' parts of a fan-out into one value (Moolle §II-C: the client merges the results).

#[cfg(test)]
mod tests;

use crate::groups::Tally;
use crate::sets::{self, Scratch};
use crate::{
    AssociationsEntry, EdgesEntry, Groups, ListEntry, MergeError, ObjectEntry, Operator, Part, Records,
    Value, ValueKind,
};
use kith_schema::compute::GroupBy;

/// The treatment of a key without an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKeyRule {
    /// The merge fails.
    #[default]
    Refuse,
    /// The caller accepts partial answers: a list becomes [`ListEntry::Unanswered`], and a set lacks the ids of the key.
    Allow,
}

impl Value {
    /// Merges the parts of a fan-out of `plan` over `key_count` keys (or partitions) into the value that a single node with
    /// all data would return. A proven existence needs no further parts.
    ///
    /// # Errors
    /// [`MergeError`] if the parts do not fit together.
    pub fn merge(
        plan: &Operator,
        key_count: usize,
        mut parts: Vec<Part>,
        missing: MissingKeyRule,
        scratch: &mut Scratch,
    ) -> Result<Value, MergeError> {
        let kind = plan.check()?;
        if let Some(part) = parts.iter().find(|part| part.value.kind() != kind) {
            return Err(MergeError::WrongValue { expected: kind.name(), got: part.value.kind().name() });
        }
        let proven = parts.iter().any(|part| part.value == Value::Exists(true));
        account(key_count, &parts, if proven { MissingKeyRule::Allow } else { missing })?;
        if kind == ValueKind::Count && 1 < parts.len() && !disjoint_count(plan) {
            return Err(MergeError::Overlapping);
        }
        Ok(match kind {
            ValueKind::Lists => Value::Lists(place(key_count, parts, lists_of, ListEntry::Unanswered)?),
            ValueKind::Edges => Value::Edges(place(key_count, parts, edges_of, EdgesEntry::Unanswered)?),
            ValueKind::Objects => {
                Value::Objects(place(key_count, parts, objects_of, ObjectEntry::Unanswered)?)
            }
            ValueKind::Associations => {
                let unanswered = AssociationsEntry::Unanswered;
                Value::Associations(place(key_count, parts, associations_of, unanswered)?)
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

/// Checks that each position is answered exactly once.
fn account(key_count: usize, parts: &[Part], missing: MissingKeyRule) -> Result<(), MergeError> {
    let mut answered = vec![false; key_count];
    let mut left = key_count;
    for &position in parts.iter().flat_map(|part| &part.positions) {
        match answered.get_mut(position as usize) {
            Some(seen @ false) => *seen = true,
            _ => return Err(MergeError::Position { position, expected: key_count }),
        }
        left -= 1;
    }
    if 0 < left && missing == MissingKeyRule::Refuse {
        return Err(MergeError::Missing { missing: left, expected: key_count });
    }
    Ok(())
}

fn disjoint_count(plan: &Operator) -> bool {
    match plan {
        Operator::Count(input) => input.is_disjoint(),
        // These count what is in partitions, each of which belongs to one node.
        _ => true,
    }
}

fn count_of(value: &Value) -> u64 {
    match value {
        Value::Count(count) => *count,
        _ => 0,
    }
}

/// Puts the entries that `of` picks from each part into the places of their keys.
fn place<T: Clone>(
    key_count: usize,
    parts: Vec<Part>,
    of: fn(Value) -> Option<Vec<T>>,
    unanswered: T,
) -> Result<Vec<T>, MergeError> {
    let mut placed = vec![unanswered; key_count];
    for Part { positions, value } in parts {
        let entries = of(value).unwrap_or_default();
        if entries.len() != positions.len() {
            return Err(MergeError::WrongValue {
                expected: "one entry per key",
                got: "another number of entries",
            });
        }
        for (position, entry) in positions.into_iter().zip(entries) {
            placed[position as usize] = entry;
        }
    }
    Ok(placed)
}

/// Puts each part's records into the places of their keys. Values are not copied.
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

/// Adds exact counts. The highest are chosen from the sum, never before.
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

fn lists_of(value: Value) -> Option<Vec<ListEntry>> {
    if let Value::Lists(lists) = value { Some(lists) } else { None }
}

fn edges_of(value: Value) -> Option<Vec<EdgesEntry>> {
    if let Value::Edges(edges) = value { Some(edges) } else { None }
}

fn objects_of(value: Value) -> Option<Vec<ObjectEntry>> {
    if let Value::Objects(objects) = value { Some(objects) } else { None }
}

fn associations_of(value: Value) -> Option<Vec<AssociationsEntry>> {
    if let Value::Associations(associations) = value { Some(associations) } else { None }
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

/// The union of the sets that `of` picks. A single set is taken unchanged.
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
