//! Tests of requests and their answers.

use super::*;

#[tokio::test]
async fn a_text_is_answered_with_values_and_a_traversal_with_traversers() {
    let mut driver = Driver::new().await;
    let reply = driver.reply_to("g.inject(1, 'a')").await;
    assert_eq!((reply.codes, reply.values), (vec![200], vec![Value::Int(1), Value::text("a")]));
    assert_eq!(driver.connection.graphs.last(), ("g".to_owned(), "inject(1, a)".to_owned()));
    assert_eq!(driver.reply_to("g.V(3)").await.values, [const { "x" }; 3].map(Value::text));

    let arguments = map(&[("gremlin", traversal("V", vec![Value::Int(3)])), aliases("people")]);
    let id = driver.ask(("traversal", "bytecode"), arguments).await;
    let reply = driver.until_over(&[id]).await.remove(&id).expect("asked");
    let traverser = Value::Traverser { bulk: 3, value: Arc::new(Value::text("x")) };
    assert_eq!((reply.codes, reply.values), (vec![200], vec![traverser]));
    assert_eq!(driver.connection.graphs.last().0, "people");
    assert_eq!(driver.reply_to("g.inject()").await.codes, [204]);
}

#[tokio::test]
async fn results_come_in_batches() {
    let mut driver = Driver::new().await;
    let reply = driver.reply_to("g.V(150)").await;
    assert_eq!((reply.codes, reply.values.len()), (vec![206, 206, 200], 150));
    assert_eq!(driver.reply_to("g.V(64)").await.codes, [200]);
    let arguments = map(&[
        ("gremlin", Value::text("g.V(x)")),
        ("bindings", Value::Map(Arc::new(map(&[("x", Value::Int(7))])))),
        ("batchSize", Value::Int(3)),
    ]);
    let id = driver.ask(("", "eval"), arguments).await;
    assert_eq!(driver.until_over(&[id]).await[&id].codes, [206, 206, 200]);
    // Three texts of 600 KB do not fit into one message.
    let long = Value::text("y".repeat(600_000));
    let arguments = map(&[("gremlin", traversal("inject", vec![long.clone(), long.clone(), long]))]);
    let id = driver.ask(("traversal", "bytecode"), arguments).await;
    assert_eq!(driver.until_over(&[id]).await[&id].codes, [206, 206, 200]);
    let reply = driver.reply_to("g.V(10000001L)").await;
    assert_eq!(reply.codes, [597]);
    assert!(
        reply.message.contains("has 10000001 results or more; at most 10000000 are sent one by one (end it")
    );
}

#[tokio::test]
async fn first_results_are_sent_while_later_ones_are_computed() {
    let mut driver = Driver::new().await;
    let asking = |text| map(&[("gremlin", Value::text(text)), ("batchSize", Value::Int(1))]);
    let id = driver.ask(("", "eval"), asking("g.E(1, 2, 3)")).await;
    for value in [1, 2] {
        let (of, code, reply) = driver.read().await;
        assert_eq!((of, code, reply.values), (id, 206, vec![Value::Int(value)]));
    }
    let graphs = Arc::clone(&driver.connection.graphs);
    assert_eq!(graphs.under_way.load(Ordering::SeqCst), 1, "the traversal goes on");
    graphs.gate.add_permits(1);
    let reply = driver.until_over(&[id]).await.remove(&id).expect("asked");
    assert_eq!((reply.codes, reply.values), (vec![206, 200], vec![Value::Int(3), Value::Int(0)]));
    // Results beyond the parts that may wait come with the answer.
    let reply = driver.reply_to("g.E(1, 2, 3, 4, 5, 6, 7, 8)").await;
    assert_eq!(reply.values, [1, 2, 3, 4, 5, 6, 7, 8, 0].map(Value::Int));
    // `toSet()` and `next()` need the whole answer, so nothing is sent before the end.
    for (text, values) in [("g.E(1, 2, 1).toSet()", &[1, 2, 0][..]), ("g.E(1, 2).next()", &[1])] {
        let values = values.iter().copied().map(Value::Int).collect::<Vec<_>>();
        assert_eq!(driver.reply_to(text).await.values, values, "{text}");
    }
    // If the traversal fails, the driver first gets the full batches of the results that were handed over.
    let id = driver.ask(("", "eval"), asking("g.E(1, 2, null)")).await;
    let reply = driver.until_over(&[id]).await.remove(&id).expect("asked");
    assert_eq!((reply.codes, reply.values), (vec![206, 206, 598], vec![Value::Int(1), Value::Int(2)]));
}

