//! Hands partitions over to other nodes.

use super::limits::HANDOVER_PATIENCE;
use super::queue::{PendingWrite, Task};
use super::terms::Leadership;
use super::{Action, Leader};
use kith_types::PartitionId;

impl Leader {
    /// Stops taking writes for a partition, which is released when its open intents are complete. Deliveries are still
    /// taken: other partitions cannot complete their intents without them, and two partitions that are handed over at the
    /// same time would wait for each other.
    pub(super) fn hand_over(&mut self, partition: PartitionId) {
        self.next_terms.remove(&partition);
        let Some(leadership) = self.partitions.get_mut(&partition) else {
            return self.actions.push(Action::Released { partition });
        };
        leadership.release_by.get_or_insert(self.now.since_start + HANDOVER_PATIENCE);
        let mut writes: Vec<PendingWrite> = leadership.held.drain(..).collect();
        for open in leadership.intents.values_mut() {
            writes.extend(open.waiting.drain(..));
        }
        writes.into_iter().for_each(|pending| self.refuse(Task::Write(pending)));
        for task in self.queue.take_of(partition) {
            match task {
                Task::Completion { .. } | Task::Delivery { .. } => self.queue.push(task),
                Task::Write(_) => self.refuse(task),
            }
        }
    }

    /// Releases partitions that are being handed over, if they have no open intents or the time to wait for these is over.
    pub(super) fn release_idle(&mut self) {
        let is_over = |leadership: &Leadership| {
            let is_idle = leadership.intents.is_empty();
            leadership.release_by.is_some_and(|by| is_idle || by <= self.now.since_start)
        };
        let leaderships = self.partitions.iter().filter(|(_, leadership)| is_over(leadership));
        let over: Vec<PartitionId> = leaderships.map(|(partition, _)| *partition).collect();
        for partition in over {
            self.give_up(partition);
            self.actions.push(Action::Released { partition });
        }
    }
}
