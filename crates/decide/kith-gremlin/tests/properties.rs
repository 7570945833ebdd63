//! Properties of the codings for any value.

use kith_gremlin::{
    bytecode::{Bytecode, Instruction},
    graphbinary, graphson,
    predicate::Predicate,
    property::{self, Properties},
    value::{
        Edge, GType, Map, Metrics, Order, Path, Property, Set, Token, TraversalMetrics, Value, Vertex,
        VertexProperty, numbers, time,
    },
};
use proptest::{collection::vec, prelude::*};
use std::sync::Arc;

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i8>().prop_map(Value::Byte),
        any::<i16>().prop_map(Value::Short),
        any::<i32>().prop_map(Value::Int),
        any::<i64>().prop_map(Value::Long),
        any::<f32>().prop_map(Value::Float),
        any::<f64>().prop_map(Value::Double),
        any::<u32>().prop_map(|bits| Value::Float(f32::from_bits(bits))),
        any::<u64>().prop_map(|bits| Value::Double(f64::from_bits(bits))),
        any::<i128>().prop_map(|number| Value::BigInteger(Arc::new(number.into()))),
        (any::<i128>(), -100..100_i64)
            .prop_map(|(unscaled, scale)| numbers::decimal(unscaled.into(), scale).expect("a small scale")),
        any::<char>().prop_map(Value::Char),
        "\\PC{0,8}".prop_map(Value::text),
        any::<u128>().prop_map(|id| Value::Uuid(uuid::Uuid::from_u128(id))),
        (-60_000_000_000..250_000_000_000_i64, 0..1_000_000_000_u32)
            .prop_map(|(seconds, nanos)| time::instant(seconds, nanos).expect("a year up to 9,999")),
        (1..9_999_i32, 0..86_400_000_000_000_i64, -1_000..1_000_i32).prop_map(|(year, nanos, minutes)| {
            time::date_time((year, 2, 3), nanos, 60 * minutes).expect("a time")
        }),
        (any::<i64>(), 0..1_000_000_000_u32).prop_map(|(seconds, nanos)| Value::Duration { seconds, nanos }),
        vec(any::<u8>(), 0..9).prop_map(|bytes| Value::Binary(bytes.into())),
        prop_oneof![Just(Value::from(Token::Label)), Just(Order::Shuffle.into()), Just(GType::Uuid.into())],
        "[a-z.]{1,9}".prop_map(|name| Value::Class(name.into())),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 40, 5, |inner| {
        let inner = inner.boxed();
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::list),
            vec(inner.clone(), 0..5).prop_map(|values| Value::Set(Arc::new(values.into_iter().collect()))),
            map(&inner).prop_map(|map| Value::Map(Arc::new(map))),
            vec((inner.clone(), any::<i64>()), 0..4).prop_map(|bulks| Value::BulkSet(Arc::new(bulks))),
            vertex(&inner).prop_map(|vertex| Value::Vertex(Arc::new(vertex))),
            edge(&inner).prop_map(|edge| Value::Edge(Arc::new(edge))),
            vertex_property(&inner).prop_map(Value::VertexProperty),
            property(&inner).prop_map(Value::Property),
            path(&inner).prop_map(|path| Value::Path(Arc::new(path))),
            predicate(&inner).prop_map(|predicate| Value::Predicate(Arc::new(predicate))),
            bytecode(&inner).prop_map(|bytecode| Value::Traversal(Arc::new(bytecode))),
            (any::<i64>(), inner.clone())
                .prop_map(|(bulk, value)| Value::Traverser { bulk, value: Arc::new(value) }),
            metrics(&inner).prop_map(|step| {
                let steps = vec![step.clone(), Metrics { nested: vec![step], ..Metrics::default() }];
                Value::TraversalMetrics(Arc::new(TraversalMetrics { nanos: 1_234_567, steps }))
            }),
        ]
    })
}

/// A value that a property can have.
fn property_value() -> impl Strategy<Value = Value> {
    let scalar = scalar().prop_filter("no class", |value| !matches!(value, Value::Class(_)));
    scalar.prop_recursive(4, 40, 5, |inner| {
        let inner = inner.boxed();
        let text_map = vec((label(), inner.clone()), 0..4).prop_map(|entries| {
            Value::Map(Arc::new(
                entries.into_iter().map(|(key, value)| (Value::String(key), value)).collect(),
            ))
        });
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::list),
            vec(inner.clone(), 0..5).prop_map(|values| Value::Set(Arc::new(values.into_iter().collect()))),
            map(&inner).prop_map(|map| Value::Map(Arc::new(map))),
            text_map,
            vec((inner, any::<i64>()), 0..4).prop_map(|bulks| Value::BulkSet(Arc::new(bulks))),
        ]
    })
}

