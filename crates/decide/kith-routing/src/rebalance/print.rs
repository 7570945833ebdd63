//! The text of a plan for people.

use crate::rebalance::{RebalancePlan, TargetShape};
use std::fmt;

/// A summary line, then the moves per pair of nodes, then what each node has.
impl fmt::Display for RebalancePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (moves, batches) = (self.moves().count(), self.batches.len());
        let all = u64::from(self.before.partition_count.get()) * self.before.groups.len() as u64;
        write!(f, "{}: ", self.shape)?;
        if let TargetShape::RemoveGroup(group) = &self.shape
            && !self.before.groups.iter().any(|entry| entry.id == *group)
        {
            return write!(f, "the cluster has no such group, so nothing is left to do");
        }
        if moves == 0 {
            return write!(f, "no data moves");
        }
        write!(
            f,
            "{moves} copies in {batches} batches, {}; the cluster has {all} replicas",
            Bytes(self.bytes())
        )?;
        write!(
            f,
            "\n\n{:<8}{:<8}{:>11}{:>11}{:>12}",
            "donor", "stealer", "partitions", "secondary", "bytes"
        )?;
        for pair in &self.pairs {
            let (donor, stealer) = (pair.donor.to_string(), pair.stealer.to_string());
            let bytes = Bytes(pair.bytes).to_string();
            write!(f, "\n{donor:<8}{stealer:<8}{:>11}{:>11}{bytes:>12}", pair.moves, pair.secondary_moves)?;
        }
        write!(f, "\n\n{:<8}{:<8}{:>11}{:>8}", "node", "group", "partitions", "after")?;
        write!(f, "{:>12}{:>12}{:>12}{:>10}", "bytes", "after", "peak", "overhead")?;
        for node in &self.nodes {
            let (id, group) = (node.node.to_string(), node.group.to_string());
            write!(f, "\n{id:<8}{group:<8}{:>11}{:>8}", node.partitions_before, node.partitions_after)?;
            for bytes in [node.bytes_before, node.bytes_after, node.bytes_peak()] {
                write!(f, "{:>12}", Bytes(bytes).to_string())?;
            }
            write!(f, "{:>10.2}", node.overhead())?;
        }
        Ok(())
    }
}

/// Bytes in the largest binary unit in which the number is at least one.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
        if self.0 < 1 << 10 {
            return write!(f, "{} B", self.0);
        }
        let unit = ((63 - self.0.leading_zeros()) / 10).clamp(1, UNITS.len() as u32);
        write!(f, "{:.1} {}", self.0 as f64 / (1u64 << (10 * unit)) as f64, UNITS[unit as usize - 1])
    }
}
