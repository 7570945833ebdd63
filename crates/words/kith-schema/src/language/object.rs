//! A JSON object that keeps the order of its members, and repeated members.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// The members in the order of the text, including repeated ones.
pub(super) struct Object(pub(super) Vec<(String, Member)>);

/// The members of a schema. Objects occur only in lists, and keep their order there.
pub(super) enum Member {
    Objects(Vec<Object>),
    Value(Value),
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let member = match name.as_str() {
                "fields" => Member::Objects(map.next_value()?),
                _ => Member::Value(map.next_value()?),
            };
            members.push((name, member));
        }
        Ok(Object(members))
    }
}