fn label() -> impl Strategy<Value = Arc<str>> {
    "[a-z@\"é]{0,5}".prop_map(Arc::from)
}

fn map(inner: &BoxedStrategy<Value>) -> impl Strategy<Value = Map> + use<> {
    vec((inner.clone(), inner.clone()), 0..5).prop_map(|entries| entries.into_iter().collect())
}

fn vertex(inner: &BoxedStrategy<Value>) -> impl Strategy<Value = Vertex> + use<> {
    let properties = vec(vertex_property(inner), 1..4).prop_map(|mut properties| {
        // GraphSON groups the properties of a vertex by key.
        properties.sort_by(|a, b| a.key.cmp(&b.key));
        properties
    });
    let properties = prop_oneof![Just(None), properties.prop_map(Some)];
    (inner.clone(), label(), properties)
        .prop_map(|(id, label, properties)| Vertex { properties, ..Vertex::reference(id, label) })
}

fn edge(inner: &BoxedStrategy<Value>) -> impl Strategy<Value = Edge> + use<> {
    let end = || (inner.clone(), label()).prop_map(|(id, label)| Arc::new(Vertex::reference(id, label)));
    let properties = prop_oneof![Just(None), property(inner).prop_map(|property| Some(vec![property]))];
    (inner.clone(), label(), end(), end(), properties).prop_map(
        |(id, label, out_vertex, in_vertex, properties)| Edge {
            id,
            label,
            out_vertex,
            in_vertex,
            properties,
        },
    )
}

fn vertex_property(inner: &BoxedStrategy<Value>) -> impl Strategy<Value = Arc<VertexProperty>> + use<> {
    let properties = prop_oneof![Just(vec![]), property(inner).prop_map(|property| vec![property])];
    (inner.clone(), label(), inner.clone(), properties).prop_map(|(id, key, value, properties)| {
        Arc::new(VertexProperty { id, key, value, vertex: None, properties })
    })
}

fn property(inner: &BoxedStrategy<Value>) -> impl Strategy<Value = Arc<Property>> + use<> {
    (label(), inner.clone()).prop_map(|(key, value)| Arc::new(Property { key, value, element: None }))
}

fn path(inner: &BoxedStrategy<Value>) -> impl Strategy<Value = Path> + use<> {
    let step = (vec(label(), 0..3), inner.clone());
    vec(step, 0..4).prop_map(|steps| {
        let (labels, objects) = steps.into_iter().unzip::<_, _, Vec<_>, _>();
        let labels =
            labels.into_iter().map(|set| set.into_iter().map(Value::String).collect::<Set>()).collect();
        Path { labels, objects }
    })
}

fn predicate(inner: &BoxedStrategy<Value>) -> impl Strategy<Value = Predicate> + use<> {
    let of = |operator: &str, operands| Predicate { operator: operator.into(), operands };
    prop_oneof![
        inner.clone().prop_map(move |value| of("eq", vec![value])),
        inner.clone().prop_map(move |value| of("containing", vec![value])),
        (inner.clone(), inner.clone()).prop_map(move |(a, b)| of("between", vec![a, b])),
        vec(inner.clone(), 0..4).prop_map(move |values| of("within", vec![Value::list(values)])),
    ]
}

fn bytecode(inner: &BoxedStrategy<Value>) -> impl Strategy<Value = Bytecode> + use<> {
    let instruction =
        || (label(), vec(inner.clone(), 0..4)).prop_map(|(name, arguments)| Instruction { name, arguments });
    (vec(instruction(), 0..3), vec(instruction(), 0..4))
        .prop_map(|(sources, steps)| Bytecode { sources, steps })
}

fn metrics(inner: &BoxedStrategy<Value>) -> impl Strategy<Value = Metrics> + use<> {
    let annotations = vec(("[a-c]", inner.clone()), 0..2);
    ("[a-z]{0,4}", 0..1_i64 << 40, any::<i64>(), annotations).prop_map(|(name, nanos, count, annotations)| {
        let counts = vec![("elementCount".to_owned(), count)];
        Metrics { id: "1".to_owned(), name, nanos, counts, annotations, nested: vec![] }
    })
}

