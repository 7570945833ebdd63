//! Compares every operation with its naive twin, on random small graphs, with random placements and in both directions of
//! edges.

#![expect(clippy::unwrap_used, reason = "test helpers fail by panicking")]

use kith_query::{
    ColumnFilter, CommonAnswer, CommonPlan, EdgesQuery, GraphAnswer, GraphQuery, NetworkPlan, Operand,
    OperationError, Want,
    testing::naive::Twin,
    testing::{LocalCluster, MemoryGraph},
};
use kith_schema::{Column, ColumnKind, ColumnNumber, KindRole};
use kith_types::{Direction, PartitionCount, Workflow};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A random graph, the ids that queries name (one of them unknown), and its placement.
#[derive(Clone, Debug)]
struct Case {
    directed: bool,
    direction: Option<Direction>,
    edges: Vec<(u64, u64)>,
    /// Pairs of (member, entity). Entity ids are member ids too.
    entities: Vec<(u64, u64)>,
    lonely: Vec<u64>,
    owners: Vec<u32>,
    background: bool,
    networks: NetworkPlan,
}

/// A column of the edges.
const WEIGHT: &str = "weight";

/// The value of an edge in the column. There are many ties, and an undirected edge has the same value in both directions.
fn weight(from: u64, to: u64) -> u64 {
    (from ^ to) % 5
}

const UNKNOWN: u64 = 999_999;

/// Maps a place to an id: some ids are close together, and some are far apart.
fn id(place: u64) -> u64 {
    if place.is_multiple_of(3) { place * 35_184_372_090 } else { place }
}

fn cases() -> impl Strategy<Value = Case> {
    let pair = || (0..14u64, 0..14u64).prop_map(|(a, b)| (id(a), id(b)));
    let direction = prop_oneof![
        Just(None),
        Just(Some(Direction::Out)),
        Just(Some(Direction::In)),
        Just(Some(Direction::Both))
    ];
    // Chains with a few chords add the long paths that random pairs lack.
    let chain = (vec(pair(), 0..4), 0..14u64).prop_map(|(chords, length)| {
        let links = (0..length).map(|place| (id(place), id(place + 1)));
        links.chain(chords).collect::<Vec<_>>()
    });
    let edges = prop_oneof![2 => vec(pair(), 0..40), 1 => chain];
    let placement = (1..9usize, 1..5u32).prop_flat_map(|(partitions, nodes)| vec(0..nodes, partitions));
    let networks = prop_oneof![Just(NetworkPlan::InTurn), Just(NetworkPlan::AtOnce)];
    (any::<bool>(), direction, edges, vec(pair(), 0..30), placement, any::<bool>(), networks).prop_map(
        |(directed, direction, edges, entities, owners, background, networks)| {
            let direction =
                if directed { direction } else { direction.filter(|&kept| kept == Direction::Both) };
            Case {
                directed,
                direction,
                edges,
                entities,
                lonely: vec![id(20), id(21)],
                owners,
                background,
                networks,
            }
        },
    )
}

impl Case {
    fn cluster(&self) -> LocalCluster {
        let partitions = PartitionCount::new(self.owners.len() as u32).unwrap();
        let mut graph = MemoryGraph::new(partitions);
        graph.add_members(self.lonely.iter().copied());
        let role = if self.directed { KindRole::Directed } else { KindRole::Undirected };
        graph.add_kind("connection", role, &self.edges);
        graph.add_column(Column { name: WEIGHT.to_owned(), kind: ColumnKind::U64 }, weight);
        graph.add_kind("school", KindRole::Entity, &self.entities);
        LocalCluster::new(graph, self.owners.clone()).with_networks(self.networks)
    }

    fn twin(&self) -> Twin {
        let ends = self.edges.iter().filter(|(a, b)| a != b).flat_map(|&(a, b)| [a, b]);
        let members = ends.chain(self.lonely.iter().copied()).chain(self.entities.iter().map(|&(m, _)| m));
        let edges = self.edges.iter().copied().filter(|(a, b)| a != b).collect();
        let natural = if self.directed { Direction::Out } else { Direction::Both };
        Twin { members: members.collect(), edges, direction: self.direction.unwrap_or(natural) }
    }

