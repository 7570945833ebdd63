//! The fan-outs of operations and their kinds (Moolle §II-C, §IV-A), and refused queries.

use kith_operators::NetworkKey;
use kith_query::{
    COMMON_FETCH_MAX, CommonAnswer, CommonPlan, CommonQuery, ConnectionsQuery, DISTANCE_TARGETS_MAX,
    DistanceQuery, EntitiesQuery, FanOut, GraphAnswer, GraphQuery, MembersQuery, NetworkPlan, NetworkQuery,
    NetworkReturn, Operation, OperationError, PathQuery, QueryMachine, Scope, SuggestQuery, Want,
    testing::{LocalCluster, MemoryGraph},
};
use kith_schema::{GraphSchema, KindRole, KindSchema};
use kith_types::{Direction, FanOutKind, PartitionCount, StoreVersion, Workflow};

/// Members 1 and 2 have long lists that share 10 members (and 100 entities); 3 has a short one. 4 has an edge to 5, which
/// has one to 6, and so on to 9.
fn cluster() -> LocalCluster {
    let mut graph = MemoryGraph::new(PartitionCount::new(24).expect("24 is a valid count"));
    let long = COMMON_FETCH_MAX + 1;
    let mut edges: Vec<(u64, u64)> = (0..long).map(|i| (1, 10_000 + i)).collect();
    edges.extend((0..long).map(|i| (2, 10_000 + long - 10 + i)));
    edges.extend([(3, 10_000), (3, 9_000), (3, 1), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9)]);
    graph.add_kind("connection", KindRole::Undirected, &edges);
    let follows: Vec<(u64, u64)> = (4..9).map(|i| (i, i + 1)).collect();
    graph.add_kind("follows", KindRole::Directed, &follows);
    // Entities 1 and 2 are not members, so no id of a list of entities is dropped.
    let tags = (0..2 * long).flat_map(|i| [(1, i), (2, i)]);
    graph.add_kind("tag", KindRole::Entity, &tags.collect::<Vec<_>>());
    LocalCluster::new(graph, (0..24).map(|partition| partition % 3).collect())
}

fn query(operation: Operation) -> GraphQuery {
    GraphQuery { operation, edge_type: None, direction: None, workflow: Workflow::Interactive }
}

fn common(id: u64, to: u64, want: Want, plan: CommonPlan) -> GraphQuery {
    // Without a kind, `exists` is about every kind.
    let kind = (want == Want::Exists).then(|| "connection".to_owned());
    query(Operation::Common(CommonQuery { id, to, kind, returns: want, plan }))
}

fn steps(fan_outs: &[FanOut]) -> Vec<(&'static str, FanOutKind)> {
    fan_outs.iter().map(|fan_out| (fan_out.purpose, fan_out.kind)).collect()
}

#[test]
fn short_lists_in_common_take_one_round() {
    let (answer, fan_outs) = cluster().trace(&common(5, 7, Want::Ids, CommonPlan::Auto)).unwrap();
    assert_eq!(answer, GraphAnswer::Common(CommonAnswer::Ids(vec![6])));
    assert_eq!(steps(&fan_outs), [("both lists", FanOutKind::NonUnion)]);
}

#[test]
fn a_short_list_goes_to_the_long_one() {
    for (a, b) in [(1, 3), (3, 1)] {
        let (answer, fan_outs) = cluster().trace(&common(a, b, Want::Size, CommonPlan::Auto)).unwrap();
        assert_eq!(answer, GraphAnswer::Common(CommonAnswer::Size(1)), "1 itself does not count");
        let at_longer = ("intersection at the longer list", FanOutKind::SingleKey);
        assert_eq!(steps(&fan_outs), [("both lists", FanOutKind::NonUnion), at_longer]);
    }
}

