//! Whole frames: requests as gremlin-python sends them (`data/requests.txt`), damaged ones, and answers.

use kith_gremlin::{
    GremlinError, Room, graphbinary, graphson,
    message::{self, Frame, Operation, RejectedRequest, Request, Response, Serializer, Status},
    room::{DECODED_BYTES_MAX, INSTRUCTIONS_MAX},
    text,
    value::{Map, Token, Value},
};
use kith_types::ErrorCode;
use std::sync::Arc;
use uuid::Uuid;

const ID: Uuid = Uuid::from_u128(0x41d2_e28a_20a4_4ab0_b379_d810_dede_3786);

fn decode(frame: Frame<'_>) -> Result<(Serializer, Request), RejectedRequest> {
    message::decode(frame, &mut Room::alone())
}

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("digits are hexadecimal");
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// The content of a request, and its frames in GraphBinary and in GraphSON.
fn lines() -> impl Iterator<Item = (&'static str, [Vec<u8>; 2])> {
    include_str!("data/requests.txt").lines().map(|line| {
        let mut parts = line.split('\t');
        let mut part = || parts.next().expect("three parts");
        (part(), [bytes(part()), bytes(part())])
    })
}

fn described(request: &Request) -> String {
    let aliases = Value::Map(Arc::new(request.options.aliases.clone()));
    let batch_size = request.options.batch_size.map_or_else(|| "None".to_owned(), |size| size.to_string());
    let timeout = request.options.evaluation_timeout;
    match &request.operation {
        Operation::Eval { gremlin, bindings, language } => {
            let bindings = Value::Map(Arc::new(bindings.clone()));
            format!("eval {gremlin} {bindings} {language:?} {aliases} {batch_size} {timeout:?}")
        }
        Operation::Bytecode(bytecode) => format!("bytecode {bytecode} {aliases} {batch_size} {timeout:?}"),
        Operation::Authentication(credentials) => format!("authentication {}", credentials.user),
    }
}

#[test]
fn requests_of_gremlin_python_are_read() {
    for (expected, frames) in lines() {
        for (frame, serializer) in frames.iter().zip([Serializer::GraphBinary, Serializer::GraphSon]) {
            match decode(Frame::Binary(frame)) {
                Ok((coding, request)) => {
                    assert_eq!(
                        (described(&request).as_str(), coding, request.id),
                        (expected, serializer, ID)
                    );
                }
                Err(rejected) => {
                    assert_eq!(format!("rejected: {}", rejected.error), expected);
                    assert_eq!((rejected.id, rejected.serializer), (Some(ID), serializer));
                }
            }
        }
    }
}

#[test]
fn a_request_that_is_cut_is_rejected_with_its_id() {
    for (expected, [binary, json]) in lines() {
        let body = 1 + usize::from(binary[0]);
        for length in 0..binary.len() {
            let rejected = decode(Frame::Binary(&binary[..length])).expect_err("cut");
            let has_id = body + 17 <= length;
            assert_eq!(
                rejected.id,
                has_id.then_some(ID),
                "{expected} after {length} bytes: {}",
                rejected.error
            );
        }
        let id_end = String::from_utf8_lossy(&json).find("3786").expect("the end of the id") + 4;
        for length in 0..json.len() {
            let rejected = decode(Frame::Binary(&json[..length])).expect_err("cut");
            assert_eq!(rejected.id, (id_end <= length).then_some(ID), "{expected} after {length} bytes");
        }
    }
}

#[test]
fn no_changed_byte_makes_a_request_panic() {
    for (_, frames) in lines() {
        for mut frame in frames {
            for at in 0..frame.len() {
                for change in [1, 0x7f, 0xff] {
                    frame[at] ^= change;
                    let _ = decode(Frame::Binary(&frame));
                    frame[at] ^= change;
                }
            }
        }
    }
}

fn rejected(text: &str) -> RejectedRequest {
    decode(Frame::Text(text)).expect_err("rejected")
}

