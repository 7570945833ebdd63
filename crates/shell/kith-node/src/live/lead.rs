//! The shell of [`Leader`], which carries out its actions and reports their results.

use super::{
    hand_over::{HandOver, LeadershipView},
    logs::FollowedLogs,
    message::LeadMessage,
    outcomes::{commit_result, note_commit, note_write},
    wire::{point_from_wire, point_to_wire},
};
use kith_cluster::change_leaders;
use kith_database::{BeginTerm, CommitError};
use kith_live::{
    Action, CallerId, ClockReading, Delivery, DeliveryError, Duties, Event, Leader, SenderId, WriteAnswer,
    WriteError,
};
use kith_net::transport::Transport;
use kith_routing::Leaders;
use kith_topology::leaders_of;
use kith_types::clock::millis_since_1970;
use kith_types::{ErrorCode, LogPoint, PartitionCount, PartitionId, Term};
use kith_wire::v1;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// The time limit of a delivery. After a failure, the leader sends it again.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(1);
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
    logs: Arc<FollowedLogs>,
    parts: LeadParts,
    leader: Leader,
    /// The channel to this task itself.
    own: mpsc::UnboundedSender<LeadMessage>,
    /// A random number that distinguishes this leader from that of an earlier process.
    nonce: u64,
    last_id: u64,
    callers: HashMap<u64, oneshot::Sender<Result<WriteAnswer, WriteError>>>,
    senders: HashMap<u64, oneshot::Sender<Result<LogPoint, DeliveryError>>>,
    duties: Duties,
    hand_over: HandOver,
}

