//! Checks the graph after all faults: things have a state that their writers allow, in every direction, and counts are
//! right.

use super::{
    callers::BACK_OFF,
    history::{History, Look, State, under},
    world::{Member, World, of_list},
};
use crate::{
    live::site::{Site, Talk, code},
    support::{in_time, is_full},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

const IN_FLIGHT: u32 = 8;
/// The time after the faults within which the cluster completes all pending work.
const SETTLED_WITHIN: Duration = Duration::from_secs(10);

pub fn check(world: &World, site: &Site) {
    let (mut talk, started) = (site.talk(IN_FLIGHT), Instant::now());
    let states: Vec<State> = world.things.iter().map(|history| settled(&history.lock(), &mut talk)).collect();
    let took = started.elapsed();
    eprintln!("settled {} ms after the writers stopped", took.as_millis());
    // In the short run, other tests may use most of the machine.
    assert!(!is_full() || took < SETTLED_WITHIN, "{took:?}");
    for (list, members) in &world.lists {
        check_list(*list, members, &states, &mut talk);
    }
}

/// Waits until all reads of a thing show the same possible state. Returns this state.
fn settled(history: &History, talk: &mut Talk) -> State {
    let (since, _) = history.acknowledged();
    let looks = history.thing.looks();
    let lines: Vec<Value> = looks.iter().map(|look| critical(look.line.clone())).collect();
    let mut answers = Vec::new();
    for () in in_time() {
        answers = talk.ask_all(&lines);
        let shows = |state: &State| {
            let mut shown = looks.iter().zip(&answers);
            shown.all(|(look, answer)| {
                code(answer).is_none() && Look::shown(answer) == under(look.kind, *state)
            })
        };
        if let Some(state) = history.possible(since).find(shows) {
            return state;
        }
        thread::sleep(BACK_OFF);
    }
    panic!("{answers:?}, but after attempt {since}: {history:?}")
}

fn check_list(list: (u64, &'static str), members: &[Member], states: &[State], talk: &mut Talk) {
    let mut expected = BTreeMap::new();
    for member in members {
        let time = under(member.kind, states[member.thing]);
        expected.extend(time.map(|time| (member.id, time)));
    }
    let count = talk.must(&critical(of_list("assoc_count", list)));
    assert_eq!(count["count"], expected.len(), "{list:?}: {expected:?}");
    let mut newest: Vec<(u64, u64)> = expected.into_iter().collect();
    newest.sort_by_key(|(id, time)| (std::cmp::Reverse(*time), *id));
    let range = talk.must(&critical(of_list("assoc_range", list)));
    let out = range["out"].as_array().expect("a list");
    // A read returns at most as many entries as the cap of the type.
    assert_eq!(range["more"] == true, out.len() < newest.len(), "{list:?}: {range}, but {newest:?}");
    assert_eq!(json!(newest[..out.len()]), range["out"], "{list:?}");
}

fn critical(mut line: Value) -> Value {
    line["critical"] = json!(true);
    line
}
