//! Clients. They write through routers, read from nodes, carry tickets, and repeat writes whose outcome they do not know.

use super::executor::Process;
use super::node::{ReadError, ReadRequest};
use super::promise::promise;
use super::truth::WriteOutcome;
use super::writes::Universe;
use super::{Shared, World};
use kith_cache::live::DatedAnswer;
use kith_live::{Ticket, Write, WriteError, ordering_partition};
use kith_types::{LogPoint, NodeId, PartitionId, Timestamp};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::rc::Rc;
use std::time::Duration;

/// The time for which a client tries to write before it gives up.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);
/// The time beyond the rest of [`WRITE_TIMEOUT`] that a client waits for the answer to a write that it has sent.
const ANSWER_GRACE: Duration = Duration::from_millis(500);
/// The time that a client waits for news of leaders before it sends a write again that no leader accepted.
const LEADER_WAIT: Duration = Duration::from_millis(20);
/// The time that a client waits for the answer to a read.
const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum delay of a write request whose connection broke, in milliseconds.
const LATE_MS: u64 = 4_000;
/// The maximum number of times that a client sends a write with a write id while its outcome is unknown.
const ATTEMPTS_MAX: u32 = 3;

/// The reasons for which a client has no positive answer to a write.
enum Unwritten {
    /// This attempt wrote nothing. `None` if no leader received the request.
    Nothing(Option<WriteError>),
    /// The request was sent, and no answer came.
    Lost,
}

pub(super) fn start(world: &Shared, number: usize) {
    let own = world.clone();
    world.spawn(Process::Outside, async move {
        let universe = Universe::new(&own.config);
        let mut random = StdRng::seed_from_u64(own.below(u64::MAX));
        own.sleep(Duration::from_millis(500)).await;
        while own.now() < Timestamp(own.config.faults_end) {
            own.sleep(Duration::from_millis(1 + own.below(own.config.pause_ms))).await;
            let written = own.truth.borrow().written();
            if written < own.config.writes_max && own.one_in(2) {
                let write = universe.write(written, &mut random);
                own.write(number, write).await;
                continue;
            }
            let (partition, query) = universe.read(&own.types, &mut random);
            let ticket = match own.below(3) {
                // Clients also pass tickets on to each other.
                0 => own.tickets.borrow()[own.below(own.config.clients as u64) as usize].point(partition),
                1 => own.tickets.borrow()[number].point(partition),
                _ => LogPoint::default(),
            };
            let asked =
                ReadRequest { partition, query, ticket, is_critical: own.one_in(4), began: own.now() };
            let node = own.any_replica(partition);
            let answer = own.read_at(node, asked).await;
            own.note_read(&answer);
        }
    });
}

/// Checks, after all faults, that every partition accepts a write, and that every replica returns the stored data, also to
/// readers with tickets.
pub(super) fn finish(world: &Shared) {
    let universe = Rc::new(Universe::new(&world.config));
    for partition in world.count.iter() {
        let (own, universe) = (world.clone(), Rc::clone(&universe));
        world.last(async move {
            let write = universe.last_write(own.truth.borrow().written(), partition);
            if own.write(0, write).await != WriteOutcome::Done {
                own.truth
                    .borrow_mut()
                    .fault(format!("partition {partition} accepts no write after all faults"));
            }
        });
    }
    for index in 0..world.nodes.len() {
        let (own, universe) = (world.clone(), Rc::clone(&universe));
        world.last(async move {
            own.sleep(Duration::from_secs(3)).await;
            for (partition, query) in universe.everything(&own.types) {
                let ticket = own.tickets.borrow()[own.below(own.config.clients as u64) as usize].clone();
                own.last_read(index, (partition, query), &ticket).await;
            }
        });
    }
}

impl World {
    fn last(self: &Shared, work: impl Future<Output = ()> + 'static) {
        self.last_left.set(self.last_left.get() + 1);
        let own = self.clone();
        self.spawn(Process::Outside, async move {
            work.await;
            own.last_left.set(own.last_left.get() - 1);
        });
    }

    /// Reads from a node if it holds the partition, after all faults, and compares the answer with the database.
    async fn last_read(
        self: &Shared,
        index: usize,
        (partition, query): (PartitionId, kith_cache::live::Query),
        ticket: &Ticket,
    ) {
        if !self.holds(index, partition) {
            return;
        }
        let ticket = ticket.point(partition);
        let is_lost = self.truth.borrow().is_lost(partition, ticket);
        let ask = |ticket| ReadRequest {
            partition,
            query: query.clone(),
            ticket,
            is_critical: false,
            began: self.now(),
        };
        let answer = self.read_at(index, ask(ticket)).await;
        if is_lost != matches!(answer, Some(Err(ReadError::HistoryLost))) {
            let what =
                format!("after all faults, a read with a ticket (write lost: {is_lost}) got {answer:?}");
            self.truth.borrow_mut().fault(what);
        }
        match self.read_at(index, ask(LogPoint::default())).await {
            Some(Ok(answered)) => {
                let database = self.database.borrow();
                self.truth.borrow_mut().check_last(&database, partition, &query, &answered);
            }
            other => self.truth.borrow_mut().fault(format!("after all faults, a read got {other:?}")),
        }
    }

    pub(super) fn index_of(&self, node: NodeId) -> Option<usize> {
        self.table.nodes().iter().position(|known| known.id == node)
    }

    fn holds(&self, index: usize, partition: PartitionId) -> bool {
        let id = self.table.nodes()[index].id;
        self.table.replicas(partition).iter().any(|replica| self.table.node_at(*replica).id == id)
    }

