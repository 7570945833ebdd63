//! Plays `testdata/policy/<policy>.txt`: a layout, commands, and their outcomes.
//!
//! A block is a command, and its outcome after `>`. Run with `BLESS=1` to rewrite the outcomes, then read the difference.
//! Commands:
//!
//! - `layout`, then one line per group: `g0: n0[0 3] n1[1 4]`: node and its partitions
//! - `down n1 n4`, `exclude n1`, `lose p3@n0`, `rescue`, `all up`
//! - `owes n0=10/2 n3=4/1`: keys and requests outstanding, `pace n0=2`: milliseconds per key; `calm`: neither
//! - `plan keys-in=0,2,5 limit=1`: one key in each partition named; `limit` defaults to 1

use kith_routing::{
    Availability, FanOutPlan, GroupEntry, GroupLimit, GroupRole, LoadSnapshot, NodeEntry, NodeIndex,
    NodeLoad, PolicyInputs, PolicyState, ReplicaPolicy, RoutingTable, Strategy, TableParts, policy,
};
use kith_sim::scenario::check_blocks;
use kith_types::{Epoch, GroupId, NodeId, PartitionCount, PartitionId};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::{collections::BTreeMap, path::PathBuf};

struct Player {
    policy: &'static dyn ReplicaPolicy,
    table: Option<RoutingTable>,
    availability: Option<Availability>,
    state: PolicyState,
    load: BTreeMap<NodeId, NodeLoad>,
    rng: StdRng,
}

#[test]
fn plans_are_as_recorded() {
    for policy in policy::ALL {
        let path =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/policy/{}.txt", policy.name()));
        assert!(path.exists(), "policy {} needs a page {path:?}", policy.name());
        let (state, rng) = (PolicyState::at_first_group(), StdRng::seed_from_u64(1));
        let mut player =
            Player { policy: *policy, table: None, availability: None, state, load: BTreeMap::new(), rng };
        check_blocks(&path, |lines| player.run(lines));
    }
}

impl Player {
    fn run(&mut self, lines: &[&str]) -> String {
        let mut words = lines[0].split_whitespace();
        let command = words.next().expect("blocks are not empty");
        let words: Vec<&str> = words.collect();
        if command == "layout" {
            return self.layout(&lines[1..]);
        }
        let table = self.table.as_ref().expect("a layout comes first");
        let availability = self.availability.as_mut().expect("a layout comes first");
        let index =
            |word: &str| -> NodeIndex { table.node_index(NodeId(number(word, 'n'))).expect("a node") };
        match command {
            "plan" => return self.plan(&words),
            "owes" | "pace" | "calm" => return self.load(command, &words),
            "down" => words.iter().for_each(|word| availability.mark_down(index(word))),
            "exclude" => words.iter().for_each(|word| availability.exclude(index(word))),
            "lose" => words.iter().for_each(|word| {
                let (partition, node) = word.split_once('@').expect("lose p3@n0");
                availability.exclude_replica(PartitionId(number(partition, 'p')), index(node));
            }),
            "rescue" => availability.rescue(table),
            "all" => *availability = Availability::all(table),
            other => panic!("unknown command {other}"),
        }
        format!("{} of {} nodes may serve", availability.serving().len(), table.nodes().len())
    }

    fn load(&mut self, command: &str, words: &[&str]) -> String {
        if command == "calm" {
            self.load.clear();
        }
        for word in words {
            let (node, value) = word.split_once('=').expect("n0=10/2 or n0=2");
            let node = NodeId(number(node, 'n'));
            let load = self.load.entry(node).or_insert(NodeLoad { node, ..NodeLoad::default() });
            match value.split_once('/') {
                Some((keys, requests)) => {
                    load.outstanding_keys = number(keys, ' ').into();
                    load.outstanding_requests = number(requests, ' ');
                }
                None => load.seconds_per_key = Some(f64::from(number(value, ' ')) / 1_000.0),
            }
        }
        format!("{} nodes are heard of", self.load.len())
    }

    fn layout(&mut self, lines: &[&str]) -> String {
        let (mut groups, mut nodes, mut owners) = (Vec::new(), Vec::new(), Vec::new());
        for line in lines {
            let (group, rest) = line.split_once(':').expect("g0: n0[0 3]");
            let group = GroupId(number(group, 'g'));
            let mut owned = Vec::new();
            for node in rest.split(']').map(str::trim).filter(|node| !node.is_empty()) {
                let (id, partitions) = node.split_once('[').expect("n0[0 3]");
                let id = NodeId(number(id, 'n'));
                nodes.push(NodeEntry { id, group, ..NodeEntry::default() });
                owned.extend(partitions.split_whitespace().map(|partition| (number(partition, 'p'), id)));
            }
            owned.sort_unstable();
            groups.push(GroupEntry { id: group, role: GroupRole::Serving });
            owners.push(owned.into_iter().map(|(_, id)| id).collect::<Vec<_>>());
        }
        let partition_count = PartitionCount::new(owners[0].len() as u32).expect("partitions");
        let said = format!("{} groups, {} nodes, {partition_count} partitions", groups.len(), nodes.len());
        let parts = TableParts {
            epoch: Epoch(1),
            strategy: Strategy::ReplicaGroups,
            partition_count,
            groups,
            nodes,
            owners,
            partition_epochs: vec![],
        };
        let table = RoutingTable::new(parts).expect("the layout is a valid table");
        self.availability = Some(Availability::all(&table));
        self.table = Some(table);
        said
    }

    fn plan(&mut self, words: &[&str]) -> String {
        let value = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let keys = value("keys-in").expect("keys-in=0,2,5").split(',');
        let keys: Vec<PartitionId> = keys.map(|key| PartitionId(number(key, 'p'))).collect();
        let limit = GroupLimit(value("limit").map_or(1, |limit| number(limit, ' ')));
        let table = self.table.as_ref().expect("a layout comes first");
        let view = table.view(self.availability.as_ref().expect("a layout comes first"));
        let load = LoadSnapshot { nodes: self.load.values().copied().collect(), ..LoadSnapshot::default() };
        let inputs = PolicyInputs { view, keys: &keys, limit, load: &load };
        match self.policy.plan(&inputs, &mut self.state, &mut self.rng) {
            Ok(plan) => by_partition(plan, &keys).to_string(),
            Err(error) => format!("error: {error}"),
        }
    }
}

/// Returns the plan with partitions instead of key indexes, which is easier to read.
fn by_partition(mut plan: FanOutPlan, keys: &[PartitionId]) -> FanOutPlan {
    for assignment in &mut plan.assignments {
        assignment.keys.iter_mut().for_each(|key| *key = keys[*key as usize].0);
    }
    plan
}

fn number(word: &str, prefix: char) -> u32 {
    word.trim_start_matches(prefix).parse().unwrap_or_else(|_| panic!("{word:?} is not a number"))
}
