//! The properties of open graphs as JSON (`docs/formats/open-record.md`). Every value is read as exactly the value that was
//! written, with its type.
//!
//! Texts, booleans, lists, whole numbers, numbers with a fraction and most maps are plain JSON. Every other value carries its
//! type, as in [GraphSON](crate::graphson):
//!
//! ```
//! use kith_gremlin::{property, value::Value};
//!
//! # fn main() -> Result<(), kith_gremlin::GremlinError> {
//! assert_eq!(property::to_json(&Value::Int(29))?, "29");
//! assert_eq!(property::to_json(&Value::Long(29))?, r#"{"@type":"g:Int64","@value":29}"#);
//! assert_eq!(property::from_json("29.0")?, Value::Double(29.0));
//! # Ok(())
//! # }
//! ```

use crate::{
    error::{GremlinError, Result},
    graphson,
    value::Value,
};
use kith_schema::live::FieldsFault;
use kith_types::check_key;
use std::{collections::BTreeMap, fmt::Write, sync::Arc};

/// A property value nests at most this deep. A level with a type takes two levels of JSON, of which common parsers read 128.
pub const DEPTH_MAX: usize = 32;

/// The JSON of a property value. Fields of JSON objects are sorted.
///
/// # Errors
///
/// The value is of a type that properties cannot have, such as a vertex, or nests deeper than [`DEPTH_MAX`].
pub fn to_json(value: &Value) -> Result<String> {
    check(value, 0)?;
    Ok(graphson::to_json_with_few_types(value)?.to_string())
}

/// The property value that a JSON text means. A whole number is an `Int`, or a `Long` or `BigInteger` if it is too large. A
/// number with a fraction or an exponent is a `Double`, and an object without `@type` is a map with texts as keys.
///
/// # Errors
///
/// The text is not JSON, has a type that does not exist, or means a value that [`to_json`] refuses.
pub fn from_json(text: &str) -> Result<Value> {
    let value = graphson::read_value(text)?;
    check(&value, 0)?;
    Ok(value)
}

/// Refuses values that properties cannot have.
fn check(value: &Value, depth: usize) -> Result<()> {
    if depth == DEPTH_MAX {
        return Err(GremlinError::bad(format!("the value of a property nests deeper than {DEPTH_MAX}")));
    }
    let each = |value: &Value| check(value, depth + 1);
    match value {
        Value::List(values) => values.iter().try_for_each(each),
        Value::Set(values) => values.iter().try_for_each(each),
        Value::BulkSet(values) => values.iter().try_for_each(|(value, _)| each(value)),
        Value::Map(entries) => {
            entries.iter().try_for_each(|(key, value)| each(key).and_then(|()| each(value)))
        }
        Value::Entry(entry) => each(&entry.0).and_then(|()| each(&entry.1)),
        Value::Null
        | Value::Bool(_)
        | Value::Byte(_)
        | Value::Short(_)
        | Value::Int(_)
        | Value::Long(_)
        | Value::Float(_)
        | Value::Double(_)
        | Value::BigInteger(_)
        | Value::BigDecimal(_)
        | Value::Char(_)
        | Value::String(_)
        | Value::Uuid(_)
        | Value::DateTime(_)
        | Value::Duration { .. }
        | Value::Binary(_)
        | Value::Symbol(_) => Ok(()),
        other => {
            let message = format!("a property cannot have a value of the type {}", other.type_name());
            Err(GremlinError::bad(message))
        }
    }
}

/// The properties of an object or association of an open type, or a change to them, in which `null` removes a property.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties(BTreeMap<Arc<str>, Value>);

impl Properties {
    /// The properties in a JSON object. Fields whose value is `null` are kept, because the object may be a change.
    ///
    /// # Errors
    ///
    /// The text is not a JSON object, a key occurs twice or is not 1 to 255 bytes without control characters, or
    /// [`from_json`] refuses a value. The message names the key.
    pub fn from_json(text: &str) -> Result<Self> {
        let fields: graphson::Fields<'_> = serde_json::from_str(text)
            .map_err(|error| GremlinError::bad(format!("a JSON object is expected: {error}")))?;
        let mut properties = Self::default();
        for (key, raw) in fields.list {
            if properties.0.contains_key(&*key) {
                return Err(GremlinError::bad(format!("key {key:?} occurs twice")));
            }
            let value = from_json(raw.get()).map_err(|error| of_key(&key, &error))?;
            properties.set(&key, value)?;
        }
        Ok(properties)
    }

    /// The JSON object of the properties, sorted by key.
    ///
    /// # Errors
    ///
    /// [`to_json`] refuses a value. The message names the key.
    pub fn to_json(&self) -> Result<String> {
        let mut text = String::from("{");
        for (key, value) in &self.0 {
            let separator = if text.len() == 1 { "" } else { "," };
            let value = to_json(value).map_err(|error| of_key(key, &error))?;
            // Writing to a string does not fail.
            let _ = write!(text, "{separator}{}:{value}", serde_json::Value::from(&**key));
        }
        text.push('}');
        Ok(text)
    }