    fn any_replica(&self, partition: PartitionId) -> usize {
        let replicas: Vec<usize> =
            (0..self.nodes.len()).filter(|index| self.holds(*index, partition)).collect();
        replicas[self.below(replicas.len() as u64) as usize]
    }

    fn note_read(&self, answer: &Option<Result<DatedAnswer, ReadError>>) {
        let mut report = self.report.borrow_mut();
        match answer {
            Some(Ok(_)) => report.reads += 1,
            Some(Err(ReadError::HistoryLost)) => report.history_lost += 1,
            _ => report.reads_failed += 1,
        }
    }

    async fn read_at(
        self: &Shared,
        index: usize,
        asked: ReadRequest,
    ) -> Option<Result<DatedAnswer, ReadError>> {
        let delay = self.hop()?;
        let (giver, answer) = promise(&self.wakes);
        self.after(delay, move |world| {
            world.arrive(index, move |world, me| world.read_arrives(me, asked, giver));
        });
        let answer = self.within(READ_TIMEOUT, answer).await??;
        self.back().await?;
        Some(answer)
    }

    /// Sends a write, and repeats it while its outcome is unknown, if it has a write id.
    async fn write(self: &Shared, client: usize, write: Write) -> WriteOutcome {
        let number = self.truth.borrow_mut().begin(write.clone());
        let (mut outcome, mut is_unknown) = (WriteOutcome::Unknown, false);
        for _ in 0..ATTEMPTS_MAX {
            outcome = match self.send_write(&write).await {
                Ok(answered) => {
                    self.tickets.borrow_mut()[client].merge(&answered.ticket);
                    self.truth.borrow_mut().answered(number, &answered);
                    WriteOutcome::Done
                }
                Err(Unwritten::Nothing(Some(WriteError::Refused(refusal)))) => {
                    self.truth.borrow_mut().refused(number, refusal);
                    WriteOutcome::Refused
                }
                Err(Unwritten::Nothing(Some(WriteError::OutcomeUnknown)) | Unwritten::Lost) => {
                    WriteOutcome::Unknown
                }
                // An earlier attempt may have taken effect, or may still do so.
                Err(Unwritten::Nothing(_)) if is_unknown && !self.rules.clients_trust_errors => {
                    WriteOutcome::Unknown
                }
                Err(Unwritten::Nothing(_)) => WriteOutcome::Failed,
            };
            is_unknown = outcome == WriteOutcome::Unknown;
            if !is_unknown || write.write_id.is_none() {
                break;
            }
            self.sleep(Duration::from_millis(self.below(500))).await;
        }
        self.truth.borrow_mut().report(number, outcome);
        let mut report = self.report.borrow_mut();
        match outcome {
            WriteOutcome::Done => report.done += 1,
            WriteOutcome::Refused => report.refused += 1,
            WriteOutcome::Failed => report.failed += 1,
            WriteOutcome::Unknown => report.unknown += 1,
        }
        outcome
    }

    /// Sends a write to the leader of its partition, as `kith-session/src/session/write.rs` does.
    async fn send_write(self: &Shared, write: &Write) -> Result<kith_live::WriteAnswer, Unwritten> {
        let deadline = self.now() + WRITE_TIMEOUT;
        let partition = ordering_partition(write, &self.types, self.count);
        let Ok(partition) = partition else { return Err(Unwritten::Nothing(None)) };
        let router = self.below(self.routers.borrow().len() as u64) as usize;
        loop {
            let leader = self.routers.borrow()[router].1.of(partition);
            if let Some(index) = leader.and_then(|leader| self.index_of(leader.node)) {
                match self.send_write_to(index, write, deadline.since(self.now()) + ANSWER_GRACE).await {
                    Err(Unwritten::Nothing(None | Some(WriteError::NotLeader { .. }))) => {}
                    other => return other,
                }
            }
            if deadline <= self.now() + LEADER_WAIT {
                return Err(Unwritten::Nothing(None));
            }
            self.sleep(LEADER_WAIT).await;
        }
    }

    /// Sends a write to a process. The result `Nothing(None)` means that the process refused the connection.
    async fn send_write_to(
        self: &Shared,
        index: usize,
        write: &Write,
        timeout: Duration,
    ) -> Result<kith_live::WriteAnswer, Unwritten> {
        if self.now() < Timestamp(self.config.faults_end) && self.one_in(16) {
            // The connection breaks, but the request still arrives much later, perhaps after the client has repeated it.
            let late = write.clone();
            self.after(Duration::from_millis(self.below(LATE_MS)), move |world| {
                let (nobody, _) = promise(&world.wakes);
                world.arrive(index, move |world, me| world.write_arrives(me, late, nobody));
            });
            self.sleep(Duration::from_millis(self.below(LATE_MS / 8))).await;
            return Err(Unwritten::Lost);
        }
        let Some(delay) = self.hop() else {
            self.sleep(timeout).await;
            return Err(Unwritten::Lost);
        };
        let (giver, answer) = promise(&self.wakes);
        let (refuses, refused) = promise(&self.wakes);
        let write = write.clone();
        self.after(delay, move |world| {
            let is_up = world.nodes[index].borrow().is_up;
            refuses.give(!is_up);
            world.arrive(index, move |world, me| world.write_arrives(me, write, giver));
        });
        if self.within(timeout, refused).await.flatten() == Some(true) {
            return Err(Unwritten::Nothing(None));
        }
        let answer = self.within(timeout, answer).await.flatten().ok_or(Unwritten::Lost)?;
        self.back().await.ok_or(Unwritten::Lost)?;
        answer.map_err(|error| Unwritten::Nothing(Some(error)))
    }
}
