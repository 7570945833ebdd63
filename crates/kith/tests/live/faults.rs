//! Nodes, routers and the database die under writers and readers: no acknowledged write is lost, none is invented, and no read is
//! behind its ticket.

use crate::{
    history::{Fate, History, Thing},
    site::{GRAPH, Site, Talk, code},
    support::{cluster::Cluster, in_time, is_full, wait_until_or_tell},
};
use parking_lot::Mutex;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

const WRITERS: usize = 3;
const READERS: usize = 2;
/// Things of each writer, which nobody else writes.
const THINGS: u64 = 40;
/// A cluster has this long between two deaths to do what it does when all is well.
const PAUSE: Duration = Duration::from_millis(700);
/// Between two attempts of one who is refused.
const BACK_OFF: Duration = Duration::from_millis(30);
/// Errors that nobody may be told, whoever dies.
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
const SHAPE: [&str; 11] =
    ["--processes", "--groups", "2", "--nodes", "2", "--routers", "2", "--partitions", "8", "--threads", "2"];
/// Who dies, in turn.
const VICTIMS: [(&str, usize); 7] = [
    ("nodes", 0),
    ("databases", 0),
    ("routers", 0),
    ("nodes", 3),
    ("nodes", 1),
    ("routers", 1),
    ("nodes", 2),
];

fn time() -> Duration {
    Duration::from_secs(match std::env::var("KITH_FAULT_SECONDS") {
        Ok(number) => number.parse().expect("KITH_FAULT_SECONDS is a number"),
        Err(_) if is_full() => 300,
        Err(_) => 20,
    })
}

/// What all threads share.
#[derive(Default)]
struct World {
    things: Vec<Mutex<History>>,
    stop: AtomicBool,
    names: AtomicU64,
    wrong: Mutex<Vec<String>>,
    /// Outcomes of writes and reads, to be printed.
    counts: Mutex<BTreeMap<String, u64>>,
}

impl World {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed) && self.wrong.lock().is_empty()
    }

    fn note(&self, what: &str, line: &Value, answer: &Value) {
        let outcome = code(answer).unwrap_or("done");
        if NEVER.contains(&outcome) {
            self.wrong.lock().push(format!("{what} {line}: {answer}"));
        }
        *self.counts.lock().entry(format!("{what}: {outcome}")).or_default() += 1;
    }

    fn count(&self, what: &str) -> u64 {
        self.counts.lock().get(what).copied().unwrap_or(0)
    }
}

/// The things of a writer, no two of them the same.
fn things(writer: u64) -> impl Iterator<Item = Thing> {
    (0..THINGS).map(move |turn| {
        let (id1, id2) = (writer * 1_000 + turn % 7, writer * 1_000 + 100 + turn);
        let association = |kind, inverse| Thing::Association { id1, kind, inverse, id2 };
        match turn % 5 {
            0 => Thing::Object { id: id2 },
            1 => association("friend", Some("friend")),
            2 => association("follows", Some("followed_by")),
            3 => association("hired_by", Some("hires")),
            _ => association("likes", None),
        }
    })
}

/// Writes everything for the first time, while all is well.
fn first(talk: &mut Talk) -> Vec<Mutex<History>> {
    let things = (1..=WRITERS as u64).flat_map(things);
    let written = things.map(|thing| {
        if let Thing::Object { id } = thing {
            talk.must(&json!({"op": "object_add", "graph": GRAPH, "type": "person", "id": id, "data": {"name": "Ada"}}));
        }
        let answer = talk.must(&thing.write(Some(1)));
        Mutex::new(History::new(thing, Some(1), &answer))
    });
    written.collect()
}

/// Writes its own things, one after the other, until it is told to stop.
fn write(world: &World, writer: usize, talks: &mut [Talk]) {
    let mut random = StdRng::seed_from_u64(writer as u64);
    let own = &world.things[writer * THINGS as usize..][..THINGS as usize];
    for number in 2.. {
        if !world.goes_on() {
            return;
        }
        let history = &own[random.random_range(0..own.len())];
        let mut line = {
            let mut history = history.lock();
            if history.is_open() {
                continue;
            }
            let deletes = history.exists()
                && matches!(history.thing, Thing::Association { .. })
                && random.random_ratio(1, 4);
            let number = (!deletes).then_some(number);
            history.begin(number);
            let mut line = history.thing.write(number);
            // A write that were carried out twice would be refused the second time.
            line["if_version"] = json!(history.version);
            line
        };
        line["write_id"] = json!(format!("w{}", world.names.fetch_add(1, Ordering::Relaxed)));
        line["deadline_ms"] = json!(3_000);
        let talk = random.random_range(0..talks.len());
        let mut answer = talks[talk].ask(&line);
        if code(&answer) == Some("condition_failed") {
            world.wrong.lock().push(format!("{answer}, after {:?}", history.lock()));
        }
        world.note("write", &line, &answer);
        // Some leave it open, and never write this thing again: the write may still arrive.
        if code(&answer) == Some("outcome_unknown") && random.random_ratio(3, 4) {
            answer = repeat(world, &line, talks, answer);
        }
        match code(&answer) {
            None => history.lock().end(Fate::Done, &answer),
            Some("outcome_unknown") => {}
            Some(_) => {
                history.lock().end(Fate::Failed, &answer);
                thread::sleep(BACK_OFF);
            }
        }
    }
}

/// Sends a write again until its outcome is known. An error of a repeat does not tell what became of the first attempt.
fn repeat(world: &World, line: &Value, talks: &mut [Talk], mut answer: Value) -> Value {
    for (turn, ()) in in_time().enumerate() {
        let index = turn % talks.len();
        answer = talks[index].ask(line);
        world.note("repeat", line, &answer);
        if code(&answer).is_none() || !world.wrong.lock().is_empty() {
            return answer;
        }
        thread::sleep(BACK_OFF);
    }
    world.wrong.lock().push(format!("the outcome stays unknown: {line}: {answer}"));
    answer
}

