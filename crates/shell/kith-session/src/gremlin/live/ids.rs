//! Ids of vertices that their creators gave them: texts, UUIDs, and whole numbers without 64 bits or below 0. The graph computes a
//! number from each, or one of two, which the object at that number tells apart (`docs/formats/graph-types.md`).

use crate::gremlin::ids::number;
use kith_gremlin::value::{ElementId, ShownId, Value};
use kith_live::{NotATextId, ObjectAnswer, TextId, TextIdForm, text_id_numbers};
use kith_types::PartitionCount;
use num_bigint::BigInt;
use std::{collections::HashMap, sync::Arc};

/// What an id in a traversal names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VertexName {
    /// The object with this number.
    Number(u64),
    /// The object with this text.
    Text(TextId),
}

impl VertexName {
    /// What an id names in a graph; `None` if no vertex can have it. `keeps_texts` says whether the graph has ids that are texts.
    pub fn of(id: &ElementId, keeps_texts: bool) -> Option<Self> {
        if !keeps_texts {
            return number(id).map(Self::Number);
        }
        let text_id = match text_id(id) {
            None => return number(id).map(Self::Number),
            Some(text_id) => text_id.ok()?,
        };
        Some(text_id.digits().map_or(Self::Text(text_id), Self::Number))
    }

    /// The numbers of the objects that it may name.
    pub fn numbers(&self, count: PartitionCount) -> impl Iterator<Item = u64> + use<> {
        let (first, second) = match self {
            Self::Number(number) => (*number, None),
            Self::Text(text_id) => text_id_numbers(text_id, count),
        };
        std::iter::once(first).chain(second)
    }

    /// The object that it names among those that have been looked up.
    pub fn object<'o>(
        &self,
        objects: &'o HashMap<u64, ObjectAnswer>,
        count: PartitionCount,
    ) -> Option<&'o ObjectAnswer> {
        let is_named = |object: &&ObjectAnswer| match (self, &object.text_id) {
            (Self::Number(_), _) => true,
            (Self::Text(wanted), Some(found)) => wanted.as_str() == found.as_str(),
            (Self::Text(_), None) => false,
        };
        self.numbers(count).filter_map(|number| objects.get(&number)).find(is_named)
    }

    /// The number that a new object with this id gets, if the objects at these numbers have these texts.
    pub fn new_number(&self, taken: &HashMap<u64, Option<String>>, count: PartitionCount) -> u64 {
        let text = self.text();
        let is_free = |number: &u64| taken.get(number).is_none_or(|other| other.as_ref() == Some(&text));
        let last = self.numbers(count).last().unwrap_or_default();
        // If other objects are at both numbers, the leader refuses the new one.
        self.numbers(count).find(is_free).unwrap_or(last)
    }

    /// The text of the id. Ids with equal texts are the same.
    pub fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text_id) => text_id.to_string(),
        }
    }
}

/// An id that is not just a number of an object: a text, a UUID, or another whole number. `None` for other values.
pub(super) fn text_id(id: &ElementId) -> Option<Result<TextId, NotATextId>> {
    let form = match id {
        Value::String(_) => TextIdForm::Text,
        Value::Uuid(_) => TextIdForm::Uuid,
        Value::Byte(_) | Value::Short(_) | Value::Int(_) | Value::Long(_) | Value::BigInteger(_)
            if number(id).is_none() =>
        {
            TextIdForm::Number
        }
        _ => return None,
    };
    Some(TextId::new(form, &id.to_string()))
}

/// The id as its creator gave it. A whole number is a `Long`, or a `BigInteger` if it does not fit.
fn given(text_id: &TextId) -> ElementId {
    let text = text_id.as_str();
    let given = match text_id.form() {
        TextIdForm::Text => None,
        TextIdForm::Uuid => text.parse().ok().map(Value::Uuid),
        TextIdForm::Number => match text.parse() {
            Ok(number) => Some(Value::Long(number)),
            Err(_) => text.parse::<BigInt>().ok().map(|number| Value::BigInteger(Arc::new(number))),
        },
    };
    given.unwrap_or_else(|| Value::text(text))
}

/// The id that users see of an object which has been read.
pub(super) fn shown(text_id: Option<&TextId>) -> ShownId {
    text_id.map_or(ShownId::Same, |text_id| ShownId::Given(given(text_id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_as_they_were_given() {
        let uuid = Value::Uuid("1b4e28ba-2fa1-11d2-883f-0016d3cca427".parse().expect("a UUID"));
        let large = Value::BigInteger(Arc::new("18446744073709551616".parse().expect("a number")));
        for id in [Value::text("x"), Value::text("5"), Value::text("007"), uuid, Value::Long(-5), large] {
            let text_id = text_id(&id).expect("it is no number of an object").expect("it is short");
            assert_eq!(given(&text_id), id);
        }
        for id in [Value::Int(5), Value::Long(i64::MAX), Value::Double(-1.0), Value::Bool(true), Value::Null]
        {
            assert_eq!(text_id(&id), None, "{id}");
        }
        assert!(text_id(&Value::text("")).is_some_and(|id| id.is_err()));
    }

    #[test]
    fn the_usual_digits_are_a_number_and_other_texts_are_not() {
        let of = |id: Value, keeps_texts| VertexName::of(&id, keeps_texts).map(|named| named.text());
        for keeps_texts in [false, true] {
            assert_eq!(of(Value::Short(7), keeps_texts).as_deref(), Some("7"));
            assert_eq!(VertexName::of(&Value::text("7"), keeps_texts), Some(VertexName::Number(7)));
        }
        assert_eq!((of(Value::text("x"), false), of(Value::Int(-1), false)), (None, None));
        assert_eq!(of(Value::text("x"), true).as_deref(), Some("x"));
        assert_eq!(of(Value::Int(-1), true).as_deref(), Some("-1"));
        assert_eq!(of(Value::text("007"), true).as_deref(), Some("007"));
        assert_eq!((of(Value::Double(1.0), true), of(Value::text(""), true)), (None, None));
    }
}
