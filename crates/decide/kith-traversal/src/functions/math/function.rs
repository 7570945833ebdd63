//! The functions of expressions.

use strum::{EnumString, VariantNames};

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Function {
    Abs,
    Acos,
    Asin,
    Atan,
    Cbrt,
    Ceil,
    Cos,
    Cosh,
    Exp,
    Expm1,
    Floor,
    Log,
    Log10,
    Log1p,
    Log2,
    Signum,
    Sin,
    Sinh,
    Sqrt,
    Tan,
    Tanh,
}

impl Function {
    pub fn apply(self, value: f64) -> f64 {
        match self {
            Self::Abs => value.abs(),
            Self::Acos => value.acos(),
            Self::Asin => value.asin(),
            Self::Atan => value.atan(),
            Self::Cbrt => value.cbrt(),
            Self::Ceil => value.ceil(),
            Self::Cos => value.cos(),
            Self::Cosh => value.cosh(),
            Self::Exp => value.exp(),
            Self::Expm1 => value.exp_m1(),
            Self::Floor => value.floor(),
            Self::Log => value.ln(),
            Self::Log10 => value.log10(),
            Self::Log1p => value.ln_1p(),
            Self::Log2 => value.log2(),
            // The sign of zero is zero, unlike that of Rust.
            Self::Signum if value == 0.0 => value,
            Self::Signum => value.signum(),
            Self::Sin => value.sin(),
            Self::Sinh => value.sinh(),
            Self::Sqrt => value.sqrt(),
            Self::Tan => value.tan(),
            Self::Tanh => value.tanh(),
        }
    }
}
