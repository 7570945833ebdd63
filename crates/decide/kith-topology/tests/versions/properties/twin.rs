//! The rules of a store, written a second time, slowly, on plain lists.

use super::{NODES, Step};
use std::collections::{BTreeMap, BTreeSet};

pub struct TwinPush {
    pub version: u64,
    push: u8,
    ready: BTreeSet<u32>,
    left_out: BTreeSet<u32>,
    missing_max: u32,
    offered: bool,
}

/// The agreed state as plain lists, with its rules written a second time.
#[derive(Default)]
pub struct Twin {
    pub served: Option<u64>,
    pub retained: BTreeSet<u64>,
    pub blocked: BTreeSet<u64>,
    held: BTreeSet<u64>,
    pub running: Option<TwinPush>,
    left_out: BTreeMap<u64, BTreeSet<u32>>,
    pushed: BTreeSet<u8>,
    /// The last end of each push that did not serve, and whether it was cancelled.
    ended: BTreeMap<u8, bool>,
    pub frozen: bool,
    last: u64,
    retain: usize,
    pub recorded: usize,
}

impl Twin {
    /// Returns a store without a version that keeps `retain` old ones.
    pub fn new(retain: usize) -> Self {
        Self { retain, ..Self::default() }
    }

    fn covered(without: &BTreeSet<u32>) -> bool {
        // Partition 0 is on nodes 0 and 2, partition 1 on nodes 1 and 3.
        !(without.contains(&0) && without.contains(&2) || without.contains(&1) && without.contains(&3))
    }

    fn kept(&self, version: u64) -> bool {
        self.served == Some(version) || self.retained.contains(&version) || self.blocked.contains(&version)
    }

    fn servable(&self, version: u64, force: bool) -> bool {
        let state_allows = self.retained.contains(&version) || force && self.blocked.contains(&version);
        state_allows && Self::covered(self.left_out.get(&version).unwrap_or(&BTreeSet::new()))
    }

    fn serve(&mut self, version: u64, block_old: bool) {
        if let Some(old) = self.served.replace(version) {
            if block_old {
                self.blocked.insert(old)
            } else {
                self.retained.insert(old)
            };
        }
        self.retained.remove(&version);
        self.blocked.remove(&version);
        self.recorded += 1;
    }

    fn fail(&mut self) -> bool {
        self.end(false)
    }

    fn end(&mut self, cancelled: bool) -> bool {
        let Some(push) = self.running.take() else { return false };
        self.ended.insert(push.push, cancelled);
        self.recorded += 1;
        true
    }

    fn cancel(&mut self, push: Option<u8>) -> bool {
        let running = self.running.as_ref().map(|running| running.push);
        match push {
            None => self.end(true),
            Some(push) if running == Some(push) => self.end(true),
            Some(push) if self.pushed.contains(&push) => false,
            Some(push) if self.ended.get(&push) == Some(&true) => true,
            Some(push) => {
                self.ended.insert(push, true);
                true
            }
        }
    }

    fn clean(&mut self) {
        loop {
            let free = |set: &BTreeSet<u64>| {
                set.iter().copied().filter(|v| !self.held.contains(v)).collect::<Vec<_>>()
            };
            let (blocked, retained) = (free(&self.blocked), free(&self.retained));
            if blocked.len() + retained.len() <= self.retain {
                return;
            }
            match blocked.first() {
                Some(version) => self.blocked.remove(version),
                None => self.retained.remove(&retained[0]),
            };
        }
    }

    /// Applies a step. Returns whether it is granted.
    pub fn step(&mut self, step: &Step, now: u64, version_of: impl Fn(usize) -> u64) -> bool {
        let granted = self.push_step(step, now).unwrap_or_else(|| self.version_step(step, version_of));
        self.clean();
        granted
    }

