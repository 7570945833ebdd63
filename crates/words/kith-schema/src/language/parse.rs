//! Parses the text of a schema. Parsing is strict, because a misspelled `nullable` must not be ignored.

use super::object::{Member, Object};
use super::{SchemaFault, TypeError};
use crate::{Field, FieldType, Schema, nearest};
use serde_json::Value;
use std::str::FromStr;

const SCHEMA_MEMBERS: &[&str] = &["kith_schema", "fields"];
const FIELD_MEMBERS: &[&str] = &["name", "type", "nullable", "default"];

impl FromStr for Schema {
    type Err = SchemaFault;

    /// Parses a schema's text (`docs/formats/schema.md`).
    fn from_str(text: &str) -> Result<Self, SchemaFault> {
        schema(text)
    }
}

fn schema(text: &str) -> Result<Schema, SchemaFault> {
    // Text cannot begin with a mark of UTF-16.
    let mark = kith_types::byte_order_mark(text.as_bytes()).unwrap_or_default();
    let object: Object = serde_json::from_str(&text[mark..]).map_err(|error| {
        let detail = error.to_string();
        let detail = detail.split(" at line ").next().unwrap_or_default().to_owned();
        SchemaFault::Syntax { detail, line: error.line(), column: error.column() }
    })?;
    let part = "schema";
    // The version is checked first, because another version may have other members.
    let version = object.0.iter().find(|(name, _)| name == "kith_schema");
    if let Some((_, Member::Value(version))) = version
        && *version != 1
    {
        return Err(SchemaFault::Version { got: version.to_string() });
    }
    check_members(part, &object, SCHEMA_MEMBERS)?;
    let fields = object.0.into_iter().find_map(|(name, member)| match member {
        Member::Objects(objects) if name == "fields" => Some(objects),
        _ => None,
    });
    let fields = fields.ok_or(SchemaFault::Missing { part: part.to_owned(), name: "fields" })?;
    let fields = fields.into_iter().enumerate().map(|(index, object)| field(index, object));
    Ok(Schema::new(fields.collect::<Result<_, _>>()?)?)
}

fn check_members(part: &str, object: &Object, known: &'static [&'static str]) -> Result<(), SchemaFault> {
    for (index, (name, _)) in object.0.iter().enumerate() {
        let is_known = known.contains(&name.as_str());
        let twice = object.0[..index].iter().any(|(other, _)| other == name);
        if !is_known || twice {
            let near = if is_known { None } else { nearest(name, known.iter().copied()) };
            let (part, name) = (part.to_owned(), name.clone());
            return Err(SchemaFault::Member { part, name, twice: is_known, known, near });
        }
    }
    Ok(())
}

fn field(index: usize, object: Object) -> Result<Field, SchemaFault> {
    let named = object.0.iter().find_map(|(name, member)| match (name.as_str(), member) {
        ("name", Member::Value(Value::String(name))) => Some(name.clone()),
        _ => None,
    });
    let part = match &named {
        Some(name) => format!("field {name:?}"),
        None => format!("field {} (from 1)", index + 1),
    };
    check_members(&part, &object, FIELD_MEMBERS)?;
    let kind = |name, expected| SchemaFault::Kind { part: part.clone(), name, expected };
    let missing = |name| SchemaFault::Missing { part: part.clone(), name };
    let (mut field_type, mut nullable, mut default, mut has_name) = (None, false, None, false);
    for (name, member) in object.0 {
        let Member::Value(value) = member else { continue };
        match (name.as_str(), value) {
            ("name", value) => {
                has_name = true;
                value.as_str().ok_or_else(|| kind("name", "a text"))?;
            }
            ("type", Value::String(text)) => {
                let wrong = |source: TypeError| SchemaFault::Type { part: part.clone(), source };
                field_type = Some(text.parse::<FieldType>().map_err(wrong)?);
            }
            ("type", _) => return Err(kind("type", "a text")),
            ("nullable", Value::Bool(is)) => nullable = is,
            ("nullable", _) => return Err(kind("nullable", "true or false")),
            (_, Value::Null) => {
                return Err(kind("default", "a value of the field's type (null needs no default)"));
            }
            (_, value) => default = Some(value),
        }
    }
    if !has_name {
        return Err(missing("name"));
    }
    let name = named.ok_or_else(|| kind("name", "a text"))?;
    let field_type = field_type.ok_or_else(|| missing("type"))?;
    Ok(Field { name, field_type, nullable, default })
}

#[cfg(test)]
mod tests {
    use crate::Schema;

    fn error(text: &str) -> String {
        text.parse::<Schema>().unwrap_err().to_string()
    }

    #[test]
    fn slips_are_named_with_what_was_meant() {
        let got = error(r#"{"fields":[{"name":"a","type":"text","nulable":true}]}"#);
        assert!(got.starts_with("field \"a\" has an unknown member \"nulable\""), "{got}");
        assert!(got.ends_with("did you mean \"nullable\"?"), "{got}");
        let got = error(r#"{"feilds":[]}"#);
        assert!(got.ends_with("did you mean \"fields\"?"), "{got}");
    }

    #[test]
    fn every_part_is_checked() {
        assert!(error(r#"{"fields":[{"name":"a","type":"text"},{"type":"text"}]}"#).contains("field 2"));
        assert!(error(r#"{"fields":[{"name":"a"}]}"#).contains("no member \"type\""));
        assert!(error(r#"{"fields":[{"name":1,"type":"text"}]}"#).contains("\"name\" of field 1"));
        assert!(error(r#"{"fields":[{"name":"a","type":7}]}"#).contains("\"type\" of field \"a\""));
        assert!(error(r#"{"fields":[{"name":"a","type":"i64","nullable":1}]}"#).contains("true or false"));
        assert!(error(r#"{"fields":[{"name":"a","type":"i64","default":null}]}"#).contains("null needs no"));
        assert!(
            error(r#"{"fields":[{"name":"a","name":"b","type":"i64"}]}"#).contains("more than one member")
        );
        assert!(error(r#"{"kith_schema":2,"fields":[{"name":"a","type":"i64"}]}"#).contains("version 2"));
        assert!(error(r#"{"kith_schema":1}"#).contains("no member \"fields\""));
        assert!(error("[1").contains("line 1"));
        assert!(error(r#"{"fields":[{"name":"a","type":"i64"}]} x"#).contains("trailing"));
        assert!(
            error(r#"{"fields":[{"name":"a","type":"i64"},{"name":"a","type":"i64"}]}"#).contains("twice")
        );
        assert!(error(r#"{"fields":[]}"#).contains("at least one"));
        assert!(error(r#"{"fields":[{"name":"a","type":"i32","default":3000000000}]}"#).contains("default"));
    }
}