/// Everything of a value, also what `==` does not look at, such as the properties of a vertex.
fn whole(value: &Value) -> String {
    format!("{value:?}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn graphbinary_keeps_every_value(value in value()) {
        let bytes = graphbinary::write_value(&value).expect("written");
        let again = graphbinary::read_value(&bytes).expect("read");
        prop_assert_eq!(&again, &value);
        prop_assert_eq!(graphbinary::write_value(&again), Ok(bytes));
    }

    #[test]
    fn graphson_keeps_every_value(value in value()) {
        let json = graphson::to_json(&value).expect("written");
        let again = graphson::read_value(&json.to_string()).expect("read");
        prop_assert_eq!(&again, &value);
        prop_assert_eq!(graphson::to_json(&again), Ok(json));
    }

    #[test]
    fn property_values_come_back_with_their_types(value in property_value(), key in "[a-z@\"é ]{1,9}") {
        let text = property::to_json(&value).expect("written");
        let again = property::from_json(&text).expect("read");
        prop_assert_eq!(&again, &value);
        prop_assert_eq!(property::to_json(&again), Ok(text.clone()));
        // Common parsers keep the text. Negative zero and the like are numbers to them too.
        let parsed: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        prop_assert_eq!(property::from_json(&parsed.to_string()), Ok(value.clone()));
        if !text.contains("NaN") {
            prop_assert_eq!(whole(&again), whole(&value), "also the order of maps and sets");
        }
        let mut properties = Properties::default();
        properties.set(&key, value).expect("a key");
        let record = properties.to_json().expect("written");
        prop_assert_eq!(Properties::from_json(&record), Ok(properties));
    }

    #[test]
    fn no_text_makes_property_values_panic(text in "[\\[\\]{}\":,@a-z0-9.eE+ -]{0,40}") {
        let _ = property::from_json(&text);
        let _ = Properties::from_json(&text);
        let _ = property::from_json(&format!(r#"{{"@type":"g:Map","@value":[{text}]}}"#));
    }

    #[test]
    fn elements_keep_their_properties(value in value()) {
        prop_assume!(!whole(&value).contains("NaN"));
        let bytes = graphbinary::write_value(&value).expect("written");
        prop_assert_eq!(whole(&graphbinary::read_value(&bytes).expect("read")), whole(&value));
    }

    #[test]
    fn no_bytes_make_graphbinary_panic(bytes in vec(any::<u8>(), 0..64), value in value(), at in any::<usize>()) {
        let _ = graphbinary::read_value(&bytes);
        let mut written = graphbinary::write_value(&value).expect("written");
        let at = at % written.len();
        written[at] = written[at].wrapping_add(1 + bytes.len() as u8);
        let _ = graphbinary::read_value(&written);
        graphbinary::read_value(&written[..at]).expect_err("cut");
    }
}

/// A traversal within a traversal, and so on, `depth` times.
fn nested(depth: usize) -> Value {
    let step = |argument| Instruction::new("where", vec![argument]);
    (0..depth).fold(Value::Int(1), |inner, _| {
        Value::Traversal(Arc::new(Bytecode { sources: vec![], steps: vec![step(inner)] }))
    })
}

#[test]
fn the_stack_suffices_for_the_deepest_value() {
    let value = nested(graphbinary::DEPTH_MAX - 1);
    let bytes = graphbinary::write_value(&value).expect("as deep as allowed");
    assert_eq!(graphbinary::read_value(&bytes).as_ref(), Ok(&value));
    let json = graphson::to_json(&value).expect("as deep as allowed").to_string();
    assert_eq!(graphson::read_value(&json).as_ref(), Ok(&value));
    assert!(value.to_string().starts_with("where(where("));

    let value = nested(graphbinary::DEPTH_MAX);
    assert!(graphbinary::write_value(&value).is_err());
    assert!(graphson::to_json(&value).is_err());
}

#[test]
fn endless_depth_in_json_is_refused() {
    for unit in ["[", r#"{"@type":"g:List","@value":["#, r#"{"a":"#] {
        let error = graphson::read_value(&unit.repeat(100_000)).expect_err("no end");
        assert!(error.message.contains("not JSON"), "{error}");
    }
    let text = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let error = graphson::read_value(&text).expect_err("too deep");
    assert_eq!(error.message, "GraphSON, byte 100: values nest deeper than 100");
}
