//! The time to plan one query, by policy, in the paper's layout of 10 groups of 20 nodes with the default 1,536 partitions
//! and a limit of 3 groups. Every plan is checked to be complete.

use divan::{Bencher, black_box};
use kith_routing::{Availability, GroupLimit, LoadSnapshot, PolicyInputs, PolicyState, placement, policy};
use kith_types::{NodeId, PartitionCount, PartitionId, fmix64};
use rand::SeedableRng;
use rand::rngs::StdRng;

fn main() {
    divan::main();
}

const POLICIES: [&str; 8] =
    ["round-robin", "set-cover", "set-cover-norbert", "one-group", "n-groups", "adjust", "borrow", "hybrid"];

#[divan::bench(args = POLICIES, consts = [20, 100, 3_000])]
fn all_up<const KEYS: usize>(bencher: Bencher<'_, '_>, name: &str) {
    plan(bencher, name, KEYS, &[]);
}

/// One node of each of three groups is down.
#[divan::bench(args = POLICIES, consts = [100, 3_000])]
fn three_down<const KEYS: usize>(bencher: Bencher<'_, '_>, name: &str) {
    plan(bencher, name, KEYS, &[NodeId(3), NodeId(44), NodeId(101)]);
}

fn plan(bencher: Bencher<'_, '_>, name: &str, keys: usize, down: &[NodeId]) {
    let partitions = PartitionCount::new(1_536).expect("a valid count");
    let table = placement::uniform_table(10, 20, partitions, 11).expect("a valid layout");
    let availability = Availability::all_but(&table, down);
    let view = table.view(&availability);
    let policy = policy::by_name(name).expect("a registered policy");
    let (mut state, mut rng) = (PolicyState::new(3), StdRng::seed_from_u64(5));
    let load = LoadSnapshot::default();
    let mut query = 0;
    bencher
        .with_inputs(|| {
            query += 1;
            let partition = |key| PartitionId((fmix64(query * 10_000 + key) % 1_536) as u32);
            (0..keys as u64).map(partition).collect::<Vec<_>>()
        })
        .bench_local_values(|partitions| {
            let inputs =
                PolicyInputs { view, keys: black_box(&partitions), limit: GroupLimit(3), load: &load };
            let plan = policy.plan(&inputs, &mut state, &mut rng);
            let plan = plan.expect("every partition has a replica");
            assert_eq!(plan.keys(), keys);
            plan
        });
}
