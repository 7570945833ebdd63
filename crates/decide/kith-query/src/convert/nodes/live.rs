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
            v1::AssociationsOfList { answer: Some(Answer::List(list_to_wire(out))), more: *more }
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
            Answer::List(list) => AssociationAnswer::List { out: list_from_wire(list)?, more: wire.more },
        })
    };
    let entry = |wire: v1::AssociationsOfKey| {
        wire.lists.into_iter().map(list).collect::<Result<_, _>>().map(AssociationsEntry::Answer)
    };
    wire.entries.into_iter().map(entry).collect()
}
