//! A cluster in memory: leaders, their database, a network that loses, repeats and delays messages, and callers that repeat
//! writes.
//!
//! Nothing happens by itself: everything that is under way is in [`World::pending`] until a script or a random explorer lets
//! it happen.

use super::client::{Client, Reply};
use crate::leader::*;
use crate::twin::Twin;
use crate::{Batch, Guards, RowQuery, Write};
use kith_types::{LogPoint, PartitionId, Term, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub(super) struct World {
    pub(super) twin: Twin,
    pub(super) nodes: Vec<Leader>,
    /// The leader of each partition according to the metadata, and its term.
    pub(super) leaders: BTreeMap<PartitionId, (usize, Term)>,
    pub(super) pending: Vec<PendingTask>,
    pub(super) client: Client,
    pub(super) now: Duration,
    /// The number of events and writes so far.
    pub(super) clock: usize,
    guards: Guards,
    last_term: u64,
    /// The deliveries so far, by sender id: the node that sent it, the partition that it comes from, and the delivery.
    senders: Vec<(usize, PartitionId, Delivery)>,
    pub(super) released: Vec<PartitionId>,
}

/// Something that is under way.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PendingTask {
    BeginTerm {
        node: usize,
        partition: PartitionId,
        term: Term,
    },
    Load {
        node: usize,
        load: LoadId,
        queries: Vec<(PartitionId, Vec<RowQuery>)>,
    },
    Commit {
        node: usize,
        commit: CommitId,
        batch: Batch,
    },
    /// A commit whose answer was lost.
    LateCommit {
        batch: Batch,
    },
    Deliver {
        node: usize,
        from: PartitionId,
        to: PartitionId,
        delivery: Delivery,
    },
    /// A copy of a delivery, which arrives once more.
    LateDelivery {
        to: PartitionId,
        delivery: Delivery,
    },
    Event {
        node: usize,
        event: Event,
    },
}

impl World {
    pub(super) fn new(nodes: usize, partitions: u32, guards: Guards) -> Self {
        let twin = Twin::new(partitions);
        let types = Arc::new(twin.types.clone());
        let leader = Leader::new(types, twin.count).with_guards(guards);
        let mut world = Self {
            nodes: vec![leader; nodes],
            leaders: BTreeMap::new(),
            pending: Vec::new(),
            client: Client::default(),
            now: Duration::from_secs(1),
            clock: 0,
            guards,
            last_term: 0,
            senders: Vec::new(),
            released: Vec::new(),
            twin,
        };
        for partition in world.twin.count.iter() {
            world.elect(partition, partition.index() % nodes);
        }
        world
    }

    fn time(&self) -> ClockReading {
        ClockReading { since_start: Timestamp::ZERO + self.now, since_1970: self.now.as_millis() as u64 }
    }

    /// Makes a node the leader of a partition in the metadata. The node does not know this yet.
    pub(super) fn elect(&mut self, partition: PartitionId, node: usize) {
        self.last_term += 1;
        let term = Term(self.last_term);
        self.leaders.insert(partition, (node, term));
        self.pending.push(PendingTask::Event { node, event: Event::Lead { partition, term } });
    }

    /// Lets a node crash: it loses its memory, and the messages on their way to it are lost. Its transactions may still take
    /// effect.
    pub(super) fn crash(&mut self, node: usize) {
        let types = Arc::new(self.twin.types.clone());
        let last_id = self.nodes[node].terms.tasks.last_id;
        self.nodes[node] = Leader::new(types, self.twin.count).with_guards(self.guards);
        self.nodes[node].terms.tasks.last_id = last_id;
        for pending in std::mem::take(&mut self.pending) {
            match pending {
                PendingTask::Commit { node: own, batch, .. } if own == node => {
                    self.pending.push(PendingTask::LateCommit { batch });
                }
                PendingTask::BeginTerm { node: own, .. } | PendingTask::Load { node: own, .. }
                    if own == node => {}
                PendingTask::Event { node: own, event } if own == node => {
                    if let Event::Delivery { sender, .. } = event {
                        self.delivery_answered(sender, Err(DeliveryError::Unavailable));
                    }
                }
                other => self.pending.push(other),
            }
        }
    }

