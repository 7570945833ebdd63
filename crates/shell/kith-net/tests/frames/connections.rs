//! Tests with connections that are lost, refused, idle, too many or silent.

use super::*;

#[tokio::test]
async fn a_lost_connection_and_a_refused_one_are_unavailable() {
    for (name, transport) in transports() {
        let mut server = Server::start();
        let (asker, addr) = (Arc::clone(&transport), server.addr.clone());
        let asked = tokio::spawn(async move { asker.evaluate(&addr, asking(WAIT, 1)).await });
        server.until_waiting(1).await;
        server.die();
        let lost = asked.await.unwrap().unwrap_err();
        assert!(is_connection(&lost), "{name}: {lost:?}");
        let refused = transport.evaluate(&server.addr, asking(ECHO, 1)).await.unwrap_err();
        assert!(is_connection(&refused), "{name}: {refused:?}");
    }
}

#[tokio::test]
async fn a_connection_that_is_lost_while_nobody_asks_is_reported_once() {
    let mut server = Server::start();
    let transport = FramedTransport::default();
    transport.evaluate(&server.addr, asking(ECHO, 1)).await.expect("it answers");
    assert!(transport.take_cut().is_empty());
    server.die();
    let mut cut = Vec::new();
    while cut.is_empty() {
        tokio::task::yield_now().await;
        cut = transport.take_cut();
    }
    assert_eq!(cut, [server.addr.clone()]);
    assert!(transport.take_cut().is_empty());
}

#[tokio::test]
async fn a_stopping_server_answers_what_is_under_way() {
    for (name, transport) in transports() {
        let server = Server::start();
        let (asker, addr) = (Arc::clone(&transport), server.addr.clone());
        let asked = tokio::spawn(async move { asker.evaluate(&addr, asking(WAIT, 5)).await });
        server.until_waiting(1).await;
        server.stop.cancel();
        // Once nobody can connect any more, the server has begun to stop.
        while TcpStream::connect(&server.addr).await.is_ok() {
            tokio::task::yield_now().await;
        }
        server.open_gate();
        assert_eq!(count_of(asked.await.unwrap().unwrap()), 5, "{name}");
    }
}

/// Returns when the only connection of a transport is lost.
async fn until_cut(transport: &dyn Transport) {
    let cut = async {
        while transport.take_cut().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(90), cut).await.expect("it is cut in time");
}

#[tokio::test]
async fn idle_connections_are_closed_and_requests_open_others_and_those_under_way_are_not_idle() {
    let idle = Some(Duration::from_millis(200));
    let server = Server::start_with(ConnectionSettings { idle, ..ConnectionSettings::default() });
    for (name, transport) in transports() {
        server.node.gate.send_replace(false);
        assert_eq!(count_of(transport.evaluate(&server.addr, asking(ECHO, 1)).await.unwrap()), 1, "{name}");
        if name != "grpc" {
            until_cut(&*transport).await;
        }
        let asked = transport.evaluate(&server.addr, asking(WAIT, 2));
        let waited = async {
            server.until_waiting(1).await;
            // A connection that is idle since then is closed; this one would have been closed as well.
            let other = TransportKind::FramedTcp.build(&Dialer::default());
            let answer = other.evaluate(&server.addr, asking(ECHO, 1)).await.unwrap();
            assert_eq!(count_of(answer), 1, "{name}");
            until_cut(&*other).await;
            server.open_gate();
        };
        assert_eq!(count_of(tokio::join!(asked, waited).0.unwrap()), 2, "{name}");
    }
}

#[tokio::test]
async fn more_connections_than_allowed_are_refused_with_a_reason_and_the_others_go_on() {
    let open_max = Some(2);
    let server = Server::start_with(ConnectionSettings { open_max, ..ConnectionSettings::default() });
    let transports =
        [TransportKind::FramedTcp, TransportKind::Grpc].map(|kind| kind.build(&Dialer::default()));
    for transport in &transports {
        assert_eq!(count_of(transport.evaluate(&server.addr, asking(ECHO, 1)).await.unwrap()), 1);
    }
    let mut other = by_hand::Raw::connect(&server.addr).await;
    let status = other.receive().await.expect("an error").status();
    assert_eq!(kith_wire::code_of(&status), ErrorCode::TooManyConnections, "{status:?}");
    assert_eq!(other.receive().await, None);
    let grpc = TransportKind::Grpc.build(&Dialer::default());
    let refused = grpc.evaluate(&server.addr, asking(ECHO, 1)).await.unwrap_err();
    assert!(is_connection(&refused), "{refused:?}");
    for transport in &transports {
        assert_eq!(count_of(transport.evaluate(&server.addr, asking(ECHO, 1)).await.unwrap()), 1);
    }
}

#[tokio::test]
async fn a_peer_that_does_not_speak_frames_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let answer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        std::future::pending::<()>().await;
    };
    let transport = FramedTransport::default();
    let error = tokio::select! {
        error = transport.evaluate(&addr, asking(ECHO, 1)) => error.unwrap_err(),
        () = answer => unreachable!("it never ends"),
    };
    assert!(is_connection(&error), "{error:?}");
    assert!(error.message().contains("the peer does not speak frames"), "{error:?}");
}

#[tokio::test]
async fn a_silent_peer_is_unavailable_within_the_connect_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let transport = FramedTransport::default();
    let calls = (0..8).map(|_| transport.evaluate(&addr, asking(ECHO, 1)));
    for answer in futures::future::join_all(calls).await {
        assert_eq!(answer.unwrap_err().code(), Code::Unavailable);
    }
    // There is one attempt for all of them: no caller waits for the failures of others.
    let mut accepted = 0;
    while let Ok(Ok(_)) = tokio::time::timeout(Duration::ZERO, listener.accept()).await {
        accepted += 1;
    }
    assert_eq!(accepted, 1);
}
