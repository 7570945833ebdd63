//! The form of ids in JSON: as numbers, or as texts for programs that round numbers above 2^53, such as those in
//! JavaScript.

use serde::{Serialize, Serializer};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether ids are texts. It is a flag of the whole process, set before anything is printed.
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

/// An id that is printed.
#[derive(Clone, Copy, Debug)]
pub struct Id(pub u64);

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match are_texts() {
            true => serializer.collect_str(&self.0),
            false => serializer.serialize_u64(self.0),
        }
    }
}

/// Writes an id.
///
/// # Errors
/// Those of the serializer.
pub fn one<S: Serializer>(id: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    Id(*id).serialize(serializer)
}

/// Writes an id, if there is one.
///
/// # Errors
/// Those of the serializer.
pub fn optional<S: Serializer>(id: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    id.map(Id).serialize(serializer)
}

/// Writes a list of ids.
///
/// # Errors
/// Those of the serializer.
pub fn many<S: Serializer>(ids: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ids.iter().copied().map(Id))
}

/// Writes pairs of an id and a number that belongs to it.
///
/// # Errors
/// Those of the serializer.
pub fn counted<S: Serializer>(pairs: &[(u64, u32)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(pairs.iter().map(|(id, count)| (Id(*id), count)))
}

/// Writes a key of a store. It is a number only if the keys are ids.
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
    use serde_json::json;

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
