//! Objects and associations of a live graph on the wire, as parts of nodes.

use crate::convert::{
    ConvertError,
    live::{list_from_wire, list_to_wire, object_from_wire, object_to_wire},
};
use kith_operators::{AssociationsEntry, ObjectEntry};
use kith_schema::live::AssociationAnswer;
use kith_wire::v1::{self, associations_of_list::Answer};

pub(super) fn object_entries_to_wire(entries: &[ObjectEntry]) -> v1::ObjectsReply {
    let entry = |entry: &ObjectEntry| match entry {
        ObjectEntry::Absent => object_to_wire(None),
        ObjectEntry::Found(object) => object_to_wire(Some(object)),
        ObjectEntry::Unanswered => unreachable!("a node answers all its keys"),
    };
    v1::ObjectsReply { objects: entries.iter().map(entry).collect() }
}

pub(super) fn object_entries_from_wire(wire: v1::ObjectsReply) -> Vec<ObjectEntry> {
    let entry = |wire| object_from_wire(wire).map_or(ObjectEntry::Absent, ObjectEntry::Found);
    wire.objects.into_iter().map(entry).collect()
}

pub(super) fn association_entries_to_wire(entries: &[AssociationsEntry]) -> v1::AssociationsOfKeys {
    let list = |answer: &AssociationAnswer| match answer {
        AssociationAnswer::Count(count) => {
            v1::AssociationsOfList { answer: Some(Answer::Count(*count)), more: false }
        }
        AssociationAnswer::List { out, more } => {
            v1::AssociationsOfList { answer: Some(Answer::List(compact(list_to_wire(out)))), more: *more }
        }
    };
    let entry = |entry: &AssociationsEntry| match entry {
        AssociationsEntry::Answer(lists) => v1::AssociationsOfKey { lists: lists.iter().map(list).collect() },
        AssociationsEntry::Unanswered => unreachable!("a node answers all its keys"),
    };
    v1::AssociationsOfKeys { entries: entries.iter().map(entry).collect() }
}

pub(super) fn association_entries_from_wire(
    wire: v1::AssociationsOfKeys,
) -> Result<Vec<AssociationsEntry>, ConvertError> {
    let list = |wire: v1::AssociationsOfList| {
        Ok(match wire.answer.ok_or(ConvertError::Missing("value.associations.answer"))? {
            Answer::Count(count) => AssociationAnswer::Count(count),
            Answer::List(list) => {
                AssociationAnswer::List { out: list_from_wire(expanded(list)?)?, more: wire.more }
            }
        })
    };
    let entry = |wire: v1::AssociationsOfKey| {
        wire.lists.into_iter().map(list).collect::<Result<_, _>>().map(AssociationsEntry::Answer)
    };
    wire.entries.into_iter().map(entry).collect()
}

/// The same list in fewer bytes: neighbours in a list often have ids that are close to each other.
fn compact(list: v1::AssociationList) -> v1::AssociationList {
    let v1::AssociationList { id2, times, .. } = &list;
    let mut before = 0_u64;
    let id2_steps =
        id2.iter().map(|id| id.wrapping_sub(std::mem::replace(&mut before, *id)).cast_signed()).collect();
    let last_time = match times.split_last() {
        Some((last, others)) if others.iter().all(|time| *time == 0) => Some(*last),
        _ => None,
    };
    let times = if last_time.is_some() { Vec::new() } else { times.clone() };
    v1::AssociationList { id2: Vec::new(), times, id2_steps, last_time, ..list }
}

/// The list that [`compact`] has made smaller.
fn expanded(list: v1::AssociationList) -> Result<v1::AssociationList, ConvertError> {
    let v1::AssociationList { id2_steps, last_time, .. } = &list;
    let mut id = 0_u64;
    let next = |step: &i64| {
        id = id.wrapping_add(step.cast_unsigned());
        id
    };
    let id2: Vec<u64> = id2_steps.iter().map(next).collect();
    let times = match (last_time, id2.len().checked_sub(1)) {
        (Some(last), Some(others)) => std::iter::repeat_n(0, others).chain([*last]).collect(),
        (Some(_), None) => return Err(ConvertError::Missing("value.associations.id2")),
        (None, _) => list.times.clone(),
    };
    Ok(v1::AssociationList { id2, times, id2_steps: Vec::new(), last_time: None, ..list })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_schema::live::ListedAssociation;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lists_come_back_as_they_went(ids in prop::collection::vec(any::<(u64, u64)>(), 0..9), dated: bool) {
            let last = ids.len().saturating_sub(1);
            let listed = |(at, (id2, time)): (usize, &(u64, u64))| ListedAssociation {
                id2: *id2,
                time: if dated || at == last { *time } else { 0 },
                data: None,
                version: None,
            };
            let out: Vec<ListedAssociation> = ids.iter().enumerate().map(listed).collect();
            let wire = compact(list_to_wire(&out));
            prop_assert!(wire.id2.is_empty() && (dated || wire.times.is_empty()));
            prop_assert_eq!(expanded(wire).and_then(list_from_wire), Ok(out));
        }
    }
}
