//! Random programs of writes and reads, which depend on a seed and on the state of the model.

use super::{model::Model, site::GRAPH};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

/// A few small ids, so that operations often concern the same ones, and the greatest ids.
const IDS: [u64; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1 << 63, u64::MAX - 1, u64::MAX];
const OBJECT_TYPES: [&str; 3] = ["person", "page", "tag"];
const ASSOCIATION_TYPES: [&str; 9] =
    ["likes", "loves", "knows", "friend", "rival", "follows", "followed_by", "hires", "hired_by"];

pub struct Program {
    random: StdRng,
    /// The number of writes that have a write id.
    names: u64,
}

impl Program {
    pub fn new(seed: u64) -> Self {
        Self { random: StdRng::seed_from_u64(seed), names: 0 }
    }

    /// Returns the next lines. They may repeat writes of earlier rounds.
    pub fn round(&mut self, length: usize, model: &Model) -> Vec<Value> {
        (0..length).map(|_| self.line(model)).collect()
    }

    fn line(&mut self, model: &Model) -> Value {
        let mut line = match self.random.random_range(0..20) {
            0 if !model.named.is_empty() => return self.repeat(model),
            0..4 => self.object_write(model),
            4..12 => self.association_write(model),
            12..15 => self.object_read(model),
            _ => self.association_read(),
        };
        line["graph"] = json!(GRAPH);
        line
    }

    fn one_of(&mut self, of: u32) -> bool {
        self.random.random_ratio(1, of)
    }

    fn id(&mut self) -> u64 {
        *IDS.choose(&mut self.random).expect("there are ids")
    }

    /// Returns an id, often that of an existing object.
    fn object(&mut self, model: &Model) -> u64 {
        match self.one_of(3) {
            true => model.objects.keys().copied().collect::<Vec<_>>().choose(&mut self.random).copied(),
            false => None,
        }
        .unwrap_or_else(|| self.id())
    }