    /// Gives a property its value, in place of any earlier value. `null` means that the property is removed.
    ///
    /// # Errors
    ///
    /// The key is not 1 to 255 bytes without control characters.
    pub fn set(&mut self, key: &str, value: Value) -> Result<()> {
        check_key(key).map_err(|error| GremlinError::bad(error.to_string()))?;
        self.0.insert(key.into(), value);
        Ok(())
    }

    /// The value of a property; `None` if there is none.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// The keys and values, sorted by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Value)> {
        self.0.iter()
    }

    /// The properties after a change: those of the change, and those of `self` that the change does not name. No property is
    /// `null`.
    #[must_use]
    pub fn changed_by(mut self, change: Properties) -> Self {
        self.0.extend(change.0);
        self.0.retain(|_, value| !matches!(value, Value::Null));
        self
    }
}

impl From<GremlinError> for FieldsFault {
    fn from(error: GremlinError) -> Self {
        FieldsFault::Property(error.message)
    }
}

fn of_key(key: &str, error: &GremlinError) -> GremlinError {
    GremlinError::new(error.code, format!("key {key:?}: {}", error.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        from_json(text).and_then(|value| to_json(&value)).unwrap_or_else(|error| error.message)
    }

    #[test]
    fn what_json_expresses_exactly_is_plain() {
        for text in [
            "29",
            "-3000000000",
            "1.0",
            "-0.0",
            "1e+300",
            "true",
            "\"a\\n\"",
            "[1,[2.5],null]",
            r#"{"a":1,"b":{"c":[]}}"#,
            "{}",
        ] {
            assert_eq!(written(text), text);
        }
        assert_eq!(from_json("1.0"), Ok(Value::Double(1.0)));
        assert_eq!(from_json("1"), Ok(Value::Int(1)));
    }

    #[test]
    fn everything_else_has_its_type() {
        for text in [
            r#"{"@type":"g:Int64","@value":29}"#,
            r#"{"@type":"g:Double","@value":"NaN"}"#,
            r#"{"@type":"gx:BigInteger","@value":"36893488147419103232"}"#,
            r#"{"@type":"g:Set","@value":[1,{"@type":"g:Int64","@value":1}]}"#,
            r#"{"@type":"g:Map","@value":["b",1,"a",2]}"#,
            r#"{"@type":"g:Map","@value":["@type",1]}"#,
            r#"{"@type":"g:Map","@value":[1,"a"]}"#,
            r#"{"@type":"gx:OffsetDateTime","@value":"2023-08-02T00:00Z"}"#,
        ] {
            assert_eq!(written(text), text);
        }
        let long = r#"{"@type":"g:Int64","@value":3000000000}"#;
        assert_eq!(written(long), "3000000000", "a type that is not needed is left out");
        let large = written("36893488147419103232");
        assert_eq!(large, r#"{"@type":"gx:BigInteger","@value":"36893488147419103232"}"#);
    }

    #[test]
    fn what_cannot_be_a_property_is_named() {
        let vertex = r#"[{"@type":"g:Vertex","@value":{"id":1}}]"#;
        assert_eq!(written(vertex), "a property cannot have a value of the type Vertex");
        assert_eq!(
            written(r#"{"@type":"g:Nothing","@value":1}"#),
            "GraphSON, byte 30: the type \"g:Nothing\" is not supported"
        );
        assert!(written("{").contains("not JSON"));
        let deep = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(written(&deep(DEPTH_MAX)), deep(DEPTH_MAX));
        assert_eq!(written(&deep(DEPTH_MAX + 1)), "the value of a property nests deeper than 32");
    }

    #[test]
    fn records_are_sorted_and_changes_remove_what_is_null() {
        let read = |text: &str| Properties::from_json(text);
        let base =
            read(r#"{"b":1, "a":"x", "c":null}"#).expect("properties").changed_by(Properties::default());
        assert_eq!(base.to_json().expect("written"), r#"{"a":"x","b":1}"#);
        let change = read(r#"{"a":null,"z":[{"@type":"g:Int64","@value":1}]}"#).expect("properties");
        let changed = base.changed_by(change).to_json().expect("written");
        assert_eq!(changed, r#"{"b":1,"z":[{"@type":"g:Int64","@value":1}]}"#);
        let refused = |text: &str| read(text).expect_err("refused").message;
        assert_eq!(refused(r#"{"a":1,"a":2}"#), "key \"a\" occurs twice");
        assert!(refused("[1]").starts_with("a JSON object is expected"));
        assert!(refused(r#"{"":1}"#).contains("1 to 255 bytes"));
        let wrong = refused(r#"{"k":{"@type":"g:Int32","@value":"x"}}"#);
        assert!(wrong.starts_with("key \"k\": GraphSON, byte 28: g:Int32"), "{wrong}");
    }
}
