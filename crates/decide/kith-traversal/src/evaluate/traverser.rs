//! The traversers that move through a traversal.

use super::{
    meter::{HeldBytes, Meter},
    weight,
};
use crate::{
    plan::Label,
    value::{Path, Set, Value},
};
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, OnceLock},
};

/// Traversers on their way from a step to the next.
pub(super) type Batch = Vec<Traverser>;

/// A value on its way through the steps, with what it remembers.
#[derive(Clone, Debug)]
pub(super) struct Traverser {
    pub value: Value,
    /// The number of equal traversers that it stands for.
    pub bulk: i64,
    /// The traverser that it comes from, within the nested traversal that is evaluated; 0 outside of these.
    pub origin: u32,
    pub trail: Trail,
    /// The passes through each `repeat` that it is in, the innermost last.
    pub loops: Vec<(Option<Label>, u32)>,
    pub sack: Option<Value>,
    /// The memory that it takes, apart from values that steps have made, which are charged by themselves.
    pub held: HeldBytes,
}

/// The values that a traverser had before. Each node knows the one before it.
#[derive(Clone, Debug)]
pub(super) enum Trail {
    /// Only values with labels. `is_here` says whether the last of them is the traverser's present value.
    Labels { last: Option<Arc<PathNode>>, is_here: bool },
    /// All values, of which the present one is the last. It is kept only where a step needs it: traversers with different
    /// paths cannot be merged.
    Path(Arc<PathNode>),
}

/// A value of a path, with the labels of the step that made it.
#[derive(Debug)]
pub(super) struct PathNode {
    pub value: Value,
    labels: Vec<Label>,
    before: Option<Arc<PathNode>>,
    /// The number of values up to this one.
    length: u64,
    /// A number that is the same for equal values up to this one, once it has been asked for.
    digest: OnceLock<u64>,
    pub held: HeldBytes,
}

/// Drops a long path node by node. The stack is too small to drop each node within the drop of the next one.
impl Drop for PathNode {
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(node) = before {
            before = Arc::into_inner(node).and_then(|mut node| node.before.take());
        }
    }
}

impl PathNode {
    fn after(before: Option<&Arc<PathNode>>, value: &Value, meter: &Arc<Meter>) -> Arc<Self> {
        let held = HeldBytes::new(meter, weight::PATH_NODE_BYTES + weight::of_element(value));
        let length = before.map_or(0, |before| before.length) + 1;
        let (value, before) = (value.clone(), before.cloned());
        Arc::new(Self { value, labels: Vec::new(), before, length, digest: OnceLock::new(), held })
    }

    /// The same node with more labels.
    fn labelled(&self, labels: &[Label]) -> Arc<Self> {
        let new = labels.iter().filter(|label| !self.labels.contains(label));
        let labels: Vec<Label> = self.labels.iter().chain(new).cloned().collect();
        let mut held = HeldBytes::clone(&self.held);
        held.grow((labels.len() - self.labels.len()) as u64 * weight::LABEL_BYTES);
        let (value, before, digest) = (self.value.clone(), self.before.clone(), self.digest.clone());
        Arc::new(Self { value, labels, before, length: self.length, digest, held })
    }

    /// As `digest`. Each value is looked at once, however many paths it belongs to.
    fn digest(&self) -> u64 {
        let mut open = Vec::new();
        let mut node = Some(self);
        let mut digest = loop {
            let Some(next) = node else { break 0 };
            if let Some(known) = next.digest.get() {
                break *known;
            }
            open.push(next);
            node = next.before.as_deref();
        };
        for node in open.into_iter().rev() {
            let mut hasher = DefaultHasher::new();
            (digest, &node.value).hash(&mut hasher);
            digest = *node.digest.get_or_init(|| hasher.finish());
        }
        digest
    }
}

/// The memory of a traverser at a value, apart from its trail. An element that ends its path is charged there.
fn of_traverser(trail: &Trail, value: &Value) -> u64 {
    weight::TRAVERSER_BYTES
        + match trail {
            Trail::Path(_) => 0,
            Trail::Labels { .. } => weight::of_element(value),
        }
}

impl Traverser {
    /// A traverser at the beginning of a traversal.
    pub fn new(value: Value, with_path: bool, meter: &Arc<Meter>) -> Self {
        let trail = match with_path {
            true => Trail::Path(PathNode::after(None, &value, meter)),
            false => Trail::Labels { last: None, is_here: false },
        };
        let held = HeldBytes::new(meter, of_traverser(&trail, &value));
        Self { value, bulk: 1, origin: 0, trail, loops: Vec::new(), sack: None, held }
    }

