//! Objects and associations of a live graph on the wire: queries and answers.

use super::ConvertError;
use crate::AssociationsAnswer;
use kith_schema::live::{
    AssociationRead, ListPlace, ListedAssociation, ObjectAnswer, ObjectFind, Select, Start, TextId,
    TextIdForm,
};
use kith_wire::v1::{self, association_read::Select as WireSelect, associations_range::Start as WireStart};

pub(crate) fn find_to_wire(find: &ObjectFind) -> v1::ObjectFind {
    let ObjectFind { kind, field, values, after, limit } = find.clone();
    v1::ObjectFind { r#type: kind, field, values, after, limit }
}

pub(crate) fn find_from_wire(wire: v1::ObjectFind) -> ObjectFind {
    let v1::ObjectFind { r#type: kind, field, values, after, limit } = wire;
    ObjectFind { kind, field, values, after, limit }
}

pub(crate) fn read_to_wire(read: &AssociationRead) -> v1::AssociationRead {
    let select = match &read.select {
        Select::Ids { ids, high, low } => {
            WireSelect::To(v1::AssociationsTo { ids: ids.clone(), high: *high, low: *low })
        }
        Select::Count => WireSelect::Count(v1::AssociationsCount {}),
        Select::Range { start, limit } => {
            let start = match *start {
                Start::Index(index) => WireStart::Index(index),
                Start::After(ListPlace { time, id2 }) => WireStart::After(v1::AssociationPlace { time, id2 }),
            };
            WireSelect::Range(v1::AssociationsRange { start: Some(start), limit: *limit })
        }
        Select::Times { high, low, limit } => {
            WireSelect::Times(v1::AssociationsTimes { high: *high, low: *low, limit: *limit })
        }
    };
    v1::AssociationRead {
        r#type: read.kind.clone(),
        select: Some(select),
        with_data: read.with_data,
        with_versions: read.with_versions,
    }
}

pub(crate) fn read_from_wire(wire: &v1::AssociationRead) -> Result<AssociationRead, ConvertError> {
    let select = match wire.select.as_ref().ok_or(ConvertError::Missing("associations.select"))? {
        WireSelect::To(to) => Select::Ids { ids: to.ids.clone(), high: to.high, low: to.low },
        WireSelect::Count(_) => Select::Count,
        WireSelect::Range(range) => {
            let start = match range.start {
                None => Start::Index(0),
                Some(WireStart::Index(index)) => Start::Index(index),
                Some(WireStart::After(v1::AssociationPlace { time, id2 })) => {
                    Start::After(ListPlace { time, id2 })
                }
            };
            Select::Range { start, limit: range.limit }
        }
        WireSelect::Times(times) => Select::Times { high: times.high, low: times.low, limit: times.limit },
    };
    Ok(AssociationRead {
        kind: wire.r#type.clone(),
        select,
        with_data: wire.with_data,
        with_versions: wire.with_versions,
    })
}

pub(crate) fn object_to_wire(object: Option<&ObjectAnswer>) -> v1::ObjectReply {
    let object = object.map(|object| v1::Object {
        id: object.id,
        r#type: object.kind.clone(),
        version: object.version,
        data: object.data.clone(),
        text_id: object.text_id.as_ref().map(text_id_to_wire),
    });
    v1::ObjectReply { object }
}

pub(crate) fn object_from_wire(wire: v1::ObjectReply) -> Option<ObjectAnswer> {
    let v1::Object { id, r#type, version, data, text_id } = wire.object?;
    // Nodes check ids when objects are added, and records when they are read.
    let text_id = text_id.and_then(|text_id| text_id_from_wire(&text_id).ok());
    Some(ObjectAnswer { id, kind: r#type, version, data, text_id })
}

pub(crate) fn text_id_to_wire(id: &TextId) -> v1::TextId {
    v1::TextId { text: id.as_str().to_owned(), form: id.form().number().into() }
}

/// Decodes an id that is a text.
///
/// # Errors
/// A message: its form is unknown, or its length is not allowed.
pub(crate) fn text_id_from_wire(wire: &v1::TextId) -> Result<TextId, String> {
    let form = u8::try_from(wire.form).ok().and_then(TextIdForm::of_number);
    let form = form.ok_or_else(|| format!("text_id.form {} is unknown", wire.form))?;
    TextId::new(form, &wire.text).map_err(|error| format!("text_id: {error}"))
}

pub(crate) fn objects_to_wire(objects: &[Option<ObjectAnswer>]) -> v1::ObjectsReply {
    v1::ObjectsReply { objects: objects.iter().map(|object| object_to_wire(object.as_ref())).collect() }
}

pub(crate) fn objects_from_wire(wire: v1::ObjectsReply) -> Vec<Option<ObjectAnswer>> {
    wire.objects.into_iter().map(object_from_wire).collect()
}

pub(crate) fn associations_to_wire(answer: &AssociationsAnswer) -> v1::AssociationsReply {
    v1::AssociationsReply { list: Some(list_to_wire(&answer.out)), more: answer.more }
}

pub(crate) fn associations_from_wire(
    wire: v1::AssociationsReply,
) -> Result<AssociationsAnswer, ConvertError> {
    Ok(AssociationsAnswer { out: list_from_wire(wire.list.unwrap_or_default())?, more: wire.more })
}

/// All associations of a list have their fields, or none has; likewise their versions.
pub(super) fn list_to_wire(out: &[ListedAssociation]) -> v1::AssociationList {
    v1::AssociationList {
        id2: out.iter().map(|association| association.id2).collect(),
        times: out.iter().map(|association| association.time).collect(),
        data: out.iter().filter_map(|association| association.data.clone()).collect(),
        versions: out.iter().filter_map(|association| association.version).collect(),
        ..v1::AssociationList::default()
    }
}

pub(super) fn list_from_wire(wire: v1::AssociationList) -> Result<Vec<ListedAssociation>, ConvertError> {
    let v1::AssociationList { id2, times, data, versions, .. } = wire;
    if id2.len() != times.len() {
        return Err(ConvertError::Missing("associations.times"));
    }
    if !data.is_empty() && data.len() != id2.len() {
        return Err(ConvertError::Missing("associations.data"));
    }
    if !versions.is_empty() && versions.len() != id2.len() {
        return Err(ConvertError::Missing("associations.versions"));
    }
    let (mut data, mut versions) = (data.into_iter(), versions.into_iter());
    let association =
        |(id2, time)| ListedAssociation { id2, time, data: data.next(), version: versions.next() };
    Ok(id2.into_iter().zip(times).map(association).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_read_comes_back_as_it_went() {
        let (high, low) = (Some(u64::MAX), Some(0));
        let selects = [
            Select::Ids { ids: vec![3, u64::MAX], high, low: None },
            Select::Count,
            Select::Range { start: Start::Index(7), limit: None },
            Select::Range { start: Start::After(ListPlace { time: 9, id2: 2 }), limit: Some(10) },
            Select::Times { high: None, low, limit: Some(1) },
        ];
        for (index, select) in selects.into_iter().enumerate() {
            let (with_data, with_versions) = (index % 2 == 0, index % 3 == 0);
            let read = AssociationRead { kind: "likes".to_owned(), select, with_data, with_versions };
            assert_eq!(read_from_wire(&read_to_wire(&read)), Ok(read));
        }
        let nothing = v1::AssociationRead::default();
        assert_eq!(read_from_wire(&nothing), Err(ConvertError::Missing("associations.select")));
    }

    #[test]
    fn lists_of_different_lengths_are_refused() {
        let two = v1::AssociationList { id2: vec![1, 2], times: vec![5, 4], ..Default::default() };
        assert!(list_from_wire(two.clone()).is_ok());
        let list = v1::AssociationList { times: vec![5], ..two.clone() };
        assert_eq!(list_from_wire(list), Err(ConvertError::Missing("associations.times")));
        let list = v1::AssociationList { data: vec!["{}".to_owned()], ..two.clone() };
        assert_eq!(list_from_wire(list), Err(ConvertError::Missing("associations.data")));
        let list = v1::AssociationList { versions: vec![1, 2, 3], ..two };
        assert_eq!(list_from_wire(list), Err(ConvertError::Missing("associations.versions")));
    }
}
