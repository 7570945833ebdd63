//! The fields of a JSON object and the items of an array, whose values are not yet parsed.

use crate::{
    error::GremlinError,
    room::{HEAD, Room},
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use std::fmt;

/// The names and texts of the fields, in their order.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a> {
    pub list: Vec<(String, &'a RawValue)>,
    /// The part taken of the room for decoding.
    pub bytes: usize,
}

impl<'a> Fields<'a> {
    /// The text of a field; of several with one name, the last.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.list.iter().rev().find(|(field, _)| field == name).map(|(_, raw)| *raw)
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        FieldsSeed { room: None, error: &mut None }.deserialize(deserializer)
    }
}

/// Reads the fields of an object.
pub(super) struct FieldsSeed<'r> {
    pub room: Option<&'r mut Room>,
    /// Why there was no room.
    pub error: &'r mut Option<GremlinError>,
}

impl<'a> DeserializeSeed<'a> for FieldsSeed<'_> {
    type Value = Fields<'a>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for FieldsSeed<'_> {
    type Value = Fields<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Fields::default();
        while let Some(name) = map.next_key::<String>()? {
            if let Some(room) = &mut self.room {
                let before = room.taken();
                if let Err(error) = room.grow(&mut fields.list).and_then(|()| room.take(HEAD + name.len())) {
                    *self.error = Some(error);
                    return Err(A::Error::custom("no room"));
                }
                fields.bytes += room.taken() - before;
            }
            fields.list.push((name, map.next_value()?));
        }
        Ok(fields)
    }
}

/// Hands over the items of an array, one after another.
pub(super) struct ItemsSeed<F>(pub F);

impl<'a, F: FnMut(&'a RawValue) -> Result<(), GremlinError>> DeserializeSeed<'a> for ItemsSeed<F> {
    type Value = Result<(), GremlinError>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'a, F: FnMut(&'a RawValue) -> Result<(), GremlinError>> Visitor<'a> for ItemsSeed<F> {
    type Value = Result<(), GremlinError>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'a>>(mut self, mut items: A) -> Result<Self::Value, A::Error> {
        while let Some(item) = items.next_element()? {
            if let Err(error) = self.0(item) {
                // The rest is not read, which the deserializer must not take for a mistake.
                while items.next_element::<serde::de::IgnoredAny>()?.is_some() {}
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }
}