    /// The same traverser with another value, which is added to its path.
    pub fn to(&self, value: Value) -> Self {
        let trail = match &self.trail {
            Trail::Labels { last, .. } => Trail::Labels { last: last.clone(), is_here: false },
            Trail::Path(last) => Trail::Path(PathNode::after(Some(last), &value, self.held.meter())),
        };
        let loops = self.loops.len() as u64 * weight::LOOP_BYTES;
        let held = HeldBytes::new(self.held.meter(), of_traverser(&trail, &value) + loops);
        Self {
            held,
            value,
            trail,
            bulk: self.bulk,
            origin: self.origin,
            loops: self.loops.clone(),
            sack: self.sack.clone(),
        }
    }

    /// Enters a `repeat`.
    pub fn enter_loop(&mut self, name: Option<Label>) {
        self.loops.push((name, 0));
        self.held.grow(weight::LOOP_BYTES);
    }

    /// Gives labels to the present value.
    pub fn label(&mut self, labels: &[Label]) {
        self.trail = match &self.trail {
            Trail::Path(last) => Trail::Path(last.labelled(labels)),
            Trail::Labels { last, is_here } => {
                let node = match last {
                    Some(last) if *is_here => last.labelled(labels),
                    last => PathNode::after(last.as_ref(), &self.value, self.held.meter()).labelled(labels),
                };
                Trail::Labels { last: Some(node), is_here: true }
            }
        };
    }

    /// Forgets the values that it remembers for their labels.
    pub fn forget_labels(&mut self) {
        if let Trail::Labels { .. } = self.trail {
            self.trail = Trail::Labels { last: None, is_here: false };
        }
    }

    fn last(&self) -> Option<&Arc<PathNode>> {
        match &self.trail {
            Trail::Labels { last, .. } => last.as_ref(),
            Trail::Path(last) => Some(last),
        }
    }

    /// The number of values that it remembers.
    pub fn path_length(&self) -> u64 {
        self.last().map_or(0, |last| last.length)
    }

    /// The remembered values, from the last to the first.
    pub fn nodes(&self) -> impl Iterator<Item = &PathNode> {
        std::iter::successors(self.last().map(|node| &**node), |node| node.before.as_deref())
    }

    /// The path from its first value to its last.
    pub fn path(&self) -> Path {
        let mut nodes: Vec<&PathNode> = self.nodes().collect();
        nodes.reverse();
        let labels = |node: &&PathNode| node.labels.iter().cloned().map(Value::String).collect::<Set>();
        Path {
            labels: nodes.iter().map(labels).collect(),
            objects: nodes.iter().map(|node| node.value.clone()).collect(),
        }
    }

    /// All values with this label, the first first.
    pub fn labelled(&self, label: &str) -> Vec<&Value> {
        let has = |node: &&PathNode| node.labels.iter().any(|known| &**known == label);
        let mut all: Vec<&Value> = self.nodes().filter(has).map(|node| &node.value).collect();
        all.reverse();
        all
    }

    /// Whether it may be merged with others.
    pub fn is_mergeable(&self) -> bool {
        matches!(self.trail, Trail::Labels { .. })
    }

    /// Whether nothing but the bulk tells two traversers apart. A sack does: `barrier` may combine sacks, once for each of the
    /// traversers.
    pub fn is_same(&self, other: &Self) -> bool {
        self.sack.is_none() && other.sack.is_none() && self.is_same_but_for_sack(other)
    }

    /// Whether nothing but the bulk and the sack tells two traversers apart.
    pub fn is_same_but_for_sack(&self, other: &Self) -> bool {
        let is_same_trail = match (&self.trail, &other.trail) {
            (Trail::Labels { is_here: a, .. }, Trail::Labels { is_here: b, .. }) => {
                let nodes = self.nodes().zip(other.nodes());
                // From where on both have the same node, all is the same.
                let mut apart = nodes.take_while(|(a, b)| !std::ptr::eq(*a, *b));
                a == b
                    && self.path_length() == other.path_length()
                    && apart.all(|(a, b)| a.value == b.value && a.labels == b.labels)
            }
            _ => false,
        };
        is_same_trail && self.origin == other.origin && self.loops == other.loops && self.value == other.value
    }

    /// A number that is the same for traversers that are the same.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.value.hash(&mut hasher);
        self.origin.hash(&mut hasher);
        self.last().map(|node| node.digest()).hash(&mut hasher);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_are_dropped_with_a_small_stack() {
        let small = std::thread::Builder::new().stack_size(256 << 10);
        let walk = || {
            let meter = Meter::new(u64::MAX);
            let start = Traverser::new(Value::Int(0), true, &meter);
            let end = (0..200_000).fold(start, |before, step| before.to(Value::Int(step)));
            let other = end.to(Value::Int(7));
            drop(end);
            assert_eq!(other.nodes().count(), 200_002);
            drop(other);
            assert_eq!(meter.taken(), 0);
        };
        small.spawn(walk).expect("a thread").join().expect("the stack is large enough");
    }
}
