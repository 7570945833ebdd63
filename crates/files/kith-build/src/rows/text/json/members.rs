//! Finds the members of an object that are the key and the value.

use super::raw::Name;
use crate::rows::fault::RowFault;
use crate::rows::options::{KEY_FIELD, RowOptions, VALUE_BASE64_FIELD, VALUE_FIELD, ValueShape};
use crate::rows::value::json_fault;
use kith_schema::nearest;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Whether the value is the whole object and not one of its members.
pub(super) fn is_whole(options: &RowOptions) -> bool {
    let can_be = matches!(options.value, ValueShape::Json | ValueShape::Record(_));
    options.key_field.is_some() && options.value_field.is_none() && can_be
}

/// The key and value members, as they are written.
#[derive(Default)]
pub(super) struct Members<'a> {
    pub(super) key: Option<&'a RawValue>,
    pub(super) value: Option<&'a RawValue>,
}

/// Finds the members of a line that are its key and its value.
pub(super) fn members<'a>(line: &'a str, options: &RowOptions) -> Result<Members<'a>, RowFault> {
    let mut fault = None;
    let mut json = serde_json::Deserializer::from_str(line);
    let read = MembersSeed { options, fault: &mut fault }.deserialize(&mut json);
    let ended = read.and_then(|members| json.end().map(|()| members));
    ended.map_err(|error| fault.unwrap_or_else(|| json_fault(&error)))
}

struct MembersSeed<'s> {
    options: &'s RowOptions,
    fault: &'s mut Option<RowFault>,
}

impl<'de> DeserializeSeed<'de> for MembersSeed<'_> {
    type Value = Members<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Members<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MembersSeed<'_> {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let options = self.options;
        let whole = is_whole(options);
        let base64 = options.value == ValueShape::Bytes && options.value_field.is_none();
        let mut members = Members::default();
        while let Some(Name(name)) = map.next_key()? {
            let member = if name == options.key_name() {
                &mut members.key
            } else if !whole && (name == options.value_name() || (base64 && name == VALUE_BASE64_FIELD)) {
                &mut members.value
            } else if whole || options.value_field.is_some() {
                map.next_value::<IgnoredAny>()?;
                continue;
            } else {
                let near = nearest(&name, [KEY_FIELD, VALUE_FIELD]);
                *self.fault = Some(RowFault::UnknownMember { name: name.into_owned(), near });
                return Err(A::Error::custom("refused"));
            };
            if member.is_some() {
                *self.fault = Some(RowFault::Repeated { name: name.into_owned() });
                return Err(A::Error::custom("refused"));
            }
            *member = Some(map.next_value()?);
        }
        Ok(members)
    }
}