/// Reads things with the tickets of their last writes, at any router and in each group.
fn read(world: &World, reader: usize, talks: &mut [Talk]) {
    let mut random = StdRng::seed_from_u64(100 + reader as u64);
    while world.goes_on() {
        let history = &world.things[random.random_range(0..world.things.len())];
        let ((since, ticket), reads) = {
            let history = history.lock();
            (history.acknowledged(), history.thing.reads())
        };
        let mut line = reads[random.random_range(0..reads.len())].clone();
        line["ticket"] = ticket;
        line["deadline_ms"] = json!(3_000);
        match random.random_range(0..4) {
            0 => line["critical"] = json!(true),
            group @ (1 | 2) => line["group"] = json!(group - 1),
            _ => {}
        }
        let talk = random.random_range(0..talks.len());
        let answer = talks[talk].ask(&line);
        world.note("read", &line, &answer);
        let history = history.lock();
        match code(&answer) {
            Some(_) => thread::sleep(BACK_OFF),
            None if history.allows(since, Thing::shown(&answer)) => {}
            None => {
                world.wrong.lock().push(format!("{line}: {answer}, but after attempt {since}: {history:?}"))
            }
        }
    }
}

/// The process of a member of the cluster, if it is there and is one of this cluster.
fn process(cluster: &Cluster, (of, index): (&str, usize)) -> Option<Pid> {
    let pid = cluster.ready()[of][index]["pid"].as_i64()?;
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_ours = String::from_utf8_lossy(&arguments).contains(cluster.data().to_str().expect("UTF-8"));
    Pid::from_raw(pid as i32).filter(|_| is_ours)
}

/// Kills one after the other, each when the one before is back.
fn kill(world: &World, site: &Site) {
    let cluster = &site.cluster;
    let started = Instant::now();
    for (turn, victim) in VICTIMS.into_iter().cycle().enumerate() {
        let is_over = time() < started.elapsed() && VICTIMS.len() <= turn;
        if is_over || !world.goes_on() {
            return;
        }
        if victim.0 != "databases" || !site.restart_server() {
            let Some(pid) = process(cluster, victim) else { continue };
            // It may end by itself meanwhile.
            let _ = kill_process(pid, Signal::KILL);
            let is_back = || process(cluster, victim).is_some_and(|now| now != pid);
            wait_until_or_tell("a process is started again", is_back, || format!("{victim:?}"));
        }
        *world.counts.lock().entry(format!("killed: {}", victim.0)).or_default() += 1;
        thread::sleep(PAUSE);
    }
}

/// Everything is as the writers know, in both directions, and as often as it is counted.
fn check(world: &World, talk: &mut Talk) {
    let mut lists = BTreeMap::new();
    for history in &world.things {
        let history = history.lock();
        let (since, _) = history.acknowledged();
        let mut told = Vec::new();
        let settled = in_time().any(|()| {
            let answer = |mut read: Value| {
                read["critical"] = json!(true);
                talk.ask(&read)
            };
            told = history.thing.reads().into_iter().map(answer).collect();
            let shown: Vec<Option<u64>> = told.iter().map(Thing::shown).collect();
            let is_whole = told.iter().all(|answer| code(answer).is_none());
            let is_right =
                is_whole && shown.iter().all(|number| *number == shown[0]) && history.allows(since, shown[0]);
            if !is_right {
                thread::sleep(BACK_OFF);
            }
            is_right
        });
        assert!(settled, "{told:?}, but after attempt {since}: {history:?}");
        if let Thing::Association { id1, kind, inverse, id2 } = history.thing {
            lists.insert((id1, kind), ());
            lists.extend(inverse.map(|inverse| ((id2, inverse), ())));
        }
    }
    for (id1, kind) in lists.into_keys() {
        let read = |op: &str| json!({"op": op, "graph": GRAPH, "id1": id1, "type": kind, "critical": true});
        let range = talk.must(&json!({"op": "assoc_time_range", "graph": GRAPH, "id1": id1, "type": kind,
            "critical": true, "low": 0}));
        let length = range["out"].as_array().map_or(0, Vec::len);
        // The list of `hired_by` is cut at its cap.
        let count = talk.must(&read("assoc_count"))["count"].as_u64().expect("a count") as usize;
        let is_right = if range["more"] == true { length < count } else { length == count };
        assert!(is_right, "{id1} {kind}: {count} associations are counted: {range}");
    }
}

#[test]
fn no_acknowledged_write_is_lost_when_processes_die() {
    check_under_faults(&Site::start(&SHAPE));
}

#[test]
fn no_acknowledged_write_is_lost_when_processes_and_mariadb_die() {
    check_under_faults(&Site::start_on_mariadb(&SHAPE));
}

fn check_under_faults(site: &Site) {
    let world = World { things: first(&mut site.talk(1)), ..World::default() };
    let world = &world;
    let talks = || [site.talk_to(0, 4), site.talk_to(1, 4)];
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let mut talks = talks();
            scope.spawn(move || write(world, writer, &mut talks));
        }
        for reader in 0..READERS {
            let mut talks = talks();
            scope.spawn(move || read(world, reader, &mut talks));
        }
        let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| kill(world, site)));
        world.stop.store(true, Ordering::Relaxed);
        killed.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    eprintln!("{:#?}", world.counts.lock());
    let wrong = world.wrong.lock();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"));
    check(world, &mut site.talk(1));
    for what in ["write: done", "read: done"] {
        assert!(100 < world.count(what), "hardly anything was done: {:#?}", world.counts.lock());
    }
}
