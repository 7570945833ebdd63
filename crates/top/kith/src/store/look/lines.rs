//! Records as JSON lines. `kith store push` reads the same records back.

use crate::failure::Failure;
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use kith_schema::{KeyType, RecordView, Schema, ValueType};
use kith_types::ErrorCode;
use serde_json::Value;

/// The form in which the records of a version are written.
pub struct Lines {
    pub key: KeyType,
    pub value: ValueType,
    /// The store's key field. If there is one, a row of JSON or of a record is the whole object.
    pub key_field: Option<String>,
    /// The schema, if the values are records.
    pub schema: Option<Schema>,
}

impl Lines {
    /// Appends one record and a line break.
    ///
    /// # Errors
    /// `damaged` if the record does not match the store's definition. Nothing is written that would be read back as
    /// something else.
    pub fn put(&self, key: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let key = self.key(key)?;
        let json = self.value(value)?;
        match (&self.key_field, self.value) {
            // The value contains the key already.
            (Some(_), ValueType::Json) => out.extend_from_slice(json.as_bytes()),
            (Some(field), ValueType::Record) => self.put_whole(field, &key, &json, out),
            (field, _) => {
                let name = Value::from(field.as_deref().unwrap_or("key"));
                out.extend_from_slice(format!("{{{name}:{key},\"value\":{json}}}").as_bytes());
            }
        }
        out.push(b'\n');
        Ok(())
    }

    /// Appends a record with its key among the fields, unless the schema has a field of that name.
    fn put_whole(&self, field: &str, key: &Value, json: &str, out: &mut Vec<u8>) {
        let is_there = self.schema.as_ref().is_some_and(|schema| schema.index_of(field).is_some());
        match json.strip_prefix('{') {
            Some(rest) if !is_there => {
                let comma = if rest == "}" { "" } else { "," };
                out.extend_from_slice(format!("{{{}:{key}{comma}{rest}", Value::from(field)).as_bytes());
            }
            _ => out.extend_from_slice(json.as_bytes()),
        }
    }

    fn key(&self, key: &[u8]) -> Result<Value, Failure> {
        match self.key {
            KeyType::Id => match key.try_into() {
                Ok(id) => Ok(kith_terminal::ids::value(u64::from_le_bytes(id))),
                Err(_) => Err(odd("a key of type id does not have eight bytes")),
            },
            KeyType::String => Ok(Value::from(text(key)?)),
            KeyType::Bytes => Ok(Value::from(BASE64.encode(key))),
        }
    }

    fn value(&self, value: &[u8]) -> Result<String, Failure> {
        match (self.value, &self.schema) {
            (ValueType::Text, _) => Ok(Value::from(text(value)?).to_string()),
            (ValueType::Bytes, _) => Ok(Value::from(BASE64.encode(value)).to_string()),
            (ValueType::Json, _) => Ok(text(value)?.to_owned()),
            (ValueType::Record, Some(schema)) => {
                let json = RecordView::new(schema, value).and_then(|record| record.to_json());
                json.map_err(|error| odd(&error.to_string()))
            }
            (ValueType::Record, None) => Err(odd("the version has no schema")),
        }
    }
}

fn text(bytes: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(bytes).map_err(|_| odd("text is not UTF-8"))
}

/// The error for a record that does not match the store's definition.
pub fn odd(why: &str) -> Failure {
    let message = format!("a record does not match the store's definition: {why}");
    Failure::new(ErrorCode::Damaged, message, "push the version again, or export another one")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_schema::RecordWriter;

    fn line(lines: &Lines, key: &[u8], value: &[u8]) -> String {
        let mut out = Vec::new();
        lines.put(key, value, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn of(key: KeyType, value: ValueType, key_field: Option<&str>) -> Lines {
        Lines { key, value, key_field: key_field.map(str::to_owned), schema: None }
    }

    #[test]
    fn ids_are_numbers_and_bytes_are_base64() {
        let id = u64::MAX.to_le_bytes();
        let text = of(KeyType::Id, ValueType::Text, None);
        assert_eq!(line(&text, &id, b"a\"b"), "{\"key\":18446744073709551615,\"value\":\"a\\\"b\"}\n");
        let bytes = of(KeyType::Bytes, ValueType::Bytes, None);
        assert_eq!(line(&bytes, &[0, 255], &[]), "{\"key\":\"AP8=\",\"value\":\"\"}\n");
        let json = of(KeyType::String, ValueType::Json, Some("k"));
        assert_eq!(line(&json, b"x", b"{\"k\":\"x\",\"n\":1.50}"), "{\"k\":\"x\",\"n\":1.50}\n");
        assert!(text.put(b"short", b"", &mut Vec::new()).is_err());
        assert!(text.put(&id, b"\xff", &mut Vec::new()).is_err());
    }

    #[test]
    fn a_record_is_an_object_with_its_key_where_the_store_has_it() {
        let schema: Schema = r#"{"fields":[{"name":"age","type":"i64"}]}"#.parse().unwrap();
        let mut record = Vec::new();
        RecordWriter::new(&schema).write_json(r#"{"age":7}"#, &mut record).unwrap();
        let mut lines = of(KeyType::String, ValueType::Record, None);
        assert!(lines.put(b"x", &record, &mut Vec::new()).is_err(), "no schema, no meaning");
        lines.schema = Some(schema);
        assert_eq!(line(&lines, b"x", &record), "{\"key\":\"x\",\"value\":{\"age\":7}}\n");
        lines.key_field = Some("id".to_owned());
        assert_eq!(line(&lines, b"x", &record), "{\"id\":\"x\",\"age\":7}\n");
    }
}
