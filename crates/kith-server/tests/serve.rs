//! One cluster in this process: a graph goes in, right answers come out, on both ways in and over both transports.

mod support;

use kith_client::{Answered, GraphService, QueryOptions, Session, SessionSettings, TransportKind};
use kith_ops::{CommonAnswer, CommonPlan, GraphAnswer, GraphQuery, Operand, Want};
use kith_types::Workflow;
use support::village;

fn ask(operand: Operand) -> GraphQuery {
    GraphQuery { operand, edge_type: None, direction: None, workflow: Workflow::Interactive }
}

async fn answer(service: &dyn GraphService, operand: Operand) -> Answered {
    let options = QueryOptions { profile: true, ..QueryOptions::default() };
    service.query("village", &ask(operand), &options).await.expect("the query is answered")
}

async fn error_code(service: &dyn GraphService, graph: &str, operand: Operand) -> String {
    let error =
        service.query(graph, &ask(operand), &QueryOptions::default()).await.expect_err("it must fail");
    error.code().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loaded_graph_is_served_by_the_router_and_to_the_fast_client() {
    let cluster = support::start(2, 3).await;
    cluster.load("village", &village("edges.csv.gz"), Some(&village("entities.csv.gz"))).await;
    let seeds = vec![cluster.ready().nodes[4].addr.clone()];
    let session = Session::connect(seeds.clone(), SessionSettings::default()).await.expect("a node answers");
    let over_grpc = SessionSettings { transport: TransportKind::Grpc, ..SessionSettings::default() };
    let session_over_grpc = Session::connect(seeds, over_grpc).await.expect("a node answers");
    let router_over_grpc = cluster.router.clone().with_transport(TransportKind::Grpc);
    let services: [&dyn GraphService; 4] = [&cluster.router, &session, &router_over_grpc, &session_over_grpc];
    for service in services {
        let network = answer(service, Operand::Network { id: 9043, want: Want::Ids }).await;
        let GraphAnswer::Network(network_answer) = &network.answer else { panic!("{network:?}") };
        assert_eq!(network_answer.sizes.first, 666);
        let ids = network_answer.network.as_ref().expect("ids were asked for");
        assert_eq!(ids.first().len(), 666);
        assert_eq!(ids.second().count() as u64, network_answer.sizes.second);
        let profile = network.profile.expect("a profile was asked for");
        assert!(profile.requests <= 1 + 3, "one group of three nodes after the first degree: {profile:?}");

        let GraphAnswer::Ids(first) = answer(service, Operand::Connections { id: 9043 }).await.answer else {
            panic!("connections are ids")
        };
        assert_eq!(first, ids.first());
        let to = first[0];
        for plan in [CommonPlan::Auto, CommonPlan::Fetch, CommonPlan::Push] {
            let common = Operand::Common { id: 9043, to, kind: None, want: Want::Exists, plan };
            assert!(matches!(
                answer(service, common).await.answer,
                GraphAnswer::Common(CommonAnswer::Exists(_))
            ));
        }
        assert_eq!(error_code(service, "village", Operand::Connections { id: 1 }).await, "member_not_found");
        assert_eq!(error_code(service, "hamlet", Operand::Connections { id: 1 }).await, "unknown_graph");
    }
}
