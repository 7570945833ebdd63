//! Tests of connections: how they begin, what may be under way on them, and how they end.

use super::*;
use kith_net::testing::most_turns_beside;
use tokio_tungstenite::tungstenite::{Error, protocol::frame::coding::CloseCode};

/// Waits until this number of requests is under way.
async fn until_under_way(graphs: &Graphs, count: usize) {
    let waits = async {
        while graphs.under_way.load(Ordering::SeqCst) != count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waits).await.expect("the requests are under way in time");
}

#[tokio::test]
async fn a_later_request_can_be_answered_first() {
    let mut driver = Driver::new().await;
    let slow = driver.eval("g.V()").await;
    assert_eq!(driver.reply_to("g.inject(1)").await.codes, [200]);
    driver.connection.graphs.gate.add_permits(1);
    assert_eq!(driver.until_over(&[slow]).await[&slow].values, [Value::Int(1)]);
}

/// Sends traversals that end when the gate is opened.
async fn ask_slowly(driver: &mut Driver, count: usize) -> Vec<Uuid> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(driver.eval("g.V()").await);
    }
    ids
}

#[tokio::test]
async fn a_connection_is_read_however_much_is_under_way() {
    let mut driver = Driver::new().await;
    ask_slowly(&mut driver, UNDER_WAY_MAX - 1).await;
    until_under_way(&driver.connection.graphs, UNDER_WAY_MAX - 1).await;
    assert_eq!(driver.reply_to("g.inject(1)").await.codes, [200], "a quick request waits for none of them");
    ask_slowly(&mut driver, 1 + WAITING_MAX).await;
    let refused = driver.eval("g.inject(1)").await;
    driver.send(Message::Ping("are you there?".into())).await;
    let (mut code, mut pongs) = (None, 0);
    while code.is_none() || pongs == 0 {
        match driver.message().await {
            Message::Pong(_) => pongs += 1,
            Message::Binary(bytes) if bytes[2..18] == refused.as_bytes()[..] => {
                code = Some(i32::from_be_bytes(bytes[18..22].try_into().expect("a code")));
            }
            _ => {}
        }
    }
    assert_eq!(code, Some(596), "one too many");
    drop(driver.socket);
    until_under_way(&driver.connection.graphs, 0).await;
}

#[tokio::test]
async fn requests_that_wait_for_long_are_refused() {
    let mut driver = Driver::new().await;
    ask_slowly(&mut driver, UNDER_WAY_MAX).await;
    let waiting = ask_slowly(&mut driver, 2).await;
    let replies = driver.until_over(&waiting).await;
    assert!(
        replies.values().all(|reply| reply.codes == [596] && reply.message.contains("of this connection"))
    );
}