#[tokio::test]
async fn the_end_of_a_text_says_what_becomes_of_the_results() {
    let mut driver = Driver::new().await;
    let ints = |values: &[i32]| values.iter().copied().map(Value::Int).collect::<Vec<_>>();
    for (text, values, asked) in [
        ("g.inject(1, 2, 2).toList()", ints(&[1, 2, 2]), "inject(1, 2, 2)"),
        ("g.inject(1, 2, 2).toSet()", ints(&[1, 2]), "inject(1, 2, 2)"),
        ("g.inject(1, 2).next()", ints(&[1]), "inject(1, 2).limit(1)"),
        ("g.inject([1, 2], 3).next()", ints(&[1, 2]), "inject([1, 2], 3).limit(1)"),
        ("g.inject(1, 2, 3).next(2)", ints(&[1, 2]), "inject(1, 2, 3).limit(2)"),
        ("g.inject(1).hasNext()", vec![Value::Bool(true)], "inject(1).limit(1)"),
        ("g.inject().hasNext()", vec![Value::Bool(false)], "inject().limit(1)"),
        ("g.inject().tryNext()", vec![], "inject().limit(1)"),
        ("g.inject(1).iterate()", vec![], "inject(1).discard()"),
        ("g.inject(1).explain()", ints(&[1]), "inject(1).explain()"),
        ("g.inject(1).profile().next()", ints(&[1]), "inject(1).profile()"),
    ] {
        let reply = driver.reply_to(text).await;
        assert_eq!(reply.values, values, "{text}");
        assert_eq!(driver.connection.graphs.last().1, asked, "{text}");
    }
    let reply = driver.reply_to("g.inject([a: 1, b: 2]).next()").await;
    let entry = |key, value| Value::Map(Arc::new(map(&[(key, Value::Int(value))])));
    assert_eq!(reply.values, [entry("a", 1), entry("b", 2)]);
    assert_eq!(driver.reply_to("g.inject().next()").await.codes, [499]);
}

#[tokio::test]
async fn graphson_is_answered_with_graphson() {
    let mut driver = Driver::new().await;
    let id = Uuid::from_u128(7).to_string();
    let arguments = json!({"gremlin": "g.inject('a')", "language": "gremlin-lang", "evaluationTimeout": 70,
        "materializeProperties": "tokens"});
    let request = json!({"requestId": id, "op": "eval", "processor": "", "args": arguments}).to_string();
    driver.send(Message::Text(request.clone().into())).await;
    let Message::Text(text) = driver.message().await else { panic!("no frame of text") };
    let answer: Json = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&answer["requestId"], &answer["status"]["code"]), (&json!(id), &json!(200)));
    assert_eq!(answer["result"]["data"], json!({"@type": "g:List", "@value": ["a"]}));
    let asked = driver.connection.graphs.asked.lock().last().cloned().expect("asked");
    assert_eq!(asked.options.deadline, Some(Duration::from_millis(70)));
    assert!(matches!(asked.question, Question::Gremlin { query, .. } if !query.with_properties));

    let media_type = "application/vnd.gremlin-v3.0+json";
    let frame = [&[media_type.len() as u8], media_type.as_bytes(), request.as_bytes()].concat();
    driver.send(Message::Binary(frame.into())).await;
    let Message::Binary(bytes) = driver.message().await else { panic!("no frame of bytes") };
    assert_eq!(bytes, text.as_bytes());

    let media_type = "application/vnd.gremlin-v2.0+json";
    let frame = [&[media_type.len() as u8], media_type.as_bytes(), request.as_bytes()].concat();
    driver.send(Message::Binary(frame.into())).await;
    let Message::Binary(bytes) = driver.message().await else { panic!("no frame of bytes") };
    let answer: Json = serde_json::from_slice(&bytes).expect("JSON");
    assert_eq!((&answer["status"]["code"], &answer["result"]["data"]), (&json!(200), &json!(["a"])));
}

