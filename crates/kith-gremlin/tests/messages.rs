//! Whole frames: requests as gremlin-python sends them (`data/requests.txt`), damaged ones, and answers.

use kith_gremlin::{
    GremlinError,
    message::{self, Frame, Operation, Rejected, Request, Response, Serializer, Status},
    value::Value,
};
use kith_types::ErrorCode;
use std::sync::Arc;
use uuid::Uuid;

const ID: Uuid = Uuid::from_u128(0x41d2_e28a_20a4_4ab0_b379_d810_dede_3786);

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("digits are hexadecimal");
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// What was read in a request, and its frames in GraphBinary and in GraphSON.
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
            match message::decode(Frame::Binary(frame)) {
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
            let rejected = message::decode(Frame::Binary(&binary[..length])).expect_err("cut");
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
            let rejected = message::decode(Frame::Binary(&json[..length])).expect_err("cut");
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
                    let _ = message::decode(Frame::Binary(&frame));
                    frame[at] ^= change;
                }
            }
        }
    }
}

fn rejected(text: &str) -> Rejected {
    message::decode(Frame::Text(text)).expect_err("rejected")
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

    let older = [&[33][..], b"application/vnd.gremlin-v2.0+json", json("", "eval", "{}").as_bytes()].concat();
    let older = message::decode(Frame::Binary(&older)).expect_err("GraphSON 2");
    assert_eq!((older.id, older.serializer), (Some(ID), Serializer::GraphSon));
    assert!(older.error.message.contains("application/vnd.gremlin-v3.0+json"), "{}", older.error);
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
    let request = |sasl: &str| message::decode(Frame::Text(&json("", "authentication", sasl)));
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
