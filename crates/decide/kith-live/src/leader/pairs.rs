//! Delivers open intents to the other end of their pair, until it has answered.

use super::limits::{DELIVERY_PATIENCE, back_off};
use super::queue::Task;
use super::{Action, Delivery, Leader};
use kith_types::{LogPoint, PartitionId};

impl Leader {
    /// Delivers an intent, and sets the time of the next delivery in case there is no answer.
    pub(super) fn send(&mut self, from: PartitionId, stamp: LogPoint) {
        let Some(floor) = self.floor(from) else { return };
        let Some(leadership) = self.partitions.get_mut(&from) else { return };
        let Some(open) = leadership.intents.get_mut(stamp) else { return };
        open.send_at = Some(self.now.since_start + DELIVERY_PATIENCE + back_off(open.failures));
        let (intent, as_of) = (open.intent.clone(), leadership.end);
        let to = intent.pair.partitions(self.count).1;
        self.actions.push(Action::Deliver { from, to, delivery: Delivery { intent, floor, as_of } });
    }

    pub(super) fn resend_intents(&mut self) {
        let now = self.now.since_start;
        let mut due = Vec::new();
        for (&partition, leadership) in &self.partitions {
            let open = leadership.intents.values().filter(|open| open.send_at.is_some_and(|at| at <= now));
            due.extend(open.map(|open| (partition, open.intent.stamp)));
        }
        due.into_iter().for_each(|(partition, stamp)| self.send(partition, stamp));
    }

    /// Records that the other end has applied an intent, which can now be completed.
    pub(super) fn delivered(&mut self, partition: PartitionId, stamp: LogPoint, at: LogPoint) {
        let leadership = self.partitions.get_mut(&partition);
        let open = leadership.and_then(|leadership| leadership.intents.get_mut(stamp));
        let Some(open) = open.filter(|open| open.there.is_none()) else { return };
        open.there = Some(at);
        open.send_at = None;
        let bytes = open.intent.bytes();
        self.queue.push(Task::Completion { partition, stamp, bytes });
    }

    /// Delivers an intent again, because the answer of the other end belongs to a history that the database has lost.
    pub(super) fn not_delivered(&mut self, partition: PartitionId, stamp: LogPoint) {
        let leadership = self.partitions.get_mut(&partition);
        if let Some(open) = leadership.and_then(|leadership| leadership.intents.get_mut(stamp)) {
            open.there = None;
            self.send(partition, stamp);
        }
    }

    pub(super) fn delivery_failed(&mut self, partition: PartitionId, stamp: LogPoint) {
        let leadership = self.partitions.get_mut(&partition);
        let open = leadership.and_then(|leadership| leadership.intents.get_mut(stamp));
        let Some(open) = open.filter(|open| open.there.is_none()) else { return };
        open.failures += 1;
        let send_at = self.now.since_start + back_off(open.failures);
        open.send_at = open.send_at.map(|at| at.min(send_at));
    }
}
