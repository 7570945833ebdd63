//! The form of ids in the JSON of commands: numbers, or with `--ids-as-text` texts for programs that round numbers above 2^53,
//! such as those in JavaScript.

mod texts;

pub use kith_query::ids::{Id, many, one, optional};

use serde::{Serialize, Serializer};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use texts::TextIds;

/// Whether ids are texts. It is a flag of the command, set before anything is printed.
static AS_TEXT: AtomicBool = AtomicBool::new(false);

/// The greatest number up to which every whole number is exact in JavaScript.
const EXACT_MAX: u64 = 1 << 53;

/// Prints ids as texts from now on.
pub fn print_as_text() {
    AS_TEXT.store(true, Ordering::Relaxed);
}

fn are_texts() -> bool {
    AS_TEXT.load(Ordering::Relaxed)
}

/// Returns a value as JSON, with ids in the form that the command asks for.
pub(crate) fn to_json(value: &impl Serialize) -> serde_json::Result<String> {
    if are_texts() { with_texts(value) } else { serde_json::to_string(value) }
}

fn with_texts(value: &impl Serialize) -> serde_json::Result<String> {
    let mut json = Vec::new();
    value.serialize(TextIds(&mut serde_json::Serializer::new(&mut json)))?;
    Ok(String::from_utf8(json).expect("JSON is UTF-8"))
}

/// Writes a key of a store. It is an id if it is a number.
///
/// # Errors
/// Those of the serializer.
pub fn key<S: Serializer>(key: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    match key.as_u64() {
        Some(id) => one(&id, serializer),
        None => key.serialize(serializer),
    }
}

/// Returns an id as a JSON value.
pub fn value(id: u64) -> Value {
    if are_texts() { Value::from(id.to_string()) } else { Value::from(id) }
}

/// Changes the results of a traversal if ids are texts: ids of elements, and every whole number that JavaScript would round,
/// because a step like `id()` returns ids as plain numbers.
pub fn in_results(mut results: Vec<Value>) -> Vec<Value> {
    if are_texts() {
        results.iter_mut().for_each(to_texts);
    }
    results
}

fn to_texts(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            if size.is_some_and(|size| EXACT_MAX < size) {
                *value = Value::from(number.to_string());
            }
        }
        Value::Array(values) => values.iter_mut().for_each(to_texts),
        Value::Object(entries) => {
            // Vertices and edges, whole or as maps of their properties.
            let is_element = entries.contains_key("id") && entries.contains_key("label");
            for (name, value) in entries {
                match value {
                    Value::Number(number) if is_element && ["id", "in", "out"].contains(&name.as_str()) => {
                        *value = Value::from(number.to_string());
                    }
                    value => to_texts(value),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_query::ids;
    use serde_json::json;
    use std::collections::BTreeMap;

    /// Ids wherever a reply may have them, beside other numbers.
    #[derive(Serialize)]
    struct Printed {
        #[serde(serialize_with = "one")]
        id: u64,
        #[serde(serialize_with = "optional")]
        near: Option<u64>,
        #[serde(serialize_with = "many")]
        ids: Vec<u64>,
        #[serde(serialize_with = "ids::counted")]
        counted: Vec<(u64, u32)>,
        #[serde(flatten)]
        keys: Keys,
        raw: Box<serde_json::value::RawValue>,
        count: u64,
    }

    #[derive(Serialize)]
    struct Keys {
        #[serde(serialize_with = "key")]
        key: Value,
        others: Vec<BTreeMap<&'static str, Id>>,
    }

    #[test]
    fn only_ids_become_texts() {
        let keys = Keys { key: json!(7), others: vec![BTreeMap::from([("of", Id(8))])] };
        let raw = serde_json::value::RawValue::from_string(r#"{"id":9}"#.to_owned()).expect("JSON");
        let printed = Printed {
            id: u64::MAX,
            near: Some(3),
            ids: vec![4, 5],
            counted: vec![(6, 2)],
            keys,
            raw,
            count: 10,
        };
        let numbers = r#"{"id":18446744073709551615,"near":3,"ids":[4,5],"counted":[[6,2]],"key":7,"others":[{"of":8}],"raw":{"id":9},"count":10}"#;
        assert_eq!(to_json(&printed).expect("JSON"), numbers);
        let texts = r#"{"id":"18446744073709551615","near":"3","ids":["4","5"],"counted":[["6",2]],"key":"7","others":[{"of":"8"}],"raw":{"id":9},"count":10}"#;
        assert_eq!(with_texts(&printed).expect("JSON"), texts);
    }

    #[test]
    fn ids_of_elements_and_numbers_that_would_be_rounded_become_texts() {
        let mut results = json!([
            {"id": 3, "label": "person", "properties": {"age": 30, "boss": 9_007_199_254_740_993_u64}},
            {"id": "3>knows>4", "label": "knows", "out": 3, "in": 4},
            {"id": 3, "label": "knows", "IN": {"id": 4, "label": "person"}, "weight": 0.5},
            {"labels": [["a"]], "objects": [{"id": u64::MAX, "label": "person"}, 7]},
            {"id": 3, "count": 5},
            9_007_199_254_740_992_u64,
            9_007_199_254_740_993_u64,
            -9_007_199_254_740_993_i64,
        ]);
        to_texts(&mut results);
        let expected = json!([
            {"id": "3", "label": "person", "properties": {"age": 30, "boss": "9007199254740993"}},
            {"id": "3>knows>4", "label": "knows", "out": "3", "in": "4"},
            {"id": "3", "label": "knows", "IN": {"id": "4", "label": "person"}, "weight": 0.5},
            {"labels": [["a"]], "objects": [{"id": "18446744073709551615", "label": "person"}, 7]},
            {"id": 3, "count": 5},
            9_007_199_254_740_992_u64,
            "9007199254740993",
            "-9007199254740993",
        ]);
        assert_eq!(results, expected);
    }
}
