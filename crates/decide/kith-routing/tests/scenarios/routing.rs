//! The replicas that a fan-out asks: scripts in `testdata/scenarios/routing`.

use crate::language::ROUTING;
use kith_routing::placement::{Placement, ReplicaGroups, shared_domains};
use kith_routing::{
    Availability, FanOutPlan, GroupLimit, GroupRole, Health, HealthChange, HealthEvent, HealthOptions,
    LoadSnapshot, NodeIndex, NodeLoad, PlanError, PolicyInputs, PolicyState, ReplicaPolicy, RoutingTable,
    StoreReach, Strategy, policy,
};
use kith_sim::scenario::cluster::{Layout, count, group_id, list, node_id, node_ids, owners, partition_ids};
use kith_sim::scenario::{Command, Player, duration, number};
use kith_types::{NodeId, PartitionCount, PartitionId, Timestamp};
use rand::{SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Routing {
    layout: Layout,
    started: Option<Client>,
}

/// The process that asks.
struct Client {
    table: RoutingTable,
    health: Health,
    now: Timestamp,
    damaged: Vec<(PartitionId, NodeIndex)>,
    stores: BTreeMap<String, StoreReach>,
    load: BTreeMap<NodeId, NodeLoad>,
    policy: &'static dyn ReplicaPolicy,
    limit: GroupLimit,
    zone: String,
    state: PolicyState,
    rng: StdRng,
}

impl Player for Routing {
    fn play(&mut self, command: &Command<'_>) -> Result<Vec<String>, String> {
        if self.started.is_none() {
            if let Some(taken) = self.layout.take(command) {
                return taken.map(|()| Vec::new());
            }
            if let Some(placed) = self.place(command) {
                return placed;
            }
            self.started = Some(Client::new(self.layout.table()?)?);
        }
        let client = self.started.as_mut().ok_or("the cluster is there")?;
        client.play(command)
    }
}

impl Routing {
    fn place(&mut self, command: &Command<'_>) -> Option<Result<Vec<String>, String>> {
        match command.words.as_slice() {
            ["nodes", "of", group, nodes @ ..] => Some(self.nodes(group, nodes)),
            ["place", partitions, "partitions"] => Some(self.place_groups(partitions)),
            ["ring", "of", nodes @ ..] => Some(self.place_ring(nodes, command)),
            _ => None,
        }
    }

    fn nodes(&mut self, group: &str, nodes: &[&str]) -> Result<Vec<String>, String> {
        self.layout.add_group(group_id(group.trim_end_matches(':'))?, node_ids(nodes)?);
        Ok(Vec::new())
    }

    fn place_groups(&mut self, partitions: &str) -> Result<Vec<String>, String> {
        let partitions = u32::try_from(number(partitions)?).ok().and_then(PartitionCount::new);
        let partitions = partitions.ok_or("that is no number of partitions")?;
        let (placement, nodes) = (ReplicaGroups { groups: self.layout.groups() }, self.layout.nodes());
        let placed = placement.place(partitions, &nodes, 1).map_err(|error| error.to_string())?;
        let shared = shared_domains(&placed, &nodes).zone_pairs;
        self.layout.own(Strategy::ReplicaGroups, placed);
        let mut lines = owners(&self.layout.table()?.to_parts());
        lines.push(match shared {
            0 => "no two replicas of a partition share a zone".to_owned(),
            shared => format!("{} of replicas share a zone", count(shared as usize, "pair")),
        });
        Ok(lines)
    }

    fn place_ring(&mut self, nodes: &[&str], command: &Command<'_>) -> Result<Vec<String>, String> {
        let ranks = match self.layout.ring(nodes, command)? {
            Ok(ranks) => ranks,
            Err(nodes) => return Ok(vec![format!("refused: only {} on the ring", count(nodes, "node"))]),
        };
        let line =
            |partition: usize| format!("p{partition}: {}", list(ranks.iter().map(|rank| rank[partition])));
        Ok((0..ranks[0].len()).map(line).collect())
    }
}

impl Client {
    /// Returns a client for which all nodes have answered their first probe.
    fn new(table: RoutingTable) -> Result<Self, String> {
        let mut health = Health::new(HealthOptions::default());
        health.follow(&table, Timestamp::ZERO);
        for node in health.probes_due(Timestamp::ZERO) {
            let _ = health.on(node, HealthEvent::ProbeOk, Timestamp::ZERO);
        }
        Ok(Self {
            table,
            health,
            now: Timestamp::ZERO,
            damaged: Vec::new(),
            stores: BTreeMap::new(),
            load: BTreeMap::new(),
            policy: policy::by_name("least-loaded").ok_or("least-loaded is a policy")?,
            limit: GroupLimit(1),
            zone: String::new(),
            state: PolicyState::new(1),
            rng: StdRng::seed_from_u64(1),
        })
    }

    fn play(&mut self, command: &Command<'_>) -> Result<Vec<String>, String> {
        match command.words.as_slice() {
            ["ask", partitions @ ..] => return self.ask(&partition_ids(partitions)?, command),
            ["store", name] => return self.store(name, command),
            _ => command.clauses_are(&[])?,
        }
        match command.words.as_slice() {
            ["policy", name] => {
                self.policy = policy::by_name(name).ok_or_else(|| format!("there is no policy {name:?}"))?;
            }
            ["groups", limit] => self.limit = GroupLimit(number(limit)? as u32),
            ["caller", "in", zone] => self.zone = (*zone).to_owned(),
            ["at", time] => self.now = Timestamp(duration(time)?),
            ["probes"] => return Ok(self.probes()),
            [node, "owes", keys, "keys", "in", requests, "requests" | "request"] => {
                let load = self.load(node)?;
                load.outstanding_keys = number(keys)?;
                load.outstanding_requests = number(requests)? as u32;
            }
            [node, "takes", time, "per", "key"] => {
                self.load(node)?.seconds_per_key = Some(duration(time)?.as_secs_f64());
            }
            [node, "lacks", partitions @ ..] => {
                let node = self.index(node)?;
                self.damaged
                    .extend(partition_ids(partitions)?.into_iter().map(|partition| (partition, node)));
            }
            [group, "is", "taken", "out"] => self.give_role(group, GroupRole::Maintenance)?,
            [group, "serves", "again"] => self.give_role(group, GroupRole::Serving)?,
            [node, event @ ..] => {
                let event = health_event(event).ok_or_else(|| command.unknown(ROUTING))?;
                return self.hear(node, event);
            }
            [] => return Err(command.unknown(ROUTING)),
        }
        Ok(Vec::new())
    }

    fn index(&self, node: &str) -> Result<NodeIndex, String> {
        self.table.node_index(node_id(node)?).ok_or_else(|| format!("there is no node {node}"))
    }

    fn load(&mut self, node: &str) -> Result<&mut NodeLoad, String> {
        self.index(node)?;
        let node = node_id(node)?;
        Ok(self.load.entry(node).or_insert(NodeLoad { node, ..NodeLoad::default() }))
    }

    fn hear(&mut self, node: &str, event: HealthEvent) -> Result<Vec<String>, String> {
        self.index(node)?;
        let change = self.health.on(node_id(node)?, event, self.now);
        Ok(vec![match change {
            Some(HealthChange::Down) => format!("{node} is down"),
            Some(HealthChange::Up) => format!("{node} is up again"),
            Some(HealthChange::Joined) => format!("{node} has joined"),
            None if self.health.is_up(node_id(node)?) => format!("{node} stays up"),
            None => format!("{node} stays down"),
        }])
    }

    fn probes(&mut self) -> Vec<String> {
        let due = self.health.probes_due(self.now);
        vec![if due.is_empty() { "probe nobody".to_owned() } else { format!("probe {}", list(due)) }]
    }

    fn give_role(&mut self, group: &str, role: GroupRole) -> Result<(), String> {
        let mut parts = self.table.to_parts();
        let id = group_id(group)?;
        let entry = parts.groups.iter_mut().find(|entry| entry.id == id);
        entry.ok_or_else(|| format!("there is no group {group}"))?.role = role;
        self.table = RoutingTable::new(parts).map_err(|error| error.to_string())?;
        self.health.follow(&self.table, self.now);
        Ok(())
    }

    fn store(&mut self, name: &str, command: &Command<'_>) -> Result<Vec<String>, String> {
        command.clauses_are(&["copies", "without"])?;
        let copies = command.value("copies")?.map(number).transpose()?.map(|copies| copies as u32);
        let without = node_ids(command.clause("without").unwrap_or_default())?;
        let held = self.table.groups_of_store(name, copies);
        let groups = self.table.groups().iter().enumerate();
        let groups = groups.filter(|(index, _)| held >> index & 1 == 1).map(|(_, group)| group.id);
        self.stores.insert(name.to_owned(), StoreReach::new(&self.table, name, copies, &without));
        Ok(vec![format!("{name} lies in {}", list(groups))])
    }

    /// Returns which replicas may serve now, as a client's fleet computes it.
    fn availability(&self, store: Option<&str>) -> Result<Availability, String> {
        let mut availability = self.health.availability(&self.table);
        for (partition, node) in &self.damaged {
            availability.exclude_replica(*partition, *node);
        }
        availability.rescue(&self.table);
        let Some(store) = store else { return Ok(availability) };
        let reach = self.stores.get(store).ok_or_else(|| format!("there is no store {store}"))?;
        Ok(availability.for_store(&self.table, reach))
    }

    fn ask(&mut self, keys: &[PartitionId], command: &Command<'_>) -> Result<Vec<String>, String> {
        command.clauses_are(&["of", "times"])?;
        let availability = self.availability(command.value("of")?)?;
        match command.value("times")? {
            None => Ok(match self.plan(keys, &availability) {
                Ok(plan) => describe(&plan, keys),
                Err(error) => vec![format!("refused: {error}")],
            }),
            Some(times) => {
                let plans = (0..number(times)?).map(|_| self.plan(keys, &availability));
                let plans: Vec<FanOutPlan> =
                    plans.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
                Ok(self.shares(&plans))
            }
        }
    }

    fn plan(&mut self, keys: &[PartitionId], availability: &Availability) -> Result<FanOutPlan, PlanError> {
        let near = self.table.nodes_in_zone("", &self.zone);
        let view = self.table.view(availability).near(&near);
        let load = LoadSnapshot { nodes: self.load.values().copied().collect(), ..LoadSnapshot::default() };
        let inputs = PolicyInputs { view, keys, limit: self.limit, load: &load };
        self.policy.plan(&inputs, &mut self.state, &mut self.rng)
    }

    /// Returns the share of keys of each node, to the nearest 5 %, and the number of requests per query.
    fn shares(&self, plans: &[FanOutPlan]) -> Vec<String> {
        let assignments = || plans.iter().flat_map(|plan| &plan.assignments);
        let all: usize = assignments().map(|assignment| assignment.keys.len()).sum();
        let line = |node: NodeId| {
            let keys = assignments().filter(|assignment| assignment.node == node).map(|it| it.keys.len());
            let share = 100.0 * keys.sum::<usize>() as f64 / all as f64;
            format!("{node}: about {} % of the keys", (share / 5.0).round() * 5.0)
        };
        let nodes = self.table.nodes().iter().map(|node| line(node.id));
        let requests = || plans.iter().map(FanOutPlan::requests);
        let (least, most) = (requests().min().unwrap_or(0), requests().max().unwrap_or(0));
        nodes.chain([format!("{least} to {most} requests per query")]).collect()
    }
}

fn health_event(words: &[&str]) -> Option<HealthEvent> {
    match words {
        ["loses", "its", "connection"] => Some(HealthEvent::ConnectionError),
        ["times", "out"] => Some(HealthEvent::Timeout),
        ["answers"] => Some(HealthEvent::Success),
        ["answers", "its", "probe"] => Some(HealthEvent::ProbeOk),
        ["fails", "its", "probe"] => Some(HealthEvent::ProbeFailed),
        _ => None,
    }
}

fn describe(plan: &FanOutPlan, keys: &[PartitionId]) -> Vec<String> {
    let line = |node: NodeId, indexes: &[u32]| {
        format!("{node}: {}", list(indexes.iter().map(|index| keys[*index as usize])))
    };
    let mut lines: Vec<String> =
        plan.assignments.iter().map(|assignment| line(assignment.node, &assignment.keys)).collect();
    let outside = match plan.spilled_keys {
        0 => String::new(),
        keys => format!(", {} outside the chosen group", count(keys as usize, "key")),
    };
    lines.push(format!("{} to {}{outside}", count(plan.requests(), "request"), list(&plan.groups)));
    lines
}