    /// Sends a write of a caller to a node.
    pub(super) fn send(&mut self, node: usize, caller: CallerId, write: Write) {
        self.pending.push(PendingTask::Event { node, event: Event::Write { caller, write } });
    }

    /// Begins a new operation of the client, and sends it to a node.
    pub(super) fn submit(&mut self, node: usize, write: Write) -> usize {
        self.clock += 1;
        let (operation, caller) = self.client.begin(write.clone(), self.clock);
        self.send(node, caller, write);
        operation
    }

    pub(super) fn repeat(&mut self, node: usize, operation: usize) {
        let (caller, write) = self.client.repeat(operation);
        self.send(node, caller, write);
    }

    /// Lets time pass, and wakes leaders that are due.
    pub(super) fn pass(&mut self, time: Duration) {
        self.now += time;
        for node in 0..self.nodes.len() {
            if self.nodes[node].wakes_at().is_some_and(|at| at <= Timestamp::ZERO + self.now) {
                self.tell(node, Event::Woken);
            }
        }
    }

    pub(super) fn tell(&mut self, node: usize, event: Event) {
        self.clock += 1;
        let time = self.time();
        for action in self.nodes[node].on(event, time) {
            self.act(node, action);
        }
    }

    fn act(&mut self, node: usize, action: Action) {
        match action {
            Action::BeginTerm { partition, term } => {
                self.pending.push(PendingTask::BeginTerm { node, partition, term });
            }
            Action::Load { load, queries } => self.pending.push(PendingTask::Load { node, load, queries }),
            Action::Commit { commit, batch } => {
                self.pending.push(PendingTask::Commit { node, commit, batch })
            }
            Action::Deliver { from, to, delivery } => {
                self.pending.push(PendingTask::Deliver { node, from, to, delivery });
            }
            Action::Answer { caller, answer } => {
                if let Ok(answered) = &answer {
                    for (partition, point) in &answered.ticket.points {
                        let end = self.twin.end(*partition);
                        if end < *point {
                            let fault = format!("a ticket names {point} of {partition}, which ends at {end}");
                            self.twin.faults.push(fault);
                        }
                    }
                }
                self.client.answered(caller, Reply::of(&answer), self.clock);
            }
            Action::AnswerDelivery { sender, answer } => self.delivery_answered(sender, answer),
            Action::Publish { partition, after, changes } => {
                if !self.twin.holds(partition, after, &changes) {
                    self.twin
                        .faults
                        .push(format!("after {after}, changes were published that the log does not have"));
                }
            }
            Action::SteppedDown { .. } => {}
            Action::Released { partition } => self.released.push(partition),
        }
    }

    fn delivery_answered(&mut self, sender: SenderId, answer: Result<LogPoint, DeliveryError>) {
        let (node, partition, delivery) = self.senders[sender.0 as usize].clone();
        let stamp = delivery.intent.stamp;
        let event = match answer {
            Ok(at) => Event::Delivered { partition, stamp, at },
            Err(DeliveryError::HistoryLost(_)) => Event::Replaced { partition, before: delivery.as_of },
            Err(_) => Event::DeliveryFailed { partition, stamp },
        };
        self.pending.push(PendingTask::Event { node, event });
    }