#[test]
fn two_long_lists_are_intersected_in_every_partition() {
    for (want, kind, expected) in [
        (Want::Size, FanOutKind::Broadcast, CommonAnswer::Size(10)),
        (Want::Exists, FanOutKind::EarlyTerminable, CommonAnswer::Exists(true)),
        (Want::Ids, FanOutKind::Broadcast, CommonAnswer::Ids((14_087..14_097).collect())),
    ] {
        let (answer, fan_outs) = cluster().trace(&common(1, 2, want, CommonPlan::Auto)).unwrap();
        assert_eq!(answer, GraphAnswer::Common(expected));
        let push = ("intersection in every partition", kind);
        assert_eq!(steps(&fan_outs), [("both lists", FanOutKind::NonUnion), push]);
    }
}

#[test]
fn long_lists_of_entities_are_intersected_in_every_partition_too() {
    let operation = |plan| {
        Operation::Common(CommonQuery { id: 1, to: 2, kind: Some("tag".into()), returns: Want::Size, plan })
    };
    for plan in [CommonPlan::Auto, CommonPlan::Push, CommonPlan::Fetch] {
        let answer = cluster().query(&query(operation(plan))).unwrap();
        assert_eq!(answer, GraphAnswer::Common(CommonAnswer::Size(2 * (COMMON_FETCH_MAX + 1))));
    }
}

#[test]
fn a_push_that_finds_nothing_asks_whether_the_members_exist() {
    let (answer, fan_outs) = cluster().trace(&common(4, 9, Want::Exists, CommonPlan::Push)).unwrap();
    assert_eq!(answer, GraphAnswer::Common(CommonAnswer::Exists(false)));
    let push = ("intersection in every partition", FanOutKind::EarlyTerminable);
    assert_eq!(steps(&fan_outs), [push, ("existence of the members", FanOutKind::NonUnion)]);
    let unknown = cluster().query(&common(4, 77, Want::Exists, CommonPlan::Push));
    assert_eq!(unknown, Err(OperationError::MemberNotFound { id: 77 }));
}

#[test]
fn a_network_is_a_first_degree_and_a_union_that_somebody_waits_for_or_not() {
    for (workflow, union) in
        [(Workflow::Interactive, FanOutKind::SyncUnion), (Workflow::Background, FanOutKind::AsyncUnion)]
    {
        let operation = Operation::Network(NetworkQuery { id: 6, returns: NetworkReturn::Size });
        let (answer, fan_outs) = cluster().trace(&GraphQuery { workflow, ..query(operation) }).unwrap();
        assert_eq!(
            steps(&fan_outs),
            [("first degree", FanOutKind::SingleKey), ("second-degree union", union)]
        );
        let GraphAnswer::Network(answer) = answer else { panic!("{answer:?}") };
        assert_eq!((answer.sizes.network(), answer.network), (4, None), "sizes alone need no ids");
        let key = NetworkKey { id: 6, edge_type: "connection".into(), direction: Direction::Both };
        let outline = QueryMachine::network(key, workflow, NetworkPlan::InTurn).outline();
        assert_eq!(outline[1].kind, Some(union));
    }
}

#[test]
fn a_network_may_be_one_exchange_with_every_partition() {
    let cluster = cluster().with_networks(NetworkPlan::AtOnce);
    let network =
        |id| cluster.trace(&query(Operation::Network(NetworkQuery { id, returns: NetworkReturn::Size })));
    let (answer, fan_outs) = network(6).unwrap();
    assert_eq!(steps(&fan_outs), [("both degrees", FanOutKind::SyncUnion)]);
    assert_eq!(fan_outs[0].scope, Scope::Partitions);
    let GraphAnswer::Network(answer) = answer else { panic!("{answer:?}") };
    assert_eq!(answer.sizes.network(), 4);
    assert_eq!(network(77).unwrap_err(), OperationError::MemberNotFound { id: 77 });
}

#[test]
fn badges_within_the_network_need_no_lists_of_targets() {
    let near = query(Operation::Distance(DistanceQuery { from: 5, to: vec![5, 4, 7, 7] }));
    let (answer, fan_outs) = cluster().trace(&near).unwrap();
    assert_eq!(answer, GraphAnswer::Distances(vec![Some(0), Some(1), Some(2), Some(2)]));
    assert_eq!(fan_outs.len(), 2, "those of the network");
    let far = query(Operation::Distance(DistanceQuery { from: 5, to: vec![9, 8, 9, 1] }));
    let (answer, fan_outs) = cluster().trace(&far).unwrap();
    assert_eq!(answer, GraphAnswer::Distances(vec![None, Some(3), None, None]));
    assert_eq!(steps(&fan_outs)[2], ("targets' first degrees", FanOutKind::NonUnion));
}

