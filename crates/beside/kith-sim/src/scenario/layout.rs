//! A replica group and the partitions of its nodes, as one line of text.

use crate::scenario::read::{numbered, partitions};

/// One replica group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The number of the group.
    pub group: u32,
    /// The nodes, in the order of the line.
    pub owners: Vec<Owner>,
}

/// A node and its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The number of the node.
    pub node: u32,
    /// The partitions that it owns.
    pub partitions: Vec<u32>,
}

impl Group {
    /// Returns the owner of each partition, beginning with partition 0.
    ///
    /// # Errors
    /// If a partition has no owner, or several.
    pub fn by_partition(&self) -> Result<Vec<u32>, String> {
        let owned = self.owners.iter().flat_map(|owner| owner.partitions.iter().map(|p| (*p, owner.node)));
        let mut owned: Vec<(u32, u32)> = owned.collect();
        owned.sort_unstable();
        match (0..).zip(&owned).find(|(index, (partition, _))| index != partition) {
            Some((index, _)) => Err(format!("group g{} must own p{index} exactly once", self.group)),
            None => Ok(owned.into_iter().map(|(_, node)| node).collect()),
        }
    }
}

/// Parses `group g0: n0[p0 p3] n1[p1 p2]`.
///
/// # Errors
/// If the line does not have this form, or does not assign each partition to one node.
pub fn group(line: &str) -> Result<Group, String> {
    let form = || format!("{line:?} is not of the form \"group g0: n0[p0 p3] n1[p1 p2]\"");
    let (group, nodes) =
        line.strip_prefix("group ").and_then(|rest| rest.split_once(':')).ok_or_else(form)?;
    let nodes = nodes.trim().strip_suffix(']').ok_or_else(form)?;
    let owner = |node: &str| {
        let (node, owned) = node.trim().split_once('[').ok_or_else(form)?;
        let partitions = partitions(&owned.split_whitespace().collect::<Vec<_>>())?;
        Ok::<_, String>(Owner { node: numbered(node, "n")?, partitions })
    };
    let owners = nodes.split(']').map(owner).collect::<Result<_, _>>()?;
    let group = Group { group: numbered(group.trim(), "g")?, owners };
    group.by_partition()?;
    Ok(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_read() {
        let read = group("group g1: n2[p0 p3] n3[p1..p2] n4[]").unwrap();
        assert_eq!((read.group, read.by_partition()), (1, Ok(vec![2, 3, 3, 2])));
        assert_eq!(read.owners[2], Owner { node: 4, partitions: vec![] });
    }

    #[test]
    fn partitions_without_an_owner_or_with_two_are_refused() {
        assert_eq!(group("group g0: n0[p0] n1[p2]"), Err("group g0 must own p1 exactly once".to_owned()));
        assert_eq!(group("group g0: n0[p0] n1[p0 p1]"), Err("group g0 must own p1 exactly once".to_owned()));
        assert!(group("group g0: n0").is_err() && group("group g0 n0[p0]").is_err());
    }
}