    fn kind(&mut self) -> &'static str {
        if self.one_of(60) {
            return "freind";
        }
        ASSOCIATION_TYPES.choose(&mut self.random).expect("there are types")
    }

    fn time(&mut self) -> u64 {
        match self.one_of(20) {
            true => *[0, u64::MAX].choose(&mut self.random).expect("there are two"),
            false => self.random.random_range(1..12),
        }
    }

    /// Returns an earlier write, either unchanged or with other content.
    fn repeat(&mut self, model: &Model) -> Value {
        let names: Vec<&String> = model.named.keys().collect();
        let mut line =
            model.named[*names.choose(&mut self.random).expect("there is a named write")].0.clone();
        if self.one_of(3) {
            match line["op"].as_str() {
                Some("assoc_add") => line["time"] = json!(1_000),
                Some("object_add" | "object_update") => line["data"] = json!({"name": "another"}),
                _ => {}
            }
        }
        line
    }

    fn object_write(&mut self, model: &Model) -> Value {
        let mut line = match self.random.random_range(0..8) {
            0..2 => {
                let kind = *OBJECT_TYPES.choose(&mut self.random).expect("there are types");
                json!({"op": "object_add", "type": kind, "id": self.id(), "data": self.fields()})
            }
            2 => json!({"op": "object_add", "type": "person", "data": {"name": "Ada"}}),
            3 => json!({"op": "object_add", "type": "tag", "near": self.id()}),
            4..7 => json!({"op": "object_update", "id": self.object(model), "data": self.fields()}),
            _ => json!({"op": "object_delete", "id": self.object(model)}),
        };
        let version = line["id"].as_u64().and_then(|id| Some(model.objects.get(&id)?.version));
        self.conditions(&mut line, version);
        line
    }

    /// Returns fields that fit one of the types or, sometimes, none of them.
    fn fields(&mut self) -> Value {
        match self.random.random_range(0..9) {
            0..3 => json!({"name": format!("name {}", self.random.random_range(0..9))}),
            3 => json!({"name": "Ada", "age": self.random.random_range(-9..9)}),
            4 => json!({"age": null}),
            5..7 => json!({"title": "a page"}),
            7 => json!({"nmae": "Ada"}),
            _ => json!({}),
        }
    }

    fn association_write(&mut self, model: &Model) -> Value {
        let (id1, kind, id2) = (self.id(), self.kind(), self.id());
        let mut line = match self.random.random_range(0..10) {
            0..6 => {
                let mut line =
                    json!({"op": "assoc_add", "id1": id1, "type": kind, "id2": id2, "time": self.time()});
                match self.random.random_range(0..4) {
                    0 => line["data"] = json!({"note": format!("note {}", self.random.random_range(0..9))}),
                    1 => line["data"] = json!({}),
                    _ => {}
                }
                line
            }
            6..8 => json!({"op": "assoc_delete", "id1": id1, "type": kind, "id2": id2}),
            _ => {
                json!({"op": "assoc_change_type", "id1": id1, "type": kind, "id2": id2, "new_type": self.kind()})
            }
        };
        let version = Some(model.version(&line)).filter(|version| *version != 0);
        self.conditions(&mut line, version);
        line
    }

    fn conditions(&mut self, line: &mut Value, version: Option<u64>) {
        match self.random.random_range(0..8) {
            0 => line["if_exists"] = json!(self.one_of(2)),
            1 => line["if_version"] = json!(version.unwrap_or_else(|| self.random.random_range(0..3))),
            _ => {}
        }
        if self.one_of(4) {
            self.names += 1;
            line["write_id"] = json!(format!("w{}", self.names));
        }
    }

    fn object_read(&mut self, model: &Model) -> Value {
        let mut line = match self.one_of(2) {
            true => json!({"op": "object_get", "id": self.object(model)}),
            false => {
                let ids: Vec<u64> = (0..self.random.random_range(0..6)).map(|_| self.object(model)).collect();
                json!({"op": "object_get", "ids": ids})
            }
        };
        // The tickets cover objects of earlier rounds whose ids the graph chose. The lines that added them did not name
        // these ids, so the conversation does not add their tickets by itself.
        if !model.tickets.is_empty() {
            line["ticket"] = json!(model.tickets);
        }
        self.place(&mut line);
        line
    }

    fn association_read(&mut self) -> Value {
        let mut line = json!({"id1": self.id(), "type": self.kind()});
        match self.random.random_range(0..8) {
            0..2 => {
                line["op"] = json!("assoc_get");
                let ids: Vec<u64> = (0..self.random.random_range(0..5)).map(|_| self.id()).collect();
                line["ids"] = json!(ids);
                self.times(&mut line);
            }
            2 => line["op"] = json!("assoc_count"),
            3..6 => {
                line["op"] = json!("assoc_range");
                match self.random.random_range(0..3) {
                    0 => line["pos"] = json!(self.random.random_range(0..6)),
                    1 => line["after"] = json!([self.time(), self.id()]),
                    _ => {}
                }
                self.limit(&mut line);
            }
            _ => {
                line["op"] = json!("assoc_time_range");
                self.times(&mut line);
                self.limit(&mut line);
            }
        }
        for option in ["with_data", "with_versions"] {
            if line["op"] != "assoc_count" && self.one_of(2) {
                line[option] = json!(true);
            }
        }
        self.place(&mut line);
        line
    }

    fn times(&mut self, line: &mut Value) {
        for bound in ["high", "low"] {
            if self.one_of(2) {
                line[bound] = json!(self.time());
            }
        }
    }

    fn limit(&mut self, line: &mut Value) {
        if self.one_of(2) {
            line["limit"] = json!(self.random.random_range(1..5));
        }
    }

    /// Chooses whether a read is critical, or which group answers it.
    fn place(&mut self, line: &mut Value) {
        match self.random.random_range(0..5) {
            0 => line["critical"] = json!(true),
            1 => line["group"] = json!(self.random.random_range(0..2)),
            _ => {}
        }
    }
}
