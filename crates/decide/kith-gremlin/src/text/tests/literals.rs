//! Tests of literals, constants and constructed values.

use super::{error, script, shown, value};
use crate::{
    text::{STEPS, words},
    value::{
        Cardinality, DateUnit, Direction, Map, Merge, Operator, Order, Scope, Set, Symbol, Token, Value,
    },
};
use std::sync::Arc;

fn list(values: impl IntoIterator<Item = Value>) -> Value {
    Value::list(values.into_iter().collect::<Vec<_>>())
}

#[test]
fn numbers_have_types() {
    let cases: [(&str, Value); 22] = [
        ("1", Value::Int(1)),
        ("+1", Value::Int(1)),
        ("-2147483648", Value::Int(i32::MIN)),
        ("2147483648", Value::Long(2_147_483_648)),
        ("9223372036854775808", Value::BigInteger(Arc::new((1_u64 << 63).into()))),
        ("1b", Value::Byte(1)),
        ("1S", Value::Short(1)),
        ("1i", Value::Int(1)),
        ("1L", Value::Long(1)),
        ("1n", Value::BigInteger(Arc::new(1.into()))),
        ("1_000", Value::Int(1_000)),
        ("0x1F", Value::Int(31)),
        ("-0x1bL", Value::Long(-27)),
        ("017", Value::Int(15)),
        ("1.5", Value::Double(1.5)),
        ("-1e3", Value::Double(-1e3)),
        ("1f", Value::Float(1.0)),
        ("1.5D", Value::Double(1.5)),
        ("07.5", Value::Double(7.5)),
        ("NaN", Value::Double(f64::NAN)),
        ("-Infinity", Value::Double(f64::NEG_INFINITY)),
        ("1.50m", Value::BigDecimal(Arc::new("1.50".parse().expect("a decimal")))),
    ];
    for (literal, expected) in cases {
        assert_eq!(value(literal), expected, "{literal}");
    }
    assert!(error("g.V(128b)").contains("128b does not fit a Byte"));
    assert!(error("g.V(09)").contains("09 is no number"));
    assert!(error("g.V(1x)").contains("no suffix"));
    assert!(error("g.V(1e99999m)").contains("10000"));
    assert!(error(&format!("g.V({})", "1".repeat(20_000))).contains("10000 characters"));
}

