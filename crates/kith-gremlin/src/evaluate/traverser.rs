//! What moves through a traversal.

use crate::{
    plan::Label,
    value::{Path, Set, Value},
};
use std::sync::Arc;

/// Traversers on their way from a step to the next.
pub(super) type Batch = Vec<Traverser>;

/// A value on its way through the steps, with what it remembers.
#[derive(Clone, Debug)]
pub(super) struct Traverser {
    pub value: Value,
    /// How many equal traversers it stands for.
    pub bulk: i64,
    /// Which traverser it comes from, within the nested traversal that is evaluated; 0 outside of these.
    pub origin: u32,
    /// The values that it had before, the last first. `None` if paths are not remembered.
    pub path: Option<Arc<PathNode>>,
    /// The passes through each `repeat` that it is in, the innermost last.
    pub loops: Vec<(Option<Label>, u32)>,
    pub sack: Option<Value>,
}

/// A value of a path, with the labels of the step that made it.
#[derive(Debug)]
pub(super) struct PathNode {
    pub value: Value,
    pub labels: Vec<Label>,
    pub before: Option<Arc<PathNode>>,
}

impl Traverser {
    /// A traverser at the beginning of a traversal.
    pub fn new(value: Value, with_path: bool) -> Self {
        let node = || Arc::new(PathNode { value: value.clone(), labels: Vec::new(), before: None });
        let path = with_path.then(node);
        Self { value, bulk: 1, origin: 0, path, loops: Vec::new(), sack: None }
    }

    /// The same traverser with another value, which is added to its path.
    pub fn to(&self, value: Value) -> Self {
        let node = |before: &Arc<PathNode>| {
            Arc::new(PathNode { value: value.clone(), labels: Vec::new(), before: Some(Arc::clone(before)) })
        };
        let path = self.path.as_ref().map(node);
        Self { value, path, ..self.clone() }
    }

    /// Gives labels to the last value of the path.
    pub fn label(&mut self, labels: &[Label]) {
        let Some(node) = &self.path else { return };
        let mut all = node.labels.clone();
        all.extend(labels.iter().filter(|label| !node.labels.contains(label)).cloned());
        self.path =
            Some(Arc::new(PathNode { value: node.value.clone(), labels: all, before: node.before.clone() }));
    }

    /// The nodes of the path, from the last to the first.
    pub fn nodes(&self) -> impl Iterator<Item = &PathNode> {
        std::iter::successors(self.path.as_deref(), |node| node.before.as_deref())
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

    /// Whether nothing but the bulk tells two traversers apart.
    pub fn is_same(&self, other: &Self) -> bool {
        self.path.is_none()
            && other.path.is_none()
            && self.origin == other.origin
            && self.loops == other.loops
            && self.sack == other.sack
            && self.value == other.value
    }
}
