//! A router that dies during a call is reported as unreachable, with the reason.

use kith_client::{RouterClient, security::Dialer};
use kith_query::QueryError;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// `:status: 200`, `content-type: application/grpc`.
const HEADERS: &[u8] = b"\x00\x00\x14\x01\x04\x00\x00\x00\x01\x88\x0f\x10\x10application/grpc";
/// The beginning of a message of a hundred bytes: its header and two bytes.
const DATA: &[u8] = &[0, 0, 100, 0, 0, 0, 0, 0, 1, 0, 0];

/// Runs a router that accepts a call, sends this much of its reply, and dies. Returns the caller's error.
async fn dies_after(sent: Vec<u8>) -> QueryError {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("it works");
    let addr = listener.local_addr().expect("it listens").to_string();
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("it works");
        socket.write_all(SETTINGS).await.expect("it works");
        // The preface, the client's settings, and at least the beginning of its call.
        let (mut heard, mut buffer) = (0, [0; 4096]);
        while heard < 150 {
            heard += socket.read(&mut buffer).await.expect("it works");
        }
        socket.write_all(&sent).await.expect("it works");
        socket.flush().await.expect("it works");
    });
    let client = RouterClient::lazy(addr.clone(), &Dialer::default()).expect("it works");
    let error = client.topology().await.expect_err("it is dead");
    server.await.expect("it works");
    assert!(matches!(&error, QueryError::Unreachable { addr: lost, .. } if *lost == addr), "{error:?}");
    error
}

#[tokio::test]
async fn a_router_that_dies_under_a_call_is_unreachable_however_far_its_reply_was() {
    let sent = [Vec::new(), HEADERS.to_vec(), [HEADERS, DATA].concat()];
    for sent in sent {
        let error = dies_after(sent).await;
        assert!(!error.to_string().contains("transport error"), "the error has the reason: {error}");
    }
}
