//! The course of one fan-out: scripts in `testdata/scenarios/execution`.

use crate::language::EXECUTION;
use crate::outcome::{describe, why};
use crate::words::{class, options, request_id};
use kith_routing::execution::{Action, Budgets, Cause, Disposition, Event, FailureClass};
use kith_routing::{
    Availability, Execution, GroupLimit, LoadSnapshot, NodeIndex, NodeLoad, PolicyInputs, PolicyState,
    RoutingTable, policy,
};
use kith_sim::scenario::cluster::{Layout, list, node_id, partition_ids};
use kith_sim::scenario::{Command, Player, duration, number};
use kith_types::{NodeId, PartitionId, Timestamp};
use rand::{SeedableRng, rngs::StdRng};

pub struct FanOut {
    layout: Layout,
    cluster: Option<(RoutingTable, Availability)>,
    budgets: Budgets,
    now: Timestamp,
    deadline: Option<Timestamp>,
    running: Option<Execution>,
    /// The partitions of the query's keys.
    keys: Vec<PartitionId>,
}

impl Default for FanOut {
    fn default() -> Self {
        Self {
            layout: Layout::default(),
            cluster: None,
            budgets: Budgets::unlimited(),
            now: Timestamp::ZERO,
            deadline: None,
            running: None,
            keys: Vec::new(),
        }
    }
}

impl Player for FanOut {
    fn play(&mut self, command: &Command<'_>) -> Result<Vec<String>, String> {
        if self.cluster.is_none() {
            if let Some(taken) = self.layout.take(command) {
                return taken.map(|()| Vec::new());
            }
            let table = self.layout.table()?;
            let availability = Availability::all(&table);
            self.cluster = Some((table, availability));
        }
        match command.words.as_slice() {
            ["ask", partitions @ ..] => return self.ask(partition_ids(partitions)?, command),
            [request, "answers", ..] => return self.answer(request, command),
            _ => command.clauses_are(&[])?,
        }
        match command.words.as_slice() {
            ["no", "budget", "for", of] => self.forbid(of)?,
            [request, "fails:", reason @ ..] => {
                let event = Event::Failed { request: request_id(request)?, class: class(reason)? };
                return self.happen(event);
            }
            [node, "seems", "down"] => {
                self.set_up(node, false)?;
                if self.running.is_some() {
                    return self.happen(Event::NodeDown { node: node_id(node)? });
                }
            }
            [node, "is", "back"] => self.set_up(node, true)?,
            ["at", time] => return self.pass(Timestamp(duration(time)?)),
            ["stand", "still", "until", time] => return self.stand_still(Timestamp(duration(time)?)),
            ["enough"] => return self.happen(Event::Satisfied),
            ["the", "caller", "leaves"] => return self.happen(Event::Cancelled),
            _ => return Err(command.unknown(EXECUTION)),
        }
        Ok(Vec::new())
    }
}

impl FanOut {
    fn forbid(&mut self, of: &str) -> Result<(), String> {
        let nothing = Budgets::nothing();
        match of {
            "hedges" => self.budgets.hedges = nothing.hedges,
            "retries" => self.budgets.retries = nothing.retries,
            other => return Err(format!("there is no budget for {other}")),
        }
        Ok(())
    }

    fn set_up(&mut self, node: &str, is_up: bool) -> Result<(), String> {
        let (table, availability) = self.cluster.as_mut().ok_or("the cluster is there")?;
        let node = table.node_index(node_id(node)?).ok_or_else(|| format!("there is no node {node}"))?;
        let all = table.nodes().len() as u32;
        let down = (0..all).map(NodeIndex).filter(|other| match *other == node {
            true => !is_up,
            false => !availability.serving().contains(*other),
        });
        let down: Vec<NodeId> = down.map(|index| table.node_at(index).id).collect();
        *availability = Availability::all_but(table, &down);
        // A client's fleet does this too.
        availability.rescue(table);
        Ok(())
    }

