//! The id at the beginning of an object's record (`docs/formats/graph-types.md`): the number of its form, its length and its
//! text. It stands outside of the fields, so no read returns it as a field, and no change of fields changes it.

use crate::{Data, FieldsFault};
use kith_schema::live::{TextId, TextIdForm};
use kith_types::delta::{put_varint, take_varint};
use std::borrow::Cow;

/// The byte at the beginning of a record whose object has only a number, in types in which each record begins with an id.
const NO_TEXT: u8 = 0;

/// Whether records of a type begin with an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordIds {
    /// No record does: associations, and objects of types whose ids are numbers.
    None,
    /// Some do: objects of open types. Their fields begin with a brace, which is the number of no form.
    Some,
    /// All do: objects of types that are declared with `ids = "text"`.
    All,
}

impl RecordIds {
    /// Splits a record into the id at its beginning and the fields.
    pub fn split(self, data: &Data) -> Result<(Option<TextId>, Cow<'_, Data>), FieldsFault> {
        let (form, rest) = match (self, data.bytes.split_first()) {
            (RecordIds::None, _) | (_, None) | (RecordIds::Some, Some((b'{', _))) => {
                return Ok((None, Cow::Borrowed(data)));
            }
            (_, Some(split)) => split,
        };
        let fields = |bytes: &[u8]| Cow::Owned(Data { schema: data.schema, bytes: bytes.into() });
        if self == RecordIds::All && *form == NO_TEXT {
            return Ok((None, fields(rest)));
        }
        let (id, rest) = taken(*form, rest).ok_or(FieldsFault::DamagedId)?;
        Ok((Some(id), fields(rest)))
    }

    /// Puts an id before the fields of a record. There must be none in types that have no ids in records.
    pub fn join(self, id: Option<&TextId>, data: Data) -> Data {
        let mut bytes = Vec::new();
        match (self, id) {
            (RecordIds::None, _) | (RecordIds::Some, None) => return data,
            (RecordIds::All, None) => bytes.push(NO_TEXT),
            (RecordIds::Some | RecordIds::All, Some(id)) => {
                bytes.push(id.form().number());
                put_varint(&mut bytes, id.as_str().len() as u64);
                bytes.extend(id.as_str().as_bytes());
            }
        }
        bytes.extend(&*data.bytes);
        Data { schema: data.schema, bytes: bytes.into() }
    }
}

/// Takes an id whose form has a number.
fn taken(form: u8, mut rest: &[u8]) -> Option<(TextId, &[u8])> {
    let form = TextIdForm::of_number(form)?;
    let length = usize::try_from(take_varint(&mut rest).ok()?).ok()?;
    let (text, rest) = rest.split_at_checked(length)?;
    Some((TextId::new(form, std::str::from_utf8(text).ok()?).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ids_and_fields_come_back_as_they_went(
            text in "\\PC{1,64}",
            form in 1u8..=3,
            fields in prop_oneof![Just(String::new()), "\\{\\PC{0,20}\\}"],
            is_given: bool,
        ) {
            let id = TextId::new(TextIdForm::of_number(form).unwrap(), &text).unwrap();
            let id = is_given.then_some(id);
            let data = Data { schema: 3, bytes: fields.as_bytes().into() };
            for ids in [RecordIds::Some, RecordIds::All] {
                let joined = ids.join(id.as_ref(), data.clone());
                let (found, rest) = ids.split(&joined).unwrap();
                prop_assert_eq!((&found, &*rest), (&id, &data));
                for end in 1..joined.bytes.len().min(text.len()) {
                    let cut = Data { schema: 3, bytes: joined.bytes[..end].into() };
                    prop_assert!(!is_given || ids.split(&cut).is_err());
                }
            }
        }

        #[test]
        fn damaged_records_are_errors_or_records(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let data = Data { schema: 0, bytes: bytes.into() };
            for ids in [RecordIds::None, RecordIds::Some, RecordIds::All] {
                let _ = ids.split(&data);
            }
        }
    }
}
