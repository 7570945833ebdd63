//! A model of a live graph: objects and associations in maps, without partitions, logs or caches.
//!
//! The versions in the model are those that writes returned. The model checks that they grow, and that conditions refer to
//! them.

use super::site::code;
use serde_json::{Map, Value, json};
use std::{cmp::Reverse, collections::BTreeMap};

pub struct Object {
    pub version: u64,
    kind: String,
    fields: Map<String, Value>,
}

#[derive(Clone)]
struct Association {
    version: u64,
    time: u64,
    note: Value,
}

type Key = (u64, String, u64);

#[derive(Default)]
pub struct Model {
    pub objects: BTreeMap<u64, Object>,
    associations: BTreeMap<Key, Association>,
    /// The writes with a write id whose outcome the graph recorded, and their answers.
    pub named: BTreeMap<String, (Value, Value)>,
    /// The tickets of the writes that added objects with ids that the graph chose.
    pub tickets: Vec<Value>,
}

/// The outcome of a write.
enum Outcome {
    /// Something is written. The value says whether it existed before.
    Changed(bool),
    /// There is nothing to do.
    Nothing,
    Refused(&'static str),
}

/// Returns the cap of a type: the maximum number of associations that one read returns.
fn cap(kind: &str) -> usize {
    match kind {
        "loves" => 4,
        "hired_by" => 3,
        _ => 6_000,
    }
}

/// Returns the type of the other direction; `Some(None)` for a one-sided type, and `None` if there is no such type.
fn inverse(kind: &str) -> Option<Option<&str>> {
    Some(match kind {
        "likes" | "loves" | "knows" => None,
        "friend" | "rival" => Some(kind),
        "follows" => Some("followed_by"),
        "followed_by" => Some("follows"),
        "hires" => Some("hired_by"),
        "hired_by" => Some("hires"),
        _ => return None,
    })
}

fn has_note(kind: &str) -> bool {
    kind != "knows"
}

/// Returns the fields of an object after a write; `None` if they do not fit its type.
fn fields(kind: &str, before: Option<&Map<String, Value>>, written: &Value) -> Option<Map<String, Value>> {
    let defaults = match kind {
        "person" => json!({"name": null, "age": null}),
        "page" => json!({"title": "untitled"}),
        _ => json!({}),
    };
    let mut fields = before.or(defaults.as_object())?.clone();
    for (name, value) in written.as_object().into_iter().flatten() {
        *fields.get_mut(name)? = value.clone();
    }
    (fields.get("name") != Some(&Value::Null)).then_some(fields)
}

fn text<'a>(line: &'a Value, name: &str) -> &'a str {
    line[name].as_str().unwrap_or_else(|| panic!("{line} has {name}"))
}

fn number(line: &Value, name: &str) -> u64 {
    line[name].as_u64().unwrap_or_else(|| panic!("{line} has {name}"))
}

impl Model {
    /// Applies a line to the model, and compares the answer of the graph.
    ///
    /// # Errors
    /// A description of the difference.
    pub fn follow(&mut self, line: &Value, answer: &Value) -> Result<(), String> {
        match text(line, "op") {
            "object_get" | "assoc_get" | "assoc_count" | "assoc_range" | "assoc_time_range" => {
                let expected = self.read(line);
                let is_right = match expected.as_str() {
                    Some(refused) => code(answer) == Some(refused),
                    None => *answer == expected,
                };
                is_right.then_some(()).ok_or_else(|| format!("expected {expected}"))
            }
            _ => self.write(line, answer),
        }
    }

