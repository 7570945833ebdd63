//! Changes of a cluster's shape: scripts in `testdata/scenarios/rebalance`.

use super::language::REBALANCE;
use super::plans::{changes, describe};
use super::words;
use kith_routing::rebalance::{
    Conditions, Move, PlanOptions, RebalanceAction, RebalanceEvent, RebalancePlan, RebalanceState,
    StoreSizes, TransferState, plan,
};
use kith_routing::{RoutingTable, TableParts};
use kith_sim::scenario::cluster::{Layout, count, counted, list, node_id, node_ids, owners, partition_ids};
use kith_sim::scenario::{Command, Player, duration, number, numbered};
use kith_types::{Epoch, NodeId, PartitionId, Timestamp};
use std::time::Duration;

#[derive(Default)]
pub struct Rebalance {
    layout: Layout,
    in_force: Option<RoutingTable>,
    stores: Vec<StoreSizes>,
    plan: Option<RebalancePlan>,
    state: Option<RebalanceState>,
    /// The last table that was to be written.
    written: Option<TableParts>,
    /// The partitions that nodes were asked to free.
    reclaims: Vec<(NodeId, PartitionId, Vec<u32>)>,
    now: Timestamp,
}

impl Player for Rebalance {
    fn play(&mut self, command: &Command<'_>) -> Result<Vec<String>, String> {
        if let Some(taken) = self.layout.take(command) {
            return taken.map(|()| Vec::new());
        }
        match command.words.as_slice() {
            ["ring", "of", nodes @ ..] => {
                let ranks = self.layout.ring(nodes, command)?;
                ranks.map_err(|nodes| format!("only {nodes} nodes are on the ring"))?;
                return Ok(Vec::new());
            }
            ["store", name] => return self.store(name, command),
            ["plan", shape @ ..] => return self.plan(shape, command),
            ["begin"] => return self.begin(command),
            ["the", "table", "is", "written"] => return self.write(command),
            _ => command.clauses_are(&[])?,
        }
        match command.words.as_slice() {
            ["owners"] => {
                let table = self.table()?;
                let mut lines = vec![format!("epoch {}", table.epoch())];
                lines.extend(owners(&table.to_parts()));
                Ok(lines)
            }
            ["progress"] => self.progress(),
            ["at", time] => {
                self.now = Timestamp(duration(time)?);
                self.next()
            }
            ["the", "driver", "restarts"] => self.restart(),
            ["another", "changes", "the", "table"] => {
                let mut parts = self.table()?.to_parts();
                parts.epoch = Epoch(parts.epoch.0 + 1);
                self.in_force = Some(RoutingTable::new(parts).map_err(|error| error.to_string())?);
                Ok(Vec::new())
            }
            ["all", "is", "copied"] => self.copy_all(),
            _ => {
                let event = self.event(command)?;
                self.happen(event)
            }
        }
    }
}

impl Rebalance {
    fn event(&mut self, command: &Command<'_>) -> Result<RebalanceEvent, String> {
        let event = match command.words.as_slice() {
            [copy, "is", "copied"] => RebalanceEvent::Copied(numbered(copy, "c")? as usize),
            [copy, "fails:", fault] => {
                RebalanceEvent::CopyFailed(numbered(copy, "c")? as usize, words::fault(fault)?)
            }
            ["the", "write", "is", "refused"] => {
                RebalanceEvent::CommitRefused(Box::new(self.table()?.clone()))
            }
            ["all", "use", epoch] => RebalanceEvent::InUse(Epoch(numbered(epoch, "e")?.into())),
            [node, "freed", partition] => {
                let (node, partition) = (node_id(node)?, partition_ids(&[partition])?[0]);
                let index =
                    self.reclaims.iter().position(|reclaim| (reclaim.0, reclaim.1) == (node, partition));
                let index = index.ok_or_else(|| format!("{node} was not asked to free {partition}"))?;
                RebalanceEvent::Reclaimed(node, partition, self.reclaims.remove(index).2)
            }
            [node, "goes", "down"] => RebalanceEvent::NodeDown(node_id(node)?),
            [node, "comes", "back"] => RebalanceEvent::NodeUp(node_id(node)?),
            ["continue"] => RebalanceEvent::Continue,
            ["abort"] => RebalanceEvent::Abort,
            _ => return Err(command.unknown(REBALANCE)),
        };
        Ok(event)
    }

    fn table(&mut self) -> Result<&RoutingTable, String> {
        if self.in_force.is_none() {
            self.in_force = Some(self.layout.table()?);
        }
        self.in_force.as_ref().ok_or_else(|| "the table is there".to_owned())
    }

    fn state(&mut self) -> Result<&mut RebalanceState, String> {
        self.state.as_mut().ok_or_else(|| "nothing was begun yet".to_owned())
    }

    fn store(&mut self, name: &str, command: &Command<'_>) -> Result<Vec<String>, String> {
        command.clauses_are(&["bytes", "copies", "agree", "without"])?;
        let partitions = self.table()?.partition_count().get() as usize;
        let value = |name: &str| command.value(name)?.map(number).transpose();
        self.stores.push(StoreSizes {
            name: name.to_owned(),
            replication: value("copies")?.map(|copies| copies as u32),
            required_reads: value("agree")?.unwrap_or(1) as u32,
            bytes: vec![value("bytes")?.unwrap_or(1); partitions],
            excluded: node_ids(command.clause("without").unwrap_or_default())?,
        });
        Ok(Vec::new())
    }

