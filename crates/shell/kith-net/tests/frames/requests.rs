//! Tests that requests get the same answers over both transports.

use super::*;

#[tokio::test]
async fn answers_and_errors_are_the_same_over_both_on_one_port() {
    let server = Server::start();
    for (name, transport) in transports() {
        assert_eq!(count_of(transport.evaluate(&server.addr, asking(ECHO, 7)).await.unwrap()), 7, "{name}");
        let error = transport.evaluate(&server.addr, asking(FAIL, 7)).await.unwrap_err();
        let detail = kith_wire::detail_of(&error);
        assert_eq!((error.code(), error.message()), (Code::DataLoss, "a block is bad"), "{name}");
        assert_eq!((detail.code.as_str(), detail.help.as_str()), ("damaged", "load again"), "{name}");
        let long = transport.evaluate(&server.addr, asking(LONG, 7)).await.unwrap();
        assert_eq!(long.value.unwrap().value, Some(value::Value::Set(vec![7; LONG_BYTES].into())), "{name}");
        let error = transport.ping(&server.addr, v1::PingRequest::default()).await.unwrap_err();
        assert_eq!(kith_wire::code_of(&error), ErrorCode::UnsupportedOperation, "{name}");
    }
}

#[tokio::test]
async fn a_later_request_is_answered_before_an_earlier_one() {
    let server = Server::start();
    for (name, transport) in transports() {
        server.node.gate.send_replace(false);
        let (asker, addr) = (Arc::clone(&transport), server.addr.clone());
        let first = tokio::spawn(async move { asker.evaluate(&addr, asking(WAIT, 1)).await });
        server.until_waiting(1).await;
        for version in 2..20 {
            let reply = transport.evaluate(&server.addr, asking(ECHO, version)).await.unwrap();
            assert_eq!(count_of(reply), version, "{name}");
        }
        assert!(!first.is_finished(), "{name}");
        server.open_gate();
        assert_eq!(count_of(first.await.unwrap().unwrap()), 1, "{name}");
    }
}

#[tokio::test]
async fn a_dropped_request_ends_at_the_node() {
    let server = Server::start();
    for (_, transport) in transports() {
        // The first request runs on the connection's own task, the second on another.
        let mut calls: Vec<_> = (0..2).map(|_| transport.evaluate(&server.addr, asking(WAIT, 1))).collect();
        let both = futures::future::join_all(calls.iter_mut());
        tokio::select! {
            _ = both => panic!("the gate is closed"),
            () = server.until_waiting(2) => {}
        }
        drop(calls);
        server.until_waiting(0).await;
        assert_eq!(count_of(transport.evaluate(&server.addr, asking(ECHO, 3)).await.unwrap()), 3);
    }
}

#[tokio::test]
async fn a_deadline_passes_at_the_node() {
    let server = Server::start();
    let transport = FramedTransport::default();
    let header = v1::RequestHeader { deadline_us: 10_000, ..Default::default() };
    let request = v1::EvaluateRequest { header: Some(header), ..asking(WAIT, 1) };
    let error = transport.evaluate(&server.addr, request).await.unwrap_err();
    assert_eq!(kith_wire::code_of(&error), ErrorCode::DeadlineExceeded);
    server.until_waiting(0).await;
}

#[tokio::test]
async fn a_reply_in_pieces_is_put_together() {
    let server = Server::start();
    let channel = endpoint(&server.addr).unwrap().connect_lazy();
    let client = RouterClient::over(server.addr.clone(), channel);
    let query = GraphQuery {
        operation: Operation::Connections(kith_query::ConnectionsQuery { id: 1 }),
        edge_type: None,
        direction: None,
        workflow: Workflow::Interactive,
    };
    let answered = client.query("g", &query, &QueryOptions::default()).await.unwrap();
    assert!(matches!(answered.answer, GraphAnswer::Ids(ids) if ids == [1, 2, 3, 9]));
}
