//! Carries out the actions of the leader, as `kith-node/src/live/lead.rs` does.

use super::{Me, WriteGiver};
use crate::live::network::Fault;
use crate::live::promise::{Giver, promise};
use crate::live::{Shared, World};
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

impl World {
    /// Passes an event to the leader of a process, and carries out the actions that follow.
    pub(in crate::live) fn tell(self: &Shared, me: Me, event: Event) {
        if !self.is_alive(me) {
            return;
        }
        let actions = {
            let mut node = self.nodes[me.index].borrow_mut();
            let now = node.time(self.now());
            node.leader.on(event, now)
        };
        actions.into_iter().for_each(|action| self.act(me, action));
        self.set_timer(me);
    }

    fn set_timer(self: &Shared, me: Me) {
        let mut node = self.nodes[me.index].borrow_mut();
        let Some(at) = node.leader.wakes_at().map(|at| node.when(at).max(self.now())) else { return };
        if node.timer.is_some_and(|timer| timer <= at) {
            return;
        }
        node.timer = Some(at);
        drop(node);
        self.after(at.since(self.now()), move |world| {
            world.when_it_runs(me, move |world, me| world.timer_fires(me, at));
        });
    }

    fn timer_fires(self: &Shared, me: Me, at: Timestamp) {
        {
            let mut node = self.nodes[me.index].borrow_mut();
            if node.timer != Some(at) {
                return;
            }
            node.timer = None;
        }
        self.tell(me, Event::Woken);
    }

    /// Accepts a write that has arrived at a process.
    pub(in crate::live) fn write_arrives(self: &Shared, me: Me, write: Write, answer: WriteGiver) {
        let caller = {
            let mut node = self.nodes[me.index].borrow_mut();
            let caller = node.new_id();
            node.callers.insert(caller, answer);
            CallerId(caller)
        };
        self.tell(me, Event::Write { caller, write });
    }

    fn delivery_arrives(self: &Shared, me: Me, delivery: Delivery, answer: DeliveryGiver) {
        let sender = {
            let mut node = self.nodes[me.index].borrow_mut();
            let sender = node.new_id();
            answer.into_iter().for_each(|answer| drop(node.senders.insert(sender, answer)));
            SenderId(sender)
        };
        self.tell(me, Event::Delivery { sender, delivery });
    }

    fn act(self: &Shared, me: Me, action: Action) {
        match action {
            Action::BeginTerm { partition, term } => self.begin_term(me, partition, term),
            Action::Load { load, queries } => self.do_beside(me, async move |world| {
                // A real replacement of a database takes longer than a read, so a read never sees both databases.
                let replaced = world.database.borrow().replaced;
                let mut rows = Vec::new();
                for (partition, queries) in queries {
                    match world.database(move |database, _, _| database.read(partition, &queries)).await {
                        Ok(read) => rows.push(read),
                        Err(_) => return Event::LoadFailed { load },
                    }
                }
                match replaced == world.database.borrow().replaced {
                    true => Event::Loaded { load, rows },
                    false => Event::LoadFailed { load },
                }
            }),
            Action::Commit { commit, batch } => self.do_beside(me, async move |world| {
                let result = world.database(move |database, truth, now| truth.commit(database, &batch, now));
                let result = match result.await {
                    Ok(Ok(())) => CommitResult::Done,
                    Ok(Err(result)) => result,
                    Err(Fault::Lost) => CommitResult::Unknown,
                    Err(Fault::Unavailable) => CommitResult::Refused,
                };
                Event::Committed { commit, result }
            }),
            Action::Deliver { from, to, delivery } => self.deliver(me, from, to, delivery),
            Action::Answer { caller, answer } => {
                let waiting = self.nodes[me.index].borrow_mut().callers.remove(&caller.0);
                waiting.into_iter().for_each(|waiting| waiting.give(answer.clone()));
            }
            Action::AnswerDelivery { sender, answer } => {
                let waiting = self.nodes[me.index].borrow_mut().senders.remove(&sender.0);
                waiting.into_iter().for_each(|waiting| waiting.give(answer));
            }
            Action::Publish { partition, after, changes } => {
                self.with_cache(me, partition, |cache, _| cache.saw(after));
                let (mut previous, mut has_gap) = (after, false);
                for change in &changes {
                    let point = LogPoint { position: previous.position.next(), ..after };
                    let progress = self.with_cache(me, partition, |cache, now| {
                        cache.saw(point);
                        cache.apply_after(previous, point, change, now)
                    });
                    has_gap |= matches!(progress, Progress::Gap { .. });
                    previous = point;
                }
                if has_gap {
                    let own = self.clone();
                    self.spawn(me.process(), async move {
                        // A failure is ignored, because the next round over all logs tries again.
                        let _ = own.catch_up(me, partition, previous).await;
                    });
                }
            }
            Action::SteppedDown { partition, term } => self.stepped_down(me, partition, term),
            Action::Released { .. } => {}
        }
    }

