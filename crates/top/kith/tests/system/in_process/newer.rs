//! A synthetic peer of a later release sends a real router and a real node requests that they do not know. A message with an
//! unknown variant arrives as one without a variant; `docs/formats/README.md` has the rule.

use super::{start, village};
use kith_net::endpoint;
use kith_types::ErrorCode;
use kith_wire::v1::{
    self, cluster_client::ClusterClient, graph_client::GraphClient, node_client::NodeClient,
};
use tonic::Status;

/// Checks that the refusal names what is unknown, and has the code for unknown operations.
fn check(refusal: &Status, what: &str) {
    assert_eq!(kith_wire::code_of(refusal), ErrorCode::UnsupportedOperation, "{refusal:?}");
    assert!(refusal.message().contains(what), "{refusal:?}");
    assert!(!kith_wire::detail_of(refusal).help.is_empty(), "{refusal:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_a_later_release_has_is_refused_by_routers_and_nodes() {
    let cluster = start(1, 2).await;
    let version = cluster.load("village", &village("edges.csv.gz"), None).await;
    let router = endpoint(&cluster.ready().router).unwrap().connect_lazy();
    let query = v1::QueryRequest { graph: "village".to_owned(), ..Default::default() };
    let refusal = GraphClient::new(router.clone()).query(query).await.unwrap_err();
    check(&refusal, "operand");
    let mut admin = ClusterClient::new(router);
    let store = v1::StoreRequest { store: "village".to_owned(), ..Default::default() };
    check(&admin.store(store).await.unwrap_err(), "a store request without a command");
    let rebalance = v1::RebalanceRequest::default();
    check(&admin.rebalance(rebalance).await.unwrap_err(), "a rebalance request without a command");

    let node = endpoint(&cluster.ready().nodes[0].addr).unwrap().connect_lazy();
    let mut node = NodeClient::new(node);
    let asking = |op| v1::EvaluateRequest {
        name: "village".to_owned(),
        version,
        plan: Some(v1::Operator { op }),
        ..Default::default()
    };
    check(&node.evaluate(asking(None)).await.unwrap_err(), "op");
    let keys = v1::operator::Op::Keys(v1::KeysOperator {});
    let known = v1::Operator { op: Some(keys) };
    let known = v1::operator::Op::Count(Box::new(known));
    node.evaluate(asking(Some(known))).await.expect("the node goes on");
}
