//! Checks of what must hold for the rows of a graph after every transaction.

use super::Tables;
use crate::{Association, AssociationKey, GraphTypes, IndexEntry, ListKey, Pair};
use std::collections::{BTreeMap, BTreeSet};

/// Returns what is wrong with the rows of all partitions of a graph, in words. The stored lengths of lists must be right,
/// indexes must have the values of all objects and no others, unique values must be unique, and the two rows of a two-sided association must show the same. While an intent of its pair is open, only forward rows
/// need their inverse row.
pub fn faults_of(partitions: &[&Tables], types: &GraphTypes) -> Vec<String> {
    let mut faults = Vec::new();
    for list in partitions.iter().flat_map(|tables| tables.wrong_counts()) {
        faults.push(format!("the stored length of {list:?} is wrong"));
    }
    faults.extend(index_faults(partitions, types));
    let intents = partitions.iter().flat_map(|tables| tables.intents.values());
    let open: BTreeSet<Pair> = intents.map(|intent| intent.pair).collect();
    let rows: BTreeMap<&AssociationKey, &Association> =
        partitions.iter().flat_map(|tables| &tables.associations).collect();
    for (key, row) in &rows {
        let kind = &types.associations[&key.list.kind];
        let Some(inverse) = kind.inverse_of(key.list.kind) else { continue };
        let mirror = rows.get(&ListKey { id1: key.id2, kind: inverse }.to(key.list.id1));
        if mirror.is_none() && kind.is_forward(key.list.id1, key.id2) {
            faults.push(format!("{key:?} is forward and has no inverse"));
        }
        let is_open = Pair::of(key.list.id1, key.id2).is_some_and(|pair| open.contains(&pair));
        let is_same = mirror.is_some_and(|mirror| {
            (mirror.time, mirror.stamp, &mirror.data) == (row.time, row.stamp, &row.data)
        });
        if !is_open && !is_same {
            faults.push(format!(
                "{key:?} is {row:?}, its other direction is {mirror:?}, and no intent is open"
            ));
        }
    }
    faults
}

/// Returns what is wrong with the indexes.
fn index_faults(partitions: &[&Tables], types: &GraphTypes) -> Vec<String> {
    let (mut faults, mut unique) = (Vec::new(), BTreeSet::new());
    for tables in partitions {
        let entries = |object: &crate::Object| types.entries(object.kind, object.id, &object.data).unwrap();
        let expected: BTreeSet<IndexEntry> = tables.objects.values().flat_map(entries).collect();
        if expected != tables.entries {
            faults.push(format!("the indexes have {:?} instead of {expected:?}", tables.entries));
        }
        for entry in tables.entries.iter().filter(|entry| entry.unique) {
            if !unique.insert((entry.index, &entry.key)) {
                faults.push(format!("{entry:?} is not unique"));
            }
        }
    }
    faults
}
