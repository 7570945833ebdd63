//! Open intents: their beginning, their delivery to the other end of their pair until it has answered, and their completion.

use super::limits::{DELIVERY_TIMEOUT, back_off};
use super::queue::Task;
use super::share::{DecidedTask, TaskEnding};
use super::terms::Terms;
use super::{Action, Delivery, WriteError};
use crate::Outcome;
use kith_types::{LogPoint, PartitionId};

impl Terms {
    /// Delivers an intent, and sets the time of the next delivery in case there is no answer.
    pub(super) fn send(&mut self, from: PartitionId, stamp: LogPoint) {
        let Some(floor) = self.floor(from) else { return };
        let Some(leadership) = self.led.get_mut(&from) else { return };
        let Some(open) = leadership.intents.get_mut(stamp) else { return };
        open.send_at = Some(self.tasks.now.since_start + DELIVERY_TIMEOUT + back_off(open.failures));
        let (intent, as_of) = (open.intent.clone(), leadership.end);
        let to = intent.pair.partitions(self.tasks.count).1;
        self.tasks.actions.push(Action::Deliver { from, to, delivery: Delivery { intent, floor, as_of } });
    }

    pub(super) fn resend_intents(&mut self) {
        let now = self.tasks.now.since_start;
        let mut due = Vec::new();
        for (&partition, leadership) in &self.led {
            let open = leadership.intents.values().filter(|open| open.send_at.is_some_and(|at| at <= now));
            due.extend(open.map(|open| (partition, open.intent.stamp)));
        }
        due.into_iter().for_each(|(partition, stamp)| self.send(partition, stamp));
    }

    /// Records that the other end has applied an intent, which can now be completed.
    pub(super) fn delivered(&mut self, partition: PartitionId, stamp: LogPoint, at: LogPoint) {
        let leadership = self.led.get_mut(&partition);
        let open = leadership.and_then(|leadership| leadership.intents.get_mut(stamp));
        let Some(open) = open.filter(|open| open.there.is_none()) else { return };
        open.there = Some(at);
        open.send_at = None;
        let bytes = open.intent.bytes();
        self.tasks.queue.push(Task::Completion { partition, stamp, bytes });
    }

    /// Delivers an intent again, because the answer of the other end belongs to a history that the database has lost.
    pub(super) fn not_delivered(&mut self, partition: PartitionId, stamp: LogPoint) {
        let leadership = self.led.get_mut(&partition);
        if let Some(open) = leadership.and_then(|leadership| leadership.intents.get_mut(stamp)) {
            open.there = None;
            self.send(partition, stamp);
        }
    }

    pub(super) fn delivery_failed(&mut self, partition: PartitionId, stamp: LogPoint) {
        let leadership = self.led.get_mut(&partition);
        let open = leadership.and_then(|leadership| leadership.intents.get_mut(stamp));
        let Some(open) = open.filter(|open| open.there.is_none()) else { return };
        open.failures += 1;
        let send_at = self.tasks.now.since_start + back_off(open.failures);
        open.send_at = open.send_at.map(|at| at.min(send_at));
    }

    /// Ends a task that is committed. Returns the stamp of the intent that has begun, if there is one.
    pub(super) fn end_task(&mut self, decided: DecidedTask) -> Option<LogPoint> {
        match (decided.task, decided.ending) {
            (Task::Write(pending), TaskEnding::Outcome { outcome, points }) => {
                let answer = self.tasks.answered(outcome, points);
                self.tasks.answer(&pending, answer);
            }
            (Task::Write(pending), TaskEnding::Begun(intent)) => {
                let Some(leadership) = self.led.get_mut(&pending.write.partition) else {
                    self.tasks.answer(&pending, Err(WriteError::OutcomeUnknown));
                    return None;
                };
                let stamp = intent.stamp;
                let send_at = self.tasks.now.since_start + DELIVERY_TIMEOUT;
                leadership.intents.add(intent, Some(pending.caller), send_at);
                self.tasks.queue.forget(&pending.write);
                return Some(stamp);
            }
            (Task::Delivery { sender, .. }, TaskEnding::Delivered { at }) => {
                self.tasks.actions.push(Action::AnswerDelivery { sender, answer: Ok(at) });
            }
            (Task::Completion { partition, stamp, .. }, TaskEnding::Completed { at }) => {
                self.completed(partition, stamp, at);
            }
            _ => {}
        }
        None
    }

    fn completed(&mut self, partition: PartitionId, stamp: LogPoint, at: LogPoint) {
        let leadership = self.led.get_mut(&partition);
        let Some(open) = leadership.and_then(|leadership| leadership.intents.remove(stamp)) else { return };
        if let Some(caller) = open.caller {
            let there = open.there.map(|there| (open.intent.pair.partitions(self.tasks.count).1, there));
            let points = there.into_iter().chain([(partition, at)]);
            let answer = self.tasks.answered(Outcome::Done(open.intent.done), points);
            self.tasks.actions.push(Action::Answer { caller, answer });
        }
        self.tasks.queue.push_first(open.waiting.into_iter());
    }
}
