//! Limits, members without reciprocal edges, missing partitions, and edges that lead both ways or one way only.

use crate::{
    GraphAnswer, GraphQuery, OperationError, QueryMachine, ReciprocalAnswer, ReciprocalQuery,
    testing::{LocalCluster, MemoryGraph},
};
use kith_schema::{GraphSchema, KindRole, KindSchema};
use kith_types::{PartitionCount, StoreVersion};

/// Members 1 and 2 to `others + 1` follow each other. Member 5,000 follows 1, and 1 follows 6,000.
fn cluster(role: KindRole, others: u64) -> LocalCluster {
    let mut graph = MemoryGraph::new(PartitionCount::new(4).expect("4 is a valid count"));
    let mutual = (2..others + 2).flat_map(|other| [(1, other), (other, 1)]);
    let edges: Vec<(u64, u64)> = mutual.chain([(5_000, 1), (1, 6_000)]).collect();
    graph.add_kind("follows", role, &edges);
    LocalCluster::new(graph, vec![0, 1, 2, 3])
}

fn asked(cluster: &LocalCluster, id: u64, limit: Option<u64>) -> Result<ReciprocalAnswer, OperationError> {
    match cluster.query(&GraphQuery::new(ReciprocalQuery { id, limit })) {
        Ok(GraphAnswer::Reciprocal(answer)) => Ok(answer),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error),
    }
}

fn ids(ids: impl IntoIterator<Item = u64>, truncated: bool) -> Result<ReciprocalAnswer, OperationError> {
    Ok(ReciprocalAnswer { ids: ids.into_iter().collect(), truncated })
}

#[test]
fn there_are_at_most_a_thousand_ids_unless_the_limit_is_another() {
    let whole = cluster(KindRole::Directed, 1_000);
    assert_eq!(asked(&whole, 1, None), ids(2..1_002, false));
    let more = cluster(KindRole::Directed, 1_001);
    assert_eq!(asked(&more, 1, None), ids(2..1_002, true));
    assert_eq!(asked(&more, 1, Some(1_001)), ids(2..1_003, false));
    assert_eq!(asked(&more, 1, Some(2)), ids([2, 3], true));
}

#[test]
fn members_whose_edges_all_lead_one_way_have_none_and_unknown_ids_are_refused() {
    let cluster = cluster(KindRole::Directed, 3);
    assert_eq!(asked(&cluster, 6_000, None), ids([], false), "it is only followed");
    assert_eq!(asked(&cluster, 5_000, None), ids([], false), "it only follows");
    assert_eq!(asked(&cluster, 7_000, None), Err(OperationError::MemberNotFound { id: 7_000 }));
}

#[test]
fn edges_of_an_undirected_type_lead_both_ways() {
    let cluster = cluster(KindRole::Undirected, 3);
    assert_eq!(asked(&cluster, 1, None), ids([2, 3, 4, 5_000, 6_000], false));
    assert_eq!(asked(&cluster, 6_000, None), ids([1], false));
}

/// If the member's partition is unavailable, a partial answer is empty. Other partitions do not matter.
#[test]
fn a_partial_answer_lacks_all_or_nothing() {
    let whole = cluster(KindRole::Directed, 3);
    let answers: Vec<ReciprocalAnswer> = (0..4)
        .map(|node| {
            let mut cluster = whole.clone();
            cluster.lose(node);
            asked(&cluster, 1, None).expect("a partial answer")
        })
        .collect();
    let is_empty = |answer: &&ReciprocalAnswer| answer.ids.is_empty() && !answer.truncated;
    assert_eq!(answers.iter().filter(is_empty).count(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| Ok((*answer).clone()) == ids([2, 3, 4], false)).count(), 3);
}

#[test]
fn types_of_which_only_one_side_is_stored_are_refused() {
    let (name, role, version) = ("likes".to_owned(), KindRole::Directed, StoreVersion(0));
    let kind = KindSchema { name, role, version, columns: vec![], one_sided: true };
    let query = GraphQuery::new(ReciprocalQuery { id: 1, limit: None });
    let refused = QueryMachine::new(&query, &GraphSchema { kinds: vec![kind] }).expect_err("it is one-sided");
    assert_eq!(refused, OperationError::OneSided { name: "likes".to_owned(), what: "`reciprocal`" });
}