    fn write(&mut self, line: &Value, answer: &Value) -> Result<(), String> {
        let invalid = self.invalid(line);
        let name = line["write_id"].as_str();
        if let Some((known, first)) = name.and_then(|name| self.named.get(name))
            && invalid.is_none()
        {
            let same = |field: &str| first[field] == answer[field];
            return match known == line {
                true if ["id", "version", "existed"].into_iter().all(same) && code(first) == code(answer) => {
                    Ok(())
                }
                true => Err(format!("a repeat must get the first answer: {first}")),
                false if code(answer) == Some("write_id_taken") => Ok(()),
                false => Err(format!("its write_id belongs to {known}")),
            };
        }
        let before = self.version(line);
        let version = answer["version"].as_u64().unwrap_or(0);
        let outcome = invalid.map_or_else(|| self.decide(line, answer, version), Outcome::Refused);
        let is_new = text(line, "op") == "object_add";
        match outcome {
            Outcome::Refused(refused) if code(answer) == Some(refused) => {}
            Outcome::Refused(refused) => return Err(format!("expected {refused}")),
            Outcome::Changed(existed) => {
                let agrees = if is_new { answer["id"].is_u64() } else { answer["existed"] == existed };
                if !agrees || version <= before || !answer["ticket"].is_string() {
                    return Err(format!("expected a version above {before}, and existed: {existed}"));
                }
            }
            Outcome::Nothing if version == 0 && answer["existed"] == false => {}
            Outcome::Nothing => return Err("expected that there is nothing to do".to_owned()),
        }
        if is_new && line.get("id").is_none() && code(answer).is_none() {
            self.tickets.push(answer["ticket"].clone());
        }
        if let Some(name) = name
            && matches!(code(answer), None | Some("condition_failed" | "object_exists"))
        {
            self.named.insert(name.to_owned(), (line.clone(), answer.clone()));
        }
        Ok(())
    }