#[test]
fn arcs_are_followed_forward_only() {
    let follows = |operation| GraphQuery { edge_type: Some("follows".into()), ..query(operation) };
    let badges = cluster().query(&follows(Operation::Distance(DistanceQuery { from: 5, to: vec![8, 4] })));
    assert_eq!(badges, Ok(GraphAnswer::Distances(vec![Some(3), None])));
    let path = |from, to| {
        let Ok(GraphAnswer::Path(path)) =
            cluster().query(&follows(Operation::Path(PathQuery { from, to, max: 6 })))
        else {
            panic!("a path query must give a path")
        };
        path.members
    };
    assert_eq!(path(4, 9), [4, 5, 6, 7, 8, 9]);
    assert!(path(9, 4).is_empty());
}

#[test]
fn a_search_goes_on_from_the_smaller_side() {
    // The path leads from 3 over 1 (with a long list), a member that 1 and 2 share, and 2 to a member that only 2 has.
    let to = 14_087 + 500;
    let (answer, fan_outs) =
        cluster().trace(&query(Operation::Path(PathQuery { from: 3, to, max: 6 }))).unwrap();
    let GraphAnswer::Path(path) = answer else { panic!("{answer:?}") };
    assert_eq!(path.members, [3, 1, 14_087, 2, to]);
    let levels: Vec<&Scope> =
        fan_outs.iter().filter(|f| f.purpose == "next level").map(|f| &f.scope).collect();
    assert_eq!(levels, [&Scope::Keys(vec![2])], "the other side has thousands of members");
}

#[test]
fn one_mutual_hop_needs_no_search() {
    let (answer, fan_outs) =
        cluster().trace(&query(Operation::Path(PathQuery { from: 4, to: 5, max: 1 }))).unwrap();
    let GraphAnswer::Path(path) = answer else { panic!("{answer:?}") };
    assert_eq!((path.members, steps(&fan_outs)), (vec![4, 5], vec![("both ends", FanOutKind::NonUnion)]));
}

fn refusal(query: &GraphQuery) -> OperationError {
    cluster().query(query).expect_err("the query must be refused")
}

#[test]
fn numbers_out_of_range_are_refused() {
    let out_of_range = |operation| match refusal(&query(operation)) {
        OperationError::OutOfRange { what, got, .. } => (what, got),
        other => panic!("{other}"),
    };
    let distance = |count: usize| Operation::Distance(DistanceQuery { from: 5, to: vec![4; count] });
    assert_eq!(out_of_range(distance(0)), ("number of targets", 0));
    assert_eq!(out_of_range(distance(DISTANCE_TARGETS_MAX + 1)), ("number of targets", 10_001));
    assert_eq!(out_of_range(Operation::Path(PathQuery { from: 4, to: 5, max: 7 })), ("max", 7));
    assert_eq!(out_of_range(Operation::Suggest(SuggestQuery { id: 4, k: 0 })), ("k", 0));
    assert_eq!(out_of_range(Operation::Suggest(SuggestQuery { id: 4, k: 10_001 })), ("k", 10_001));
}

#[test]
fn unknown_names_are_refused_with_those_there_are() {
    let known = vec!["connection".to_owned(), "follows".to_owned()];
    let connections = || query(Operation::Connections(ConnectionsQuery { id: 4 }));
    let unknown = GraphQuery { edge_type: Some("tag".into()), ..connections() };
    assert_eq!(refusal(&unknown), OperationError::UnknownEdgeType { name: "tag".into(), known });
    let entities = query(Operation::Entities(EntitiesQuery { id: 4, kind: "follows".into() }));
    let known = vec!["tag".to_owned()];
    assert_eq!(refusal(&entities), OperationError::UnknownKind { name: "follows".into(), known });
    let directed = GraphQuery { direction: Some(Direction::Out), ..connections() };
    assert_eq!(refusal(&directed), OperationError::DirectionNotKept { name: "connection".into() });
    let role = KindRole::MembersOnly;
    let schema = GraphSchema {
        kinds: vec![KindSchema {
            name: "members".into(),
            role,
            version: StoreVersion(1),
            columns: vec![],
            one_sided: false,
        }],
    };
    let error = QueryMachine::new(&connections(), &schema).unwrap_err();
    assert_eq!(error, OperationError::NoEdgeType);
}

