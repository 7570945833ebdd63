//! The scores by which records are ranked.

use crate::{FieldType, Scalar, ScalarType};

/// A number in an encoding where greater numbers have greater scores. Scores of one field can be compared; those of fields
/// of different types cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Score(u64);

const SIGN: u64 = 1 << 63;

impl Score {
    /// The score of a value; `None` for values that are not numbers. NaN is below every number, and 0.0 equals -0.0.
    pub fn of(value: Scalar<'_>) -> Option<Self> {
        match value {
            Scalar::I32(value) => Some(Self::whole(value.into())),
            Scalar::I64(value) | Scalar::Timestamp(value) => Some(Self::whole(value)),
            Scalar::U64(value) => Some(Score(value)),
            Scalar::F32(value) => Some(Self::floating(value.into())),
            Scalar::F64(value) => Some(Self::floating(value)),
            Scalar::Bool(_) | Scalar::Text(_) | Scalar::Bytes(_) => None,
        }
    }

    /// Whether fields of this type have scores.
    pub(super) fn is_of(field_type: FieldType) -> bool {
        match field_type {
            FieldType::Scalar(scalar) => {
                !matches!(scalar, ScalarType::Bool | ScalarType::Text | ScalarType::Bytes)
            }
            FieldType::Vector { .. } | FieldType::List(_) | FieldType::Map(_) => false,
        }
    }

    fn whole(value: i64) -> Self {
        Score(value as u64 ^ SIGN)
    }

    fn floating(value: f64) -> Self {
        if value.is_nan() {
            return Score(0);
        }
        // Adding 0.0 turns -0.0 into 0.0. No number has the code 0: the least one, -infinity, is 0x000f….
        let bits = (value + 0.0).to_bits();
        Score(if bits & SIGN == 0 { bits | SIGN } else { !bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_in_the_order_of_their_numbers() {
        let floats =
            [f64::NAN, f64::NEG_INFINITY, -1e300, -1.5, -1e-310, 0.0, 1e-310, 0.5, 2.0, f64::INFINITY];
        let scores = floats.map(|value| Score::of(Scalar::F64(value)).unwrap());
        assert!(scores.is_sorted_by(|a, b| a < b), "{scores:?}");
        assert_eq!(Score::of(Scalar::F64(-0.0)), Score::of(Scalar::F64(0.0)));
        assert_eq!(Score::of(Scalar::F64(-f64::NAN)), Score::of(Scalar::F32(f32::NAN)));
        let wholes = [i64::MIN, -5, 0, 7, i64::MAX].map(|value| Score::of(Scalar::Timestamp(value)).unwrap());
        assert!(wholes.is_sorted_by(|a, b| a < b), "{wholes:?}");
        assert!(Score::of(Scalar::U64(u64::MAX)) > Score::of(Scalar::U64(1)));
        assert_eq!(Score::of(Scalar::Text("1")), None);
    }
}
