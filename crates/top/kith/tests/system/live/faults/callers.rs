//! Writers, each of which writes its own things, and readers, which present the tickets of the last writes.

use super::{
    history::{Fate, History, Look, State, Thing, under},
    world::{Member, THINGS, Talks, World, of_list},
};
use crate::{live::site::code, support::in_time};
use parking_lot::Mutex;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};
use std::{thread, time::Duration};

/// The pause of a caller after an error.
pub const BACK_OFF: Duration = Duration::from_millis(30);
const DEADLINE_MS: u64 = 3_000;

/// Runs a writer, which writes its own things, one write at a time, until the world stops.
pub fn write(world: &World, writer: usize) {
    let mut random = StdRng::seed_from_u64(writer as u64);
    let mut talks = Talks::start(world);
    let own = &world.things[writer * THINGS as usize..][..THINGS as usize];
    for number in 2.. {
        if !world.goes_on() {
            return;
        }
        let history = &own[random.random_range(0..own.len())];
        let Some(mut line) = begin(history, number, &mut random) else { continue };
        line["write_id"] = world.write_id();
        line["deadline_ms"] = json!(DEADLINE_MS);
        let mut answer = talks.ask(random.random_range(0..2), &line);
        world.note("write", &line, &answer);
        // One in ten unknown outcomes stays open. The thing is never written again, because the write may still arrive.
        if code(&answer) == Some("outcome_unknown") && random.random_ratio(9, 10) {
            answer = repeat(world, &line, &mut talks, answer);
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

/// Begins the next attempt to write a thing. Returns `None` if the thing must not be written any more.
fn begin(history: &Mutex<History>, number: u64, random: &mut StdRng) -> Option<Value> {
    let mut history = history.lock();
    if history.is_open() {
        return None;
    }
    let kinds = if let Thing::Association { kinds, .. } = history.thing { kinds.len() } else { 1 };
    let from = history.state();
    let to: State = match from {
        None => Some((random.random_range(0..kinds), number)),
        Some(_) if random.random_ratio(1, 4) => None,
        // A change of the type keeps the time.
        Some((_, time)) if random.random_ratio(1, 3) => Some((random.random_range(0..kinds), time)),
        Some((kind, _)) => Some((kind, number)),
    };
    let mut line = history.thing.write(from, to);
    // The condition refuses a second execution of the same write.
    line["if_version"] = json!(history.version);
    history.begin(to);
    Some(line)
}

/// Repeats a write until it is acknowledged. An error of a repeat does not tell the outcome of the first attempt.
fn repeat(world: &World, line: &Value, talks: &mut Talks<'_>, mut answer: Value) -> Value {
    for (turn, ()) in in_time().enumerate() {
        answer = talks.ask(turn, line);
        world.note("repeat", line, &answer);
        if code(&answer).is_none() || !world.wrong.lock().is_empty() {
            return answer;
        }
        thread::sleep(BACK_OFF);
    }
    world.wrong.lock().push(format!("the outcome stayed unknown: {line}: {answer}"));
    answer
}

/// Runs a reader, which reads things and lists with the tickets of their last writes, at any router and in each group, until
/// the world stops.
pub fn read(world: &World, reader: usize) {
    let random = StdRng::seed_from_u64(100 + reader as u64);
    let mut reader = Reader { world, random, talks: Talks::start(world) };
    while world.goes_on() {
        reader.read_thing();
        reader.read_list();
    }
}

struct Reader<'w> {
    world: &'w World,
    random: StdRng,
    talks: Talks<'w>,
}

impl Reader<'_> {
    fn read_thing(&mut self) {
        let history = &self.world.things[self.random.random_range(0..self.world.things.len())];
        let ((since, ticket), mut looks) = {
            let history = history.lock();
            (history.acknowledged(), history.thing.looks())
        };
        let Look { line, kind } = looks.swap_remove(self.random.random_range(0..looks.len()));
        let Some((line, answer)) = self.ask(line, ticket) else { return };
        let history = history.lock();
        if !history.allows(since, kind, Look::shown(&answer)) {
            self.world.wrong.lock().push(format!("{line}: {answer}, but after attempt {since}: {history:?}"));
        }
    }

    fn read_list(&mut self) {
        let (list, members) = &self.world.lists[self.random.random_range(0..self.world.lists.len())];
        let reached = members.iter().map(|member| self.world.things[member.thing].lock().acknowledged());
        let (since, tickets): (Vec<usize>, Vec<Value>) = reached.unzip();
        let op = ["assoc_range", "assoc_count", "connections"][self.random.random_range(0..3)];
        let Some((line, answer)) = self.ask(of_list(op, *list), Value::Array(tickets)) else { return };
        if let Err(why) = judge_list(self.world, members, &since, &answer) {
            self.world.wrong.lock().push(format!("{line}: {answer}: {why}"));
        }
    }

    /// Sends a read. Returns the line as it was sent and the answer; `None` if the answer is an error.
    fn ask(&mut self, mut line: Value, ticket: Value) -> Option<(Value, Value)> {
        line["ticket"] = ticket;
        line["deadline_ms"] = json!(DEADLINE_MS);
        match self.random.random_range(0..4) {
            0 => line["critical"] = json!(true),
            group @ (1 | 2) => line["group"] = json!(group - 1),
            _ => {}
        }
        let answer = self.talks.ask(self.random.random_range(0..2), &line);
        self.world.note(line["op"].as_str().unwrap_or_default(), &line, &answer);
        if code(&answer).is_some() {
            thread::sleep(BACK_OFF);
            return None;
        }
        Some((line, answer))
    }
}

/// Checks that the answer to a read of a list is possible if the read has reached the attempts `since` of the list's
/// members.
fn judge_list(world: &World, members: &[Member], since: &[usize], answer: &Value) -> Result<(), String> {
    let mut counts = (0, 0);
    let connected = answer["ids"].as_array();
    let out = answer["out"].as_array();
    let is_cut = answer["more"] == true;
    for (member, since) in members.iter().zip(since) {
        let history = world.things[member.thing].lock();
        let possible: Vec<Option<u64>> =
            history.possible(*since).map(|state| under(member.kind, state)).collect();
        counts.0 += usize::from(possible.iter().all(Option::is_some));
        counts.1 += usize::from(possible.iter().any(Option::is_some));
        let shown = out.map(|out| {
            let entry = out.iter().find(|entry| entry[0] == member.id);
            entry.and_then(|entry| entry[1].as_u64())
        });
        let is_right = match (connected, shown) {
            (Some(ids), _) => {
                let is_shown = ids.iter().any(|id| *id == member.id);
                possible.iter().any(|it| it.is_some() == is_shown)
            }
            (_, Some(None)) if is_cut => true,
            (_, Some(shown)) => possible.contains(&shown),
            (None, None) => true,
        };
        if !is_right {
            return Err(format!("after attempt {since}: {history:?}"));
        }
    }
    let length = answer["count"].as_u64().map(|count| count as usize);
    let listed = out.or(connected).map(Vec::len).filter(|_| !is_cut);
    match length.or(listed) {
        Some(length) if !(counts.0..=counts.1).contains(&length) => {
            Err(format!("the list must have {} to {} entries", counts.0, counts.1))
        }
        _ => Ok(()),
    }
}
