//! JSON in which no object has the same member twice. A parser that accepts duplicates silently drops one of them.

use serde::{
    Serialize,
    de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};
use std::fmt;

/// A JSON value in which no object has the same member twice.
pub struct Distinct(pub Value);

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Seed.deserialize(deserializer).map(Distinct)
    }
}

/// Returns the members of a value that serializes as a JSON object; for any other value, no members.
pub fn members(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value).expect("requests hold only strings, numbers and lists") {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

struct Seed;

impl<'de> DeserializeSeed<'de> for Seed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Seed)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom(format!("the member {name:?} is there twice")));
            }
            object.insert(name, members.next_value_seed(Seed)?);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::parse;
    use kith_types::ErrorCode;

    #[test]
    fn values_are_what_they_are_and_no_member_is_there_twice() {
        for text in [r#"{"a":[1,-2,0.5,1e300,18446744073709551615,true,null,"b\n"],"c":{"a":{}}}"#, "[]", "7"]
        {
            let Distinct(value) = serde_json::from_str(text).unwrap();
            assert_eq!(value, serde_json::from_str::<Value>(text).unwrap());
        }
        for text in
            [r#"{"op":"mget","store":"s","keys":[1],"keys":[2]}"#, r#"{"op":"mget","a":[{"b":1,"b":1}]}"#]
        {
            let refused = parse(text).unwrap_err();
            assert_eq!(refused.code, ErrorCode::BadRequest);
            assert!(refused.message.contains("is there twice at line 1 column"), "{}", refused.message);
        }
        assert!(parse(r#"{"op":"mget""#).unwrap_err().message.starts_with("the line is not JSON: EOF"));
    }
}
