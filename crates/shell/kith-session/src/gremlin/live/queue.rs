//! Writes that a traversal has decided and not sent yet. Those that do not depend on each other are sent together.

use kith_live::Write;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// A write that waits to be sent.
#[derive(Debug)]
pub(super) struct QueuedWrite {
    pub write: Write,
    /// What it does, such as `added vertex 7`, for the error of a traversal that fails later.
    pub what: String,
    pub change: QueuedChange,
}

/// What a write changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QueuedChange {
    /// A new vertex, with the number that it will get.
    Vertex { number: u64 },
    /// A property of a vertex that exists.
    Property { vertex: u64 },
    /// A new edge between two vertices, with the id that it is shown with.
    Edge { ends: [u64; 2], label: Arc<str>, name: String },
}

/// The writes of one traversal that have not been sent, in waves: each write depends at most on writes of earlier waves.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    waves: Vec<Vec<QueuedWrite>>,
    /// The last wave that changes a vertex.
    vertices: HashMap<u64, usize>,
    /// The last wave that adds an edge with a label between two vertices, in either direction.
    edges: HashMap<([u64; 2], Arc<str>), usize>,
    /// The vertices at which new edges begin or end.
    ends: HashSet<u64>,
    count: usize,
    bytes: usize,
}

/// The number of writes, and the bytes of their fields, from which on a queue is full. One more write may have to fit in.
const COUNT_MAX: usize = 256;
const BYTES_MAX: usize = 256 << 10;

impl WriteQueue {
    /// Puts a write into the first wave in which everything that it depends on has been written.
    pub fn push(&mut self, queued: QueuedWrite) {
        let after = match &queued.change {
            QueuedChange::Vertex { number } | QueuedChange::Property { vertex: number } => {
                self.vertices.get(number).copied()
            }
            QueuedChange::Edge { ends, label, .. } => {
                let vertices = ends.iter().filter_map(|end| self.vertices.get(end));
                vertices.chain(self.edges.get(&(sorted(*ends), Arc::clone(label)))).max().copied()
            }
        };
        let wave = after.map_or(0, |wave| wave + 1);
        match &queued.change {
            QueuedChange::Vertex { number } | QueuedChange::Property { vertex: number } => {
                self.vertices.insert(*number, wave);
            }
            QueuedChange::Edge { ends, label, .. } => {
                self.edges.insert((sorted(*ends), Arc::clone(label)), wave);
                self.ends.extend(ends);
            }
        }
        self.count += 1;
        self.bytes += queued.write.mutation.data_bytes();
        match self.waves.get_mut(wave) {
            Some(writes) => writes.push(queued),
            None => self.waves.push(vec![queued]),
        }
    }

    /// Whether the writes should be sent before another one is added.
    pub fn is_full(&self) -> bool {
        COUNT_MAX <= self.count || BYTES_MAX <= self.bytes
    }

    /// Whether no write waits.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a write adds or changes this vertex.
    pub fn changes_vertex(&self, number: u64) -> bool {
        self.vertices.contains_key(&number)
    }

    /// Whether a write adds an edge at this vertex.
    pub fn adds_edge_at(&self, number: u64) -> bool {
        self.ends.contains(&number)
    }

    /// Takes all writes, wave by wave.
    pub fn take(&mut self) -> Vec<Vec<QueuedWrite>> {
        std::mem::take(self).waves
    }
}

fn sorted([one, other]: [u64; 2]) -> [u64; 2] {
    [one.min(other), one.max(other)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_live::{Conditions, Mutation};
    use proptest::prelude::*;

    fn queued(change: QueuedChange, at: usize) -> QueuedWrite {
        let mutation = Mutation::DeleteObject { id: at as u64 };
        let write = Write { mutation, conditions: Conditions::default(), write_id: None };
        QueuedWrite { write, what: at.to_string(), change }
    }

    fn change() -> impl Strategy<Value = QueuedChange> {
        let number = 0..6u64;
        prop_oneof![
            number.clone().prop_map(|number| QueuedChange::Vertex { number }),
            number.clone().prop_map(|vertex| QueuedChange::Property { vertex }),
            ([number.clone(), number], "[ab]").prop_map(|(ends, label)| QueuedChange::Edge {
                ends,
                label: label.into(),
                name: String::new()
            }),
        ]
    }

    /// Whether the second write must not be sent before the first one is confirmed.
    fn depends(first: &QueuedChange, second: &QueuedChange) -> bool {
        let changed = |change: &QueuedChange| match change {
            QueuedChange::Vertex { number } | QueuedChange::Property { vertex: number } => Some(*number),
            QueuedChange::Edge { .. } => None,
        };
        match (changed(first), second) {
            (Some(first), QueuedChange::Edge { ends, .. }) => ends.contains(&first),
            (Some(first), second) => changed(second) == Some(first),
            (None, QueuedChange::Edge { ends, label, .. }) => {
                let is_same = |it: &[u64; 2], of: &Arc<str>| sorted(*it) == sorted(*ends) && of == label;
                matches!(first, QueuedChange::Edge { ends, label, .. } if is_same(ends, label))
            }
            (None, _) => false,
        }
    }

    proptest! {
        #[test]
        fn each_write_is_in_the_first_wave_after_all_that_it_depends_on(changes in prop::collection::vec(change(), 0..30)) {
            let mut queue = WriteQueue::default();
            let mut naive: Vec<usize> = Vec::new();
            for (at, change) in changes.iter().enumerate() {
                let before = (0..at).filter(|first| depends(&changes[*first], change));
                naive.push(before.map(|first| naive[first] + 1).max().unwrap_or(0));
                queue.push(queued(change.clone(), at));
            }
            for number in 0..6 {
                let of = |wanted: &dyn Fn(&QueuedChange) -> bool| changes.iter().any(wanted);
                let is_end = |it: &QueuedChange| matches!(it, QueuedChange::Edge { ends, .. } if ends.contains(&number));
                let is_changed = |it: &QueuedChange| !is_end(it) && depends(it, &QueuedChange::Vertex { number });
                prop_assert_eq!(queue.changes_vertex(number), of(&is_changed));
                prop_assert_eq!(queue.adds_edge_at(number), of(&is_end));
            }
            let waves = queue.take();
            let mut found = vec![usize::MAX; changes.len()];
            for (wave, writes) in waves.iter().enumerate() {
                prop_assert!(!writes.is_empty());
                for write in writes {
                    found[write.what.parse::<usize>().unwrap()] = wave;
                }
            }
            prop_assert_eq!(found, naive);
            prop_assert!(queue.take().is_empty() && !queue.changes_vertex(0) && !queue.is_full());
        }
    }

    #[test]
    fn a_queue_is_full_with_many_writes_or_many_bytes() {
        let mut queue = WriteQueue::default();
        for number in 0..COUNT_MAX as u64 {
            assert!(!queue.is_full());
            queue.push(queued(QueuedChange::Vertex { number }, 0));
        }
        assert!(queue.is_full());
        queue.take();
        let mutation = Mutation::UpdateObject { id: 1, data: "x".repeat(BYTES_MAX) };
        let write = Write { mutation, conditions: Conditions::default(), write_id: None };
        queue.push(QueuedWrite { write, what: String::new(), change: QueuedChange::Property { vertex: 1 } });
        assert!(queue.is_full());
    }
}
