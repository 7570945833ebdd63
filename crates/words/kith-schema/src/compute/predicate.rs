//! Conditions on one value.

use super::ComputeError;
use super::computation::in_range;
use crate::{FieldType, Scalar, ScalarType};
use std::cmp::Ordering;
use strum::IntoStaticStr;

/// The most conditions and values of all predicates of a plan together.
const PARTS_MAX: u64 = 10_000;

/// Values that are counted together.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    /// Its name in the answer.
    pub name: String,
    /// The condition for its values.
    pub predicate: Predicate,
}

/// A condition on one value.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// The value compares like this with another value.
    Compare(Comparison, Operand),
    /// The value equals one of these.
    AnyOf(Vec<Operand>),
    /// All of these hold. An empty list is true.
    And(Vec<Predicate>),
    /// At least one of these holds. An empty list is false.
    Or(Vec<Predicate>),
}

/// A comparison of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Comparison {
    /// Equal.
    Eq,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
}

/// A value to compare with. Numbers are compared exactly, whatever their types.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// `false` or `true`.
    Bool(bool),
    /// A whole number from -2^63 to 2^64 - 1.
    Whole(i128),
    /// A finite number.
    Float(f64),
    /// Text.
    Text(String),
}

impl Predicate {
    /// The greatest depth of a predicate. It bounds the stack of code that walks one.
    pub const DEPTH_MAX: usize = 16;

    /// Whether a value satisfies the predicate. A value of another type than the operands' satisfies no comparison.
    pub fn holds(&self, value: Scalar<'_>) -> bool {
        match self {
            Predicate::Compare(comparison, operand) => {
                operand.compare(value).is_some_and(|order| comparison.admits(order))
            }
            Predicate::AnyOf(operands) => {
                operands.iter().any(|operand| operand.compare(value) == Some(Ordering::Equal))
            }
            Predicate::And(all) => all.iter().all(|predicate| predicate.holds(value)),
            Predicate::Or(any) => any.iter().any(|predicate| predicate.holds(value)),
        }
    }

    /// Refuses operands that values of the type cannot be compared with, and predicates that are too deep or too large.
    pub(super) fn check(
        &self,
        scalar: ScalarType,
        field: &str,
        depth: usize,
        parts: &mut u64,
    ) -> Result<(), ComputeError> {
        let depth = depth.checked_sub(1).ok_or(ComputeError::TooDeep { max: Self::DEPTH_MAX })?;
        let operands = match self {
            Predicate::Compare(_, operand) => std::slice::from_ref(operand),
            Predicate::AnyOf(operands) => operands,
            Predicate::And(inner) | Predicate::Or(inner) => {
                inner.iter().try_for_each(|inner| inner.check(scalar, field, depth, parts))?;
                &[]
            }
        };
        *parts += 1 + operands.len() as u64;
        in_range("the number of conditions", *parts, 0..=PARTS_MAX, "at most 10000")?;
        match operands.iter().find(|operand| !operand.fits(scalar)) {
            None => Ok(()),
            Some(Operand::Float(value)) if !value.is_finite() => Err(ComputeError::NotFinite {
                field: field.to_owned(),
                got: if value.is_nan() { "NaN" } else { "an infinity" },
            }),
            Some(operand) => Err(ComputeError::WrongType {
                operator: operand.describe(),
                field: field.to_owned(),
                got: FieldType::Scalar(scalar),
                needs: "a value of the field's kind: a number, text or bool",
            }),
        }
    }
}

impl Comparison {
    /// All comparisons with their names in requests.
    pub const ALL: [(Comparison, &'static str); 5] = [
        (Comparison::Eq, "eq"),
        (Comparison::Gt, "gt"),
        (Comparison::Ge, "ge"),
        (Comparison::Lt, "lt"),
        (Comparison::Le, "le"),
    ];

    /// The name in requests.
    pub fn name(self) -> &'static str {
        self.into()
    }

    fn admits(self, order: Ordering) -> bool {
        match self {
            Comparison::Eq => order.is_eq(),
            Comparison::Gt => order.is_gt(),
            Comparison::Ge => order.is_ge(),
            Comparison::Lt => order.is_lt(),
            Comparison::Le => order.is_le(),
        }
    }
}