    /// Lets something happen without a fault.
    pub(super) fn happen(&mut self, pending: PendingTask) {
        match pending {
            PendingTask::BeginTerm { node, partition, term } => {
                let event = match self.twin.begin_term(partition, term) {
                    Ok(end) => Event::TermBegun { partition, term, end: end.position },
                    Err(_) => Event::TermRefused { partition, term },
                };
                self.tell(node, event);
            }
            PendingTask::Load { node, load, queries } => {
                let read = |(partition, queries): &(_, Vec<_>)| self.twin.read(*partition, queries);
                let rows = queries.iter().map(read).collect();
                self.tell(node, Event::Loaded { load, rows });
            }
            PendingTask::Commit { node, commit, batch } => {
                let result = match self.twin.commit(&batch) {
                    Ok(()) => CommitResult::Done,
                    Err(result) => result,
                };
                self.tell(node, Event::Committed { commit, result });
            }
            PendingTask::LateCommit { batch } => drop(self.twin.commit(&batch)),
            PendingTask::Deliver { node, from, to, delivery } => {
                self.deliver(self.leaders[&to].0, node, from, delivery);
            }
            PendingTask::LateDelivery { to, delivery } => {
                let from = delivery.intent.pair.partitions(self.twin.count).0;
                self.deliver(self.leaders[&to].0, self.leaders[&from].0, from, delivery);
            }
            PendingTask::Event { node, event } => self.tell(node, event),
        }
    }

    /// Lets a delivery arrive at `node`. The answer goes to `sender`.
    pub(super) fn deliver(&mut self, node: usize, sender: usize, from: PartitionId, delivery: Delivery) {
        self.senders.push((sender, from, delivery.clone()));
        let sender = SenderId(self.senders.len() as u64 - 1);
        self.tell(node, Event::Delivery { sender, delivery });
    }

    /// Answers a load with the rows as of the end of the log that the leader knows. They are outdated if another leader has
    /// written since.
    pub(super) fn load_outdated(
        &mut self,
        node: usize,
        load: LoadId,
        queries: &[(PartitionId, Vec<RowQuery>)],
    ) {
        let read =
            |(partition, queries): &(PartitionId, Vec<RowQuery>)| match self.nodes[node].end(*partition) {
                Some(end) => self.twin.read_at(*partition, end, queries),
                None => self.twin.read(*partition, queries),
            };
        let rows = queries.iter().map(read).collect();
        self.tell(node, Event::Loaded { load, rows });
    }

    /// Takes the first pending item that fits.
    pub(super) fn take(&mut self, fits: impl Fn(&PendingTask) -> bool) -> Option<PendingTask> {
        let at = self.pending.iter().position(fits)?;
        Some(self.pending.remove(at))
    }

    /// Lets all pending items that fit happen, the oldest first, until none is left.
    pub(super) fn run(&mut self, fits: impl Fn(&PendingTask) -> bool) {
        for _ in 0..10_000 {
            let Some(pending) = self.take(&fits) else { return };
            self.happen(pending);
        }
        panic!("there is always something left to happen");
    }

    pub(super) fn run_all(&mut self) {
        self.run(|_| true);
    }

    /// Ends a run: everything works again, and all partitions get new leaders.
    pub(super) fn heal(&mut self) {
        for partition in self.twin.count.iter() {
            self.elect(partition, (partition.index() + self.clock) % self.nodes.len());
        }
        for _ in 0..40 {
            self.run_all();
            self.pass(Duration::from_millis(700));
        }
        assert_eq!(self.pending, []);
        for (node, leader) in self.nodes.iter().enumerate() {
            assert_eq!(leader.terms.tasks.queue.accepted(), (0, 0), "node {node} has answered all writes");
        }
    }

    /// Returns what is wrong with the rows so far.
    pub(super) fn verdict_now(&mut self) -> Vec<String> {
        std::mem::take(&mut self.twin.faults)
    }

    /// Returns what is wrong after [`World::heal`].
    pub(super) fn verdict(&mut self) -> Vec<String> {
        let mut faults = std::mem::take(&mut self.twin.faults);
        if self.twin.open_intents() != 0 {
            faults.push("an intent is open".to_owned());
        }
        faults.extend(self.client.check(&self.twin));
        faults
    }
}
