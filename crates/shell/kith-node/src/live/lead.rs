//! The shell of [`Leader`], which carries out its actions and reports their results.

use super::{
    graph::LiveGraph,
    hand_over::{HandOver, LeadershipView},
    message::LeadMessage,
};
use kith_cluster::change_leaders;
use kith_database::{BeginTerm, CommitError, DatabaseError};
use kith_live::{
    Action, Answered, CallerId, CommitResult, Delivery, DeliveryError, Duties, Event, Leader, Now, SenderId,
    WriteError,
};
use kith_net::transport::Transport;
use kith_routing::Leaders;
use kith_topology::leaders_of;
use kith_types::clock::millis_since_1970;
use kith_types::{ErrorCode, LogPoint, PartitionId, Term};
use kith_wire::v1;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// The time limit of a delivery. After a failure, the leader sends it again.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(1);
/// The time for which partitions whose leader stepped down are collected before the metadata store is asked for new
/// terms for all of them.
const RENEWAL_DELAY: Duration = Duration::from_millis(20);

/// The pause before the metadata store is asked again.
const RENEWAL_RETRY: Duration = Duration::from_millis(500);

/// The parts that the task needs in addition to the graph.
pub(super) struct LeadParts {
    pub outlook: LeadershipView,
    pub transport: Arc<dyn Transport>,
    pub stop: CancellationToken,
}

/// The task that leads the partitions of a graph.
struct Task {
    graph: Weak<LiveGraph>,
    parts: LeadParts,
    leader: Leader,
    /// The channel to this task itself.
    own: mpsc::UnboundedSender<LeadMessage>,
    /// A random number that distinguishes this leader from that of an earlier process.
    nonce: u64,
    last_id: u64,
    callers: HashMap<u64, oneshot::Sender<Result<Answered, WriteError>>>,
    senders: HashMap<u64, oneshot::Sender<Result<LogPoint, DeliveryError>>>,
    duties: Duties,
    hand_over: HandOver,
}

/// Starts the task, which leads the partitions that messages name, until the graph is closed.
pub(super) fn start(
    graph: &Arc<LiveGraph>,
    parts: LeadParts,
    mut messages: mpsc::UnboundedReceiver<LeadMessage>,
) {
    let mut task = Task {
        leader: Leader::new(graph.types(), graph.count),
        graph: Arc::downgrade(graph),
        own: graph.lead.clone(),
        hand_over: HandOver::new(graph.name.clone(), parts.outlook.clone()),
        parts,
        nonce: rand::random(),
        last_id: 0,
        callers: HashMap::new(),
        senders: HashMap::new(),
        duties: Duties::default(),
    };
    let stop = task.parts.stop.clone();
    let (mut lives, own) = (task.parts.outlook.lives.clone(), task.own.clone());
    let tell = async move { while lives.changed().await.is_ok() && own.send(LeadMessage::Lives).is_ok() {} };
    tokio::spawn(stop.clone().run_until_cancelled_owned(tell));
    tokio::spawn(async move {
        stop.run_until_cancelled(async { while task.next(&mut messages).await.is_some() {} }).await;
        task.end(messages);
    });
}

impl Task {
    /// Waits for a message or for the time that the leader named, and handles it. Returns `None` once the graph is gone.
    async fn next(&mut self, messages: &mut mpsc::UnboundedReceiver<LeadMessage>) -> Option<()> {
        let graph = self.graph.upgrade()?;
        let wait = self.leader.wakes_at().map(|at| at.since(graph.now()));
        drop(graph);
        let message = async {
            match wait {
                Some(wait) => tokio::time::timeout(wait, messages.recv())
                    .await
                    .unwrap_or(Some(LeadMessage::Event(Event::Woken))),
                None => messages.recv().await,
            }
        };
        let message = message.await?;
        let graph = self.graph.upgrade()?;
        self.on(&graph, message);
        Some(())
    }

