//! Clients. They write through routers, read from nodes, carry tickets, and repeat writes whose outcome they do not know.

use super::Shared;
use super::executor::Process;
use super::node::{ReadError, ReadRequest};
use super::promise::promise;
use super::truth::WriteOutcome;
use super::writes::Universe;
use kith_cache::live::DatedAnswer;
use kith_live::{Ticket, Write, WriteError, ordering_partition};
use kith_types::{LogPoint, PartitionId, Timestamp};
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

/// A client, by its number.
struct Client {
    world: Shared,
    number: usize,
}

pub(super) fn start(world: &Shared, number: usize) {
    let own = world.clone();
    let client = Client { world: world.clone(), number };
    world.executor.spawn(Process::Outside, async move {
        let universe = Universe::new(&own.config);
        let mut random = StdRng::seed_from_u64(own.network.below(u64::MAX));
        own.executor.sleep(Duration::from_millis(500)).await;
        while own.executor.now() < Timestamp(own.config.faults_end) {
            own.executor.sleep(Duration::from_millis(1 + own.network.below(own.config.pause_ms))).await;
            let written = own.truth.borrow().written();
            if written < own.config.writes_max && own.network.one_in(2) {
                let write = universe.write(written, &mut random);
                client.write(write).await;
                continue;
            }
            let (partition, query) = universe.read(&own.types, &mut random);
            let ticket = match own.network.below(3) {
                // Clients also pass tickets on to each other.
                0 => own.tickets.borrow()[own.network.below(own.config.clients as u64) as usize]
                    .point(partition),
                1 => own.tickets.borrow()[number].point(partition),
                _ => LogPoint::default(),
            };
            let asked = ReadRequest {
                partition,
                query,
                ticket,
                is_critical: own.network.one_in(4),
                began: own.executor.now(),
            };
            let node = own.any_replica(partition);
            let answer = client.read_at(node, asked).await;
            client.note_read(&answer);
        }
    });
}

/// Checks, after all faults, that every partition accepts a write, and that every replica returns the stored data, also to
/// readers with tickets.
pub(super) fn finish(world: &Shared) {
    let universe = Rc::new(Universe::new(&world.config));
    for partition in world.count.iter() {
        let (own, universe) = (world.clone(), Rc::clone(&universe));
        last(world, async move {
            let write = universe.last_write(own.truth.borrow().written(), partition);
            if (Client { world: own.clone(), number: 0 }).write(write).await != WriteOutcome::Done {
                own.truth
                    .borrow_mut()
                    .fault(format!("partition {partition} accepts no write after all faults"));
            }
        });
    }
    for index in 0..world.nodes.len() {
        let (own, universe) = (world.clone(), Rc::clone(&universe));
        last(world, async move {
            let client = Client { world: own.clone(), number: 0 };
            own.executor.sleep(Duration::from_secs(3)).await;
            for (partition, query) in universe.everything(&own.types) {
                let ticket =
                    own.tickets.borrow()[own.network.below(own.config.clients as u64) as usize].clone();
                client.last_read(index, (partition, query), &ticket).await;
            }
        });
    }
}

fn last(world: &Shared, work: impl Future<Output = ()> + 'static) {
    world.last_left.set(world.last_left.get() + 1);
    let own = world.clone();
    world.executor.spawn(Process::Outside, async move {
        work.await;
        own.last_left.set(own.last_left.get() - 1);
    });
}

impl Client {
    /// Reads from a node if it holds the partition, after all faults, and compares the answer with the database.
    async fn last_read(
        &self,
        index: usize,
        (partition, query): (PartitionId, kith_cache::live::Query),
        ticket: &Ticket,
    ) {
        if !self.world.holds(index, partition) {
            return;
        }
        let ticket = ticket.point(partition);
        let is_lost = self.world.truth.borrow().is_lost(partition, ticket);
        let ask = |ticket| ReadRequest {
            partition,
            query: query.clone(),
            ticket,
            is_critical: false,
            began: self.world.executor.now(),
        };
        let answer = self.read_at(index, ask(ticket)).await;
        if is_lost != matches!(answer, Some(Err(ReadError::HistoryLost))) {
            let what =
                format!("after all faults, a read with a ticket (write lost: {is_lost}) got {answer:?}");
            self.world.truth.borrow_mut().fault(what);
        }
        match self.read_at(index, ask(LogPoint::default())).await {
            Some(Ok(answered)) => {
                let database = self.world.database.borrow();
                self.world.truth.borrow_mut().check_last(&database, partition, &query, &answered);
            }
            other => self.world.truth.borrow_mut().fault(format!("after all faults, a read got {other:?}")),
        }
    }

    fn note_read(&self, answer: &Option<Result<DatedAnswer, ReadError>>) {
        let mut report = self.world.report.borrow_mut();
        match answer {
            Some(Ok(_)) => report.reads += 1,
            Some(Err(ReadError::HistoryLost)) => report.history_lost += 1,
            _ => report.reads_failed += 1,
        }
    }