    fn entity_twin(&self) -> Twin {
        let Twin { members, .. } = self.twin();
        Twin { members, edges: self.entities.iter().copied().collect(), direction: Direction::Out }
    }

    fn query(&self, operand: Operand) -> GraphQuery {
        let workflow = if self.background { Workflow::Background } else { Workflow::Interactive };
        GraphQuery { operand, edge_type: None, direction: self.direction, workflow }
    }
}

fn sorted(ids: BTreeSet<u64>) -> Vec<u64> {
    ids.into_iter().collect()
}

/// Whether the reported member is one of the named ones that are unknown.
fn not_found(got: &Result<GraphAnswer, OperationError>, twin: &Twin, named: &[u64]) -> bool {
    matches!(got, Err(OperationError::MemberNotFound { id }) if named.contains(id) && !twin.members.contains(id))
}

fn ends() -> impl Strategy<Value = (u64, u64)> {
    let end = || prop_oneof![14 => (0..14u64).prop_map(id), 1 => Just(id(20)), 1 => Just(UNKNOWN)];
    (end(), end())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn connections_are_the_first_degree(case in cases(), (a, _) in ends()) {
        let (got, twin) = (case.cluster().query(&case.query(Operand::Connections { id: a })), case.twin());
        match twin.connections(a) {
            Some(ids) => prop_assert_eq!(got, Ok(GraphAnswer::Ids(sorted(ids)))),
            None => prop_assert!(not_found(&got, &twin, &[a]), "{:?}", got),
        }
    }

    #[test]
    fn entities_and_members_are_two_sides_of_the_same_edges(case in cases(), (a, _) in ends()) {
        let kind = || "school".to_owned();
        let (cluster, twin) = (case.cluster(), case.entity_twin());
        let got = cluster.query(&case.query(Operand::Entities { id: a, kind: kind() }));
        match twin.connections(a) {
            Some(ids) => prop_assert_eq!(got, Ok(GraphAnswer::Ids(sorted(ids)))),
            None => prop_assert!(not_found(&got, &twin, &[a]), "{:?}", got),
        }
        let got = cluster.query(&case.query(Operand::Members { kind: kind(), entity: a }));
        let members: BTreeSet<u64> = case.entities.iter().filter(|&&(_, e)| e == a).map(|&(m, _)| m).collect();
        if members.is_empty() {
            prop_assert_eq!(got, Err(OperationError::EntityNotFound { kind: kind(), entity: a }));
        } else {
            prop_assert_eq!(got, Ok(GraphAnswer::Ids(sorted(members))));
        }
    }

    #[test]
    fn networks_hold_both_degrees_and_the_raw_union(case in cases(), (a, _) in ends()) {
        let got = case.cluster().query(&case.query(Operand::Network { id: a, want: Want::Ids }));
        let twin = case.twin();
        let Some((first, second, union)) = twin.network(a) else {
            prop_assert!(not_found(&got, &twin, &[a]), "{:?}", got);
            return Ok(());
        };
        let Ok(GraphAnswer::Network(answer)) = got else { panic!("{got:?}") };
        let network = answer.network.unwrap();
        let both = sorted(first.union(&second).copied().collect());
        let sizes = answer.sizes;
        prop_assert_eq!((sizes.first, sizes.second), (first.len() as u64, second.len() as u64));
        prop_assert_eq!((sizes.union, sizes.network()), (union.len() as u64, both.len() as u64));
        prop_assert_eq!(network.first(), sorted(first));
        prop_assert_eq!(network.second().collect::<Vec<_>>(), sorted(second));
        prop_assert_eq!(network.union().to_vec(), sorted(union));
        prop_assert_eq!(network.both().collect::<Vec<_>>(), both);
    }

    #[test]
    fn degrees_are_the_sizes_of_the_first_degree(case in cases(), ids in vec(ends(), 0..8)) {
        let ids: Vec<u64> = ids.into_iter().map(|(id, _)| id).collect();
        let got = case.cluster().query(&case.query(Operand::Degree { ids: ids.clone(), filter: None }));
        prop_assert_eq!(got, Ok(GraphAnswer::Degrees(case.twin().degrees(&ids))));
    }

    #[test]
    fn edges_are_sorted_filtered_and_cut_into_pages(
        case in cases(),
        (id, _) in ends(),
        by_value: bool,
        descending: bool,
        low in 0..3u64,
        limit in 1..6u64,
    ) {
        let cluster = case.cluster();
        let mut query = EdgesQuery {
            id,
            columns: None,
            order_by: by_value.then(|| WEIGHT.to_owned()),
            descending,
            filter: Some(ColumnFilter { column: WEIGHT.to_owned(), low: Some(ColumnNumber::U64(low)), high: None }),
            limit: Some(limit),
            after: None,
        };
        let mut got = Vec::new();
        let end = loop {
            match cluster.query(&case.query(Operand::Edges(query.clone()))) {
                Ok(GraphAnswer::Edges(page)) => {
                    let numbers = &page.columns[0].numbers;
                    prop_assert!(page.ids.len() as u64 <= limit && numbers.len() == page.ids.len());
                    got.extend(page.ids.iter().copied().zip(numbers.iter().copied()));
                    match page.after {
                        None => break Ok(()),
                        after => query.after = after,
                    }
                }
                Ok(other) => panic!("{other:?}"),
                Err(error) => break Err(error),
            }
        };
        let twin = case.twin();
        if case.directed && twin.direction == Direction::Both {
            prop_assert_eq!(end, Err(OperationError::BothDirections { name: "connection".to_owned() }));
        } else if let Some(mut expected) = twin.edges(id, weight, by_value, descending) {
            expected.retain(|&(_, value)| low <= value);
            let expected: Vec<_> = expected.into_iter().map(|(id, value)| (id, ColumnNumber::U64(value))).collect();
            prop_assert_eq!((end, got), (Ok(()), expected));
        } else {
            prop_assert_eq!(end, Err(OperationError::MemberNotFound { id }));
        }
    }

    #[test]
    fn distances_are_right_up_to_three(case in cases(), (from, _) in ends(), to in vec(ends(), 1..8)) {
        let to: Vec<u64> = to.into_iter().map(|(to, _)| to).collect();
        let got = case.cluster().query(&case.query(Operand::Distance { from, to: to.clone() }));
        let twin = case.twin();
        match twin.distance(from, &to) {
            Some(badges) => prop_assert_eq!(got, Ok(GraphAnswer::Distances(badges))),
            None => {
                let named: Vec<u64> = to.into_iter().chain([from]).collect();
                prop_assert!(not_found(&got, &twin, &named), "{:?}", got);
            }
        }
    }

    #[test]
    fn paths_are_shortest_and_each_hop_is_an_edge(case in cases(), (from, to) in ends(), max in 0..=6u32) {
        let got = case.cluster().query(&case.query(Operand::Path { from, to, max }));
        let twin = case.twin();
        let Some(length) = twin.path_length(from, to, max as usize) else {
            prop_assert!(not_found(&got, &twin, &[from, to]), "{:?}", got);
            return Ok(());
        };
        let Ok(GraphAnswer::Path(path)) = got else { panic!("{got:?}") };
        prop_assert_eq!(path.members.len().checked_sub(1), length);
        if length.is_some() {
            prop_assert_eq!((path.members.first(), path.members.last()), (Some(&from), Some(&to)));
        }
        prop_assert!(twin.is_path(&path.members), "{:?}", path);
    }

    #[test]
    fn every_plan_finds_the_same_in_common(case in cases(), (a, b) in ends(), entities in any::<bool>()) {
        let cluster = case.cluster();
        let twin = if entities { case.entity_twin() } else { case.twin() };
        let kind = entities.then(|| "school".to_owned());
        let common = match entities {
            true => twin.connections(a).zip(twin.connections(b)).map(|(x, y)| x.intersection(&y).copied().collect()),
            false => twin.common(a, b),
        };
        for plan in [CommonPlan::Auto, CommonPlan::Fetch, CommonPlan::Push] {
            for want in [Want::Ids, Want::Size, Want::Exists] {
                // Without a kind, `exists` is about every kind.
                let one = (want == Want::Exists).then(|| "connection".to_owned());
                let operand = Operand::Common { id: a, to: b, kind: kind.clone().or(one), want, plan };
                let got = cluster.query(&case.query(operand));
                let Some(common) = common.clone() else {
                    prop_assert!(not_found(&got, &twin, &[a, b]), "{:?}", got);
                    continue;
                };
                let expected = match want {
                    Want::Ids => CommonAnswer::Ids(sorted(common)),
                    Want::Size => CommonAnswer::Size(common.len() as u64),
                    Want::Exists => CommonAnswer::Exists(!common.is_empty()),
                };
                prop_assert_eq!(got, Ok(GraphAnswer::Common(expected)), "{:?} {:?}", plan, want);
            }
        }
    }

    #[test]
    fn whether_anything_is_in_common_is_asked_of_every_kind(case in cases(), (a, b) in ends()) {
        let (twin, entities) = (case.twin(), case.entity_twin());
        let query = |operand| GraphQuery { edge_type: None, direction: None, ..case.query(operand) };
        for plan in [CommonPlan::Auto, CommonPlan::Fetch, CommonPlan::Push] {
            let exists = |kind: Option<&str>| {
                let kind = kind.map(str::to_owned);
                case.cluster().query(&query(Operand::Common { id: a, to: b, kind, want: Want::Exists, plan }))
            };
            let schools = entities.connections(a).zip(entities.connections(b));
            let Some((schools, others)) = schools.map(|(x, y)| !x.is_disjoint(&y)).zip(twin.common(a, b)) else {
                prop_assert!(exists(None).is_err());
                continue;
            };
            let found = |exists| Ok(GraphAnswer::Common(CommonAnswer::Exists(exists)));
            let named = exists(Some("connection"));
            let expected = found(schools || named == found(true));
            prop_assert_eq!(exists(None), expected, "{:?} {:?}", plan, others);
            prop_assert_eq!(exists(Some("school")), found(schools), "{:?}", plan);
        }
    }

    #[test]
    fn suggestions_are_ranked_by_common_connections(case in cases(), (a, _) in ends(), k in 1..12u32) {
        let got = case.cluster().query(&case.query(Operand::Suggest { id: a, k }));
        let twin = case.twin();
        match twin.suggest(a, k as usize) {
            Some(ranked) => prop_assert_eq!(got, Ok(GraphAnswer::Suggestions(ranked))),
            None => prop_assert!(not_found(&got, &twin, &[a]), "{:?}", got),
        }
    }

    #[test]
    fn what_a_partial_answer_shows_is_true(case in cases(), (from, to) in ends(), lost in 0..4u32) {
        let (mut cluster, twin) = (case.cluster(), case.twin());
        cluster.lose(lost);
        if let Ok(GraphAnswer::Path(path)) = cluster.query(&case.query(Operand::Path { from, to, max: 6 })) {
            prop_assert!(twin.is_path(&path.members), "{:?}", path);
        }
        let common = Operand::Common { id: from, to, kind: None, want: Want::Ids, plan: CommonPlan::Push };
        if let (Ok(GraphAnswer::Common(CommonAnswer::Ids(ids))), Some(all)) =
            (cluster.query(&case.query(common)), twin.common(from, to))
        {
            prop_assert!(ids.iter().all(|id| all.contains(id)), "{:?}", ids);
        }
    }
}