    /// Applies a step of a push; `None` for other steps.
    fn push_step(&mut self, step: &Step, now: u64) -> Option<bool> {
        Some(match step {
            Step::Begin { push, missing_max } => self.begin(*push, *missing_max, now),
            Step::Offer => self.running.as_mut().map(|running| running.offered = true).is_some(),
            Step::Ready(node) => {
                let running = self.running.as_mut();
                running.map(|running| (running.left_out.remove(node), running.ready.insert(*node))).is_some()
            }
            Step::Fails(node) => self.fails(*node),
            Step::Flip => self.flip(),
            Step::Abort | Step::Recover => self.fail(),
            Step::Cancel(push) => self.cancel(*push),
            Step::Freeze => {
                if !self.frozen {
                    self.end(true);
                    self.frozen = true;
                    self.recorded += 1;
                }
                true
            }
            Step::Thaw => {
                self.recorded += usize::from(self.frozen);
                self.frozen = false;
                true
            }
            Step::Crash => {
                if let Some(running) = &mut self.running {
                    running.ready.clear();
                }
                true
            }
            _ => return None,
        })
    }

    fn begin(&mut self, push: u8, missing_max: u32, now: u64) -> bool {
        if let Some(running) = &self.running {
            return running.push == push;
        }
        if self.pushed.contains(&push) || self.ended.get(&push) == Some(&true) || self.frozen {
            return false;
        }
        self.last = now.max(self.last + 1);
        self.running = Some(TwinPush {
            version: self.last,
            push,
            ready: BTreeSet::new(),
            left_out: BTreeSet::new(),
            missing_max,
            offered: false,
        });
        true
    }

    fn fails(&mut self, node: u32) -> bool {
        let Some(running) = &mut self.running else { return false };
        let mut more = running.left_out.clone();
        more.insert(node);
        if running.missing_max < more.len() as u32 || !Self::covered(&more) {
            return self.fail();
        }
        running.left_out = more;
        running.ready.remove(&node);
        true
    }

    fn flip(&mut self) -> bool {
        let is_prepared = |running: &TwinPush| {
            let is_done = |node: &u32| running.ready.contains(node) || running.left_out.contains(node);
            running.offered && (0..NODES).all(|node| is_done(&node))
        };
        let Some(running) = self.running.take_if(|running| is_prepared(running)) else { return false };
        self.pushed.insert(running.push);
        self.left_out.insert(running.version, running.left_out);
        self.serve(running.version, false);
        true
    }

    fn version_step(&mut self, step: &Step, version_of: impl Fn(usize) -> u64) -> bool {
        match step {
            Step::Swap(index, force) => self.swap(version_of(*index), *force),
            Step::Rollback(to, force) => self.roll_back(to.map(version_of), *force),
            Step::Hold(index, held) => self.hold(version_of(*index), *held),
            Step::Block(index, blocked) => self.block(version_of(*index), *blocked),
            Step::Repair(index, node) => {
                let version = version_of(*index);
                let may = self.kept(version);
                if may && self.left_out.entry(version).or_default().remove(node) {
                    self.recorded += 1;
                }
                may
            }
            Step::Define(retain) => {
                self.retain = *retain as usize;
                self.recorded += 1;
                true
            }
            _ => unreachable!("a push's step"),
        }
    }

    fn swap(&mut self, version: u64, force: bool) -> bool {
        let may = self.servable(version, force);
        if may {
            self.end(true);
            self.serve(version, false);
        }
        may
    }

    fn roll_back(&mut self, to: Option<u64>, force: bool) -> bool {
        let served = self.served.unwrap_or(0);
        let older = || self.retained.iter().copied().filter(|version| *version < served).max();
        let to = to.or_else(older).filter(|to| *to < served && self.servable(*to, force));
        if let Some(to) = to {
            self.end(true);
            self.serve(to, true);
        }
        to.is_some()
    }

    fn hold(&mut self, version: u64, held: bool) -> bool {
        let may = self.kept(version);
        if may {
            match held {
                true => self.held.insert(version),
                false => self.held.remove(&version),
            };
            self.recorded += 1;
        }
        may
    }

    fn block(&mut self, version: u64, blocked: bool) -> bool {
        let may = self.kept(version) && self.served != Some(version);
        if may {
            let (from, to) = match blocked {
                true => (&mut self.retained, &mut self.blocked),
                false => (&mut self.blocked, &mut self.retained),
            };
            from.remove(&version);
            to.insert(version);
            self.recorded += 1;
        }
        may
    }
}
