//! The choice between two ways to fetch a network.

use kith_types::PartitionCount;

/// The way to fetch a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkPlan {
    /// First the first degree, then the union of its lists from the nodes that hold them (Moolle, Algorithm 2).
    #[default]
    InTurn,
    /// Both degrees from every partition in one exchange: the members that the inverted index finds, and the union of their
    /// lists. All nodes of a group are asked, even for few connections.
    AtOnce,
}

/// The number of partitions per node up to which looking up all of them costs less than another exchange.
const PARTITIONS_PER_NODE_MAX: usize = 16;

impl NetworkPlan {
    /// The plan for a cluster of this shape. [`NetworkPlan::AtOnce`] applies if one group holds everything, so that there
    /// is no fan-out to choose, and has at most `nodes_max` nodes with few partitions each.
    pub fn of(groups: usize, nodes: usize, partitions: PartitionCount, nodes_max: usize) -> Self {
        let is_few = partitions.get() as usize <= PARTITIONS_PER_NODE_MAX * nodes;
        if groups == 1 && nodes <= nodes_max && is_few { Self::AtOnce } else { Self::InTurn }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_one_exchange_where_there_is_no_fan_out_to_choose() {
        let plan = |groups, nodes, partitions| {
            let partitions = PartitionCount::new(partitions).expect("a valid count");
            NetworkPlan::of(groups, nodes, partitions, 4)
        };
        assert_eq!(plan(1, 3, 24), NetworkPlan::AtOnce);
        assert_eq!(plan(1, 4, 64), NetworkPlan::AtOnce);
        assert_eq!(plan(1, 5, 24), NetworkPlan::InTurn, "too many nodes");
        assert_eq!(plan(1, 3, 240), NetworkPlan::InTurn, "too many partitions");
        assert_eq!(plan(2, 6, 24), NetworkPlan::InTurn, "two groups");
    }
}
