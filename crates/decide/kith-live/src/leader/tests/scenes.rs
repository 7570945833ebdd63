//! The starting states and the writes of scripted runs.

use super::ids_in;
use super::world::{PendingTask, World};
use crate::{Conditions, Guards, Mutation, Write};
use kith_types::PartitionId;

/// Starts three nodes and two partitions: node 0 leads partition 0, and node 1 leads partition 1.
pub(super) fn begun(guards: Guards) -> World {
    let mut world = World::new(3, 2, guards);
    world.run_all();
    world
}

/// Returns four pairs that partition 0 orders, with their other ends in partition 1.
pub(super) fn four_pairs(world: &World) -> [(u64, u64); 4] {
    let [low, high] = [0, 1].map(|partition| ids_in(PartitionId(partition), world.twin.count));
    let low: Vec<u64> = low.take(4).collect();
    let high: Vec<u64> = high.filter(|id| low[3] < *id).take(4).collect();
    [0, 1, 2, 3].map(|pair| (low[pair], high[pair]))
}

/// Returns the first two of [`four_pairs`].
pub(super) fn pairs(world: &World) -> ((u64, u64), (u64, u64)) {
    let [one, other, ..] = four_pairs(world);
    (one, other)
}

fn write(mutation: Mutation) -> Write {
    Write { mutation, conditions: Conditions::default(), write_id: None }
}

pub(super) fn add((id1, id2): (u64, u64), kind: &str, time: u64) -> Write {
    write(Mutation::AddAssociation { id1, kind: kind.to_owned(), id2, time: Some(time), data: None })
}

pub(super) fn delete((id1, id2): (u64, u64), kind: &str) -> Write {
    write(Mutation::DeleteAssociation { id1, kind: kind.to_owned(), id2 })
}

pub(super) fn change_type((id1, id2): (u64, u64), kind: &str, new_kind: &str) -> Write {
    write(Mutation::ChangeType { id1, kind: kind.to_owned(), id2, new_kind: new_kind.to_owned() })
}

pub(super) fn named(write: Write, name: &str) -> Write {
    Write { write_id: Some(name.parse().unwrap()), ..write }
}

pub(super) fn if_exists(write: Write, exists: bool) -> Write {
    Write { conditions: Conditions { if_exists: Some(exists), ..Conditions::default() }, ..write }
}

pub(super) fn is_delivery(pending: &PendingTask) -> bool {
    matches!(pending, PendingTask::Deliver { .. })
}

pub(super) fn but_deliveries(pending: &PendingTask) -> bool {
    !is_delivery(pending)
}

/// Lets everything happen until the next delivery is on its way, and returns a copy of the delivery, which can arrive late.
pub(super) fn late_copy(world: &mut World) -> PendingTask {
    world.run(but_deliveries);
    let found = world.pending.iter().find_map(|pending| match pending {
        PendingTask::Deliver { to, delivery, .. } => {
            Some(PendingTask::LateDelivery { to: *to, delivery: delivery.clone() })
        }
        _ => None,
    });
    found.unwrap()
}
