//! A store whose versions a script pushes, swaps and rolls back.

use super::words::{begin, offer, parse};
use kith_sim::scenario::{Command, group, number, numbered};
use kith_topology::versions::{
    Command as StoreCommand, Context, Effect, Holders, Outcome, Policy, PushId, Rebalance, StoreState, Trust,
    UnixMillis, VersionState,
};
use kith_types::{NodeId, StoreVersion};
use std::collections::BTreeMap;

type Lines = Vec<String>;

pub struct Store {
    pub state: StoreState,
    /// The owners of each group's partitions, and whether the group serves reads.
    groups: BTreeMap<u32, (Vec<NodeId>, bool)>,
    who: String,
    standing: Trust,
    rebalance: Option<&'static str>,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            state: StoreState::new(Policy::default(), StoreVersion(0)),
            groups: BTreeMap::new(),
            who: "ada".to_owned(),
            standing: Trust::Claimed,
            rebalance: None,
        }
    }
}

impl Store {
    /// Returns `None` if the command is unknown.
    pub fn play(&mut self, command: &Command<'_>) -> Result<Option<Lines>, String> {
        if let Some(store_command) = parse(command)? {
            return self.apply(&store_command).map(Some);
        }
        match command.words.as_slice() {
            ["as", name] => {
                command.clauses_are(&["proven"])?;
                self.who = (*name).to_owned();
                self.standing = if command.flag("proven")? { Trust::Proven } else { Trust::Claimed };
                return Ok(Some(Vec::new()));
            }
            ["define", ..] => return self.define(command).map(Some),
            ["load", push] => return self.load(push, command).map(Some),
            [push, "is", "ready", "on", nodes @ ..] => return self.ready(push, nodes).map(Some),
            _ => command.clauses_are(&[])?,
        }
        match command.words.as_slice() {
            ["group", ..] => {
                let group = group(command.text)?;
                let owners = group.by_partition()?.into_iter().map(NodeId).collect();
                self.groups.insert(group.group, (owners, true));
            }
            [group, "is", "taken", "out"] => self.take_out(group, true)?,
            [group, "serves", "again"] => self.take_out(group, false)?,
            ["the", "coordinator", "dies"] => {
                if let Some(running) = &mut self.state.running {
                    running.ready.clear();
                }
            }
            ["a", "rebalance", "runs"] => self.rebalance = Some("r1"),
            ["the", "rebalance", "ends"] => self.rebalance = None,
            ["versions"] => return Ok(Some(self.versions())),
            ["history"] => return Ok(Some(self.history())),
            _ => return Ok(None),
        }
        Ok(Some(Vec::new()))
    }

    pub fn holders(&self) -> Holders {
        let of = |reads: bool| {
            let groups = self.groups.values().filter(|(_, takes_reads)| *takes_reads == reads);
            groups.map(|(owners, _)| owners.clone()).collect()
        };
        Holders { groups: of(true), drained: of(false) }
    }

    fn take_out(&mut self, group: &str, is_out: bool) -> Result<(), String> {
        let entry = self.groups.get_mut(&numbered(group, "g")?);
        entry.ok_or_else(|| format!("there is no group {group}"))?.1 = !is_out;
        Ok(())
    }

    fn apply(&mut self, command: &StoreCommand) -> Result<Lines, String> {
        if self.groups.is_empty() {
            return Err("a script begins with the groups that hold the store".to_owned());
        }
        let holders = self.holders();
        let context = Context {
            now: UnixMillis(0),
            who: &self.who,
            standing: self.standing,
            holders: &holders,
            rebalance: self.rebalance.map(|id| Rebalance { id, is_stopped: false }),
        };
        let was_running = self.state.running.as_ref().map(|running| running.push.clone());
        match self.state.apply(command, &context) {
            Ok(transition) => {
                self.state = transition.state;
                let mut lines: Lines = transition.effects.iter().map(effect).collect();
                let ended = was_running.filter(|push| !self.state.runs(push));
                lines.extend(ended.map(|push| format!("{push} is over: {}", self.end_of(&push))));
                Ok(lines)
            }
            Err(refusal) => {
                let (code, help) = (refusal.code(), refusal.help());
                Ok(vec![format!("refused: {code}: {refusal}"), format!("  help: {help}")])
            }
        }
    }

