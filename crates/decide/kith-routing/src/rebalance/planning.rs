//! From a table and a shape to the plan.

use crate::placement::place_beside;
use crate::rebalance::batches::{changing, filling, leaving};
use crate::rebalance::outlive::{check_answers_remain, check_stores_outlive};
use crate::rebalance::{
    AddedGroup, PlanOptions, PlanRefusal, RebalancePlan, Roster, StoreSizes, TargetShape, totals,
};
use crate::{GroupEntry, NodeEntry, RoutingTable, TableParts};

/// Plans the way from `table` to a shape. As few partitions change owners as balance allows, one batch at a time. After each
/// batch the table is valid and every owner has its partitions. This is a pure function: equal arguments give equal plans.
/// O(stores × partitions × groups + moves × groups); on a ring, O(partitions × replicas) more per batch.
///
/// # Errors
/// If the shape contradicts the table, would leave something unserved, or no live node has the data to copy.
pub fn plan(
    table: &RoutingTable,
    shape: &TargetShape,
    stores: &[StoreSizes],
    options: &PlanOptions,
) -> Result<RebalancePlan, PlanRefusal> {
    let before = table.to_parts();
    check_input(&before, stores, options)?;
    if let TargetShape::DrainGroup(group) = shape {
        check_stores_outlive(table, *group, stores)?;
    }
    let target = shape.resolve(&before)?;
    if let Some(group) = target.removed {
        check_answers_remain(&before, group, stores)?;
    }
    let roster = |(groups, nodes): &(Vec<GroupEntry>, Vec<NodeEntry>)| Roster {
        groups: groups.clone(),
        nodes: nodes.clone(),
    };
    let added = target.added.map(|group| {
        let nodes = &target.announced.1;
        let owners = place_beside(&before.owners, nodes, group, before.partition_count, options.seed)?;
        Ok::<_, PlanRefusal>(AddedGroup { group, owners })
    });
    let mut plan = RebalancePlan {
        shape: shape.clone(),
        announced: roster(&target.announced),
        closing: roster(&target.closing),
        added: added.transpose()?,
        before,
        batches: Vec::new(),
        stores: stores.to_vec(),
        pairs: Vec::new(),
        nodes: Vec::new(),
    };
    plan.batches = match (&plan.added, target.removed) {
        (Some(_), _) => filling(&plan, options)?,
        (None, Some(group)) => leaving(&plan, group, options)?,
        (None, None) => changing(&plan, &target, options)?,
    };
    (plan.pairs, plan.nodes) = totals::of(&plan)?;
    plan.stores.iter_mut().for_each(|store| store.bytes = Vec::new());
    Ok(plan)
}

fn check_input(parts: &TableParts, stores: &[StoreSizes], options: &PlanOptions) -> Result<(), PlanRefusal> {
    if options.batch_size == 0 {
        return Err(PlanRefusal::EmptyBatch);
    }
    let expected = parts.partition_count.get() as usize;
    match stores.iter().find(|store| store.bytes.len() != expected) {
        Some(store) => {
            Err(PlanRefusal::Sizes { store: store.name.clone(), got: store.bytes.len(), expected })
        }
        None => Ok(()),
    }
}