/// Starts the task, which leads the partitions that messages name, until the graph is closed.
pub(super) fn start(
    logs: Arc<FollowedLogs>,
    count: PartitionCount,
    parts: LeadParts,
    mut messages: mpsc::UnboundedReceiver<LeadMessage>,
) {
    let mut task = Task {
        leader: Leader::new(logs.types.get(), count),
        own: logs.lead.clone(),
        hand_over: HandOver::new(logs.graph.clone(), parts.outlook.clone()),
        logs,
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
    /// Waits for a message or for the time that the leader named, and handles it. Returns `None` once nobody can send one.
    async fn next(&mut self, messages: &mut mpsc::UnboundedReceiver<LeadMessage>) -> Option<()> {
        let wait = self.leader.wakes_at().map(|at| at.since(self.logs.partitions.now()));
        let message = async {
            match wait {
                Some(wait) => tokio::time::timeout(wait, messages.recv())
                    .await
                    .unwrap_or(Some(LeadMessage::Event(Event::Woken))),
                None => messages.recv().await,
            }
        };
        let message = message.await?;
        self.on(message);
        Some(())
    }

    fn on(&mut self, message: LeadMessage) {
        match message {
            LeadMessage::Write(write, answer) => {
                let caller = self.new_id();
                self.callers.insert(caller, answer);
                self.event(Event::Write { caller: CallerId(caller), write });
            }
            LeadMessage::Deliver(delivery, answer) => {
                let sender = self.new_id();
                self.senders.insert(sender, answer);
                self.event(Event::Delivery { sender: SenderId(sender), delivery });
            }
            LeadMessage::Leads(leads) => self.leads(leads),
            LeadMessage::Types(types) => self.leader.set_types(types),
            LeadMessage::Event(event) => self.event(event),
            LeadMessage::Renew => self.renew(),
            LeadMessage::Lives => self.hand_over_due(),
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

    fn event(&mut self, event: Event) {
        let now = ClockReading { since_start: self.logs.partitions.now(), since_1970: millis_since_1970() };
        for action in self.leader.on(event, now) {
            self.act(action);
        }
    }

    /// Takes over and hands over leadership as the metadata store says.
    fn leads(&mut self, leads: BTreeMap<PartitionId, Term>) {
        let change = self.duties.update(leads);
        if change.renews {
            self.renew_soon();
        }
        for event in change.events {
            let is_asked = |partition| self.hand_over.is_asked(partition);
            // The leader was already asked to release partitions that this node handed over itself.
            if !matches!(event, Event::HandOver { partition } if is_asked(partition)) {
                self.event(event);
            }
        }
        self.hand_over_due();
    }

    /// Asks the leader to release the partitions that another node should lead.
    fn hand_over_due(&mut self) {
        for partition in self.hand_over.begin(self.duties.leads()) {
            self.event(Event::HandOver { partition });
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

    fn act(&mut self, action: Action) {
        match action {
            Action::BeginTerm { partition, term } => {
                let request = BeginTerm { partition, term, leader: self.nonce };
                self.spawn(async move |logs| begin_term(&logs, request).await);
            }
            Action::Load { load, queries } => self.spawn(async move |logs| {
                let read = logs.database.read_many(queries).await;
                logs.database.note(read.as_ref().err());
                match read {
                    Ok(rows) => Event::Loaded { load, rows },
                    Err(error) => {
                        tracing::warn!(graph = logs.graph, %error, "a leader cannot read the database");
                        Event::LoadFailed { load }
                    }
                }
            }),
            Action::Commit { commit, batch } => self.spawn(async move |logs| {
                let changes: usize = batch.parts.iter().map(|part| part.changes.len()).sum();
                metrics::histogram!("kith_live_commit_changes").record(changes as f64);
                let committed = logs.database.commit(batch).await;
                note_commit(&logs.database, &committed);
                let result = commit_result(committed);
                Event::Committed { commit, result }
            }),
            Action::Deliver { to, from, delivery } => self.deliver(from, to, delivery),
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
                if let Some(end) = self.logs.publish(partition, after, &changes) {
                    read_missing(&self.logs, partition, end);
                }
            }
            Action::SteppedDown { partition, term } => {
                tracing::info!(graph = self.logs.graph, %partition, %term, "this node no longer leads a partition");
                self.stepped_down(partition, term);
            }
            Action::Released { partition } => {
                tracing::debug!(graph = self.logs.graph, %partition, "this node has ceased to lead a partition");
                self.hand_over.released(partition);
            }
        }
    }

    /// Carries out an action in a task of its own, and sends the resulting event to this task.
    fn spawn<F>(&self, work: impl FnOnce(Arc<FollowedLogs>) -> F)
    where
        F: Future<Output = Event> + Send + 'static,
    {
        let (own, work) = (self.own.clone(), work(Arc::clone(&self.logs)));
        tokio::spawn(async move {
            let _ = own.send(LeadMessage::Event(work.await));
        });
    }

    /// Delivers an intent to the leader of the other end's partition, which may be this node.
    fn deliver(&self, from: PartitionId, to: PartitionId, delivery: Delivery) {
        let (stamp, as_of) = (delivery.intent.stamp, delivery.as_of);
        let topology = Arc::clone(&self.parts.outlook.topology.borrow());
        let leaders = topology.leaders.iter().find(|leaders| leaders.graph == self.logs.graph);
        let leader = leaders.map(leaders_of).and_then(|leaders: Leaders| leaders.of(to));
        let node = leader.map(|leader| leader.node);
        if node == Some(self.parts.outlook.node) {
            let (answer, answered) = oneshot::channel();
            let _ = self.own.send(LeadMessage::Deliver(delivery, answer));
            return self.spawn(async move |_| match answered.await {
                Ok(Ok(at)) => Event::Delivered { partition: from, stamp, at },
                Ok(Err(DeliveryError::HistoryLost(_))) => Event::Replaced { partition: from, before: as_of },
                Ok(Err(_)) | Err(_) => Event::DeliveryFailed { partition: from, stamp },
            });
        }
        let known = node.and_then(|node| topology.nodes.iter().find(|known| known.node == node.0));
        let addr = known.map(|known| known.addr.clone());
        let transport = Arc::clone(&self.parts.transport);
        let request = v1::DeliverRequest {
            graph: self.logs.graph.clone(),
            intent: delivery.intent.to_bytes().into(),
            floor: Some(point_to_wire(delivery.floor)),
            as_of: Some(point_to_wire(delivery.as_of)),
        };
        self.spawn(async move |_| {
            let Some(addr) = addr else { return Event::DeliveryFailed { partition: from, stamp } };
            match transport.deliver(&addr, request, DELIVERY_TIMEOUT).await {
                Ok(reply) => {
                    let at = reply.reached.map(point_from_wire).unwrap_or_default();
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

    fn renew(&mut self) {
        let refused = self.duties.take_refused();
        if refused.is_empty() {
            return;
        }
        let LeadershipView { node, metadata, .. } = self.parts.outlook.clone();
        let (own, name) = (self.own.clone(), self.logs.graph.clone());
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
        messages.close();
        let leads: Vec<PartitionId> = self.duties.leads().keys().copied().collect();
        leads.into_iter().for_each(|partition| self.refuse(Event::HandOver { partition }));
        while let Ok(message) = messages.try_recv() {
            if let LeadMessage::Write(..) | LeadMessage::Deliver(..) = message {
                self.on(message);
            }
        }
    }

    /// Passes an event to the leader, and carries out only the resulting actions that answer a caller or a sender.
    fn refuse(&mut self, event: Event) {
        let now = ClockReading { since_start: self.logs.partitions.now(), since_1970: millis_since_1970() };
        for action in self.leader.on(event, now) {
            if let Action::Answer { .. } | Action::AnswerDelivery { .. } = action {
                self.act(action);
            }
        }
    }
}

async fn begin_term(logs: &FollowedLogs, request: BeginTerm) -> Event {
    let BeginTerm { partition, term, .. } = request;
    let begun = logs.database.begin_term(request).await;
    note_commit(&logs.database, &begun);
    match begun {
        Ok(end) => Event::TermBegun { partition, term, end: end.position },
        Err(CommitError::Fenced { .. }) => Event::TermRefused { partition, term },
        Err(error) => {
            tracing::warn!(graph = logs.graph, %partition, %error, "a term cannot begin yet");
            Event::TermUnknown { partition, term }
        }
    }
}

/// Brings the cache of a partition to the point `end` of its log. The first changes of a term need this, because the leader
/// does not know whether the cache contains all changes before them.
fn read_missing(logs: &Arc<FollowedLogs>, partition: PartitionId, end: LogPoint) {
    let logs = Arc::clone(logs);
    tokio::spawn(async move {
        if let Err(error) = logs.catch_up(partition, end).await {
            tracing::debug!(graph = logs.graph, %partition, %error, "a log cannot be followed now");
        }
    });
}
