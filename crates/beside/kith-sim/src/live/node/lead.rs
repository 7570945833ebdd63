//! Carries out the actions of the leader, as `kith-node/src/live/lead.rs` does.

use super::{NodeProcess, WriteGiver};
use crate::live::metadata::SeenLeaders;
use crate::live::network::Fault;
use crate::live::promise::{Giver, promise};
use kith_cache::live::Progress;
use kith_live::{Action, CallerId, CommitResult, Delivery, DeliveryError, Event, SenderId, Write};
use kith_types::{LogPoint, PartitionId, Term, Timestamp};
use std::time::Duration;

/// The time that a sender waits for the answer to a delivery before it reports a failure to the leader.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(1);
/// The time for which a node collects partitions whose leader stepped down before it asks for new terms.
const RENEWAL_DELAY: Duration = Duration::from_millis(20);
/// The time that a node waits before it asks the metadata store again.
const RENEWAL_RETRY: Duration = Duration::from_millis(500);
/// The maximum delay of a delivery that the network repeats, in milliseconds.
const LATE_MS: u64 = 6_000;

/// The receiver of the answer to a delivery; `None` if nobody waits for it.
type DeliveryGiver = Option<Giver<Result<LogPoint, DeliveryError>>>;

impl NodeProcess {
    /// Passes an event to the leader of a process, and carries out the actions that follow.
    pub(in crate::live) fn tell(&self, event: Event) {
        if !self.world.is_alive(self.me) {
            return;
        }
        let actions = {
            let mut node = self.world.nodes[self.me.index].borrow_mut();
            let now = node.time(self.world.executor.now());
            node.leader.on(event, now)
        };
        actions.into_iter().for_each(|action| self.act(action));
        self.set_timer();
    }

    fn set_timer(&self) {
        let mut node = self.world.nodes[self.me.index].borrow_mut();
        let Some(at) = node.leader.wakes_at().map(|at| node.when(at).max(self.world.executor.now())) else {
            return;
        };
        if node.timer.is_some_and(|timer| timer <= at) {
            return;
        }
        node.timer = Some(at);
        drop(node);
        let me = self.me;
        self.world.executor.after(at.since(self.world.executor.now()), move |world| {
            world.when_it_runs(me, move |process| process.timer_fires(at));
        });
    }

    fn timer_fires(&self, at: Timestamp) {
        {
            let mut node = self.world.nodes[self.me.index].borrow_mut();
            if node.timer != Some(at) {
                return;
            }
            node.timer = None;
        }
        self.tell(Event::Woken);
    }

    /// Accepts news of the leaders.
    pub(in crate::live) fn news_arrive(&self, seen: SeenLeaders) {
        let update = {
            let mut node = self.world.nodes[self.me.index].borrow_mut();
            if seen.0 <= node.seen.0 {
                return;
            }
            let own = self.world.count.iter().filter_map(|partition| {
                let leader = seen.1.of(partition).filter(|leader| leader.node == node.id)?;
                Some((partition, leader.term))
            });
            let own = own.collect();
            node.seen = seen;
            node.duties.update(own)
        };
        if update.renews {
            self.renew_soon();
        }
        update.events.into_iter().for_each(|event| self.tell(event));
    }

    /// Accepts a write that has arrived at a process.
    pub(in crate::live) fn write_arrives(&self, write: Write, answer: WriteGiver) {
        let caller = {
            let mut node = self.world.nodes[self.me.index].borrow_mut();
            let caller = node.new_id();
            node.callers.insert(caller, answer);
            CallerId(caller)
        };
        self.tell(Event::Write { caller, write });
    }

    fn delivery_arrives(&self, delivery: Delivery, answer: DeliveryGiver) {
        let sender = {
            let mut node = self.world.nodes[self.me.index].borrow_mut();
            let sender = node.new_id();
            answer.into_iter().for_each(|answer| drop(node.senders.insert(sender, answer)));
            SenderId(sender)
        };
        self.tell(Event::Delivery { sender, delivery });
    }

