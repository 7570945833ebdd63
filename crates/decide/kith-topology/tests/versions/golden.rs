//! Plays `testdata/*.txt`: commands and their outcomes.
//!
//! A block is commands, and their outcome after `>`. All blocks of a file use the same store. Run with `BLESS=1` to rewrite the
//! outcomes, then read the difference. Commands:
//!
//! - `store retain=2 groups=0,1/2,3 drained=4,5 records-min=1 drop=10 quota=100 owner=ada`: creates a store; groups list
//!   owners by partition, `drained` are the groups that serve no reads
//! - `drain 0,1/2,3 4,5`: the same groups, with others of them taken out
//! - `begin p1 [version=7] [missing=1]`, `offer p1 RECORDS BYTES [force]`, `ready p1 0 1`, `fails p1 3`, `flip p1`, `abort p1`
//! - `cancel [p1]`, `freeze`, `thaw`
//! - `crash`: the coordinator dies, and what it knew is lost; `recover p1`
//! - `swap 7 [force]`, `rollback [to=7] [force]`, `hold 7`, `release 7`, `block 7`, `unblock 7`, `repaired 7 3`
//! - `as bob [proven|admin]`, `define [owner=bob]`, `rebalance r1`, `rebalance -`

#![allow(clippy::unwrap_used, reason = "a script that cannot be read is a failed test")]

use kith_sim::scenario::check_blocks;
use kith_topology::versions::{
    Command, Context, Effect, Holders, Outcome, Policy, PushId, Rebalance, StoreState, Trust, UnixMillis,
};
use kith_types::{NodeId, StoreVersion};
use std::{collections::BTreeSet, fmt::Write, path::PathBuf};

struct Player {
    state: StoreState,
    holders: Holders,
    who: String,
    standing: Trust,
    rebalance: Option<String>,
    now: u64,
}

#[test]
fn scripts_go_as_recorded() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut played_any = false;
    for entry in std::fs::read_dir(folder).unwrap() {
        let mut player = Player::new();
        check_blocks(&entry.unwrap().path(), |lines| player.block(lines));
        played_any = true;
    }
    assert!(played_any);
}

impl Player {
    fn new() -> Self {
        Self {
            state: StoreState::new(Policy::default(), StoreVersion(0)),
            holders: Holders::default(),
            who: "ada".to_owned(),
            standing: Trust::Claimed,
            rebalance: None,
            now: 100,
        }
    }

    fn block(&mut self, lines: &[&str]) -> String {
        let printed: String = lines.iter().map(|line| self.line(line)).collect();
        printed + &self.show()
    }

