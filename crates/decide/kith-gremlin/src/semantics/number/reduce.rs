//! Sums and means of many values.

use super::{
    Kind, Number,
    arithmetic::{add, double, fit, fraction, multiply},
};
use crate::{GremlinError, Result, value::Value};
use num_bigint::BigInt;
use std::sync::Arc;

/// A sum of floating-point numbers that does not depend on their order, but for the last digit: what each addition loses is
/// kept and added in the end (Neumaier, 1974). Traversers come in any order, and merged or not.
#[derive(Clone, Copy, Debug, Default)]
struct Floating {
    total: f64,
    lost: f64,
}

impl Floating {
    fn add(&mut self, number: f64) {
        let total = self.total + number;
        let (large, small) =
            if self.total.abs() >= number.abs() { (self.total, number) } else { (number, self.total) };
        let lost = (large - total) + small;
        if lost.is_finite() {
            self.lost += lost;
        }
        self.total = total;
    }

    fn finish(self) -> f64 {
        self.total + self.lost
    }
}

/// A sum that grows value by value. Nulls are skipped.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    total: Option<Value>,
    /// The sum so far, in the place of `total`, if it is a `Double`.
    floating: Option<Floating>,
}

impl Sum {
    /// Adds a value that occurs `bulk` times. The type of the sum does not depend on how equal values were bundled.
    ///
    /// # Errors
    /// The value is neither a number nor null, or the sum does not fit in a `Long` or becomes too large.
    pub fn add(&mut self, value: &Value, bulk: i64) -> Result<()> {
        check("sum", value)?;
        let value = times(value, bulk)?;
        if let (Some(floating), Value::Double(number)) = (&mut self.floating, &value) {
            floating.add(*number);
            return Ok(());
        }
        let floating = self.floating.take().map(|floating| Value::Double(floating.finish()));
        let total = match floating.or(self.total.take()) {
            None | Some(Value::Null) => value,
            Some(total) => add(&total, &value)?,
        };
        match total {
            Value::Double(total) => self.floating = Some(Floating { total, lost: 0.0 }),
            total => self.total = Some(total),
        }
        Ok(())
    }

    /// The sum; null if all values were null, and `None` if there was no value at all.
    pub fn finish(self) -> Option<Value> {
        self.floating.map(|floating| Value::Double(floating.finish())).or(self.total)
    }
}

/// A mean that grows value by value. Nulls are skipped.
#[derive(Clone, Debug, Default)]
pub struct Mean {
    /// Whether there was any value, also if it was null.
    seen: bool,
    /// The number of values that were not null.
    count: i64,
    integers: i128,
    floating: Floating,
    /// The sum of the numbers of unlimited width, if there were any.
    wide: Option<Value>,
}

impl Mean {
    /// Adds a value that occurs `bulk` times.
    ///
    /// # Errors
    /// The value is neither a number nor null, or a sum of unlimited width becomes too large.
    pub fn add(&mut self, value: &Value, bulk: i64) -> Result<()> {
        check("mean", value)?;
        self.seen = true;
        match Number::of(value) {
            None => return Ok(()),
            // A sum of integers may exceed a Long although their mean does not.
            Some(Number::Integer(number)) => {
                self.integers = self.integers.saturating_add(i128::from(number) * i128::from(bulk));
            }
            Some(Number::Floating(number)) => self.floating.add(number * bulk as f64),
            Some(Number::BigInteger(_) | Number::BigDecimal(_)) => {
                let value = times(value, bulk)?;
                self.wide = Some(match self.wide.take() {
                    None => value,
                    Some(wide) => add(&wide, &value)?,
                });
            }
        }
        self.count = self.count.saturating_add(bulk);
        Ok(())
    }

    /// The mean, a `Double`, or a `BigDecimal` if a value was of unlimited width. It is null if all values were null, and
    /// `None` if there was no value at all.
    ///
    /// # Errors
    /// Values of unlimited width cannot be added to NaN or an infinity, or are too large.
    pub fn finish(self) -> Result<Option<Value>> {
        if self.count == 0 {
            return Ok(self.seen.then_some(Value::Null));
        }
        let floating = self.floating.finish();
        let Some(mut total) = self.wide else {
            let total = self.integers as f64 + floating;
            return Ok(Some(Value::Double(total / self.count as f64)));
        };
        if self.integers != 0 {
            total = add(&total, &Value::BigInteger(Arc::new(BigInt::from(self.integers))))?;
        }
        if floating != 0.0 {
            total = add(&total, &Value::Double(floating))?;
        }
        fraction(&total, &Value::Long(self.count)).map(Some)
    }
}

fn check(step: &str, value: &Value) -> Result<()> {
    if value.is_number() || matches!(value, Value::Null) {
        return Ok(());
    }
    Err(GremlinError::bad(format!("{step}() takes numbers, but a value is of type {}", value.type_name())))
}

/// The sum of `bulk` equal values, in the type that adding them one by one would give.
fn times(value: &Value, bulk: i64) -> Result<Value> {
    match (Kind::of(value), Number::of(value)) {
        _ if bulk == 1 => Ok(value.clone()),
        (Some(kind), Some(Number::Integer(number))) => fit(i128::from(number) * i128::from(bulk), kind)
            .ok_or_else(|| {
                GremlinError::bad(format!("long overflow: {bulk} times {number} does not fit in a Long"))
            }),
        (Some(Kind::Float), Some(number)) => {
            let product = double(number) * bulk as f64;
            let narrow = product as f32;
            Ok(if narrow.is_infinite() { Value::Double(product) } else { Value::Float(narrow) })
        }
        _ => multiply(value, &Value::Long(bulk)),
    }
}