    fn plan(&mut self, shape: &[&str], command: &Command<'_>) -> Result<Vec<String>, String> {
        command.clauses_are(&["batch", "dead"])?;
        let mut options = PlanOptions::default();
        if let Some(size) = command.value("batch")? {
            options.batch_size = number(size)? as usize;
        }
        options.dead = node_ids(command.clause("dead").unwrap_or_default())?.into_iter().collect();
        let table = self.table()?.clone();
        let shape = words::shape(shape, &self.layout, &table)?.ok_or_else(|| command.unknown(REBALANCE))?;
        let stores = self.stores.clone();
        match plan(&table, &shape, &stores, &options) {
            Ok(plan) => {
                let lines = describe(&plan)?;
                self.plan = Some(plan);
                Ok(lines)
            }
            Err(refusal) => Ok(vec![format!("refused: {refusal}")]),
        }
    }

    fn begin(&mut self, command: &Command<'_>) -> Result<Vec<String>, String> {
        command.clauses_are(&["grace", "push", "left"])?;
        let grace = command.value("grace")?.map_or(Ok(Duration::from_secs(60)), duration)?;
        let conditions = Conditions {
            push_running: command.value("push")?.map(str::to_owned),
            reclaims_left: command.value("left")?.map_or(Ok(0), number)? as usize,
            ..Conditions::default()
        };
        let plan = self.plan.clone().ok_or("nothing was planned yet")?;
        match RebalanceState::begin(plan, grace, self.table()?, &conditions) {
            Ok(state) => self.state = Some(state),
            Err(refusal) => return Ok(vec![format!("refused: {refusal}")]),
        }
        self.next()
    }

    fn write(&mut self, command: &Command<'_>) -> Result<Vec<String>, String> {
        command.clauses_are(&["unheard"])?;
        let parts = self.written.take().ok_or("no table is to be written")?;
        self.in_force = Some(RoutingTable::new(parts).map_err(|error| error.to_string())?);
        if command.flag("unheard")? { Ok(Vec::new()) } else { self.happen(RebalanceEvent::Committed) }
    }

    fn restart(&mut self) -> Result<Vec<String>, String> {
        let parts = self.state()?.parts().clone();
        let now = self.now;
        self.reclaims.clear();
        match RebalanceState::resume(parts, self.table()?, now) {
            Ok(state) => self.state = Some(state),
            Err(refusal) => return Ok(vec![format!("refused: {refusal}")]),
        }
        self.next()
    }

    fn copy_all(&mut self) -> Result<Vec<String>, String> {
        let transfers = self.state()?.parts().transfers.iter().enumerate();
        let running = transfers.filter(|(_, transfer)| transfer.state == TransferState::Running);
        let running: Vec<usize> = running.map(|(index, _)| index).collect();
        let now = self.now;
        for index in running {
            let _ = self.state()?.on(RebalanceEvent::Copied(index), now);
        }
        self.next()
    }

    fn happen(&mut self, event: RebalanceEvent) -> Result<Vec<String>, String> {
        let now = self.now;
        let actions = self.state()?.on(event, now);
        let mut lines = self.describe(actions)?;
        lines.extend(self.next()?.into_iter().filter(|line| line != NOTHING));
        if lines.is_empty() {
            lines.push(NOTHING.to_owned());
        }
        Ok(lines)
    }

    fn next(&mut self) -> Result<Vec<String>, String> {
        let now = self.now;
        let Some(state) = &mut self.state else { return Ok(Vec::new()) };
        let actions = state.next(now);
        let lines = self.describe(actions)?;
        Ok(if lines.is_empty() { vec![NOTHING.to_owned()] } else { lines })
    }

    fn describe(&mut self, actions: Vec<RebalanceAction>) -> Result<Vec<String>, String> {
        let mut lines = Vec::new();
        for action in actions {
            match action {
                RebalanceAction::Copy(index) => {
                    let copy = self.state()?.parts().transfers[index].copy.clone();
                    lines.push(format!("c{index}: copy {}", self.copy(&copy)));
                }
                RebalanceAction::Cancel(index) => lines.push(format!("stop c{index}")),
                RebalanceAction::Commit(parts) => {
                    let changes = changes(self.state()?.table(), &parts);
                    lines.push(format!("write table {}: {}", parts.epoch, changes.join(", ")));
                    self.written = Some(*parts);
                }
                RebalanceAction::Reclaim(node, partition, stores) => {
                    lines.push(format!("{node} frees {partition} of {}", self.names(&stores)));
                    self.reclaims.push((node, partition, stores));
                }
                RebalanceAction::Stopped(reason) => lines.push(format!("stopped: {reason}")),
                RebalanceAction::Ended(ending) => lines.push(format!("over: {ending:?}").to_lowercase()),
            }
        }
        Ok(lines)
    }

    fn names(&self, stores: &[u32]) -> String {
        list(stores.iter().map(|store| self.stores[*store as usize].name.as_str()))
    }

    fn copy(&self, copy: &Move) -> String {
        format!("{} from {} to {}", copy.partition, copy.donor, copy.stealer)
    }

    fn progress(&mut self) -> Result<Vec<String>, String> {
        let progress = self.state()?.progress();
        Ok(vec![format!(
            "{} of {}, {} of {}, {} left to free",
            progress.batches_done,
            counted(progress.batches, "batch", "batches"),
            progress.moves_done,
            counted(progress.moves, "copy", "copies"),
            count(progress.reclaims_left, "partition")
        )])
    }
}

const NOTHING: &str = "nothing to do";
