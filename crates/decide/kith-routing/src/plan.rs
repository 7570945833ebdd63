//! Plans, the results of routing: which node gets which keys. A plan is a plain value.

use kith_types::{GroupId, NodeId};
use std::fmt;

/// The number of groups that a plan may use. Policies clamp it to the existing groups, and to at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupLimit(pub u32);

/// The keys of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The node to ask.
    pub node: NodeId,
    /// Indexes into the keys of the query, ascending; never empty.
    pub keys: Vec<u32>,
}

/// The assignment of the keys of one query to nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FanOutPlan {
    /// The name of the policy that made it.
    pub policy: &'static str,
    /// The groups that take part, ascending.
    pub groups: Vec<GroupId>,
    /// The requests, in the order of the table's nodes. Together they contain each key once.
    pub assignments: Vec<Assignment>,
    /// The number of keys that a group outside the limit serves, because no group inside it has a replica that may serve
    /// now.
    pub spilled_keys: u32,
}

impl FanOutPlan {
    /// The number of requests.
    pub fn requests(&self) -> usize {
        self.assignments.len()
    }

    /// The number of keys.
    pub fn keys(&self) -> usize {
        self.assignments.iter().map(|assignment| assignment.keys.len()).sum()
    }

    /// The number of keys of the busiest node, which decides the slowest request (Moolle, equation 4).
    pub fn busiest_keys(&self) -> usize {
        self.assignments.iter().map(|assignment| assignment.keys.len()).max().unwrap_or(0)
    }

    /// The mean number of keys per node that takes part; 0 for an empty plan.
    pub fn mean_keys(&self) -> f64 {
        if self.assignments.is_empty() { 0.0 } else { self.keys() as f64 / self.requests() as f64 }
    }

    /// The keys of the busiest node divided by the mean: 1 is perfect balance.
    pub fn imbalance(&self) -> f64 {
        if self.assignments.is_empty() { 1.0 } else { self.busiest_keys() as f64 / self.mean_keys() }
    }
}

/// Formatted as `n3[0] n4[2] n5[5]  requests=3 groups=g1 busiest=1 mean=1.0`.
impl fmt::Display for FanOutPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Assignment { node, keys } in &self.assignments {
            let keys: Vec<String> = keys.iter().map(u32::to_string).collect();
            write!(f, "{node}[{}] ", keys.join(" "))?;
        }
        let groups: Vec<String> = self.groups.iter().map(GroupId::to_string).collect();
        write!(f, " requests={} groups={}", self.requests(), groups.join(","))?;
        write!(f, " busiest={} mean={:.1}", self.busiest_keys(), self.mean_keys())?;
        if 0 < self.spilled_keys {
            write!(f, " spilled={}", self.spilled_keys)?;
        }
        Ok(())
    }
}
