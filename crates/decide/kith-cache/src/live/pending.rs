//! The changes that are applied while rows are being read. Without them, a list that changes all the time could never
//! be filled, because some change would always be applied between the read and its arrival.

use kith_live::Effect;
use kith_types::LogPoint;

/// The most changes that are recorded for one fill. If there are more, the fill is refused if any of them followed its
/// read.
const CHANGES_MAX: usize = 64;

/// The changes of one key since its fill began.
#[derive(Debug)]
pub(crate) struct PendingChanges {
    /// The place that was applied when the fill began.
    since: LogPoint,
    changes: Vec<(LogPoint, Effect)>,
    /// Whether all changes after `since` are recorded.
    complete: bool,
}

impl PendingChanges {
    pub(crate) fn new(since: LogPoint) -> Self {
        Self { since, changes: Vec::new(), complete: true }
    }

    pub(crate) fn note(&mut self, point: LogPoint, effect: &Effect) {
        if self.changes.len() == CHANGES_MAX {
            self.complete = false;
            self.changes = Vec::new();
        }
        if self.complete {
            self.changes.push((point, effect.clone()));
        }
    }

    /// Returns all changes after `at`, oldest first; `None` if they are not all known.
    pub(crate) fn after(&self, at: LogPoint) -> Option<Vec<&Effect>> {
        let known = self.complete && self.since <= at;
        let later = self.changes.iter().filter(|(point, _)| at < *point);
        known.then(|| later.map(|(_, effect)| effect).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_known_from_the_start_of_the_fill_and_up_to_a_bound() {
        let point = |position| LogPoint::new(1, position);
        let mut pending = PendingChanges::new(point(4));
        (5..9).for_each(|position| pending.note(point(position), &Effect::NoObject(position)));
        assert_eq!(pending.after(point(3)), None);
        assert_eq!(pending.after(point(6)), Some(vec![&Effect::NoObject(7), &Effect::NoObject(8)]));
        (9..80).for_each(|position| pending.note(point(position), &Effect::NoObject(position)));
        assert_eq!(pending.after(point(79)), None);
    }
}