    fn end_of(&self, push: &PushId) -> String {
        let entry = self.state.history.iter().rev().find(|entry| entry.push.as_ref() == Some(push));
        entry.map_or("unknown".to_owned(), |entry| outcome(&entry.outcome))
    }

    fn define(&mut self, command: &Command<'_>) -> Result<Lines, String> {
        command.clauses_are(&["records", "drop", "quota", "owner"])?;
        let mut policy = self.state.policy.clone();
        match command.words[1..] {
            [] => {}
            ["keep", retain] => policy.retain = number(retain)? as u32,
            _ => return Err("write \"define keep N, …\"".to_owned()),
        }
        let value = |name: &str| command.value(name)?.map(number).transpose();
        policy.guards.records_min = value("records")?.unwrap_or(policy.guards.records_min);
        policy.guards.drop_percent_max =
            value("drop")?.map(|percent| percent as u8).or(policy.guards.drop_percent_max);
        policy.quota_bytes = value("quota")?.or(policy.quota_bytes);
        policy.guards.owner = command.value("owner")?.map(str::to_owned).or(policy.guards.owner);
        self.apply(&StoreCommand::Define { policy })
    }

    fn load(&mut self, push: &str, command: &Command<'_>) -> Result<Lines, String> {
        command.clauses_are(&["records"])?;
        let records = command.value("records")?.map_or(Ok(1), number)?;
        let id = PushId::from(push);
        let mut steps = vec![begin(push, None, 0), offer(push, records, records, false)];
        let nodes = self.holders().nodes().into_iter();
        steps.extend(nodes.map(|node| StoreCommand::Ready { push: id.clone(), node }));
        steps.push(StoreCommand::Flip { push: id });
        let mut lines = Vec::new();
        for step in steps {
            let said = self.apply(&step)?;
            // A refusal ends it. What nodes fetch in the other steps is not reported.
            if said.iter().any(|line| line.starts_with("refused")) {
                return Ok(said);
            }
            lines.extend(said.into_iter().filter(|line| !line.contains("fetch")));
        }
        Ok(lines)
    }

    fn ready(&mut self, push: &str, nodes: &[&str]) -> Result<Lines, String> {
        let mut lines = Vec::new();
        for node in nodes {
            let node = NodeId(numbered(node, "n")?);
            lines.extend(self.apply(&StoreCommand::Ready { push: PushId::from(push), node })?);
        }
        Ok(lines)
    }

    fn versions(&self) -> Lines {
        let line = |entry: &kith_topology::versions::VersionEntry| {
            let mut line = format!("{} is {}", entry.version, entry.state.name());
            if entry.state != VersionState::Failed && 0 < entry.records {
                line += &format!(", {} records", entry.records);
            }
            if entry.held {
                line += ", held";
            }
            if !entry.excluded.is_empty() {
                line += &format!(", without {}", list(&entry.excluded));
            }
            line
        };
        let mut lines: Lines = self.state.versions.iter().map(line).collect();
        if let Some(running) = &self.state.running {
            let ready = if running.ready.is_empty() { "nobody".to_owned() } else { list(&running.ready) };
            lines.push(format!("{} runs; ready: {ready}", running.push));
        }
        if lines.is_empty() {
            lines.push("there is no version".to_owned());
        }
        lines
    }

    fn history(&self) -> Lines {
        let entries = self.state.history.iter();
        let line = |entry: &kith_topology::versions::HistoryEntry| {
            let before = match entry.before {
                StoreVersion(0) => String::new(),
                before => format!(" while {before} was served"),
            };
            let (who, action, version) = (&entry.who, entry.action.name(), entry.version);
            format!("{who}: {action} {version}{before}: {}", outcome(&entry.outcome))
        };
        entries.map(line).collect()
    }
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done => "done".to_owned(),
        Outcome::Failed(reason) => format!("failed: {reason}"),
        Outcome::Cancelled(why) => format!("cancelled: {why}"),
    }
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Prepare { version, nodes } => format!("{} fetch {version}", list(nodes)),
        Effect::Serve { version } => format!("{version} is served"),
        Effect::Drop { version } => format!("nodes forget {version}"),
    }
}

fn list(things: impl IntoIterator<Item = impl ToString>) -> String {
    things.into_iter().map(|thing| thing.to_string()).collect::<Vec<_>>().join(" ")
}