    /// Carries out an action in a task of its own, and passes the resulting event to the leader.
    fn do_beside<F>(self: &Shared, me: Me, work: impl FnOnce(Shared) -> F)
    where
        F: Future<Output = Event> + 'static,
    {
        let (own, work) = (self.clone(), work(self.clone()));
        self.spawn(me.process(), async move {
            let event = work.await;
            own.tell(me, event);
        });
    }

    fn begin_term(self: &Shared, me: Me, partition: PartitionId, term: Term) {
        // The number is different for every process of every node.
        let number = (me.index as u64) << 32 | u64::from(me.incarnation);
        self.do_beside(me, async move |world| {
            let begun = world.database(move |database, truth, now| {
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

    fn deliver(self: &Shared, me: Me, from: PartitionId, to: PartitionId, delivery: Delivery) {
        let (stamp, as_of) = (delivery.intent.stamp, delivery.as_of);
        let leader = self.nodes[me.index].borrow().seen.1.of(to);
        let target = leader.and_then(|leader| self.index_of(leader.node));
        self.do_beside(me, async move |world| {
            let answer = match target {
                Some(target) => world.send_delivery(target, delivery).await,
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
        self: &Shared,
        target: usize,
        delivery: Delivery,
    ) -> Option<Result<LogPoint, DeliveryError>> {
        if self.one_in(6) {
            let copy = delivery.clone();
            self.after(Duration::from_millis(self.below(LATE_MS)), move |world| {
                world.arrive(target, move |world, me| world.delivery_arrives(me, copy, None));
            });
        }
        let Some(delay) = self.hop() else {
            self.sleep(DELIVERY_TIMEOUT).await;
            return None;
        };
        let (giver, answer) = promise(&self.wakes);
        self.after(delay, move |world| {
            world.arrive(target, move |world, me| world.delivery_arrives(me, delivery, Some(giver)));
        });
        let answer = self.within(DELIVERY_TIMEOUT, answer).await??;
        self.back().await?;
        Some(answer)
    }

    fn stepped_down(self: &Shared, me: Me, partition: PartitionId, term: Term) {
        if self.nodes[me.index].borrow_mut().duties.stepped_down(partition, term) {
            self.renew_soon(me);
        }
    }

    /// Asks the metadata store, after a short delay, for new terms in place of those that cannot be used any more.
    pub(super) fn renew_soon(self: &Shared, me: Me) {
        let own = self.clone();
        self.spawn(me.process(), async move {
            own.sleep(RENEWAL_DELAY).await;
            let (node, refused) = {
                let mut node = own.nodes[me.index].borrow_mut();
                (node.id, node.duties.take_refused())
            };
            if own.change_leaders(|leaders| leaders.renew(node, &refused)).await.is_none() {
                own.sleep(RENEWAL_RETRY).await;
                refused.into_iter().for_each(|(partition, term)| own.stepped_down(me, partition, term));
            }
        });
    }
}