#[test]
fn strings_have_escapes() {
    let cases = [
        (r#""it's""#, "it's"),
        (r#"'a "b" \'c\''"#, "a \"b\" 'c'"),
        (r#""\b\t\n\f\r\\\$""#, "\u{8}\t\n\u{c}\r\\$"),
        (r#""\u0041\uu00e9""#, "Aé"),
        (r#""\ud83d\ude00 é""#, "😀 é"),
        (r#""\101\7\400""#, "A\u{7} 0"),
        ("'a\\\nb'", "ab"),
        ("''", ""),
    ];
    for (literal, expected) in cases {
        assert_eq!(value(literal), expected.into(), "{literal}");
    }
    assert_eq!(error(r#"g.V("ab"#), "line 1, column 5: this string has no closing quote");
    assert_eq!(error(r"g.V('é\x')"), r"line 1, column 7: unknown escape \x; write \\ for a backslash");
    assert!(error(r"g.V('\ud83d')").contains("surrogate"));
    assert!(error(r"g.V('\u00é')").contains("four hexadecimal digits"));
    assert!(error("g.V('\\").contains("ends within an escape"));
}

#[test]
fn collections_and_ranges_nest() {
    assert_eq!(value("[1, 'a', [null]]"), list([1.into(), "a".into(), list([Value::Null])]));
    assert_eq!(value("[]"), list([]));
    assert_eq!(value("[:]"), Value::Map(Map::default().into()));
    let map: Map = [
        ("name".into(), "x".into()),
        (Token::Label.into(), true.into()),
        (Direction::Out.into(), 1.into()),
        (list([]), 2.into()),
        ("a b".into(), Value::Int(7)),
    ]
    .into_iter()
    .collect();
    assert_eq!(
        value("[name: 'x', (T.label): true, Direction.from: 1, []: 2, 'a b': x]"),
        Value::Map(map.into())
    );
    let set = [1, 2].map(Value::from).into_iter().collect::<Set>();
    assert_eq!(value("{1, 2, 1}"), Value::Set(set.into()));
    assert_eq!(value("1..3"), list([1, 2, 3].map(Value::from)));
    assert_eq!(value("[2..0]"), list([list([2, 1, 0].map(Value::from))]));
    assert_eq!(value("'xa'..'xc'"), list(["xa", "xb", "xc"].map(Value::from)));
    assert!(error("g.V('a'..'bc')").contains("last characters"));
    assert!(error("g.V(1..3L)").contains("two Int"));
    assert!(error("g.inject(1..60000, 1..60000)").contains("100000 values"));
    assert!(error("g.V(-2147483648..2147483647)").contains("100000 values"));
    for text in ["g.V([1,])", "g.V([1 2])", "g.V([,])", "g.V([a:1,2])", "g.V({1)", "g.V(1,)"] {
        assert!(error(text).contains("expected"), "{text}");
    }
}

#[test]
fn constants_stand_by_themselves_or_behind_their_class() {
    let cases: [(&str, Symbol); 12] = [
        ("desc", Order::Descending.into()),
        ("Order.desc", Order::Descending.into()),
        ("local", Scope::Local.into()),
        ("T.id", Token::Id.into()),
        ("label", Token::Label.into()),
        ("from", Direction::Out.into()),
        ("BOTH", Direction::Both.into()),
        ("Merge.onCreate", Merge::OnCreate.into()),
        ("addAll", Operator::AddAll.into()),
        ("hour", DateUnit::Hour.into()),
        ("VertexProperty.Cardinality.list", Cardinality::List.into()),
        ("set", Cardinality::Set.into()),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), Value::Symbol(expected), "{text}");
    }
    assert_eq!(value("WithOptions.tokens"), "~tinkerpop.valueMap.tokens".into());
    assert_eq!(value("WithOptions.labels"), 2.into());
    let single = Value::CardinalityValue { cardinality: Cardinality::Single, value: Arc::new("a".into()) };
    assert_eq!(value("Cardinality.single('a')"), single);
    assert_eq!(value("single('a')"), single);
    assert!(
        error("g.V(Order.dessc)").contains("unknown constant of Order \"dessc\"; did you mean \"desc\"?")
    );
}

#[test]
fn a_word_has_one_meaning() {
    let mut words: Vec<&str> = words::bare_words().collect();
    let count = words.len();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), count);
    assert!(words.iter().all(|word| words::bare_word(word).is_some()));
    assert!(STEPS.is_sorted() && words::FIRST_STEPS.iter().all(|step| STEPS.contains(step)));
}

#[test]
fn variables_hide_constants() {
    assert_eq!(value("INT"), value("GType.INT"));
    assert_eq!(value("VPROPERTY"), value("GType.VPROPERTY"));
    assert_eq!(shown("g.V(x, id, T.id).id()"), "V(7, seven, id).id()");
    assert!(error("g.V(lable)").contains("unknown name \"lable\"; did you mean \"label\"?"));
}

#[test]
fn values_are_constructed() {
    assert_eq!(value("datetime('2023-08-02T00:00:00Z')").to_string(), "2023-08-02T00:00Z");
    assert_eq!(value("DateTime('2023-08-02')").to_string(), "2023-08-02T00:00Z");
    assert_eq!(value("datetime()").to_string(), "1970-01-01T00:00Z");
    let text = "cb682578-9d92-4499-9ebc-5c6aa73c5397";
    assert_eq!(value(&format!("UUID('{text}')")).to_string(), text);
    let made = script("g.inject(UUID(), UUID())").bytecode.steps[0].arguments.clone();
    assert!(
        made[0] != made[1] && made.iter().all(|uuid| uuid.to_string().as_bytes()[14] == b'4'),
        "{made:?}"
    );
    assert_eq!(value("new Vertex(1, 'person')").to_string(), "v[1]");
    assert_eq!(value("ReferenceVertex('a', 'person')").to_string(), "v[a]");
    assert!(error("g.V(datetime('today'))").contains("ISO 8601"));
    assert!(error("g.V(UUID('1'))").contains("hexadecimal"));
    assert!(error("g.V(new Vertex())").contains("an id and a label"));
    assert!(error("g.V(new Edge(1))").contains("not a Edge"));
}
