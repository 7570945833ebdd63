//! Requests of Gremlin drivers, and the values in them.

use super::Seed;
use kith_gremlin::{
    Result, Room,
    bytecode::{Bytecode, Instruction},
    graphbinary, graphson,
    message::{self, Frame, Operation, Serializer},
    value::{Cardinality, Map, Value},
};
use std::{fmt::Debug, sync::Arc};

const BINARY: &str = "application/vnd.graphbinary-v1.0";

/// Input: GraphBinary, which is read both as a value and as a request.
pub fn graphbinary(input: &[u8]) {
    if let Ok(value) = graphbinary::read_value(input) {
        keeps(&value);
    }
    let media_type = [&[BINARY.len() as u8][..], BINARY.as_bytes()].concat();
    request(Frame::Binary(&[&media_type[..], input].concat()));
}

/// Input: GraphSON, which is read both as a value and as a request.
pub fn graphson(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(value) = graphson::read_value(text) {
        keeps(&value);
    }
    request(Frame::Text(text));
}

/// Every request has an answer, in the coding of the request.
fn request(frame: Frame<'_>) {
    match message::decode(frame, &mut Room::alone()) {
        Ok((serializer, request)) => {
            assert_eq!(serializer == Serializer::GraphSon, matches!(frame, Frame::Text(_)));
            match request.operation {
                Operation::Eval { bindings, .. } => keeps(&Value::Map(Arc::new(bindings))),
                Operation::Bytecode(bytecode) => keeps(&Value::Traversal(bytecode)),
                Operation::Authentication(_) => {}
            }
        }
        Err(rejected) => {
            rejected.response().encode(rejected.serializer).expect("an error can be encoded");
        }
    }
}

/// A value can be printed, and is the same after it was written and read.
fn keeps(value: &Value) {
    let text = value.to_string();
    written_again(value, graphbinary::write_value, |bytes| graphbinary::read_value(bytes));
    // GraphSON has durations of metrics in milliseconds, with rounding, and knows strategies by their names only.
    if !text.contains("Metrics") && !format!("{value:?}").contains("Strategy {") {
        written_again(value, graphson::to_json, graphson::from_json);
    }
}

/// Compares bytes: `==` of elements looks at their ids only.
fn written_again<T: PartialEq + Debug>(
    value: &Value,
    write: impl Fn(&Value) -> Result<T>,
    read: impl Fn(&T) -> Result<Value>,
) {
    // Some values have one level more when they are written, such as several operands that become a list.
    let is_too_deep = |error: &kith_gremlin::GremlinError| error.message.contains("deeper");
    let written = match write(value) {
        Ok(written) => written,
        Err(error) => return assert!(is_too_deep(&error), "{error}"),
    };
    match read(&written) {
        Ok(again) => assert_eq!(write(&again), Ok(written)),
        Err(error) => assert!(is_too_deep(&error), "{error}"),
    }
}

/// A traversal that has values of many types.
fn traversal() -> Value {
    let argument = Value::list([
        Value::Null,
        true.into(),
        Value::Byte(-1),
        Value::Short(-2),
        Value::Long(i64::MIN),
        Value::Float(0.1),
        Value::Double(f64::NAN),
        Value::Char('é'),
        Value::Duration { seconds: -1, nanos: 500_000_000 },
        Value::Binary(vec![0, 255].into()),
        Value::Class("org.Class".into()),
        Value::BulkSet(Arc::new(vec![("a".into(), 2)])),
        Value::Map(Arc::new([(Cardinality::List.into(), 1.into())].into_iter().collect())),
        Value::CardinalityValue { cardinality: Cardinality::Set, value: Arc::new("a".into()) },
        Value::Lambda { language: "gremlin-groovy".into(), script: "it".into() },
    ]);
    let inner = Bytecode { sources: vec![], steps: vec![Instruction::new("out", vec!["knows".into()])] };
    let repeat = Instruction::new("repeat", vec![Value::Traversal(Arc::new(inner))]);
    let steps = vec![Instruction::new("V", vec![]), repeat, Instruction::new("inject", vec![argument])];
    let strategy = Value::Strategy { name: "ReadOnlyStrategy".into(), configuration: Arc::new(Map::new()) };
    let sources = vec![Instruction::new("withStrategies", vec![strategy])];
    Value::Traversal(Arc::new(Bytecode { sources, steps }))
}

fn encoded(value: &Value) -> Vec<u8> {
    graphbinary::write_value(value).expect("a small value")
}

/// A request of this operation with one argument.
fn binary_request(processor: &str, operation: &str, name: &str, argument: &Value) -> Vec<u8> {
    let sized = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    let arguments = [encoded(&name.into()), encoded(argument)].concat();
    [&[0x81][..], &[7; 16], &sized(operation), &sized(processor), &[0, 0, 0, 1], &arguments].concat()
}

pub fn graphbinary_seeds() -> Vec<Seed> {
    let bytecode = binary_request("traversal", "bytecode", "gremlin", &traversal());
    vec![
        ("traversal", encoded(&traversal())),
        ("bytecode", bytecode.clone()),
        ("cut", bytecode[..60].to_vec()),
        ("eval", binary_request("", "eval", "gremlin", &"g.V()".into())),
        ("sasl", binary_request("", "authentication", "sasl", &"AHVzZXIAc2VjcmV0".into())),
        // Each of these lists claims as many items as bytes are left.
        ("lists-that-claim-much", [9, 0, 0, 0, 1, 0].repeat(200)),
        // Such a number would take gigabytes in an addition.
        ("decimal-of-great-scale", vec![0x22, 0, 0x80, 0, 0, 0, 0, 0, 0, 1, 1]),
        ("list-as-the-only-operand", encoded_predicate("and")),
    ]
}

/// A predicate whose only operand is a list of one list.
fn encoded_predicate(operator: &str) -> Vec<u8> {
    let lists = encoded(&Value::list([Value::list([Value::list([])])]));
    let length = [0, 0, 0, operator.len() as u8];
    [&[0x1e, 0][..], &length, operator.as_bytes(), &[0, 0, 0, 1], &lists].concat()
}

pub fn graphson_seeds() -> Vec<Seed> {
    let json = graphson::to_json(&traversal()).expect("a small value").to_string();
    let request = |processor: &str, operation: &str, arguments: &str| {
        let id = "41d2e28a-20a4-4ab0-b379-d810dede3786";
        format!(
            r#"{{"requestId":{{"@type":"g:UUID","@value":"{id}"}},"processor":"{processor}","op":"{operation}","args":{arguments}}}"#
        )
        .into_bytes()
    };
    let bytecode =
        request("traversal", "bytecode", &format!(r#"{{"gremlin":{json},"aliases":{{"g":"people"}}}}"#));
    vec![
        ("traversal", json.into_bytes()),
        ("cut", bytecode[..200].to_vec()),
        ("bytecode", bytecode),
        (
            "eval",
            request("", "eval", r#"{"@type":"g:Map","@value":["gremlin","g.V(x)","bindings",{"x":1},"batchSize",64]}"#),
        ),
        ("session", request("session", "close", "{}")),
        (
            "numbers",
            br#"[1,-3000000000,36893488147419103232,1.5,{"@type":"gx:BigDecimal","@value":0.10},{"@type":"g:Float","@value":"-Infinity"}]"#
                .to_vec(),
        ),
        (
            "times",
            br#"[{"@type":"gx:OffsetDateTime","@value":"2023-08-02T00:00-01:02:03"},{"@type":"g:Date","@value":-1}]"#.to_vec(),
        ),
    ]
}
