//! The replicas that may serve now, as small bit sets over the nodes of one table.
//!
//! They are rebuilt when health or a graph's rollout changes, not per query. The parts that cost O(partitions) are
//! computed here, so that a view costs almost nothing.

use crate::{GroupIndex, GroupRole, NodeIndex, RoutingTable, StoreReach};
use kith_types::{NodeId, PartitionId};

/// A set of nodes of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSet {
    words: Vec<u64>,
}

impl NodeSet {
    /// Returns an empty set for a table with `node_count` nodes.
    pub fn empty(node_count: usize) -> Self {
        Self { words: vec![0; node_count.div_ceil(64)] }
    }

    /// Adds a node.
    pub fn insert(&mut self, node: NodeIndex) {
        self.words[node.index() / 64] |= 1 << (node.0 % 64);
    }

    /// Removes a node.
    pub fn remove(&mut self, node: NodeIndex) {
        self.words[node.index() / 64] &= !(1 << (node.0 % 64));
    }

    /// Whether a node is in the set.
    #[inline]
    pub fn contains(&self, node: NodeIndex) -> bool {
        self.words[node.index() / 64] >> (node.0 % 64) & 1 == 1
    }

    /// Whether every node of `other` is in this set.
    pub fn is_superset(&self, other: &NodeSet) -> bool {
        self.words.iter().zip(&other.words).all(|(ours, theirs)| theirs & !ours == 0)
    }

    /// The nodes of the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        let all = 0..self.words.len() as u32 * 64;
        all.map(NodeIndex).filter(|node| self.contains(*node))
    }

    /// The number of nodes in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }
}

/// The replicas of one table that may serve now.
///
/// A replica may be unavailable for two reasons. A node that is *down* may be tried as a last resort
/// ([`Availability::rescue`]). A node that is *excluded* is never asked: it lacks the requested graph version, or its group
/// is in maintenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability {
    node_count: usize,
    /// Bit `g` is set if group `g` does not hold the store in question; 0 for most stores.
    closed: u64,
    serving: NodeSet,
    excluded: NodeSet,
    /// Replicas that must not serve although their node may. Sorted.
    excluded_replicas: Vec<(PartitionId, NodeIndex)>,
    /// Partitions without a replica that is up, whose replicas are tried anyway. Sorted.
    rescued: Vec<PartitionId>,
    /// Whether [`Availability::rescue`] has been called.
    rescues: bool,
}

impl Availability {
    /// Returns an availability in which every node of every serving group is up.
    pub fn all(table: &RoutingTable) -> Self {
        let node_count = table.nodes().len();
        let mut availability = Self {
            node_count,
            closed: 0,
            serving: NodeSet::empty(node_count),
            excluded: NodeSet::empty(node_count),
            excluded_replicas: Vec::new(),
            rescued: Vec::new(),
            rescues: false,
        };
        for index in (0..node_count as u32).map(NodeIndex) {
            match table.groups()[table.group_of(index).index()].role {
                GroupRole::Serving => availability.serving.insert(index),
                GroupRole::Maintenance | GroupRole::Joining => availability.excluded.insert(index),
            }
        }
        availability
    }

    /// Marks a node as down.
    pub fn mark_down(&mut self, node: NodeIndex) {
        self.serving.remove(node);
    }

    /// Excludes a node completely, for example because it lacks the requested graph version.
    pub fn exclude(&mut self, node: NodeIndex) {
        self.serving.remove(node);
        self.excluded.insert(node);
    }

    /// Excludes one replica, for example because the files of one partition are damaged on a node.
    pub fn exclude_replica(&mut self, partition: PartitionId, node: NodeIndex) {
        if let Err(index) = self.excluded_replicas.binary_search(&(partition, node)) {
            self.excluded_replicas.insert(index, (partition, node));
        }
    }

    /// Allows trying the replicas of partitions that have no replica up: health may be wrong, and a connection error is no
    /// worse than a refusal to try (Norbert's "serve rather than fail"). Call it last. O(groups) if all replicas of one
    /// group may serve, else O(partitions × groups).
    pub fn rescue(&mut self, table: &RoutingTable) {
        self.rescues = true;
        self.rescued.clear();
        let mut groups = (0..table.groups().len() as u32).map(GroupIndex);
        if groups.any(|group| self.is_whole(table, group)) {
            return;
        }
        let up = |p: PartitionId, (group, node): (usize, &NodeIndex)| {
            self.is_open(GroupIndex(group as u32)) && self.may_serve(p, *node)
        };
        let lost = |p: &PartitionId| !table.replicas(*p).iter().enumerate().any(|replica| up(*p, replica));
        self.rescued = table.partition_count().iter().filter(lost).collect();
    }

    /// Returns this availability narrowed to one store version: only the groups that hold the store, without the nodes that
    /// lack the version. Keep the result, because a fleet's availability and a store's reach change rarely. O(nodes), plus a
    /// [`Availability::rescue`] if this one was rescued.
    pub fn for_store(&self, table: &RoutingTable, reach: &StoreReach) -> Self {
        let mut narrowed = self.clone();
        narrowed.closed |= reach.closed();
        reach.excluded().for_each(|node| narrowed.exclude(node));
        narrowed.excluded_replicas.extend_from_slice(reach.without());
        narrowed.excluded_replicas.sort_unstable();
        if narrowed.rescues {
            narrowed.rescue(table);
        }
        narrowed
    }

    /// Whether a group holds the store in question.
    #[inline]
    pub fn is_open(&self, group: GroupIndex) -> bool {
        self.closed >> group.0 & 1 == 0
    }

    /// Whether a group holds the store in question and each of its replicas may serve.
    pub(crate) fn is_whole(&self, table: &RoutingTable, group: GroupIndex) -> bool {
        self.is_open(group)
            && self.excluded_replicas.is_empty()
            && self.serving.is_superset(table.owning(group))
    }

    /// Whether a replica may serve.
    #[inline]
    pub fn may_serve(&self, partition: PartitionId, node: NodeIndex) -> bool {
        if self.serving.contains(node) {
            return self.excluded_replicas.is_empty() || !self.is_excluded(partition, node);
        }
        !self.rescued.is_empty() && self.is_rescued(partition, node)
    }

    /// The nodes that are up and not excluded.
    pub fn serving(&self) -> &NodeSet {
        &self.serving
    }

    pub(crate) fn node_count(&self) -> usize {
        self.node_count
    }

    #[cold]
    fn is_excluded(&self, partition: PartitionId, node: NodeIndex) -> bool {
        self.excluded_replicas.binary_search(&(partition, node)).is_ok()
    }

    #[cold]
    fn is_rescued(&self, partition: PartitionId, node: NodeIndex) -> bool {
        self.rescued.binary_search(&partition).is_ok()
            && !self.excluded.contains(node)
            && !self.is_excluded(partition, node)
    }
}

/// Marks nodes down by id. Ids that the table does not have are ignored.
impl Availability {
    /// Returns an availability in which all nodes except these are up.
    pub fn all_but(table: &RoutingTable, down: &[NodeId]) -> Self {
        let mut availability = Self::all(table);
        for index in down.iter().filter_map(|node| table.node_index(*node)) {
            availability.mark_down(index);
        }
        availability
    }
}