    fn on(&mut self, graph: &Arc<LiveGraph>, message: LeadMessage) {
        match message {
            LeadMessage::Write(write, answer) => {
                let caller = self.new_id();
                self.callers.insert(caller, answer);
                self.event(graph, Event::Write { caller: CallerId(caller), write });
            }
            LeadMessage::Deliver(delivery, answer) => {
                let sender = self.new_id();
                self.senders.insert(sender, answer);
                self.event(graph, Event::Delivery { sender: SenderId(sender), delivery });
            }
            LeadMessage::Leads(leads) => self.leads(graph, leads),
            LeadMessage::Types(types) => self.leader.set_types(types),
            LeadMessage::Event(event) => self.event(graph, event),
            LeadMessage::Renew => self.renew(graph),
            LeadMessage::Lives => self.hand_over_due(graph),
            LeadMessage::HandedOver(given) => self.hand_over.written(&given),
            LeadMessage::NotRenewed(refused) => {
                refused.into_iter().for_each(|(partition, term)| self.stepped_down(partition, term));
            }
        }
        self.give();
    }

    fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn event(&mut self, graph: &Arc<LiveGraph>, event: Event) {
        let now = Now { since_start: graph.now(), since_1970: millis_since_1970() };
        for action in self.leader.on(event, now) {
            self.act(graph, action);
        }
    }

    /// Takes over and hands over leadership as the metadata store says.
    fn leads(&mut self, graph: &Arc<LiveGraph>, leads: BTreeMap<PartitionId, Term>) {
        let change = self.duties.update(leads);
        if change.renews {
            self.renew_soon();
        }
        for event in change.events {
            let is_asked = |partition| self.hand_over.is_asked(partition);
            // The leader was already asked to release partitions that this node handed over itself.
            if !matches!(event, Event::HandOver { partition } if is_asked(partition)) {
                self.event(graph, event);
            }
        }
        self.hand_over_due(graph);
    }

    /// Asks the leader to release the partitions that another node should lead.
    fn hand_over_due(&mut self, graph: &Arc<LiveGraph>) {
        for partition in self.hand_over.begin(self.duties.leads()) {
            self.event(graph, Event::HandOver { partition });
        }
    }

    /// Gives released partitions to their successors.
    fn give(&mut self) {
        if let Some(write) = self.hand_over.write() {
            let own = self.own.clone();
            tokio::spawn(async move {
                let _ = own.send(LeadMessage::HandedOver(write.await));
            });
        }
    }

    fn act(&mut self, graph: &Arc<LiveGraph>, action: Action) {
        match action {
            Action::BeginTerm { partition, term } => {
                let request = BeginTerm { partition, term, leader: self.nonce };
                self.spawn(graph, async move |graph| begin_term(&graph, request).await);
            }
            Action::Load { load, queries } => self.spawn(graph, async move |graph| {
                let read = graph.database.read_many(queries).await;
                graph.note_database(read.as_ref().err());
                match read {
                    Ok(rows) => Event::Loaded { load, rows },
                    Err(error) => {
                        tracing::warn!(graph = graph.name, %error, "a leader cannot read the database");
                        Event::LoadFailed { load }
                    }
                }
            }),
            Action::Commit { commit, batch } => self.spawn(graph, async move |graph| {
                let changes: usize = batch.parts.iter().map(|part| part.changes.len()).sum();
                metrics::histogram!("kith_live_commit_changes").record(changes as f64);
                let committed = graph.database.commit(batch).await;
                note_commit(&graph, &committed);
                let result = commit_result(committed);
                Event::Committed { commit, result }
            }),
            Action::Deliver { to, from, delivery } => self.deliver(graph, from, to, delivery),
            Action::Answer { caller, answer } => {
                note_write(&answer);
                if let Some(waiting) = self.callers.remove(&caller.0) {
                    let _ = waiting.send(answer);
                }
            }
            Action::AnswerDelivery { sender, answer } => {
                if let Some(waiting) = self.senders.remove(&sender.0) {
                    let _ = waiting.send(answer);
                }
            }
            Action::Publish { partition, after, changes } => {
                if let Some(end) = graph.apply(partition, after, &changes) {
                    read_missing(graph, partition, end);
                }
            }
            Action::SteppedDown { partition, term } => {
                tracing::info!(graph = graph.name, %partition, %term, "this node no longer leads a partition");
                self.stepped_down(partition, term);
            }
            Action::Released { partition } => {
                tracing::debug!(graph = graph.name, %partition, "this node has ceased to lead a partition");
                self.hand_over.released(partition);
            }
        }
    }

    /// Carries out an action in a task of its own, and sends the resulting event to this task.
    fn spawn<F>(&self, graph: &Arc<LiveGraph>, work: impl FnOnce(Arc<LiveGraph>) -> F)
    where
        F: Future<Output = Event> + Send + 'static,
    {
        let (own, work) = (self.own.clone(), work(Arc::clone(graph)));
        tokio::spawn(async move {
            let _ = own.send(LeadMessage::Event(work.await));
        });
    }

