//! The attempts to write a thing, all by one writer, and the states that reads may therefore show.

use crate::live::site::GRAPH;
use serde_json::{Value, json};

/// An association type, and its inverse type if it has one.
pub type Kind = (&'static str, Option<&'static str>);

/// An object, or an association between two objects, which may change its type.
#[derive(Clone, Copy, Debug)]
pub enum Thing {
    Object { id: u64 },
    Association { id1: u64, id2: u64, kinds: &'static [Kind] },
}

/// The state of a thing: the index of its type, and the number that was written to it. `None` if the thing does not exist.
pub type State = Option<(usize, u64)>;

/// The outcome of an attempt to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The attempt is in progress, or its outcome is unknown.
    Open,
    Done,
    /// An error proved that nothing was written.
    Failed,
}

/// The attempts to write one thing, with the states to which they lead.
#[derive(Clone, Debug)]
pub struct History {
    pub thing: Thing,
    attempts: Vec<(State, Fate)>,
    /// The index of the last attempt that was acknowledged, and its ticket.
    acknowledged: (usize, Value),
    /// The version of the thing after that attempt; 0 if it does not exist.
    pub version: u64,
}

/// A read of one thing under one of its types, in one direction.
pub struct Look {
    pub line: Value,
    pub kind: usize,
}

impl Thing {
    /// Returns the write that changes the thing from one state to another.
    pub fn write(&self, from: State, to: State) -> Value {
        match *self {
            Thing::Object { id } => match (from, to) {
                (_, None) => json!({"op": "object_delete", "graph": GRAPH, "id": id}),
                (None, Some((_, number))) => {
                    json!({"op": "object_add", "graph": GRAPH, "type": "person", "id": id,
                        "data": {"name": "Ada", "age": number}})
                }
                (Some(_), Some((_, number))) => {
                    json!({"op": "object_update", "graph": GRAPH, "id": id, "data": {"age": number}})
                }
            },
            Thing::Association { id1, id2, kinds } => {
                let line = |op: &str, kind: usize| json!({"op": op, "graph": GRAPH, "id1": id1, "type": kinds[kind].0, "id2": id2});
                match (from, to) {
                    (Some((kind, _)), Some((new, _))) if kind != new => {
                        let mut line = line("assoc_change_type", kind);
                        line["new_type"] = json!(kinds[new].0);
                        line
                    }
                    (_, Some((kind, time))) => {
                        let mut line = line("assoc_add", kind);
                        line["time"] = json!(time);
                        line
                    }
                    (from, None) => line("assoc_delete", from.map_or(0, |(kind, _)| kind)),
                }
            }
        }
    }

    /// Returns all reads that show the state of the thing: one for each type and direction.
    pub fn looks(&self) -> Vec<Look> {
        let Thing::Association { id1, id2, kinds } = *self else {
            return vec![Look { line: self.object_read(), kind: 0 }];
        };
        let looks = kinds.iter().enumerate().flat_map(|(kind, (name, inverse))| {
            let get = |id1: u64, name: &str, id2: u64| {
                let line = json!({"op": "assoc_get", "graph": GRAPH, "id1": id1, "type": name, "ids": [id2]});
                Look { line, kind }
            };
            [Some(get(id1, name, id2)), inverse.map(|inverse| get(id2, inverse, id1))]
        });
        looks.flatten().collect()
    }

    fn object_read(&self) -> Value {
        match *self {
            Thing::Object { id } | Thing::Association { id1: id, .. } => {
                json!({"op": "object_get", "graph": GRAPH, "id": id})
            }
        }
    }

    /// Returns the association lists that may contain the thing. Each entry names the list by its object and type, the index
    /// of this type among the thing's types, and the id of the thing's entry in the list.
    pub fn lists(&self) -> Vec<((u64, &'static str), usize, u64)> {
        let Thing::Association { id1, id2, kinds } = *self else { return Vec::new() };
        let lists = kinds.iter().enumerate().flat_map(|(kind, (name, inverse))| {
            [Some(((id1, *name), kind, id2)), inverse.map(|inverse| ((id2, inverse), kind, id1))]
        });
        lists.flatten().collect()
    }
}

impl Look {
    /// Returns the number that an answer shows; `None` if the thing does not exist in it.
    pub fn shown(answer: &Value) -> Option<u64> {
        answer["object"]["data"]["age"].as_u64().or(answer["out"][0][1].as_u64())
    }
}

/// Returns the number that a read under the type `kind` shows of a state.
pub fn under(kind: usize, state: State) -> Option<u64> {
    state.filter(|(of, _)| *of == kind).map(|(_, number)| number)
}

impl History {
    /// Returns the history of a thing whose first write was acknowledged with `answer`.
    pub fn new(thing: Thing, state: State, answer: &Value) -> Self {
        let version = answer["version"].as_u64().expect("a version");
        let acknowledged = (0, answer["ticket"].clone());
        Self { thing, attempts: vec![(state, Fate::Done)], acknowledged, version }
    }

    /// Returns the state after the last acknowledged attempt.
    pub fn state(&self) -> State {
        self.attempts[self.acknowledged.0].0
    }

    /// Whether the outcome of an attempt is unknown, so that it may take effect at any time.
    pub fn is_open(&self) -> bool {
        self.attempts.iter().any(|(_, fate)| *fate == Fate::Open)
    }

    pub fn begin(&mut self, to: State) {
        self.attempts.push((to, Fate::Open));
    }

    /// Records the end of the last attempt.
    pub fn end(&mut self, fate: Fate, answer: &Value) {
        let last = self.attempts.len() - 1;
        self.attempts[last].1 = fate;
        if fate == Fate::Done {
            let is_deleted = self.attempts[last].0.is_none();
            self.version = if is_deleted { 0 } else { answer["version"].as_u64().expect("a version") };
            self.acknowledged = (last, answer["ticket"].clone());
        }
    }

    /// Returns the last acknowledged attempt and its ticket. A read with this ticket must reach this attempt.
    pub fn acknowledged(&self) -> (usize, Value) {
        self.acknowledged.clone()
    }

    /// Returns the states that a read may show if it has reached attempt `since`.
    pub fn possible(&self, since: usize) -> impl Iterator<Item = State> {
        self.attempts[since..].iter().filter(|(_, fate)| *fate != Fate::Failed).map(|(state, _)| *state)
    }

    /// Whether a read under the type `kind` may show `shown` if it has reached attempt `since`.
    pub fn allows(&self, since: usize, kind: usize, shown: Option<u64>) -> bool {
        self.possible(since).any(|state| under(kind, state) == shown)
    }
}