    fn ask(&mut self, keys: Vec<PartitionId>, command: &Command<'_>) -> Result<Vec<String>, String> {
        command.clauses_are(&["partial", "early", "sum", "retries", "deadline", "hedge"])?;
        let options = options(command)?;
        let (table, availability) = self.cluster.as_ref().ok_or("the cluster is there")?;
        let view = table.view(availability);
        // The first group is idle, so the policy chooses it. The others have more to do.
        let others = table.nodes().iter().filter(|node| node.group != table.groups()[0].id);
        let busy = |id: NodeId| NodeLoad { node: id, outstanding_keys: 1_000, ..NodeLoad::default() };
        let mut nodes: Vec<NodeLoad> = others.map(|node| busy(node.id)).collect();
        nodes.sort_by_key(|load| load.node);
        let load = LoadSnapshot { nodes, ..LoadSnapshot::default() };
        let (mut state, mut rng) = (PolicyState::at_first_group(), StdRng::seed_from_u64(1));
        let least_loaded = policy::by_name("least-loaded").ok_or("least-loaded is a policy")?;
        let inputs = PolicyInputs { view, keys: &keys, limit: GroupLimit(1), load: &load };
        let plan = match options.partial {
            true => policy::plan_what_is_up(least_loaded, &inputs, &mut state, &mut rng),
            false => least_loaded.plan(&inputs, &mut state, &mut rng),
        };
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => return Ok(vec![format!("refused: {error}")]),
        };
        self.deadline = options.deadline;
        self.running = Some(Execution::new(&plan, &keys, options, self.now));
        self.keys = keys;
        self.next()
    }

    fn answer(&mut self, request: &str, command: &Command<'_>) -> Result<Vec<String>, String> {
        command.clauses_are(&["except"])?;
        let request = request_id(request)?;
        let failed = self.failed(command.clause("except"))?;
        match command.words[2..] {
            [] if failed.is_empty() => self.happen(Event::Reply { request }),
            [] => self.happen(Event::ReplyInPart { request, failed }),
            [keys, "keys" | "key"] => {
                self.happen(Event::ReplySoFar { request, keys: number(keys)? as u32, failed })
            }
            _ => Err(command.unknown(EXECUTION)),
        }
    }

    /// Parses `p0 p2 damaged`: the partitions whose keys have no answer, and why.
    fn failed(&self, except: Option<&[&str]>) -> Result<Vec<(u32, FailureClass)>, String> {
        let Some(words) = except else { return Ok(Vec::new()) };
        let (reason, partitions) =
            words.split_last().ok_or("\"except\" is followed by partitions and a reason")?;
        let (class, partitions) = (class(&[reason])?, partition_ids(partitions)?);
        let keys = (0..).zip(&self.keys).filter(|(_, partition)| partitions.contains(partition));
        Ok(keys.map(|(key, _)| (key, class)).collect())
    }

    fn execution(&mut self) -> Result<&mut Execution, String> {
        self.running.as_mut().ok_or_else(|| "nothing was asked yet".to_owned())
    }

    /// Reports an event to the execution and carries out its actions.
    fn happen(&mut self, event: Event) -> Result<Vec<String>, String> {
        let now = self.now;
        let disposition = self.execution()?.on(event, now);
        let mut lines = match disposition {
            Disposition::Accepted => Vec::new(),
            Disposition::AcceptedInPart { late } => {
                vec![format!("counts but for {}, answered already", self.list(&late))]
            }
            Disposition::Held => vec!["kept back until it is known whether it counts".to_owned()],
            Disposition::Ignored => vec!["ignored".to_owned()],
        };
        lines.extend(self.next()?);
        if lines.is_empty() {
            lines.push("nothing to do".to_owned());
        }
        Ok(lines)
    }

    fn next(&mut self) -> Result<Vec<String>, String> {
        let (table, availability) = self.cluster.as_ref().ok_or("the cluster is there")?;
        let execution = self.running.as_mut().ok_or("nothing was asked yet")?;
        let actions = execution.next(&table.view(availability), &mut self.budgets);
        Ok(actions.iter().flat_map(|action| self.describe(action)).collect())
    }

    /// Lets time pass. Every timer fires when it is due.
    fn pass(&mut self, until: Timestamp) -> Result<Vec<String>, String> {
        let mut lines = Vec::new();
        loop {
            let hedge = self.running.as_ref().and_then(Execution::next_hedge);
            let deadline =
                self.deadline.filter(|_| self.running.as_ref().is_some_and(|it| !it.is_finished()));
            let Some(due) = [hedge, deadline].into_iter().flatten().min().filter(|due| *due <= until) else {
                break;
            };
            self.now = self.now.max(due);
            let is_deadline = deadline == Some(due);
            let event =
                if is_deadline { Event::Deadline } else { Event::HedgeDue { caught_up: Timestamp::ZERO } };
            let at = kith_sim::scenario::millis(due.0);
            lines.extend(self.happen(event)?.into_iter().map(|line| format!("at {at}: {line}")));
        }
        self.now = until;
        Ok(if lines.is_empty() { vec!["nothing to do".to_owned()] } else { lines })
    }

    /// Lets time pass without firing timers. Afterwards the process knows that it was suspended, and when it will have
    /// caught up.
    fn stand_still(&mut self, until: Timestamp) -> Result<Vec<String>, String> {
        self.now = until;
        self.happen(Event::HedgeDue { caught_up: until })
    }

    fn list(&self, keys: &[u32]) -> String {
        list(keys.iter().map(|key| self.keys[*key as usize]))
    }

    fn describe(&self, action: &Action) -> Vec<String> {
        let line = match action {
            Action::Send { request, node, keys, cause } => {
                let why = match cause {
                    Cause::Plan => String::new(),
                    Cause::Retry => ", a retry".to_owned(),
                    Cause::Hedge { of } => format!(", a hedge of r{}", of.0),
                };
                format!("r{} asks {node} for {}{why}", request.0, self.list(keys))
            }
            Action::Cancel { request, end } => format!("r{} is called off: {}", request.0, why(*end)),
            Action::Use { request } => format!("the answer of r{} counts", request.0),
            Action::Refresh { epoch } => format!("fetch the routing table of {epoch}"),
            Action::Finish(outcome) => return describe(outcome),
        };
        vec![line]
    }
}
