//! Decisions about tasks: whether they can be decided now, which rows they need, and what follows from these.

use super::WriteError;
use super::limits::INTENTS_MAX;
use super::queue::Task;
use super::share::{Share, TaskOutcome};
use super::terms::Terms;
use super::unique::TouchedValues;
use crate::{DecisionContext, RowQuery, completion_queries, delivery_queries};

impl Terms {
    /// Returns the task if it can be decided now. Otherwise, the task waits elsewhere, is refused, or is no longer needed.
    pub(super) fn ready(&mut self, task: Task) -> Option<Task> {
        let Some(leadership) = self.led.get_mut(&task.partition()) else {
            self.tasks.refuse(task);
            return None;
        };
        match task {
            Task::Completion { stamp, .. } => leadership.intents.get(stamp).map(|_| task),
            Task::Delivery { .. } if leadership.is_leading() => Some(task),
            Task::Write(pending) if !leadership.is_handed_over() => {
                if !leadership.is_leading() {
                    leadership.hold(pending);
                    return None;
                }
                let blocking = leadership.intents.blocking(&pending.write);
                let blocking = blocking.filter(|_| self.tasks.guards.intents_block);
                match blocking.and_then(|stamp| leadership.intents.get_mut(stamp)) {
                    Some(open) => open.waiting.push_back(pending),
                    None => return Some(Task::Write(pending)),
                }
                None
            }
            other => {
                self.tasks.refuse(other);
                None
            }
        }
    }

    /// Returns the queries for the rows that decide a task.
    pub(super) fn queries(&self, task: &Task) -> Vec<RowQuery> {
        match task {
            Task::Write(pending) => pending.write.queries(self.tasks.count),
            Task::Delivery { delivery, .. } => delivery_queries(&delivery.intent, self.tasks.count),
            Task::Completion { partition, stamp, .. } => {
                let open = self.led.get(partition).and_then(|it| it.intents.get(*stamp));
                open.map(|open| completion_queries(&open.intent, self.tasks.count)).unwrap_or_default()
            }
        }
    }

    /// Ends a task whose rows were not read where its log ends.
    pub(super) fn unshared(&mut self, task: Task) {
        if self.led.contains_key(&task.partition()) { self.tasks.fail(task) } else { self.tasks.refuse(task) }
    }

    /// Decides a task on the rows of its share.
    pub(super) fn decide_one(
        &self,
        task: Task,
        share: &mut Share,
        touched: &mut TouchedValues,
    ) -> TaskOutcome {
        let context = DecisionContext {
            types: &self.tasks.types,
            count: self.tasks.count,
            point: share.next(),
            now: self.tasks.now.since_1970,
            guards: self.tasks.guards,
        };
        match task {
            Task::Write(pending) => {
                let open = self.led.get(&share.partition).map_or(0, |it| it.intents.len());
                if pending.write.split.is_some() && INTENTS_MAX <= open + share.begun.len() {
                    return TaskOutcome::Answered(pending, WriteError::Overloaded);
                }
                share.write(pending, context, touched)
            }
            Task::Delivery { .. } => share.deliver(task, context),
            Task::Completion { partition, stamp, .. } => {
                let open = self.led.get(&partition).and_then(|it| it.intents.get(stamp));
                let open = open.and_then(|open| Some((&open.intent, open.there?)));
                match open {
                    Some(open) => share.complete(task, open, context),
                    None => TaskOutcome::Failed(task),
                }
            }
        }
    }
}
