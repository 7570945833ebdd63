//! Laws over generated values.

use crate::values::*;
use kith_gremlin::semantics::{Test, compare, equal, number, order};
use kith_gremlin::{predicate::Predicate, value::Value};
use num_bigint::BigInt;
use proptest::prelude::*;
use std::{cmp::Ordering, sync::Arc};

pub fn within(operands: Vec<Value>) -> Test {
    Test::compile(&Predicate { operator: "within".into(), operands: vec![list(operands)] })
        .expect("the predicate is right")
}

/// The value of an integer of any type.
fn exact(value: &Value) -> BigInt {
    match value {
        Value::Byte(number) => BigInt::from(*number),
        Value::Short(number) => BigInt::from(*number),
        Value::Int(number) => BigInt::from(*number),
        Value::Long(number) => BigInt::from(*number),
        Value::BigInteger(number) => number.as_ref().clone(),
        other => panic!("{other:?} is no integer"),
    }
}

/// Integers of all types, many of them close to the ends of their ranges.
fn any_integer() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i8>().prop_map(Value::Byte),
        any::<i16>().prop_map(Value::Short),
        any::<i32>().prop_map(Value::Int),
        any::<i64>().prop_map(Value::Long),
        (-9..10_i64).prop_map(Value::Long),
        any::<i128>().prop_map(|number| Value::BigInteger(Arc::new(number.into()))),
    ]
}

proptest! {
    #[test]
    fn the_order_is_total(a in any_value(), b in any_value(), c in any_value()) {
        prop_assert_eq!(order(&a, &a), Ordering::Equal);
        prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
        if order(&a, &b).is_le() && order(&b, &c).is_le() {
            prop_assert!(order(&a, &c).is_le());
        }
        if order(&a, &b).is_eq() {
            prop_assert_eq!(order(&a, &c), order(&b, &c));
        }
    }

    #[test]
    fn numbers_are_totally_ordered(mut numbers in prop::collection::vec(any_number(), 0..12)) {
        numbers.sort_by(order);
        for (i, a) in numbers.iter().enumerate() {
            for b in &numbers[i..] {
                prop_assert!(order(a, b).is_le(), "{:?} {:?}", a, b);
            }
        }
    }

    #[test]
    fn comparison_agrees_with_the_order_and_with_equality(a in any_value(), b in any_value()) {
        prop_assert_eq!(compare(&a, &b), compare(&b, &a).map(Ordering::reverse));
        if let Some(compared) = compare(&a, &b) {
            prop_assert_eq!(compared, order(&a, &b));
        }
        prop_assert_eq!(equal(&a, &b), compare(&a, &b) == Some(Ordering::Equal));
        // Only NaN is unequal to itself.
        if !format!("{a:?}").contains("NaN") {
            prop_assert!(equal(&a, &a));
        }
    }

    #[test]
    fn looking_up_finds_what_is_equal(value in any_value(), members in prop::collection::vec(any_value(), 0..6)) {
        let expected = members.iter().any(|member| equal(member, &value));
        prop_assert_eq!(within(members).is_true(&value), expected);
    }

    #[test]
    fn arithmetic_of_integers_is_exact_or_refused(a in any_integer(), b in any_integer()) {
        let (x, y) = (exact(&a), exact(&b));
        let mut results = vec![
            (number::add(&a, &b), &x + &y),
            (number::subtract(&a, &b), &x - &y),
            (number::multiply(&a, &b), &x * &y),
        ];
        if y == BigInt::ZERO {
            prop_assert!(number::divide(&a, &b).is_err());
        } else {
            results.push((number::divide(&a, &b), &x / &y));
        }
        let wide = matches!(a, Value::BigInteger(_)) || matches!(b, Value::BigInteger(_));
        for (result, expected) in results {
            match result {
                Ok(result) => {
                    prop_assert_eq!(exact(&result), expected);
                    prop_assert_eq!(matches!(result, Value::BigInteger(_)), wide);
                }
                Err(_) => prop_assert!(!wide && i64::try_from(expected).is_err()),
            }
        }
    }

    #[test]
    fn a_sum_does_not_depend_on_bulks(value in any_integer(), bulk in 1..9_i64) {
        let mut once = number::Sum::default();
        let added = once.add(&value, bulk);
        let mut singly = number::Sum::default();
        let each = (0..bulk).try_for_each(|_| singly.add(&value, 1));
        prop_assert_eq!(added.is_ok(), each.is_ok());
        if added.is_ok() {
            prop_assert_eq!(once.finish(), singly.finish());
        }
    }

    #[test]
    fn a_quotient_of_decimals_is_as_near_as_its_digits_allow(
        a in -9999..9999_i64, b in 1..999_i64, scale_a in -3..4_i64, scale_b in -3..4_i64,
    ) {
        let decimal = |number: i64, scale| {
            Value::BigDecimal(Arc::new(bigdecimal::BigDecimal::new(number.into(), scale)))
        };
        let (a, b) = (decimal(a, scale_a), decimal(b, scale_b));
        let quotient = number::divide(&a, &b).unwrap();
        let back = number::multiply(&quotient, &b).unwrap();
        let error = number::subtract(&back, &a).unwrap();
        // At least ten digits behind the point are right, and the divisor is below a million.
        prop_assert!(order(&error, &Value::Double(1e-4)).is_lt() && order(&error, &Value::Double(-1e-4)).is_gt());
    }
}
