//! Values on the wire.

use super::{edges, live};
use crate::convert::{
    ConvertError,
    records::{body_error, groups_from_wire, groups_to_wire, records_from_wire, records_to_wire},
};
use kith_operators::{ListEntry, Records, Value};
use kith_wire::{
    body::{ListBody, ListsWriter, decode_lists, decode_set, encode_set},
    v1::{self, value::Value as Wire},
};

/// Encodes a value.
///
/// # Panics
/// If the value was merged and has unanswered lists: nodes answer all their keys.
pub fn value_to_wire(value: &Value) -> v1::Value {
    let value = match value {
        Value::Lists(entries) => {
            let mut writer = ListsWriter::default();
            for entry in entries {
                match entry {
                    ListEntry::NotInGraph => writer.not_in_graph(),
                    ListEntry::Longer(count) => writer.longer(*count),
                    ListEntry::Ids(ids) => writer.ids(ids),
                    ListEntry::Unanswered => unreachable!("a node answers all its keys"),
                }
            }
            Wire::Lists(writer.finish())
        }
        Value::Set(ids) => Wire::Set(encode_set(ids)),
        Value::Neighbourhood { ids, union } => {
            Wire::Neighbourhood(v1::Neighbourhood { ids: encode_set(ids), union: encode_set(union) })
        }
        Value::Tallies { ids, counts } => {
            Wire::Tallies(v1::Tallies { ids: encode_set(ids), counts: counts.clone() })
        }
        Value::Edges(entries) => Wire::Edges(edges::entries_to_wire(entries)),
        Value::Objects(entries) => Wire::Objects(live::object_entries_to_wire(entries)),
        Value::Associations(entries) => Wire::Associations(live::association_entries_to_wire(entries)),
        Value::Count(count) => Wire::Count(*count),
        Value::Exists(exists) => Wire::Exists(*exists),
        Value::Records(records) => Wire::Records(records_to_wire(records)),
        Value::Groups(groups) => Wire::Groups(groups_to_wire(groups)),
    };
    v1::Value { value: Some(value) }
}

/// Decodes a value for a question about `keys` keys.
///
/// # Errors
/// If it is missing or malformed, or has more records than keys.
pub fn value_from_wire(wire: v1::Value, keys: usize) -> Result<Value, ConvertError> {
    Ok(match wire.value.ok_or(ConvertError::Missing("value"))? {
        Wire::Lists(lists) => {
            let lists = decode_lists(&lists).map_err(body_error("value.lists"))?;
            Value::Lists(lists.into_iter().map(entry).collect())
        }
        Wire::Set(set) => Value::Set(decode_set(&set).map_err(body_error("value.set"))?),
        Wire::Neighbourhood(wire) => Value::Neighbourhood {
            ids: decode_set(&wire.ids).map_err(body_error("value.neighbourhood.ids"))?,
            union: decode_set(&wire.union).map_err(body_error("value.neighbourhood.union"))?,
        },
        Wire::Tallies(tallies) => {
            let ids = decode_set(&tallies.ids).map_err(body_error("value.tallies.ids"))?;
            if ids.len() != tallies.counts.len() {
                return Err(ConvertError::Missing("value.tallies.counts"));
            }
            Value::Tallies { ids, counts: tallies.counts }
        }
        Wire::Edges(entries) => Value::Edges(edges::entries_from_wire(entries)?),
        Wire::Objects(entries) => Value::Objects(live::object_entries_from_wire(entries)),
        Wire::Associations(entries) => Value::Associations(live::association_entries_from_wire(entries)?),
        Wire::Count(count) => Value::Count(count),
        Wire::Exists(exists) => Value::Exists(exists),
        Wire::Groups(groups) => Value::Groups(groups_from_wire(groups, keys)?),
        Wire::Records(body) => {
            Value::Records(records_from_wire(&body, keys).map_err(body_error("value.records"))?)
        }
    })
}

/// Decodes a node's reply to a question about `keys` keys.
///
/// # Errors
/// Those of [`value_from_wire`].
pub fn value_of_reply(reply: &mut v1::EvaluateReply, keys: usize) -> Result<Value, ConvertError> {
    match (reply.value.take(), &reply.slices[..]) {
        (Some(value), []) => value_from_wire(value, keys),
        (None, []) => Err(ConvertError::Missing("value")),
        (Some(_), _) => Err(ConvertError::Missing("either value or slices")),
        (None, slices) => {
            let mut records = Records::default();
            for slice in slices {
                let left = keys.saturating_sub(records.len());
                records.append(records_from_wire(slice, left).map_err(body_error("slices"))?);
            }
            Ok(Value::Records(records))
        }
    }
}