#[tokio::test]
async fn errors_have_codes_of_gremlin_server_and_of_kith() {
    let mut driver = Driver::new().await;
    for (text, code, kith, message) in [
        ("g.E()", 598, "deadline_exceeded", "the deadline of 5 ms passed"),
        ("g.addV()", 596, "overloaded", "overloaded: too much"),
        ("g.V().otu()", 499, "bad_request", "did you mean \"out\"?"),
        ("g.union(identity())", 595, "traversal_failed", "no such luck"),
        ("g.V().map{it}", 499, "unsupported_operation", "line 1, column"),
    ] {
        let reply = driver.reply_to(text).await;
        assert_eq!(reply.codes, [code], "{text}: {}", reply.message);
        assert_eq!(reply.attributes[&Value::text("kith.code")], Value::text(kith), "{text}");
        assert!(reply.message.contains(message), "{text}: {}", reply.message);
    }
    let reply = driver.reply_to("g.addV()").await;
    assert_eq!(reply.attributes[&Value::text("kith.retry_after_ms")], Value::Long(100));
    let arguments = map(&[("gremlin", Value::text("g.V()")), ("language", Value::text("cypher"))]);
    let id = driver.ask(("", "eval"), arguments).await;
    let reply = driver.until_over(&[id]).await.remove(&id).expect("asked");
    assert!(reply.codes == [499] && reply.message.contains("the language \"cypher\" is not supported"));
}

#[tokio::test]
async fn a_traversal_that_wrote_is_not_overloaded_if_its_results_are_lost() {
    let mut driver = Driver::at(CallerRights::anybody(), known_within(1 << 20)).await;
    let text = "x".repeat(2 << 20);
    for (step, code, kith) in [("inject", 596, "overloaded"), ("addV", 597, "partly_written")] {
        let argument = if step == "inject" { Value::text(&*text) } else { Value::Int(2 << 20) };
        let arguments = map(&[("gremlin", traversal(step, vec![argument])), aliases("village")]);
        let id = driver.ask(("traversal", "bytecode"), arguments).await;
        let reply = driver.until_over(&[id]).await.remove(&id).expect("asked");
        assert_eq!(reply.codes, [code], "{step}: {}", reply.message);
        assert_eq!(reply.attributes[&Value::text("kith.code")], Value::text(kith), "{step}");
        assert!(reply.message.contains("memory"), "{step}: {}", reply.message);
    }
    assert!(driver.reply_to("g.V(1)").await.codes == [200], "the connection goes on");
}

#[tokio::test]
async fn what_is_no_request_is_answered_and_the_connection_goes_on() {
    let mut driver = Driver::new().await;
    for (operation, expected) in [
        (("", "dance"), "the operation \"dance\" of the processor \"\" is not supported"),
        (("session", "eval"), "sessions are not supported"),
        (("traversal", "bytecode"), "the argument \"gremlin\" is missing"),
    ] {
        let id = driver.ask(operation, Map::new()).await;
        let answer = driver.until_over(&[id]).await.remove(&id).expect("asked");
        assert!(answer.codes == [499] && answer.message.contains(expected), "{answer:?}");
    }
    driver.send(Message::Text("{".into())).await;
    let Message::Text(text) = driver.message().await else { panic!("no frame of text") };
    let report: Json = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&report["requestId"], &report["status"]["code"]), (&Json::Null, &json!(499)));
    assert_eq!(driver.reply_to("g.inject(1)").await.codes, [200]);
}
