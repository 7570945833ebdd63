//! Tests of traversals in HTTP requests of their own, and of requests that web pages send.

use super::*;
use kith_net::server::security::{Caller, CallerIdentity, testing::gate};
use sha2::{Digest, Sha256};
use tokio_tungstenite::tungstenite::Error;

/// The answer to one connection that sends this.
async fn exchange(rights: CallerRights, request: &str) -> (String, Json, Connection) {
    let (mut client, connection) = connect(rights, known());
    client.write_all(request.as_bytes()).await.expect("it reads");
    let mut bytes = Vec::new();
    let read = async {
        // The connection stays open, so the body is what its length says.
        while !is_whole(&bytes) {
            assert_ne!(
                client.read_buf(&mut bytes).await.expect("it is open"),
                0,
                "{}",
                String::from_utf8_lossy(&bytes)
            );
        }
    };
    tokio::time::timeout(Duration::from_secs(20), read).await.expect("in time");
    let text = String::from_utf8(bytes).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").expect("a body");
    (head.to_owned(), serde_json::from_str(body).unwrap_or(json!(body)), connection)
}

fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.is_some_and(|length| length.trim().parse::<usize>().expect("a number") <= body.len())
}

fn post(headers: &str, body: &str) -> String {
    format!(
        "POST /gremlin HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn a_post_is_answered_as_by_gremlin_server() {
    let body = r#"{"gremlin":"g.inject(x, 'a')","bindings":{"x":1},"aliases":{"g":"people"}}"#;
    let (head, answer, connection) = exchange(CallerRights::anybody(), &post("", body)).await;
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("content-type: application/json"),
        "{head}"
    );
    let values = json!({"@type": "g:List", "@value": [{"@type": "g:Int32", "@value": 1}, "a"]});
    assert_eq!((&answer["result"]["data"], &answer["status"]["code"]), (&values, &json!(200)));
    assert!(answer["requestId"].as_str().expect("an id").parse::<Uuid>().is_ok());
    assert_eq!(connection.graphs.last(), ("people".to_owned(), "inject(1, a)".to_owned()));
    // Many results, no results, and the forms of a body that curl and browsers send.
    let (_, answer, _) = exchange(CallerRights::anybody(), &post("", r#"{"gremlin":"g.V(20000)"}"#)).await;
    assert_eq!(answer["result"]["data"]["@value"].as_array().expect("a list").len(), 20_000);
    let form = post("content-type: application/x-www-form-urlencoded\r\n", r#"{"gremlin":"g.inject()"}"#);
    let (_, answer, _) = exchange(CallerRights::anybody(), &form).await;
    assert_eq!((&answer["result"]["data"]["@value"], &answer["status"]["code"]), (&json!([]), &json!(200)));
    let root = post("", r#"{"gremlin":"g.inject(1)"}"#).replacen("/gremlin", "/", 1);
    assert!(exchange(CallerRights::anybody(), &root).await.0.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_client_of_graphson_2_is_answered_with_it() {
    const MEDIA_TYPE: &str = "application/vnd.gremlin-v2.0+json";
    for header in ["accept", "content-type"] {
        let ask = async |gremlin: &str| {
            let body = json!({"gremlin": gremlin}).to_string();
            let (head, answer, _) =
                exchange(CallerRights::anybody(), &post(&format!("{header}: {MEDIA_TYPE}\r\n"), &body)).await;
            assert!(head.contains(&format!("content-type: {MEDIA_TYPE}")), "{head}");
            answer
        };
        let answer = ask("g.inject('a')").await;
        assert_eq!((&answer["result"]["data"], &answer["status"]["attributes"]), (&json!(["a"]), &json!({})));
        let failed = ask("g.addV()").await;
        assert_eq!(failed["status"]["attributes"]["kith.code"], json!("overloaded"), "{failed}");
    }
}

#[tokio::test]
async fn errors_are_http_statuses_with_a_message() {
    for (text, status, kith) in [
        ("g.V().otu()", "400 Bad Request", "bad_request"),
        ("g.addV()", "503 Service Unavailable", "overloaded"),
        ("g.E()", "504 Gateway Timeout", "deadline_exceeded"),
        ("g.union(identity())", "500 Internal Server Error", "traversal_failed"),
    ] {
        let body = json!({"gremlin": text}).to_string();
        let (head, answer, _) = exchange(CallerRights::anybody(), &post("", &body)).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{text}: {head}");
        assert!(answer["message"].as_str().is_some_and(|message| !message.is_empty()), "{answer}");
        assert!(answer["status"]["attributes"].to_string().contains(kith), "{text}: {answer}");
    }
    let long = format!(
        "POST / HTTP/1.1\r\ncontent-length: {}\r\n\r\n{}",
        REQUEST_BYTES_MAX + 1,
        "x".repeat(1 << 16)
    );
    let (mut client, connection) = connect(CallerRights::anybody(), known());
    let feeding = async {
        let mut left = REQUEST_BYTES_MAX + 1;
        client.write_all(long.as_bytes()).await.expect("it reads");
        while 0 < left && client.write_all(&[b'x'; 1 << 16]).await.is_ok() {
            left = left.saturating_sub(1 << 16);
        }
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    };
    let answer = feeding.await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(connection.graphs.asked.lock().is_empty());
}

#[tokio::test]
async fn a_body_that_trickles_is_refused() {
    let heads = ["content-length: 100000\r\n\r\n", "transfer-encoding: chunked\r\n\r\n"];
    for (head, piece) in heads.into_iter().zip(["x", "1\r\nx\r\n"]) {
        let (client, connection) = connect(CallerRights::anybody(), known_hasty());
        let (mut reader, mut writer) = tokio::io::split(client);
        let head = format!("POST /gremlin HTTP/1.1\r\nhost: localhost\r\n{head}");
        writer.write_all(head.as_bytes()).await.expect("it reads");
        let trickles = async {
            while writer.write_all(piece.as_bytes()).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            std::future::pending::<()>().await;
        };
        let mut answer = Vec::new();
        let refused = async {
            while !is_whole(&answer) && reader.read_buf(&mut answer).await.is_ok_and(|bytes| 0 < bytes) {}
        };
        let refused = async {
            tokio::select! {
                () = refused => {}
                () = trickles => {}
            }
        };
        tokio::time::timeout(Duration::from_secs(60), refused).await.expect("it is refused");
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("slow_request"), "{answer}");
        assert!(connection.graphs.asked.lock().is_empty());
    }
}

#[tokio::test]
async fn a_header_that_does_not_end_ends_its_connection() {
    for begun in ["", "GET /gremlin HTTP/1.1\r\nhost: lo"] {
        let (mut client, connection) = connect(CallerRights::anybody(), known());
        client.write_all(begun.as_bytes()).await.expect("it reads");
        let mut answer = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(120), client.read_to_end(&mut answer)).await;
        ended.expect("it is ended").expect("no error");
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{begun}");
        assert!(connection.task.await.expect("no panic").is_err(), "{begun}");
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_asks_nothing() {
    let body = r#"{"gremlin":"g.inject(1)"}"#;
    let chunk = format!("{:x}\r\n{body}\r\n", body.len());
    let head = "POST /gremlin HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    for (end, status) in [("0\r\n\r\n", 200), ("no length\r\n", 400)] {
        let (answer, _, connection) = exchange(CallerRights::anybody(), &format!("{head}{chunk}{end}")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{end:?}: {answer}");
        assert_eq!(connection.graphs.asked.lock().is_empty(), status != 200, "{end:?}");
    }
}

#[tokio::test]
async fn a_get_reads_and_never_writes() {
    let get = |query: &str| format!("GET /gremlin?{query} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let (head, answer, _) = exchange(CallerRights::anybody(), &get("gremlin=g.inject(x)&bindings.x=7")).await;
    assert!(
        head.starts_with("HTTP/1.1 200") && answer["result"]["data"].to_string().contains('7'),
        "{answer}"
    );
    let (head, answer, connection) = exchange(CallerRights::anybody(), &get("gremlin=g.addV()")).await;
    assert!(head.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(connection.graphs.asked.lock().is_empty());
}

#[tokio::test]
async fn work_ends_when_the_client_leaves() {
    let (mut client, connection) = connect(CallerRights::anybody(), known());
    client.write_all(post("", r#"{"gremlin":"g.V()"}"#).as_bytes()).await.expect("it reads");
    let until = async |count| {
        while connection.graphs.under_way.load(Ordering::SeqCst) != count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), until(1)).await.expect("it begins");
    drop(client);
    tokio::time::timeout(Duration::from_secs(20), until(0)).await.expect("it ends");
}

#[tokio::test]
async fn a_request_under_way_is_answered_before_the_process_ends() {
    let (mut client, connection) = connect(CallerRights::anybody(), known());
    client.write_all(post("", r#"{"gremlin":"g.V()"}"#).as_bytes()).await.expect("it reads");
    while connection.graphs.under_way.load(Ordering::SeqCst) != 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    connection.stop.cancel();
    tokio::time::sleep(Duration::from_millis(50)).await;
    connection.graphs.gate.add_permits(1);
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.expect("it ends");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_token_is_shown_in_each_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let hash: String = Sha256::digest("ads-token").iter().map(|byte| format!("{byte:02x}")).collect();
    let access = format!(
        "[[subject]]\nname = \"ads\"\ntoken-sha256 = [\"{hash}\"]\nread = [\"people\"]\nwrite = [\"letters\"]\n"
    );
    let rights =
        CallerRights::new(gate(folder.path(), Some(&access)), Caller::new(CallerIdentity::Nobody), "gremlin");
    // `user:ads-token`, `user:guess`
    let (right, wrong) = ("Basic dXNlcjphZHMtdG9rZW4=", "Basic dXNlcjpndWVzcw==");
    for (authorization, text, graph, status) in [
        ("", "g.inject(1)", "people", 401),
        (wrong, "g.inject(1)", "people", 401),
        ("Digest x", "g.inject(1)", "people", 401),
        (right, "g.inject(1)", "people", 200),
        ("Bearer ads-token", "g.inject(1)", "people", 200),
        (right, "g.inject(1)", "secrets", 403),
        (right, "g.addV()", "people", 403),
        (right, "g.addV()", "letters", 403),
    ] {
        let headers = match authorization {
            "" => String::new(),
            header => format!("authorization: {header}\r\n"),
        };
        let body = json!({"gremlin": text, "aliases": {"g": graph}}).to_string();
        let (head, answer, connection) = exchange(rights.clone(), &post(&headers, &body)).await;
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{authorization} {text} {graph}: {head} {answer}"
        );
        assert_eq!(head.contains("www-authenticate: Basic"), status == 401, "{head}");
        assert_eq!(connection.graphs.asked.lock().is_empty(), status != 200);
    }
    // The next request of a connection has not the identity of the one before.
    let body = json!({"gremlin": "g.inject(1)", "aliases": {"g": "people"}}).to_string();
    let both = post(&format!("authorization: {right}\r\n"), &body) + &post("connection: close\r\n", &body);
    let (mut client, _connection) = connect(rights, known());
    client.write_all(both.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.expect("it ends");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("HTTP/1.1 401"), "{answer}");
}

#[tokio::test]
async fn web_pages_of_other_hosts_are_refused_whatever_they_send() {
    let body = r#"{"gremlin":"g.inject(1)"}"#;
    let text = "content-type: text/plain\r\n";
    for (headers, host, status) in [
        ("", "localhost:7182", 200),
        ("origin: http://localhost:3000\r\n", "127.0.0.1:7182", 200),
        ("origin: https://evil.example\r\n", "127.0.0.1:7182", 403),
        ("origin: null\r\n", "127.0.0.1:7182", 403),
        ("sec-fetch-site: cross-site\r\n", "127.0.0.1:7182", 403),
        ("", "evil.example:7182", 403),
    ] {
        let request = post(&format!("{headers}{text}"), body).replacen("localhost", host, 1);
        let (head, _, connection) = exchange(CallerRights::anybody(), &request).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{headers}{host}: {head}");
        assert_eq!(connection.graphs.asked.lock().is_empty(), status != 200);
        let (client, _connection) = connect(CallerRights::anybody(), known());
        let mut handshake = tokio_tungstenite::tungstenite::handshake::client::Request::builder()
            .uri(format!("ws://{host}/gremlin"))
            .header("host", host)
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        if let Some((name, value)) = headers.trim().split_once(": ") {
            handshake = handshake.header(name, value);
        }
        match client_async(handshake.body(()).expect("a request"), client).await {
            Ok(_) => assert_eq!(status, 200, "{headers}{host}"),
            Err(Error::Http(response)) => assert_eq!(response.status().as_u16(), status, "{headers}{host}"),
            Err(other) => panic!("{other}"),
        }
    }
}