    /// Delivers an intent to the leader of the other end's partition, which may be this node.
    fn deliver(&self, graph: &Arc<LiveGraph>, from: PartitionId, to: PartitionId, delivery: Delivery) {
        let (stamp, as_of) = (delivery.intent.stamp, delivery.as_of);
        let topology = Arc::clone(&self.parts.outlook.topology.borrow());
        let leaders = topology.leaders.iter().find(|leaders| leaders.graph == graph.name);
        let leader = leaders.map(leaders_of).and_then(|leaders: Leaders| leaders.of(to));
        let node = leader.map(|leader| leader.node);
        if node == Some(self.parts.outlook.node) {
            let (answer, answered) = oneshot::channel();
            let _ = self.own.send(LeadMessage::Deliver(delivery, answer));
            return self.spawn(graph, async move |_| match answered.await {
                Ok(Ok(at)) => Event::Delivered { partition: from, stamp, at },
                Ok(Err(DeliveryError::HistoryLost(_))) => Event::Replaced { partition: from, before: as_of },
                Ok(Err(_)) | Err(_) => Event::DeliveryFailed { partition: from, stamp },
            });
        }
        let known = node.and_then(|node| topology.nodes.iter().find(|known| known.node == node.0));
        let addr = known.map(|known| known.addr.clone());
        let transport = Arc::clone(&self.parts.transport);
        let request = v1::DeliverRequest {
            graph: graph.name.clone(),
            intent: delivery.intent.to_bytes().into(),
            floor: Some(place_of(delivery.floor)),
            as_of: Some(place_of(delivery.as_of)),
        };
        self.spawn(graph, async move |_| {
            let Some(addr) = addr else { return Event::DeliveryFailed { partition: from, stamp } };
            match transport.deliver(&addr, request, DELIVERY_PATIENCE).await {
                Ok(reply) => {
                    let at = reply.reached.map(point_of).unwrap_or_default();
                    Event::Delivered { partition: from, stamp, at }
                }
                Err(status) if kith_wire::code_of(&status) == ErrorCode::HistoryLost => {
                    Event::Replaced { partition: from, before: as_of }
                }
                Err(status) => {
                    tracing::debug!(%status, "an intent was not delivered");
                    Event::DeliveryFailed { partition: from, stamp }
                }
            }
        });
    }

    fn stepped_down(&mut self, partition: PartitionId, term: Term) {
        if self.duties.stepped_down(partition, term) {
            self.renew_soon();
        }
    }

    fn renew_soon(&self) {
        let own = self.own.clone();
        tokio::spawn(async move {
            tokio::time::sleep(RENEWAL_DELAY).await;
            let _ = own.send(LeadMessage::Renew);
        });
    }

    fn renew(&mut self, graph: &Arc<LiveGraph>) {
        let refused = self.duties.take_refused();
        if refused.is_empty() {
            return;
        }
        let LeadershipView { node, metadata, .. } = self.parts.outlook.clone();
        let (own, name) = (self.own.clone(), graph.name.clone());
        tokio::spawn(async move {
            let renewed = change_leaders(&*metadata, &name, |leaders| leaders.renew(node, &refused));
            if let Err(error) = renewed.await {
                tracing::warn!(graph = name, %error, "new terms cannot be had now");
                tokio::time::sleep(RENEWAL_RETRY).await;
                let _ = own.send(LeadMessage::NotRenewed(refused));
            }
        });
    }
}

impl Task {
    /// Refuses the writes and deliveries that have not begun. They have written nothing.
    fn end(mut self, mut messages: mpsc::UnboundedReceiver<LeadMessage>) {
        let Some(graph) = self.graph.upgrade() else { return };
        messages.close();
        let leads: Vec<PartitionId> = self.duties.leads().keys().copied().collect();
        leads.into_iter().for_each(|partition| self.refuse(&graph, Event::HandOver { partition }));
        while let Ok(message) = messages.try_recv() {
            if let LeadMessage::Write(..) | LeadMessage::Deliver(..) = message {
                self.on(&graph, message);
            }
        }
    }