#[test]
fn edges_that_are_known_at_one_end_are_not_followed_backwards() {
    let kind = KindSchema {
        name: "likes".into(),
        role: KindRole::Directed,
        version: StoreVersion(0),
        columns: vec![],
        one_sided: true,
    };
    let schema = GraphSchema { kinds: vec![kind] };
    let refused = |query: &GraphQuery| match QueryMachine::new(query, &schema) {
        Ok(_) => None,
        Err(OperationError::OneSided { name, what }) => {
            assert_eq!(name, "likes");
            Some(what)
        }
        Err(other) => panic!("{other}"),
    };
    let along = |direction| GraphQuery {
        direction: Some(direction),
        ..query(Operation::Connections(ConnectionsQuery { id: 4 }))
    };
    assert_eq!(refused(&along(Direction::Out)), None);
    assert_eq!(refused(&along(Direction::In)), Some("direction \"in\""));
    assert_eq!(refused(&along(Direction::Both)), Some("direction \"both\""));
    assert_eq!(refused(&query(Operation::Path(PathQuery { from: 4, to: 9, max: 3 }))), Some("a path"));
    assert_eq!(
        refused(&query(Operation::Distance(DistanceQuery { from: 4, to: vec![9] }))),
        Some("a distance")
    );
    assert_eq!(refused(&common(1, 2, Want::Size, CommonPlan::Push)), Some("the plan \"push\""));
    for query in [
        query(Operation::Network(NetworkQuery { id: 4, returns: NetworkReturn::Size })),
        query(Operation::Suggest(SuggestQuery { id: 4, k: 3 })),
        common(1, 2, Want::Size, CommonPlan::Fetch),
    ] {
        assert_eq!(refused(&query), None, "{query:?}");
    }
    let auto = QueryMachine::new(&common(1, 2, Want::Size, CommonPlan::Auto), &schema).unwrap();
    assert_eq!(auto.outline().len(), 1, "lists are fetched, however long: {:?}", auto.outline());
}

#[test]
fn every_outline_names_the_steps_that_are_taken() {
    let operands = [
        Operation::Connections(ConnectionsQuery { id: 6 }),
        Operation::Entities(EntitiesQuery { id: 1, kind: "tag".into() }),
        Operation::Members(MembersQuery { kind: "tag".into(), entity: 1 }),
        Operation::Path(PathQuery { from: 4, to: 9, max: 6 }),
        Operation::Path(PathQuery { from: 4, to: 9, max: 1 }),
        Operation::Distance(DistanceQuery { from: 5, to: vec![9, 8] }),
        Operation::Suggest(SuggestQuery { id: 6, k: 3 }),
        Operation::Common(CommonQuery {
            id: 1,
            to: 2,
            kind: None,
            returns: Want::Size,
            plan: CommonPlan::Auto,
        }),
        Operation::Common(CommonQuery {
            id: 4,
            to: 9,
            kind: None,
            returns: Want::Size,
            plan: CommonPlan::Push,
        }),
    ];
    let cluster = cluster();
    let network = ["first degree", "second-degree union"];
    for operation in operands {
        let query = query(operation);
        let schema = MemoryGraph::schema(cluster.graph());
        let outline = QueryMachine::new(&query, schema).unwrap().outline();
        let names: Vec<&str> = outline.iter().map(|step| step.purpose).collect();
        let (_, fan_outs) = cluster.trace(&query).unwrap();
        for fan_out in fan_outs {
            let within_network = names.contains(&"network") && network.contains(&fan_out.purpose);
            assert!(within_network || names.contains(&fan_out.purpose), "{} in {names:?}", fan_out.purpose);
        }
    }
}