    fn line(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "store" => self.store(&words[1..]),
            "drain" => {
                let drained = words.get(2).map(|word| owners(word)).unwrap_or_default();
                self.holders = Holders { groups: owners(words[1]), drained };
            }
            "as" => {
                self.who = words[1].to_owned();
                self.standing = match words.get(2).copied() {
                    Some("proven") => Trust::Proven,
                    Some("admin") => Trust::Administrator,
                    _ => Trust::Claimed,
                };
            }
            "define" => {
                let owner = words.get(1).and_then(|word| word.strip_prefix("owner=")).map(str::to_owned);
                let mut policy = self.state.policy.clone();
                policy.guards.owner = owner;
                return self.apply(line, &Command::Define { policy });
            }
            "rebalance" => self.rebalance = (words[1] != "-").then(|| words[1].to_owned()),
            "crash" => {
                if let Some(running) = &mut self.state.running {
                    running.ready.clear();
                }
            }
            "ready" => {
                return words[2..].iter().map(|node| self.apply(line, &ready(words[1], node))).collect();
            }
            _ => return self.apply(line, &command(&words)),
        }
        String::new()
    }

    fn store(&mut self, words: &[&str]) {
        let mut policy = Policy::default();
        for word in words {
            let (key, value) = word.split_once('=').unwrap();
            match key {
                "retain" => policy.retain = value.parse().unwrap(),
                "records-min" => policy.guards.records_min = value.parse().unwrap(),
                "drop" => policy.guards.drop_percent_max = Some(value.parse().unwrap()),
                "quota" => policy.quota_bytes = Some(value.parse().unwrap()),
                "owner" => policy.guards.owner = Some(value.to_owned()),
                "groups" => self.holders = Holders { groups: owners(value), drained: vec![] },
                "drained" => self.holders.drained = owners(value),
                other => panic!("{other}"),
            }
        }
        self.state = StoreState::new(policy, StoreVersion(0));
    }

    fn apply(&mut self, line: &str, command: &Command) -> String {
        self.now += 1;
        let context = Context {
            now: UnixMillis(self.now),
            who: &self.who,
            standing: self.standing,
            holders: &self.holders,
            rebalance: self.rebalance.as_deref().map(|id| Rebalance { id, is_stopped: false }),
        };
        match self.state.apply(command, &context) {
            Ok(transition) => {
                self.state = transition.state;
                transition.effects.iter().map(effect).collect()
            }
            Err(refusal) => {
                format!("{line}: {}: {refusal}\n  help: {}\n", refusal.code(), refusal.help())
            }
        }
    }

    fn show(&self) -> String {
        let mut text = String::new();
        for entry in &self.state.versions {
            let held = if entry.held { ", held" } else { "" };
            let without = if entry.excluded.is_empty() {
                String::new()
            } else {
                format!(", without {}", ids(&entry.excluded))
            };
            writeln!(
                text,
                "{} {}, {} records{held}{without}",
                entry.version,
                entry.state.name(),
                entry.records
            )
            .unwrap();
        }
        if let Some(running) = &self.state.running {
            writeln!(text, "{} runs, ready on {}", running.push, ids(&running.ready)).unwrap();
        }
        if let Some(frozen) = &self.state.frozen {
            writeln!(text, "frozen by {}", frozen.who).unwrap();
        }
        if let Some(last) = self.state.history.back() {
            let outcome = match &last.outcome {
                Outcome::Done => "done".to_owned(),
                Outcome::Failed(reason) => format!("failed: {reason}"),
                Outcome::Cancelled(why) => format!("cancelled: {why}"),
            };
            let (action, version, before) = (last.action.name(), last.version, last.before);
            writeln!(
                text,
                "last of {}: {} {action} {version}, before {before}: {outcome}",
                self.state.history.len(),
                last.who
            )
            .unwrap();
        }
        text
    }
}

/// Parses `0,1/2,3`: owners by group and partition.
fn owners(text: &str) -> Vec<Vec<NodeId>> {
    let group = |group: &str| group.split(',').map(|id| NodeId(number(id) as u32)).collect();
    text.split('/').map(group).collect()
}

fn ready(push: &str, node: &str) -> Command {
    Command::Ready { push: PushId::from(push), node: NodeId(number(node) as u32) }
}

fn command(words: &[&str]) -> Command {
    let force = words.contains(&"force");
    let option = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)).map(number);
    let version = |index: usize| StoreVersion(number(words[index]));
    let push = || PushId::from(words[1]);
    match words[0] {
        "begin" => Command::Begin {
            push: push(),
            coordinator: "router 0".to_owned(),
            version: option("version=").map(StoreVersion),
            missing_max: option("missing=").unwrap_or_default() as u32,
        },
        "offer" => Command::Offer { push: push(), records: number(words[2]), bytes: number(words[3]), force },
        "fails" => Command::NodeFailed {
            push: push(),
            node: NodeId(number(words[2]) as u32),
            reason: "disk full".to_owned(),
        },
        "flip" => Command::Flip { push: push() },
        "abort" => Command::Abort { push: push(), reason: "gave up".to_owned() },
        "cancel" => Command::Cancel { push: words.get(1).map(|push| PushId::from(*push)) },
        "freeze" => Command::Freeze,
        "thaw" => Command::Thaw,
        "recover" => Command::Recover { push: push() },
        "swap" => Command::Swap { to: version(1), force },
        "rollback" => Command::Rollback { to: option("to=").map(StoreVersion), force },
        "hold" => Command::Hold { version: version(1) },
        "release" => Command::Release { version: version(1) },
        "block" => Command::Block { version: version(1) },
        "unblock" => Command::Unblock { version: version(1) },
        "repaired" => Command::Repaired { version: version(1), node: NodeId(number(words[2]) as u32) },
        other => panic!("{other}"),
    }
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Prepare { version, nodes } => format!("prepare {version} on {}\n", ids(nodes)),
        Effect::Serve { version } => format!("serve {version}\n"),
        Effect::Drop { version } => format!("drop {version}\n"),
    }
}

fn ids(nodes: &BTreeSet<NodeId>) -> String {
    if nodes.is_empty() {
        return "none".to_owned();
    }
    nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is not a number"))
}