    async fn read_at(&self, index: usize, asked: ReadRequest) -> Option<Result<DatedAnswer, ReadError>> {
        let delay = self.world.network.hop()?;
        let (giver, answer) = promise(&self.world.executor.wakes);
        self.world.executor.after(delay, move |world| {
            world.arrive(index, move |process| process.read_arrives(asked, giver));
        });
        let answer = self.world.executor.within(READ_TIMEOUT, answer).await??;
        self.world.back().await?;
        Some(answer)
    }

    /// Sends a write, and repeats it while its outcome is unknown, if it has a write id.
    async fn write(&self, write: Write) -> WriteOutcome {
        let number = self.world.truth.borrow_mut().begin(write.clone());
        let (mut outcome, mut is_unknown) = (WriteOutcome::Unknown, false);
        for _ in 0..ATTEMPTS_MAX {
            outcome = match self.send_write(&write).await {
                Ok(answered) => {
                    self.world.tickets.borrow_mut()[self.number].merge(&answered.ticket);
                    self.world.truth.borrow_mut().answered(number, &answered);
                    WriteOutcome::Done
                }
                Err(Unwritten::Nothing(Some(WriteError::Refused(refusal)))) => {
                    self.world.truth.borrow_mut().refused(number, refusal);
                    WriteOutcome::Refused
                }
                Err(Unwritten::Nothing(Some(WriteError::OutcomeUnknown)) | Unwritten::Lost) => {
                    WriteOutcome::Unknown
                }
                // An earlier attempt may have taken effect, or may still do so.
                Err(Unwritten::Nothing(_)) if is_unknown && !self.world.rules.clients_trust_errors => {
                    WriteOutcome::Unknown
                }
                Err(Unwritten::Nothing(_)) => WriteOutcome::Failed,
            };
            is_unknown = outcome == WriteOutcome::Unknown;
            if !is_unknown || write.write_id.is_none() {
                break;
            }
            self.world.executor.sleep(Duration::from_millis(self.world.network.below(500))).await;
        }
        self.world.truth.borrow_mut().report(number, outcome);
        let mut report = self.world.report.borrow_mut();
        match outcome {
            WriteOutcome::Done => report.done += 1,
            WriteOutcome::Refused => report.refused += 1,
            WriteOutcome::Failed => report.failed += 1,
            WriteOutcome::Unknown => report.unknown += 1,
        }
        outcome
    }

    /// Sends a write to the leader of its partition, as `kith-session/src/session/write.rs` does.
    async fn send_write(&self, write: &Write) -> Result<kith_live::WriteAnswer, Unwritten> {
        let deadline = self.world.executor.now() + WRITE_TIMEOUT;
        let partition = ordering_partition(write, &self.world.types, self.world.count);
        let Ok(partition) = partition else { return Err(Unwritten::Nothing(None)) };
        let router = self.world.network.below(self.world.routers.borrow().len() as u64) as usize;
        loop {
            let leader = self.world.routers.borrow()[router].1.of(partition);
            if let Some(index) = leader.and_then(|leader| self.world.index_of(leader.node)) {
                match self
                    .send_write_to(index, write, deadline.since(self.world.executor.now()) + ANSWER_GRACE)
                    .await
                {
                    Err(Unwritten::Nothing(None | Some(WriteError::NotLeader { .. }))) => {}
                    other => return other,
                }
            }
            if deadline <= self.world.executor.now() + LEADER_WAIT {
                return Err(Unwritten::Nothing(None));
            }
            self.world.executor.sleep(LEADER_WAIT).await;
        }
    }

    /// Sends a write to a process. The result `Nothing(None)` means that the process refused the connection.
    async fn send_write_to(
        &self,
        index: usize,
        write: &Write,
        timeout: Duration,
    ) -> Result<kith_live::WriteAnswer, Unwritten> {
        if self.world.executor.now() < Timestamp(self.world.config.faults_end)
            && self.world.network.one_in(16)
        {
            // The connection breaks, but the request still arrives much later, perhaps after the client has repeated it.
            let late = write.clone();
            self.world.executor.after(
                Duration::from_millis(self.world.network.below(LATE_MS)),
                move |world| {
                    let (nobody, _) = promise(&world.executor.wakes);
                    world.arrive(index, move |process| process.write_arrives(late, nobody));
                },
            );
            self.world.executor.sleep(Duration::from_millis(self.world.network.below(LATE_MS / 8))).await;
            return Err(Unwritten::Lost);
        }
        let Some(delay) = self.world.network.hop() else {
            self.world.executor.sleep(timeout).await;
            return Err(Unwritten::Lost);
        };
        let (giver, answer) = promise(&self.world.executor.wakes);
        let (refuses, refused) = promise(&self.world.executor.wakes);
        let write = write.clone();
        self.world.executor.after(delay, move |world| {
            let is_up = world.nodes[index].borrow().is_up;
            refuses.give(!is_up);
            world.arrive(index, move |process| process.write_arrives(write, giver));
        });
        if self.world.executor.within(timeout, refused).await.flatten() == Some(true) {
            return Err(Unwritten::Nothing(None));
        }
        let answer = self.world.executor.within(timeout, answer).await.flatten().ok_or(Unwritten::Lost)?;
        self.world.back().await.ok_or(Unwritten::Lost)?;
        answer.map_err(|error| Unwritten::Nothing(Some(error)))
    }
}