impl Operand {
    fn fits(&self, scalar: ScalarType) -> bool {
        match (self, scalar) {
            (Operand::Bool(_), ScalarType::Bool) | (Operand::Text(_), ScalarType::Text) => true,
            (Operand::Float(value), _) if !value.is_finite() => false,
            (Operand::Whole(_) | Operand::Float(_), _) => {
                !matches!(scalar, ScalarType::Bool | ScalarType::Text | ScalarType::Bytes)
            }
            _ => false,
        }
    }

    fn describe(&self) -> &'static str {
        match self {
            Operand::Bool(_) => "a predicate with a bool",
            Operand::Whole(_) | Operand::Float(_) => "a predicate with a number",
            Operand::Text(_) => "a predicate with text",
        }
    }

    /// Compares `value` with this operand; `None` if the types cannot be compared.
    fn compare(&self, value: Scalar<'_>) -> Option<Ordering> {
        let whole = match value {
            Scalar::Bool(value) => {
                return if let Operand::Bool(other) = self { Some(value.cmp(other)) } else { None };
            }
            Scalar::Text(value) => {
                return if let Operand::Text(other) = self { Some(value.cmp(other)) } else { None };
            }
            Scalar::Bytes(_) => return None,
            Scalar::F32(value) => return self.compare_float(value.into()),
            Scalar::F64(value) => return self.compare_float(value),
            Scalar::I32(value) => value.into(),
            Scalar::I64(value) | Scalar::Timestamp(value) => value.into(),
            Scalar::U64(value) => value.into(),
        };
        match self {
            Operand::Whole(other) => Some(i128::cmp(&whole, other)),
            Operand::Float(other) => compare_exactly(whole, *other),
            Operand::Bool(_) | Operand::Text(_) => None,
        }
    }

    fn compare_float(&self, value: f64) -> Option<Ordering> {
        match self {
            Operand::Float(other) => value.partial_cmp(other),
            Operand::Whole(other) => compare_exactly(*other, value).map(Ordering::reverse),
            Operand::Bool(_) | Operand::Text(_) => None,
        }
    }
}

/// Whole numbers have at most 65 bits, which `f64` would round.
fn compare_exactly(whole: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // The clamped value is far beyond all whole numbers, and fits into `i128`.
    let floor = float.floor().clamp(-1e30, 1e30);
    Some(match whole.cmp(&(floor as i128)) {
        Ordering::Equal if floor < float => Ordering::Less,
        order => order,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_exactly_across_types() {
        let holds = |comparison, operand, value| Predicate::Compare(comparison, operand).holds(value);
        let large = (1i64 << 53) + 1;
        assert!(holds(Comparison::Gt, Operand::Float((1u64 << 53) as f64), Scalar::I64(large)));
        assert!(!holds(Comparison::Eq, Operand::Float((1u64 << 53) as f64), Scalar::I64(large)));
        assert!(holds(Comparison::Lt, Operand::Float(2.5), Scalar::I32(2)));
        assert!(holds(Comparison::Gt, Operand::Float(-2.5), Scalar::I32(-2)));
        assert!(holds(Comparison::Lt, Operand::Float(-1.5), Scalar::I32(-2)));
        assert!(holds(Comparison::Ge, Operand::Whole(2), Scalar::F32(2.0)));
        assert!(holds(Comparison::Lt, Operand::Whole(3), Scalar::F64(2.9)));
        assert!(holds(Comparison::Lt, Operand::Float(1e300), Scalar::U64(u64::MAX)));
        assert!(holds(Comparison::Le, Operand::Whole(u64::MAX.into()), Scalar::U64(u64::MAX)));
        assert!(!holds(Comparison::Eq, Operand::Whole(1), Scalar::Text("1")));
    }

    #[test]
    fn conditions_combine() {
        let between = Predicate::And(vec![
            Predicate::Compare(Comparison::Ge, Operand::Whole(18)),
            Predicate::Compare(Comparison::Lt, Operand::Whole(30)),
        ]);
        let either =
            Predicate::Or(vec![between, Predicate::AnyOf(vec![Operand::Whole(1), Operand::Whole(3)])]);
        let holding: Vec<i32> = (0..40).filter(|age| either.holds(Scalar::I32(*age))).collect();
        assert_eq!(holding, [1, 3].into_iter().chain(18..30).collect::<Vec<i32>>());
        assert!(
            Predicate::And(vec![]).holds(Scalar::Bool(true))
                && !Predicate::Or(vec![]).holds(Scalar::Bool(true))
        );
    }
}