    /// Returns the error code of a write that is invalid regardless of the stored data.
    fn invalid(&self, line: &Value) -> Option<&'static str> {
        match text(line, "op") {
            "object_add" => fields(text(line, "type"), None, &line["data"]).is_none().then_some("bad_fields"),
            "object_update" | "object_delete" => None,
            op => {
                let kind = text(line, "type");
                let Some(sides) = inverse(kind) else { return Some("unknown_type") };
                match op {
                    "assoc_add" if line["data"].get("note").is_some() && !has_note(kind) => {
                        Some("bad_fields")
                    }
                    "assoc_change_type" => match inverse(text(line, "new_type")) {
                        None => Some("unknown_type"),
                        _ if text(line, "new_type") == kind => Some("bad_request"),
                        Some(other) => (other.is_some() != sides.is_some()).then_some("bad_request"),
                    },
                    _ => None,
                }
            }
        }
    }

    /// Returns the version of the object or association that a write names; 0 if it does not exist.
    pub fn version(&self, line: &Value) -> u64 {
        match line.get("id1") {
            Some(_) => self.associations.get(&key(line)).map_or(0, |found| found.version),
            None => line["id"].as_u64().and_then(|id| self.objects.get(&id)).map_or(0, |found| found.version),
        }
    }

    /// Applies a valid write, and returns its outcome. Changed objects and associations get the version `version`.
    fn decide(&mut self, line: &Value, answer: &Value, version: u64) -> Outcome {
        let found = self.version(line);
        let is_other = line["if_version"].as_u64().is_some_and(|wanted| wanted != found);
        if is_other || line["if_exists"].as_bool().is_some_and(|wanted| wanted != (found != 0)) {
            return Outcome::Refused("condition_failed");
        }
        match line.get("id1") {
            Some(_) => self.decide_association(line, version),
            None => self.decide_object(line, answer, version),
        }
    }

    fn decide_object(&mut self, line: &Value, answer: &Value, version: u64) -> Outcome {
        let id = line["id"].as_u64().or(answer["id"].as_u64()).unwrap_or(0);
        let found = self.objects.get(&id);
        match (text(line, "op"), found) {
            ("object_add", Some(_)) => return Outcome::Refused("object_exists"),
            ("object_add", None) => {
                let kind = text(line, "type").to_owned();
                let fields = fields(&kind, None, &line["data"]).unwrap_or_default();
                self.objects.insert(id, Object { version, kind, fields });
                return Outcome::Changed(false);
            }
            (_, None) => return Outcome::Nothing,
            ("object_update", Some(found)) => {
                let Some(fields) = fields(&found.kind, Some(&found.fields), &line["data"]) else {
                    return Outcome::Refused("bad_fields");
                };
                let kind = found.kind.clone();
                self.objects.insert(id, Object { version, kind, fields });
            }
            _ => drop(self.objects.remove(&id)),
        }
        Outcome::Changed(true)
    }

    fn decide_association(&mut self, line: &Value, version: u64) -> Outcome {
        let key = key(line);
        let found = self.associations.get(&key).cloned();
        match (text(line, "op"), &found) {
            ("assoc_add", _) => {
                let (time, note) = (number(line, "time"), line["data"]["note"].clone());
                self.set(&key, Some(Association { version, time, note }));
            }
            (_, None) => return Outcome::Nothing,
            ("assoc_delete", Some(_)) => self.set(&key, None),
            (_, Some(found)) => {
                let new = (key.0, text(line, "new_type").to_owned(), key.2);
                if !found.note.is_null() && !has_note(&new.1) {
                    return Outcome::Refused("bad_fields");
                }
                self.set(&key, None);
                self.set(&new, Some(Association { version, ..found.clone() }));
            }
        }
        Outcome::Changed(found.is_some())
    }

    /// Sets or removes an association in both directions.
    fn set(&mut self, (id1, kind, id2): &Key, association: Option<Association>) {
        let mirror = inverse(kind).flatten().map(|inverse| (*id2, inverse.to_owned(), *id1));
        for key in [Some((*id1, kind.clone(), *id2)), mirror].into_iter().flatten() {
            match &association {
                Some(association) => drop(self.associations.insert(key, association.clone())),
                None => drop(self.associations.remove(&key)),
            }
        }
    }

    /// Returns the expected answer to a read, or the code of the expected error.
    fn read(&self, line: &Value) -> Value {
        if text(line, "op") == "object_get" {
            return match line["ids"].as_array() {
                None => json!({"object": self.object(number(line, "id"))}),
                Some(ids) => {
                    let object = |id: &Value| self.object(id.as_u64().expect("an id"));
                    json!({"objects": ids.iter().map(object).collect::<Vec<_>>()})
                }
            };
        }
        let (ids, kind) = (line["ids"].as_array(), text(line, "type"));
        if inverse(kind).is_none() {
            return json!("unknown_type");
        }
        let list = self.list(number(line, "id1"), kind);
        let op = text(line, "op");
        if op == "assoc_count" {
            return json!({"count": list.len()});
        }
        let is_in = |time: u64| {
            (line["low"].as_u64().unwrap_or(0)..=line["high"].as_u64().unwrap_or(u64::MAX)).contains(&time)
        };
        let is_after = |id2: u64, time: u64| match line["after"].as_array() {
            None => true,
            Some(after) => {
                let number_at = |index: usize| after[index].as_u64().expect("a number");
                (Reverse(number_at(0)), number_at(1)) < (Reverse(time), id2)
            }
        };
        let is_asked = |id2: u64| ids.is_none_or(|ids| ids.contains(&json!(id2)));
        let found: Vec<Value> = list
            .into_iter()
            .skip(line["pos"].as_u64().unwrap_or(0) as usize)
            .filter(|(id2, found)| is_in(found.time) && is_asked(*id2) && is_after(*id2, found.time))
            .map(|(id2, found)| {
                let mut entry = vec![json!(id2), json!(found.time)];
                if line["with_data"] == true {
                    entry.push(if has_note(kind) { json!({"note": found.note}) } else { json!({}) });
                }
                if line["with_versions"] == true {
                    entry.push(json!(found.version));
                }
                json!(entry)
            })
            .collect();
        if op == "assoc_get" {
            return json!({"out": found});
        }
        let limit = line["limit"].as_u64().map_or(usize::MAX, |limit| limit as usize).min(cap(kind));
        let more = limit < found.len();
        json!({"out": found.into_iter().take(limit).collect::<Vec<_>>(), "more": more})
    }

    fn object(&self, id: u64) -> Option<Value> {
        let Object { version, kind, fields } = self.objects.get(&id)?;
        Some(json!({"id": id, "type": kind, "version": version, "data": fields}))
    }

    /// Returns an association list, newest first; at equal times, smaller ids first.
    fn list(&self, id1: u64, kind: &str) -> Vec<(u64, &Association)> {
        let is_in = |key: &Key| key.0 == id1 && key.1 == kind;
        let mut list: Vec<(u64, &Association)> = self
            .associations
            .iter()
            .filter(|(key, _)| is_in(key))
            .map(|(key, found)| (key.2, found))
            .collect();
        list.sort_by_key(|(id2, found)| (Reverse(found.time), *id2));
        list
    }
}

fn key(line: &Value) -> Key {
    (number(line, "id1"), text(line, "type").to_owned(), number(line, "id2"))
}