    fn act(&self, action: Action) {
        match action {
            Action::BeginTerm { partition, term } => self.begin_term(partition, term),
            Action::Load { load, queries } => self.do_beside(async move |own| {
                // A real replacement of a database takes longer than a read, so a read never sees both databases.
                let replaced = own.world.database.borrow().replaced;
                let mut rows = Vec::new();
                for (partition, queries) in queries {
                    match own.world.database(move |database, _, _| database.read(partition, &queries)).await {
                        Ok(read) => rows.push(read),
                        Err(_) => return Event::LoadFailed { load },
                    }
                }
                match replaced == own.world.database.borrow().replaced {
                    true => Event::Loaded { load, rows },
                    false => Event::LoadFailed { load },
                }
            }),
            Action::Commit { commit, batch } => self.do_beside(async move |own| {
                let result =
                    own.world.database(move |database, truth, now| truth.commit(database, &batch, now));
                let result = match result.await {
                    Ok(Ok(())) => CommitResult::Done,
                    Ok(Err(result)) => result,
                    Err(Fault::Lost) => CommitResult::Unknown,
                    Err(Fault::Unavailable) => CommitResult::Refused,
                };
                Event::Committed { commit, result }
            }),
            Action::Deliver { from, to, delivery } => self.deliver(from, to, delivery),
            Action::Answer { caller, answer } => {
                let waiting = self.world.nodes[self.me.index].borrow_mut().callers.remove(&caller.0);
                waiting.into_iter().for_each(|waiting| waiting.give(answer.clone()));
            }
            Action::AnswerDelivery { sender, answer } => {
                let waiting = self.world.nodes[self.me.index].borrow_mut().senders.remove(&sender.0);
                waiting.into_iter().for_each(|waiting| waiting.give(answer));
            }
            Action::Publish { partition, after, changes } => {
                self.with_cache(partition, |cache, _| cache.saw(after));
                let (mut previous, mut has_gap) = (after, false);
                for change in &changes {
                    let point = LogPoint { position: previous.position.next(), ..after };
                    let progress = self.with_cache(partition, |cache, now| {
                        cache.saw(point);
                        cache.apply_after(previous, point, change, now)
                    });
                    has_gap |= matches!(progress, Progress::Gap { .. });
                    previous = point;
                }
                if has_gap {
                    let own = self.clone();
                    self.world.executor.spawn(self.me.process(), async move {
                        // A failure is ignored, because the next round over all logs tries again.
                        let _ = own.catch_up(partition, previous).await;
                    });
                }
            }
            Action::SteppedDown { partition, term } => self.stepped_down(partition, term),
            Action::Released { .. } => {}
        }
    }

    /// Carries out an action in a task of its own, and passes the resulting event to the leader.
    fn do_beside<F>(&self, work: impl FnOnce(Self) -> F)
    where
        F: Future<Output = Event> + 'static,
    {
        let (own, work) = (self.clone(), work(self.clone()));
        self.world.executor.spawn(self.me.process(), async move {
            let event = work.await;
            own.tell(event);
        });
    }

    fn begin_term(&self, partition: PartitionId, term: Term) {
        // The number is different for every process of every node.
        let number = (self.me.index as u64) << 32 | u64::from(self.me.incarnation);
        self.do_beside(async move |own| {
            let begun = own.world.database(move |database, truth, now| {
                let begun = database.begin_term(partition, term, number);
                truth.term_begun(database, partition, now);
                begun
            });
            match begun.await {
                Ok(Ok(end)) => Event::TermBegun { partition, term, end: end.position },
                Ok(Err(_)) => Event::TermRefused { partition, term },
                Err(_) => Event::TermUnknown { partition, term },
            }
        });
    }

    fn deliver(&self, from: PartitionId, to: PartitionId, delivery: Delivery) {
        let (stamp, as_of) = (delivery.intent.stamp, delivery.as_of);
        let leader = self.world.nodes[self.me.index].borrow().seen.1.of(to);
        let target = leader.and_then(|leader| self.world.index_of(leader.node));
        self.do_beside(async move |own| {
            let answer = match target {
                Some(target) => own.send_delivery(target, delivery).await,
                None => None,
            };
            match answer {
                Some(Ok(at)) => Event::Delivered { partition: from, stamp, at },
                Some(Err(DeliveryError::HistoryLost(_))) => {
                    Event::Replaced { partition: from, before: as_of }
                }
                Some(Err(_)) | None => Event::DeliveryFailed { partition: from, stamp },
            }
        });
    }

    async fn send_delivery(
        &self,
        target: usize,
        delivery: Delivery,
    ) -> Option<Result<LogPoint, DeliveryError>> {
        if self.world.network.one_in(6) {
            let copy = delivery.clone();
            self.world.executor.after(
                Duration::from_millis(self.world.network.below(LATE_MS)),
                move |world| {
                    world.arrive(target, move |process| process.delivery_arrives(copy, None));
                },
            );
        }
        let Some(delay) = self.world.network.hop() else {
            self.world.executor.sleep(DELIVERY_TIMEOUT).await;
            return None;
        };
        let (giver, answer) = promise(&self.world.executor.wakes);
        self.world.executor.after(delay, move |world| {
            world.arrive(target, move |process| process.delivery_arrives(delivery, Some(giver)));
        });
        let answer = self.world.executor.within(DELIVERY_TIMEOUT, answer).await??;
        self.world.back().await?;
        Some(answer)
    }

    fn stepped_down(&self, partition: PartitionId, term: Term) {
        if self.world.nodes[self.me.index].borrow_mut().duties.stepped_down(partition, term) {
            self.renew_soon();
        }
    }

    /// Asks the metadata store, after a short delay, for new terms in place of those that cannot be used any more.
    fn renew_soon(&self) {
        let own = self.clone();
        self.world.executor.spawn(self.me.process(), async move {
            own.world.executor.sleep(RENEWAL_DELAY).await;
            let (node, refused) = {
                let mut node = own.world.nodes[own.me.index].borrow_mut();
                (node.id, node.duties.take_refused())
            };
            if own.world.change_leaders(|leaders| leaders.renew(node, &refused)).await.is_none() {
                own.world.executor.sleep(RENEWAL_RETRY).await;
                refused.into_iter().for_each(|(partition, term)| own.stepped_down(partition, term));
            }
        });
    }
}