fn entry(body: ListBody) -> ListEntry {
    match body {
        ListBody::NotInGraph => ListEntry::NotInGraph,
        ListBody::Longer(count) => ListEntry::Longer(count),
        ListBody::Ids(ids) => ListEntry::Ids(ids),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use kith_operators::{
        AssociationsEntry, EdgePage, EdgePosition, EdgesEntry, Groups, ObjectEntry, RecordError, RecordsOver,
    };
    use kith_schema::compute::ComputeFault;
    use kith_schema::live::{AssociationAnswer, ListedAssociation, ObjectAnswer};
    use kith_wire::body::BodyError;

    #[test]
    fn every_value_comes_back_as_it_went() {
        let lists = vec![
            ListEntry::Ids(vec![]),
            ListEntry::NotInGraph,
            ListEntry::Longer(9),
            ListEntry::Ids(vec![1, 1005]),
        ];
        let values = [
            Value::Lists(lists),
            Value::Set(vec![0, u64::MAX]),
            Value::Neighbourhood { ids: vec![3], union: vec![] },
            Value::Tallies { ids: vec![4, 5], counts: vec![2, 1] },
            Value::Edges(vec![
                EdgesEntry::NotInGraph,
                EdgesEntry::Page(EdgePage {
                    ids: vec![9, 2],
                    columns: vec![vec![7, 7], vec![0, u64::MAX]],
                    next: Some(EdgePosition { value: 7, id: 2 }),
                }),
            ]),
            Value::Objects(vec![ObjectEntry::Absent, ObjectEntry::Found(object())]),
            Value::Associations(associations()),
            Value::Count(3),
            Value::Exists(true),
            Value::Records(records()),
            Value::Groups(Groups {
                records: records(),
                values: ["", "a"].iter().collect(),
                counts: vec![u64::MAX, 1],
                truncated: true,
            }),
        ];
        for value in values {
            assert_eq!(value_from_wire(value_to_wire(&value), 100), Ok(value));
        }
    }

    fn object() -> ObjectAnswer {
        let data = r#"{"name":"ada"}"#.to_owned();
        ObjectAnswer {
            id: 5,
            kind: "person".to_owned(),
            version: u64::MAX,
            data,
            text_id: kith_schema::live::TextId::new(kith_schema::live::TextIdForm::Text, "Ada").ok(),
        }
    }

    fn associations() -> Vec<AssociationsEntry> {
        let one = |data, version| ListedAssociation { id2: u64::MAX, time: 7, data, version };
        let with_data = vec![one(Some("{}".to_owned()), Some(0)), one(Some(String::new()), Some(u64::MAX))];
        let answers = [
            AssociationAnswer::Count(u64::MAX),
            AssociationAnswer::List { out: vec![one(None, None), one(None, None)], more: true },
            AssociationAnswer::List { out: with_data, more: false },
            AssociationAnswer::List { out: vec![], more: false },
        ];
        vec![AssociationsEntry::Answer(answers.to_vec()), AssociationsEntry::Answer(Vec::new())]
    }

    fn records() -> Records {
        let mut records = RecordsOver::new(5, Bytes::from_static(b"people"));
        assert!(records.found(6) && records.found(0));
        records.absent();
        records.error(RecordError::Unsuitable);
        records.unanswered();
        records.unsent();
        records.error(RecordError::Dimensions(ComputeFault { operator: 2, want: 64, got: 0 }));
        records.finish().expect("all bytes are taken")
    }

    #[test]
    fn a_reply_in_slices_is_the_records_of_all() {
        let slices = vec![
            records_to_wire(&records()),
            records_to_wire(&Records::default()),
            records_to_wire(&records()),
        ];
        let mut reply = v1::EvaluateReply { slices, ..Default::default() };
        let Ok(Value::Records(got)) = value_of_reply(&mut reply, 100) else { panic!("records") };
        assert!(got.iter().eq(records().iter().chain(records().iter())));
        let fewer = got.len() - 1;
        assert!(matches!(
            value_of_reply(&mut reply.clone(), fewer),
            Err(ConvertError::Body { field: "slices", source: BodyError::TooMany { .. } })
        ));
        let value = Some(value_to_wire(&Value::Count(1)));
        let both = v1::EvaluateReply { value, ..reply.clone() };
        for mut wrong in [both, v1::EvaluateReply::default()] {
            assert!(value_of_reply(&mut wrong, 100).is_err());
        }
        reply.slices[1] = Bytes::from_static(&[1, 9]);
        assert_eq!(
            value_of_reply(&mut reply, 100),
            Err(ConvertError::Body { field: "slices", source: BodyError::State(9) })
        );
    }

    #[test]
    fn tallies_without_their_counts_are_refused() {
        let wire = Wire::Tallies(v1::Tallies { ids: encode_set(&[1, 2]), counts: vec![1] });
        let got = value_from_wire(v1::Value { value: Some(wire) }, 2);
        assert_eq!(got, Err(ConvertError::Missing("value.tallies.counts")));
    }
}
