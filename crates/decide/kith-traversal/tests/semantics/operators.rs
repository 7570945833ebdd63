//! How sacks and side effects are combined.

use crate::values::*;
use kith_gremlin::semantics::apply;
use kith_gremlin::value::{Operator, Value};
use strum::VariantNames;

#[test]
fn each_operator_combines_its_operands() {
    use Operator::*;
    for (operator, held, value, expected) in [
        (Sum, 1.into(), 2_i64.into(), Value::Long(3)),
        (Minus, 123.into(), 29.into(), 94.into()),
        (Multiply, 2.into(), 29.into(), 58.into()),
        (Divide, 876960.into(), 29.into(), 30240.into()),
        (Minimum, 100.into(), 27.into(), 27.into()),
        (Maximum, 1.into(), 35.into(), 35.into()),
        (Assign, "hello".into(), 1.into(), 1.into()),
        (And, true.into(), false.into(), false.into()),
        (Or, true.into(), false.into(), true.into()),
        (AddAll, texts("a b"), texts("b c"), texts("a b b c")),
        (AddAll, texts("a"), bulk([("b".into(), 2)]), texts("a b b")),
        (AddAll, set(["a".into()]), texts("b a"), set(["a".into(), "b".into()])),
        (AddAll, bulk([("a".into(), 1)]), texts("b a"), bulk([("a".into(), 2), ("b".into(), 1)])),
        (AddAll, bulk([("a".into(), 1)]), bulk([("a".into(), i64::MAX)]), bulk([("a".into(), i64::MAX)])),
        (AddAll, map([(1.into(), 1.into())]), map([(1.into(), 2.into())]), map([(1.into(), 2.into())])),
        (SumLong, 1.into(), Value::Byte(2), Value::Long(3)),
    ] {
        assert_eq!(apply(operator, held.clone(), &value), Ok(expected), "{held:?} {operator} {value:?}");
    }
}

#[test]
fn operands_of_other_types_are_refused_by_name() {
    for name in Operator::VARIANTS.iter().filter(|name| **name != "assign") {
        let operator: Operator = name.parse().unwrap();
        let error = apply(operator, Value::Bool(true), &"a".into()).unwrap_err();
        assert!(error.message.contains("Boolean") || error.message.contains("String"), "{name}: {error}");
    }
    let error = apply(Operator::AddAll, texts("a"), &1.into()).unwrap_err();
    assert_eq!(
        error.message,
        "the operator addAll takes two collections or two maps, but got values of the types List and Int"
    );
    assert!(apply(Operator::SumLong, Value::Long(i64::MAX), &1.into()).is_err());
}