fn json(processor: &str, operation: &str, arguments: &str) -> String {
    format!(r#"{{"requestId":"{ID}","processor":"{processor}","op":"{operation}","args":{arguments}}}"#)
}

#[test]
fn what_is_not_supported_is_named() {
    let unsupported = |processor: &str, operation: &str| {
        let rejected = rejected(&json(processor, operation, "{}"));
        assert_eq!((rejected.id, rejected.error.code), (Some(ID), ErrorCode::UnsupportedOperation));
        rejected.error.message
    };
    let other = "the operation \"eval\" of the processor \"cypher\" is not supported";
    assert_eq!(unsupported("cypher", "eval"), other);
    assert!(unsupported("session", "eval").starts_with("sessions are not supported"));
    let mechanism = json("", "authentication", r#"{"saslMechanism":"GSSAPI","sasl":""}"#);
    assert_eq!(
        rejected(&mechanism).error.message,
        "the SASL mechanism \"GSSAPI\" is not supported; use PLAIN"
    );

    let older = [&[33][..], b"application/vnd.gremlin-v1.0+json", json("", "eval", "{}").as_bytes()].concat();
    let older = decode(Frame::Binary(&older)).expect_err("GraphSON 1");
    assert_eq!((older.id, older.serializer), (Some(ID), Serializer::GraphSon2));
    assert!(older.error.message.contains("application/vnd.gremlin-v3.0+json"), "{}", older.error);
}

#[test]
fn graphson_2_is_answered_with_graphson_2() {
    let arguments = r#"{"gremlin":{"@type":"g:Bytecode","@value":{"step":[["V",[{"@type":"g:Int32","@value":1}]],
        ["has","age",{"@type":"g:P","@value":{"predicate":"within","value":[{"@type":"g:Int32","@value":2}]}}]]}},
        "aliases":{"g":"people"}}"#;
    let request = json("traversal", "bytecode", arguments);
    let frame = [&[33][..], b"application/vnd.gremlin-v2.0+json", request.as_bytes()].concat();
    let (serializer, request) = decode(Frame::Binary(&frame)).expect("a request");
    assert_eq!((serializer, request.id), (Serializer::GraphSon2, ID));

    let text =
        |value: &Value| graphson::to_json_of(graphson::Version::Two, value).map(|json| json.to_string());
    let list = Value::list([Value::Int(1), Value::text("a")]);
    let set = Value::Set(Arc::new([Value::text("a")].into_iter().collect()));
    let map = |entries: Vec<(Value, Value)>| Value::Map(Arc::new(entries.into_iter().collect()));
    let nested = map(vec![(Token::Id.into(), list.clone()), (Value::Int(7), set)]);
    let shown = r#"{"7":["a"],"id":[{"@type":"g:Int32","@value":1},"a"]}"#;
    assert_eq!(text(&nested).as_deref(), Ok(shown));
    let bulks = |count| Value::BulkSet(Arc::new(vec![(Value::text("a"), count)]));
    assert_eq!(text(&bulks(2)).as_deref(), Ok(r#"["a","a"]"#));
    assert_eq!(text(&bulks(i64::MAX)).expect_err("too many").code, ErrorCode::TooLarge);
    let ambiguous = map(vec![(Value::Int(1), list.clone()), (Value::text("1"), list)]);
    assert!(text(&ambiguous).expect_err("two keys").message.contains("two keys \"1\""));

    let traverser = Value::Traverser { bulk: 3, value: Arc::new(nested) };
    let answer = Response::success(ID, vec![traverser]).encode(serializer).expect("encoded");
    let answer: serde_json::Value = serde_json::from_slice(&answer).expect("JSON");
    assert_eq!(answer["result"]["meta"], serde_json::json!({}));
    assert_eq!(answer["status"]["attributes"], serde_json::json!({}));
    let first = &answer["result"]["data"][0];
    assert_eq!(
        (&first["@type"], first["@value"]["value"].to_string()),
        (&"g:Traverser".into(), shown.to_owned())
    );
}

#[test]
fn wrong_arguments_are_named() {
    let error = |arguments: &str| rejected(&json("", "eval", arguments)).error.message;
    assert_eq!(error("{}"), "the argument \"gremlin\" is missing");
    assert_eq!(error(r#"{"gremlin":1}"#), "the argument \"gremlin\" must be a String, not an Int");
    assert_eq!(
        error(r#"{"gremlin":"g","bindings":[]}"#),
        "the argument \"bindings\" must be a Map, not a List"
    );
    assert_eq!(
        error(r#"{"gremlin":"g","bindings":{"@type":"g:Map","@value":[1,2]}}"#),
        "the key 1 of the argument \"bindings\" must be a String, not an Int"
    );
    assert_eq!(
        error(r#"{"gremlin":"g","aliases":{"g":1}}"#),
        "each value of the argument \"aliases\" must be a String, not an Int"
    );
    assert!(error(r#"{"gremlin":"g","batchSize":0}"#).contains("\"batchSize\" is 0"));
    assert!(error(r#"{"gremlin":"g","evaluationTimeout":-1}"#).contains("negative: -1"));
    assert!(error(r#"{"gremlin":"g","materializeProperties":"some"}"#).contains("\"all\" or \"tokens\""));
    let bytecode = rejected(&json("traversal", "bytecode", r#"{"gremlin":"g.V()"}"#)).error.message;
    assert_eq!(bytecode, "the argument \"gremlin\" must be a Traversal, not a String");
    assert!(rejected(r#"{"op":"eval","args":{"gremlin":"1"}}"#).error.message.contains("no \"requestId\""));
    assert_eq!(rejected("[]").error.message, "GraphSON, byte 0: an object is expected");
}

#[test]
fn credentials_are_read_and_not_shown() {
    let request = |sasl: &str| decode(Frame::Text(&json("", "authentication", sasl)));
    let (_, plain) = request(r#"{"saslMechanism":"PLAIN","sasl":"AHVzZXIAc2VjcmV0"}"#).expect("credentials");
    let shown = format!("{plain:?}");
    assert!(shown.contains("user") && !shown.contains("secret"), "{shown}");
    let Operation::Authentication(credentials) = plain.operation else { panic!("authentication") };
    assert_eq!((credentials.user.as_str(), credentials.password.as_str()), ("user", "secret"));
    for sasl in [r#"{"sasl":"?"}"#, r#"{"sasl":"dXNlcg=="}"#, r#"{"sasl":"AAAAAA=="}"#] {
        assert_eq!(request(sasl).expect_err("malformed").response().status, Status::Unauthorized);
    }
}

#[test]
fn an_answer_has_the_bytes_of_graphbinary() {
    let answer = Response::partial(ID, vec![Value::Int(7)]);
    let id = "41d2e28a20a44ab0b379d810dede3786";
    let head = format!("8100{id}000000ce00000000000000000000000000");
    let encoded = answer.encode(Serializer::GraphBinary).expect("encoded");
    assert_eq!(encoded, bytes(&format!("{head}090000000001010000000007")));
    let texts = answer.encode(Serializer::GraphBinaryText).expect("encoded");
    assert_eq!(texts, bytes(&format!("{head}09000000000103000000000137")));
    let error = Response::failure(None, &GremlinError::bad("no"));
    let encoded = error.encode(Serializer::GraphBinary).expect("encoded");
    assert_eq!(encoded[..13], bytes("8101000001f300000000026e6f"));
    assert_eq!(encoded[encoded.len() - 2..], [0xfe, 1], "no data");
}

#[test]
fn an_answer_has_the_fields_of_graphson() {
    let answer = Response::success(ID, vec![Value::Int(7)]).encode(Serializer::GraphSon).expect("encoded");
    let answer: serde_json::Value = serde_json::from_slice(&answer).expect("JSON");
    assert_eq!(answer["requestId"], ID.to_string());
    assert_eq!(answer["status"]["code"], 200);
    assert_eq!(answer["result"]["data"]["@value"][0]["@value"], 7);
    let denied = GremlinError::new(ErrorCode::PermissionDenied, "no");
    let answer = Response::failure(Some(ID), &denied).encode(Serializer::GraphSon).expect("encoded");
    let answer: serde_json::Value = serde_json::from_slice(&answer).expect("JSON");
    assert_eq!((&answer["status"]["code"], &answer["status"]["message"]), (&403.into(), &"no".into()));
    assert_eq!(
        answer["status"]["attributes"]["@value"],
        serde_json::json!(["kith.code", "permission_denied"])
    );
    assert!(answer["result"]["data"].is_null());
}

/// The most memory that the process of these tests may take: the decoded forms of three requests at once, all inputs, and a reserve.
const PEAK_KIB_MAX: u64 = 500 << 10;

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Checks that a decoder refuses this input before it takes more memory than a request may take.
fn refused(what: &str, decoded: impl FnOnce(&mut Room) -> Result<(), GremlinError>) {
    let mut room = Room::new(|bytes| bytes <= DECODED_BYTES_MAX);
    let error = decoded(&mut room).expect_err(what);
    assert_eq!(error.code, ErrorCode::TooLarge, "{what}: {error}");
    assert!(peak_kib() < PEAK_KIB_MAX, "{what}: {} KiB", peak_kib());
}

#[test]
fn short_binary_input_does_not_become_large_values() {
    let head = |code: u8, count: usize| [&[code, 0][..], &(count as i32).to_be_bytes()].concat();
    let many = |code: u8, count: usize, item: &[u8]| [head(code, count), item.repeat(count)].concat();
    let step = [&[0, 0, 0, 1, b'V'][..], &[0; 4]].concat();
    let nested = (0..90).fold(vec![0; 7_000_000], |bytes, _| [head(9, bytes.len() / 4), bytes].concat());
    for (what, bytes) in [
        ("steps", [many(0x15, 1_000_000, &step), vec![0; 4]].concat()),
        ("sources", [vec![0x15, 0, 0, 0, 0, 0], many(0, 1_000_000, &step)[2..].to_vec()].concat()),
        ("nested traversals", many(9, 400_000, &[head(0x15, 1), step.clone(), vec![0; 4]].concat())),
        ("nulls", many(9, 6_000_000, &[0xfe, 1])),
        ("lists that claim to be long", nested),
        ("empty texts", many(9, 2_000_000, &head(3, 0))),
        ("empty lists", many(9, 2_000_000, &head(9, 0))),
        ("empty maps", many(9, 1_500_000, &head(10, 0))),
        ("a set", many(11, 2_000_000, &[1, 0, 0, 0, 0, 7])),
        ("a bulk set", many(0x2a, 1_000_000, &[0xfe, 1, 0, 0, 0, 0, 0, 0, 0, 1])),
        ("a map", many(10, 2_000_000, &[0xfe, 1, 0xfe, 1])),
        ("predicates", many(9, 1_000_000, &[0x1e, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
        ("large integers", many(9, 1_500_000, &[0x23, 0, 0, 0, 0, 1, 7])),
        ("vertices", many(9, 600_000, &[0x11, 0, 0xfe, 1, 0, 0, 0, 0, 0xfe, 1])),
        ("paths", many(9, 500_000, &[&[0x0e, 0][..], &head(9, 0), &head(9, 0)].concat())),
    ] {
        refused(what, |room| graphbinary::read_value_within(&bytes, room).map(drop));
    }
}

#[test]
fn short_json_does_not_become_large_values() {
    let many = |item: &str, count: usize| vec![item; count].join(",");
    let list = |item: &str, count: usize| format!("[{}]", many(item, count));
    let steps =
        |item: &str| format!(r#"{{"@type":"g:Bytecode","@value":{{"step":{}}}}}"#, list(item, 1_000_000));
    let typed = |name: &str, value: &str| format!(r#"{{"@type":"{name}","@value":{value}}}"#);
    let deep = (0..90).fold(list("1", 1_000_000), |text, _| typed("g:List", &format!("[{text}]")));
    for (what, text) in [
        ("steps", steps(r#"["V"]"#)),
        ("numbers", list("1", 4_000_000)),
        ("empty lists", list("[]", 3_000_000)),
        ("empty objects", list("{}", 3_000_000)),
        ("empty texts", list(r#""""#, 3_000_000)),
        ("one field again and again", format!("{{{}}}", many(r#""a":1"#, 1_500_000))),
        ("fields of strategies", typed("g:XStrategy", &format!("{{{}}}", many(r#""a":1"#, 1_500_000)))),
        ("a set", typed("g:Set", &list("1", 3_000_000))),
        ("a map", typed("g:Map", &list("1", 3_000_000))),
        ("a bulk set", typed("g:BulkSet", &list("1", 3_000_000))),
        ("predicates", list(r#"{"@type":"g:P","@value":{"predicate":"","value":1}}"#, 350_000)),
        ("vertices", list(r#"{"@type":"g:Vertex","@value":{"id":1}}"#, 350_000)),
        ("an endless text in many levels", deep),
    ] {
        refused(what, |room| graphson::read_value_within(&text, room).map(drop));
        let body = format!(r#"{{"gremlin":"g.V()","bindings":{{"x":{text}}}}}"#);
        refused(what, |room| message::http::decode_http(body.as_bytes(), ID, room).map(drop));
        let frame = json("", "eval", &body);
        refused(what, |room| message::decode(Frame::Text(&frame), room).map(drop).map_err(|it| it.error));
    }
}

#[test]
fn short_texts_do_not_become_large_values() {
    let list = |item: &str, count: usize| format!("g.inject({})", vec![item; count].join(","));
    let long = "a".repeat(500_000);
    for (what, gremlin) in [
        ("steps", format!("g.V(){}", ".V()".repeat(200_000))),
        ("nested steps", list("V()", 200_000)),
        ("calls of the source", format!("g{}.V()", ".withPath()".repeat(90_000))),
        ("ranges with long prefixes", format!("g.inject('{long}a'..'{long}\\u2fff')")),
    ] {
        let inputs = text::Inputs { bindings: &Map::new(), now: Default::default(), entropy: 7 };
        refused(what, |room| Ok(text::parse_within(&gremlin, &inputs, room).map(drop)?));
    }
    // A variable stands for the same value wherever it is, and is written as often.
    let bindings = Map::from_iter([("x".into(), Value::text(&*long))]);
    let inputs = text::Inputs { bindings: &bindings, now: Default::default(), entropy: 7 };
    let script = text::parse(&list("x", 10_000), &inputs).expect("short enough");
    let value = Value::Traversal(Arc::new(script.bytecode));
    refused("a variable that occurs often", |room| graphbinary::write_value_within(&value, room).map(drop));
}

#[test]
fn what_is_within_the_bounds_is_read_and_its_memory_is_asked_for() {
    let text = format!("g.inject(0){}", ".identity()".repeat(INSTRUCTIONS_MAX - 1));
    let inputs = text::Inputs { bindings: &Map::new(), now: Default::default(), entropy: 7 };
    let script = text::parse(&text, &inputs).expect("as many steps as there may be");
    assert!(text::parse(&format!("{text}.identity()"), &inputs).is_err());
    let bytes = graphbinary::write_value(&Value::Traversal(Arc::new(script.bytecode))).expect("short");
    let (sender, asked) = std::sync::mpsc::channel();
    let mut room = Room::new(move |bytes| sender.send(bytes).is_ok());
    graphbinary::read_value_within(&bytes, &mut room).expect("as many steps as there may be");
    let most = asked.try_iter().max().expect("memory is asked for");
    assert!(bytes.len() < most && room.taken() <= most, "{most}");
    let mut none = Room::new(|_| false);
    let error = graphbinary::read_value_within(&bytes, &mut none).expect_err("no memory");
    assert_eq!(error.code, ErrorCode::Overloaded);
    // A long list of numbers is no attack.
    let numbers = format!("[{}]", vec!["1"; 500_000].join(","));
    let value = graphson::read_value_within(&numbers, &mut Room::alone()).expect("it fits");
    let bytes = graphbinary::write_value(&value).expect("short");
    graphbinary::read_value_within(&bytes, &mut Room::alone()).expect("it fits");
}
