//! What was written to each thing, by one writer, and what reads may therefore show.

use crate::site::GRAPH;
use serde_json::{Value, json};

/// What became of an attempt to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is under way, or nobody knows what became of it.
    Open,
    Done,
    /// An error proved that nothing was written.
    Failed,
}

/// An object, or an association of which every direction is read.
#[derive(Clone, Copy, Debug)]
pub enum Thing {
    Object { id: u64 },
    Association { id1: u64, kind: &'static str, inverse: Option<&'static str>, id2: u64 },
}

/// Attempts to write one thing: the number that each gives it, or `None` where it is deleted.
#[derive(Clone, Debug)]
pub struct History {
    pub thing: Thing,
    attempts: Vec<(Option<u64>, Fate)>,
    /// The last attempt that was acknowledged, and its ticket.
    acknowledged: (usize, Value),
    /// The version that the thing has since; 0 if it does not exist.
    pub version: u64,
}

impl Thing {
    /// The write that gives it a number, or deletes it.
    pub fn write(&self, number: Option<u64>) -> Value {
        match (*self, number) {
            (Thing::Object { id }, _) => {
                json!({"op": "object_update", "graph": GRAPH, "id": id, "data": {"age": number}})
            }
            (Thing::Association { id1, kind, id2, .. }, Some(time)) => {
                json!({"op": "assoc_add", "graph": GRAPH, "id1": id1, "type": kind, "id2": id2, "time": time})
            }
            (Thing::Association { id1, kind, id2, .. }, None) => {
                json!({"op": "assoc_delete", "graph": GRAPH, "id1": id1, "type": kind, "id2": id2})
            }
        }
    }

    /// The reads that show its number: one for each direction.
    pub fn reads(&self) -> Vec<Value> {
        let get = |id1: u64, kind: &str, id2: u64| json!({"op": "assoc_get", "graph": GRAPH, "id1": id1, "type": kind, "ids": [id2]});
        match *self {
            Thing::Object { id } => vec![json!({"op": "object_get", "graph": GRAPH, "id": id})],
            Thing::Association { id1, kind, inverse, id2 } => {
                let other = inverse.map(|inverse| get(id2, inverse, id1));
                [Some(get(id1, kind, id2)), other].into_iter().flatten().collect()
            }
        }
    }

    /// The number that an answer to one of these reads shows.
    pub fn shown(answer: &Value) -> Option<u64> {
        answer["object"]["data"]["age"].as_u64().or(answer["out"][0][1].as_u64())
    }
}

impl History {
    /// A thing as it was written before anything goes wrong.
    pub fn new(thing: Thing, number: Option<u64>, answer: &Value) -> Self {
        let version = answer["version"].as_u64().expect("a version");
        let acknowledged = (0, answer["ticket"].clone());
        Self { thing, attempts: vec![(number, Fate::Done)], acknowledged, version }
    }

    /// Whether it exists, as far as its writer knows.
    pub fn exists(&self) -> bool {
        self.version != 0
    }

    /// Whether nobody knows what became of an attempt: it may take effect at any time.
    pub fn is_open(&self) -> bool {
        self.attempts.iter().any(|(_, fate)| *fate == Fate::Open)
    }

    pub fn begin(&mut self, number: Option<u64>) {
        self.attempts.push((number, Fate::Open));
    }

    /// The attempt that began last has ended.
    pub fn end(&mut self, fate: Fate, answer: &Value) {
        let last = self.attempts.len() - 1;
        self.attempts[last].1 = fate;
        if fate == Fate::Done {
            let is_deleted = self.attempts[last].0.is_none();
            self.version = if is_deleted { 0 } else { answer["version"].as_u64().expect("a version") };
            self.acknowledged = (last, answer["ticket"].clone());
        }
    }

    /// The attempt that a read must have reached that presents this ticket.
    pub fn acknowledged(&self) -> (usize, Value) {
        self.acknowledged.clone()
    }

    /// Whether a read may show this number that has reached attempt `since`.
    pub fn allows(&self, since: usize, shown: Option<u64>) -> bool {
        self.attempts[since..].iter().any(|(number, fate)| *number == shown && *fate != Fate::Failed)
    }
}