    /// Passes an event to the leader, and carries out only the resulting actions that answer a caller or a sender.
    fn refuse(&mut self, graph: &Arc<LiveGraph>, event: Event) {
        let now = Now { since_start: graph.now(), since_1970: millis_since_1970() };
        for action in self.leader.on(event, now) {
            if let Action::Answer { .. } | Action::AnswerDelivery { .. } = action {
                self.act(graph, action);
            }
        }
    }
}

async fn begin_term(graph: &LiveGraph, request: BeginTerm) -> Event {
    let BeginTerm { partition, term, .. } = request;
    let begun = graph.database.begin_term(request).await;
    note_commit(graph, &begun);
    match begun {
        Ok(end) => Event::TermBegun { partition, term, end: end.position },
        Err(CommitError::Fenced { .. }) => Event::TermRefused { partition, term },
        Err(error) => {
            tracing::warn!(graph = graph.name, %partition, %error, "a term cannot begin yet");
            Event::TermUnknown { partition, term }
        }
    }
}

/// Brings the cache of a partition to the place `end` in its log. The first changes of a term need this, because the leader
/// does not know whether the cache contains all changes before them.
fn read_missing(graph: &Arc<LiveGraph>, partition: PartitionId, end: LogPoint) {
    let graph = Arc::clone(graph);
    tokio::spawn(async move {
        if let Err(error) = graph.catch_up(partition, end).await {
            tracing::debug!(graph = graph.name, %partition, %error, "a log cannot be followed now");
        }
    });
}

/// Records whether the database has executed a transaction of the leader, or has refused it as it should.
fn note_commit<T>(graph: &LiveGraph, result: &Result<T, CommitError>) {
    let error = match result {
        // The database works, and does not accept this write.
        Err(CommitError::NotWritten(DatabaseError::TooLarge { .. })) => None,
        Err(CommitError::NotWritten(error)) => Some(error.clone()),
        Err(CommitError::Unknown { reason }) => Some(DatabaseError::Unavailable { reason: reason.clone() }),
        Ok(_)
        | Err(
            CommitError::Fenced { .. }
            | CommitError::Moved { .. }
            | CommitError::Lacks { .. }
            | CommitError::Taken { .. },
        ) => None,
    };
    graph.note_database(error.as_ref());
}

fn commit_result(result: Result<(), CommitError>) -> CommitResult {
    match result {
        Ok(()) => CommitResult::Done,
        Err(CommitError::Fenced { partition, found } | CommitError::Moved { partition, found }) => {
            CommitResult::Elsewhere(vec![(partition, found)])
        }
        Err(CommitError::Lacks { partition, point, .. }) => {
            tracing::warn!(%partition, %point, "the database has lost a place: it was replaced by an older copy of itself");
            CommitResult::Lacks(partition, point)
        }
        Err(CommitError::Taken { holders }) => CommitResult::Taken(holders),
        Err(CommitError::NotWritten(DatabaseError::TooLarge { value_max, reason })) => {
            tracing::warn!(reason, "a write is too large for the database");
            CommitResult::TooLarge { value_max }
        }
        Err(CommitError::Unknown { reason }) => {
            tracing::warn!(reason, "the outcome of a transaction was lost");
            CommitResult::Unknown
        }
        Err(error) => {
            tracing::warn!(%error, "a transaction was refused");
            CommitResult::Refused
        }
    }
}

/// Counts a write by its outcome.
fn note_write(answer: &Result<Answered, WriteError>) {
    let outcome = match answer {
        Ok(_) => "done",
        Err(WriteError::Invalid(_) | WriteError::TooLarge { .. }) => "invalid",
        Err(WriteError::Refused(_)) => "refused",
        Err(WriteError::WriteIdTaken) => "write_id_taken",
        Err(WriteError::NotLeader { .. }) => "not_leader",
        Err(WriteError::Overloaded) => "overloaded",
        Err(WriteError::OutcomeUnknown) => "outcome_unknown",
        Err(_) => "unavailable",
    };
    metrics::counter!("kith_live_writes_total", "outcome" => outcome).increment(1);
}

/// Encodes a place in a log for messages.
pub(super) fn place_of(point: LogPoint) -> v1::LogPlace {
    v1::LogPlace { term: point.term.0, position: point.position.0 }
}

/// Decodes a place in a log from a message.
pub(super) fn point_of(place: v1::LogPlace) -> LogPoint {
    LogPoint::new(place.term, place.position)
}