#[tokio::test]
async fn a_message_that_trickles_ends_its_connection_and_pings_are_no_part_of_it() {
    let ping = [0x89, 0x80, 0, 0, 0, 0];
    let begun = [0x82, 0x80 | 100, 0, 0, 0, 0];
    let mut driver = Driver::at(CallerRights::anybody(), known_hasty()).await;
    for _ in 0..40 {
        driver.socket.get_mut().write_all(&ping).await.expect("it reads");
        assert_eq!(driver.message().await, Message::Pong(Vec::new().into()));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(driver.reply_to("g.inject(1)").await.codes, [200], "pings do not trickle");
    driver.socket.get_mut().write_all(&begun).await.expect("it reads");
    let trickles = async {
        loop {
            let _ = driver.socket.get_mut().write_all(b"x").await;
            let message = tokio::time::timeout(Duration::from_millis(20), driver.socket.next()).await;
            if let Ok(Some(Ok(Message::Close(frame)))) = message {
                return frame.expect("a reason");
            }
        }
    };
    let frame = tokio::time::timeout(Duration::from_secs(5), trickles).await.expect("it is ended");
    assert_eq!(
        (frame.code, &*frame.reason),
        (CloseCode::Policy, "slow_request: the request did not arrive in time")
    );
}

#[tokio::test]
async fn pings_and_empty_frames_give_a_message_no_more_time() {
    let ping = [&[0x89, 0x80 | 125, 0, 0, 0, 0][..], &[7; 125]].concat();
    let many = [ping.repeat(200), [0x00, 0x80, 0, 0, 0, 0].repeat(200)].concat();
    let mut driver = Driver::at(CallerRights::anybody(), known_hasty()).await;
    driver.socket.get_mut().write_all(&[0x02, 0x81, 0, 0, 0, 0, b'x']).await.expect("it reads");
    let floods = async {
        loop {
            let _ = driver.socket.get_mut().write_all(&many).await;
            loop {
                match tokio::time::timeout(Duration::from_millis(5), driver.socket.next()).await {
                    Ok(Some(Ok(Message::Close(frame)))) => return frame.expect("a reason").code,
                    Ok(_) => {}
                    Err(_) => break,
                }
            }
        }
    };
    let code = tokio::time::timeout(Duration::from_secs(5), floods).await.expect("it is ended");
    assert_eq!(code, CloseCode::Policy);
}

#[tokio::test]
async fn pings_take_no_memory_of_requests() {
    let connected = known();
    let mut driver = Driver::at(CallerRights::anybody(), Arc::clone(&connected)).await;
    for _ in 0..1_000 {
        driver.send(Message::Ping(vec![7; 125].into())).await;
        driver.message().await;
    }
    assert_eq!(connected.request_bytes(), 0);
    // The first part of a message is charged, and stays so while pings come.
    let part = [&[0x02, 0xfe, 0xff, 0xff, 0, 0, 0, 0][..], &[1; 65_535]].concat();
    driver.socket.get_mut().write_all(&part).await.expect("it reads");
    for _ in 0..10 {
        driver.send(Message::Ping("still there".into())).await;
        driver.message().await;
    }
    assert_eq!(connected.request_bytes(), 65_535);
}

#[tokio::test]
async fn pings_of_a_peer_that_does_not_read_are_read_no_more() {
    const PINGS: usize = 20_000;
    let mut driver = Driver::new().await;
    let ping = [&[0x89, 0xfd, 0, 0, 0, 0][..], &[7; 125]].concat();
    let pings = ping.repeat(PINGS);
    let (mut reader, mut writer) = tokio::io::split(driver.socket.get_mut());
    let mut sent = 0;
    while let Ok(count) = tokio::time::timeout(Duration::from_millis(500), writer.write(&pings[sent..])).await
    {
        sent += count.expect("it is open");
    }
    assert!(sent < 400 << 10, "{sent} bytes are kept");
    let mut pongs = vec![0; PINGS * 127];
    let (rest, read) = tokio::join!(writer.write_all(&pings[sent..]), reader.read_exact(&mut pongs));
    rest.expect("it is open");
    read.expect("all are answered");
}

#[tokio::test]
async fn so_many_requests_are_under_way_and_the_rest_wait() {
    let mut driver = Driver::new().await;
    let mut ids = Vec::new();
    for _ in 0..UNDER_WAY_MAX + 4 {
        ids.push(driver.eval("g.V()").await);
    }
    let graphs = Arc::clone(&driver.connection.graphs);
    until_under_way(&graphs, UNDER_WAY_MAX).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(graphs.asked.lock().len(), UNDER_WAY_MAX);
    graphs.gate.add_permits(1);
    let replies = driver.until_over(&ids).await;
    assert!(replies.values().all(|reply| reply.codes == [200]));
    assert_eq!(graphs.asked.lock().len(), UNDER_WAY_MAX + 4);
}

#[tokio::test]
async fn what_is_under_way_ends_when_the_peer_leaves() {
    for is_polite in [true, false] {
        let mut driver = Driver::new().await;
        for _ in 0..3 {
            driver.eval("g.V()").await;
        }
        let graphs = Arc::clone(&driver.connection.graphs);
        until_under_way(&graphs, 3).await;
        if is_polite {
            driver.socket.close(None).await.expect("it reads");
            let ended = async { while let Some(Ok(_)) = driver.socket.next().await {} };
            tokio::time::timeout(Duration::from_secs(20), ended).await.expect("it closes too");
        }
        drop(driver.socket);
        until_under_way(&graphs, 0).await;
        // The stream may fail, because nobody reads the goodbye.
        let _ = driver.connection.task.await.expect("it does not panic");
    }
}

#[tokio::test]
async fn the_end_of_the_process_ends_connections_after_their_answers() {
    let mut driver = Driver::new().await;
    let id = driver.eval("g.V()").await;
    until_under_way(&driver.connection.graphs, 1).await;
    driver.connection.stop.cancel();
    tokio::time::sleep(Duration::from_millis(50)).await;
    driver.connection.graphs.gate.add_permits(1);
    assert_eq!(driver.until_over(&[id]).await[&id].codes, [200]);
    let Message::Close(Some(frame)) = driver.message().await else { panic!("no close frame") };
    assert_eq!(frame.code, CloseCode::Away);
}

#[tokio::test]
async fn a_request_that_is_too_long_closes_the_connection() {
    let mut driver = Driver::new().await;
    // The socket of the driver would send all 16 MiB; the header of the frame is enough.
    let length = (REQUEST_BYTES_MAX as u64 + 1).to_be_bytes();
    let header = [&[0x82, 0xff][..], &length, &[0; 4]].concat();
    driver.socket.get_mut().write_all(&header).await.expect("it reads");
    let Message::Close(Some(frame)) = driver.message().await else { panic!("no close frame") };
    assert_eq!(frame.code, CloseCode::Size);
    assert_eq!(
        frame.reason.as_str(),
        "too_large: the request has 16777217 bytes, at most 16777216 are allowed"
    );
}

#[tokio::test]
async fn a_ping_is_answered_while_a_request_is_under_way() {
    let mut driver = Driver::new().await;
    let id = driver.eval("g.V()").await;
    driver.send(Message::Ping("are you there?".into())).await;
    assert_eq!(driver.message().await, Message::Pong("are you there?".into()));
    driver.connection.graphs.gate.add_permits(1);
    assert_eq!(driver.until_over(&[id]).await[&id].codes, [200]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_read_while_all_turns_are_taken() {
    let mut driver = Driver::new().await;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let turns = (processors / 2).max(1);
    let releases: Vec<_> = (0..turns)
        .map(|_| {
            let ((release, released), begun) = (std::sync::mpsc::channel::<()>(), begun.clone());
            let holding = kith_net::in_turns(async move {
                begun.send(()).expect("the test waits for it");
                let _ = released.recv();
            });
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            std::thread::spawn(move || runtime.block_on(holding));
            release
        })
        .collect();
    for _ in 0..turns {
        begins.recv().await.expect("a turn");
    }
    let waiting = driver.eval("g.inject(1)").await;
    driver.send(Message::Ping("are you there?".into())).await;
    assert_eq!(driver.message().await, Message::Pong("are you there?".into()));
    drop(releases);
    assert_eq!(driver.until_over(&[waiting]).await[&waiting].codes, [200]);
}

/// Arguments of a step whose decoded form takes a while.
fn long_list() -> Vec<Value> {
    (0..200_000).map(Value::Int).collect()
}

#[tokio::test]
async fn others_are_answered_while_a_long_request_waits_to_be_decoded() {
    let occupied = kith_net::occupied().await;
    let mut driver = Driver::new().await;
    let long =
        driver.ask(("traversal", "bytecode"), map(&[("gremlin", traversal("inject", long_list()))])).await;
    let bound = Value::list(long_list());
    let bindings = ("bindings", Value::Map(Arc::new(map(&[("x", bound)]))));
    let text = driver.ask(("", "eval"), map(&[("gremlin", Value::text("g.inject(x)")), bindings])).await;
    let body = format!("{{\"gremlin\":\"g.inject(x)\",\"bindings\":{{\"x\":[{}0]}}}}", "0,".repeat(200_000));
    let (mut client, posted) = connect(CallerRights::anybody(), known());
    let head = format!("POST /gremlin HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
    client.write_all((head + &body).as_bytes()).await.expect("it reads");
    // The same connection goes on, and so do others.
    assert_eq!(driver.reply_to("g.inject(1)").await.codes, [200]);
    driver.send(Message::Ping("are you there?".into())).await;
    assert_eq!(driver.message().await, Message::Pong("are you there?".into()));
    assert_eq!(Driver::new().await.reply_to("g.inject(1)").await.codes, [200]);
    assert_eq!(driver.connection.graphs.asked.lock().len(), 1, "the long ones wait");
    assert!(posted.graphs.asked.lock().is_empty());
    drop(occupied);
    let replies = driver.until_over(&[long, text]).await;
    assert_eq!((replies[&long].values.len(), replies[&text].values.len()), (200_000, 1));
    let mut status = [0; 12];
    client.read_exact(&mut status).await.expect("it is answered");
    assert_eq!(&status, b"HTTP/1.1 200");
}

#[tokio::test]
async fn requests_that_would_be_decoded_to_too_much_are_refused() {
    let connected = known();
    let mut driver = Driver::at(CallerRights::anybody(), Arc::clone(&connected)).await;
    let step = Instruction::new("V", Vec::new());
    let steps = Bytecode { sources: Vec::new(), steps: vec![step; 1_000_000] };
    let steps = map(&[("gremlin", Value::Traversal(Arc::new(steps)))]);
    let nulls = map(&[("gremlin", traversal("inject", vec![Value::Null; 3_000_000]))]);
    for (arguments, expected) in
        [(steps, "more than 10000 steps"), (nulls, "bytes of memory when it is decoded")]
    {
        let id = driver.ask(("traversal", "bytecode"), arguments).await;
        let answer = driver.until_over(&[id]).await.remove(&id).expect("asked");
        assert_eq!(answer.attributes[&Value::text("kith.code")], Value::text("too_large"));
        assert!(answer.message.contains(expected), "{}", answer.message);
    }
    let graphson = format!("{{\"x\":[{}0]}}", "[],".repeat(2_000_000));
    let request =
        json!({"requestId": Uuid::from_u128(7).to_string(), "op": "eval", "processor": "", "args": "here"});
    driver.send(Message::Text(request.to_string().replace("\"here\"", &graphson).into())).await;
    let Message::Text(text) = driver.message().await else { panic!("no frame of text") };
    assert!(text.contains("too_large"), "{text}");
    let long = format!("g.V(){}", ".V()".repeat(20_000));
    assert!(driver.reply_to(&long).await.message.contains("more than 10000 steps"));
    let body = format!("{{\"gremlin\":\"g.V()\",\"bindings\":{graphson}}}");
    let (mut client, _posted) = connect(CallerRights::anybody(), known());
    let head = format!(
        "POST /gremlin HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    client.write_all((head + &body).as_bytes()).await.expect("it reads");
    let mut response = String::new();
    client.read_to_string(&mut response).await.expect("it ends");
    assert!(response.contains("too_large"), "{response}");
    assert!(driver.connection.graphs.asked.lock().is_empty());
    assert_eq!(connected.request_bytes(), 0, "nothing stays charged");
}

#[tokio::test]
async fn other_paths_are_not_found() {
    let (client, _connection) = connect(CallerRights::anybody(), known());
    let Err(Error::Http(response)) = client_async("ws://localhost/graphs", client).await else {
        panic!("accepted");
    };
    assert_eq!(response.status(), 404);
}

#[tokio::test]
async fn http_requests_without_a_websocket_learn_what_this_port_is() {
    for request in ["GET /gremlin HTTP/1.1\r\nhost: localhost\r\n\r\n", "HEAD / HTTP/1.1\r\n\r\n"] {
        let (mut client, connection) = connect(CallerRights::anybody(), known());
        client.write_all(request.as_bytes()).await.expect("it reads");
        client.shutdown().await.expect("it is open");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("it ends");
        assert!(answer.starts_with("HTTP/1.1 426 Upgrade Required\r\n"), "{answer}");
        let is_explained = answer.contains("connect with a WebSocket to ws://HOST:PORT/gremlin");
        assert!(is_explained || request.starts_with("HEAD"), "{answer}");
        connection.task.await.expect("it does not panic").expect("no failure");
    }
}

#[test]
fn refusals_before_http_have_the_length_that_they_claim() {
    for refusal in [NAMES.no_room, NAMES.tls_required] {
        let text = std::str::from_utf8(refusal).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a body");
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{text}");
    }
}

#[test]
fn results_of_many_requests_are_encoded_in_turns() {
    let sockets = async {
        let (mut shares, mut held) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            let connected = known();
            shares.push(connected.share().clone());
            let mut driver = Driver::at(CallerRights::anybody(), connected).await;
            for _ in 0..UNDER_WAY_MAX {
                let arguments =
                    map(&[("gremlin", Value::text("g.V(9000)")), ("batchSize", Value::Int(9_000))]);
                driver.ask(("", "eval"), arguments).await;
            }
            held.push(driver);
        }
        (shares, held)
    };
    let exchanges = async {
        let (mut shares, mut held) = (Vec::new(), Vec::new());
        let body = r#"{"gremlin":"g.V(100000)"}"#;
        let request = format!(
            "POST /gremlin HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        for _ in 0..40 {
            let connected = known();
            shares.push(connected.share().clone());
            let (mut client, connection) = connect(CallerRights::anybody(), connected);
            client.write_all(request.as_bytes()).await.expect("it reads");
            held.push((client, connection.task));
        }
        (shares, held)
    };
    // Without turns, each of the 20 steps would wait for all of the requests.
    for (what, most) in [("sockets", most_turns_beside(sockets)), ("exchanges", most_turns_beside(exchanges))]
    {
        assert!(most < 400, "{what}: {most}");
    }
}
