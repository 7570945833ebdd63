//! The state that writers, readers and the fault injection share.

use super::history::{History, Kind, Thing};
use crate::live::site::{GRAPH, Site, Talk, code};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

pub const WRITERS: usize = 3;
/// The number of things of each writer, which no other writer writes.
pub const THINGS: u64 = 40;
/// The maximum number of lines in flight in one conversation.
const IN_FLIGHT: u32 = 4;
/// Error codes that no caller may get under any fault.
const NEVER: [&str; 11] = [
    "internal",
    "bad_request",
    "damaged",
    "database_damaged",
    "history_lost",
    "wrong_ticket",
    "unknown_graph",
    "condition_failed",
    "object_exists",
    "write_id_taken",
    "unknown_type",
];
/// The types that one association may have in turn. `loves` and `hired_by` have small caps.
const ONE_SIDED: [Kind; 3] = [("likes", None), ("loves", None), ("knows", None)];
const TWO_SIDED: [Kind; 4] = [
    ("friend", Some("friend")),
    ("follows", Some("followed_by")),
    ("hired_by", Some("hires")),
    ("rival", Some("rival")),
];

/// A thing that a list may contain.
pub struct Member {
    /// The index of the thing among all things.
    pub thing: usize,
    /// The index of the list's type among the types of the thing.
    pub kind: usize,
    /// The id of the thing's entry in the list.
    pub id: u64,
}

pub struct World {
    pub things: Vec<Mutex<History>>,
    /// The association lists that may contain things.
    pub lists: Vec<((u64, &'static str), Vec<Member>)>,
    pub wrong: Mutex<Vec<String>>,
    /// The numbers of outcomes of writes and reads, and of faults.
    pub counts: Mutex<BTreeMap<String, u64>>,
    stop: AtomicBool,
    names: AtomicU64,
    /// How often the addresses of the routers have changed, and the addresses.
    routers: Mutex<(u64, Vec<String>)>,
}

impl World {
    /// Writes all things for the first time, before any fault.
    pub fn begin(site: &Site) -> Self {
        let mut talk = site.talk(1);
        let things = (1..=WRITERS as u64).flat_map(things);
        let written = things.map(|thing| {
            let state = Some((0, 1));
            let answer = talk.must(&thing.write(None, state));
            Mutex::new(History::new(thing, state, &answer))
        });
        let things: Vec<Mutex<History>> = written.collect();
        let mut lists: BTreeMap<_, Vec<Member>> = BTreeMap::new();
        for (index, history) in things.iter().enumerate() {
            for (list, kind, id) in history.lock().thing.lists() {
                lists.entry(list).or_default().push(Member { thing: index, kind, id });
            }
        }
        Self {
            things,
            lists: lists.into_iter().collect(),
            wrong: Mutex::default(),
            counts: Mutex::default(),
            stop: AtomicBool::default(),
            names: AtomicU64::default(),
            routers: Mutex::new((0, site.routers())),
        }
    }

    pub fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed) && self.wrong.lock().is_empty()
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns a new write id.
    pub fn write_id(&self) -> Value {
        json!(format!("w{}", self.names.fetch_add(1, Ordering::Relaxed)))
    }

    /// Sets new addresses of the routers.
    pub fn moved_to(&self, routers: Vec<String>) {
        let mut current = self.routers.lock();
        *current = (current.0 + 1, routers);
    }

    pub fn note(&self, what: &str, line: &Value, answer: &Value) {
        let outcome = code(answer).unwrap_or("done");
        if NEVER.contains(&outcome) {
            self.wrong.lock().push(format!("{what} {line}: {answer}"));
        }
        self.add(format!("{what}: {outcome}"));
    }

    pub fn add(&self, what: String) {
        *self.counts.lock().entry(what).or_default() += 1;
    }

    pub fn count(&self, what: &str) -> u64 {
        self.counts.lock().get(what).copied().unwrap_or(0)
    }
}

/// Returns the things of a writer, which are all different.
fn things(writer: u64) -> impl Iterator<Item = Thing> {
    (0..THINGS).map(move |turn| {
        let (id1, id2) = (writer * 1_000 + turn % 7, writer * 1_000 + 100 + turn);
        match turn % 5 {
            0 => Thing::Object { id: id2 },
            1 => Thing::Association { id1, id2, kinds: &ONE_SIDED },
            // One in three two-sided associations has the larger id first.
            2 => Thing::Association { id1: id2, id2: id1, kinds: &TWO_SIDED },
            _ => Thing::Association { id1, id2, kinds: &TWO_SIDED },
        }
    })
}

/// One conversation with each router. New conversations begin when the addresses of the routers change.
pub struct Talks<'w> {
    world: &'w World,
    changes: u64,
    talks: Vec<Talk>,
}

impl<'w> Talks<'w> {
    pub fn start(world: &'w World) -> Self {
        let (changes, routers) = world.routers.lock().clone();
        let talks = routers.iter().map(|addr| Talk::at(addr, IN_FLIGHT)).collect();
        Self { world, changes, talks }
    }

    pub fn ask(&mut self, turn: usize, line: &Value) -> Value {
        if self.changes != self.world.routers.lock().0 {
            *self = Self::start(self.world);
        }
        let index = turn % self.talks.len();
        self.talks[index].ask(line)
    }
}

/// Returns a read of an association list.
pub fn of_list(op: &str, (id1, kind): (u64, &'static str)) -> Value {
    match op {
        "connections" => {
            // Symmetric types have no direction.
            let is_symmetric = TWO_SIDED.contains(&(kind, Some(kind)));
            let direction = if is_symmetric { "both" } else { "out" };
            json!({"op": op, "graph": GRAPH, "id": id1, "edge_type": kind, "direction": direction})
        }
        _ => json!({"op": op, "graph": GRAPH, "id1": id1, "type": kind}),
    }
}
