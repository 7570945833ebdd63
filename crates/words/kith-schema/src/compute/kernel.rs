//! Sums of products over vectors in place. The order of summation is the same on every machine, so that replicas,
//! transports and clients agree bit for bit.
//!
//! Element `i` belongs to lane `i mod 8`. Products are rounded to `f64` and added to their lane in order. Then lane `j`
//! adds lane `j + 4`, then `j + 2`, then `j + 1`. Elements of `f32`, `f16` and `i8` widen exactly, and their products with
//! an `f32` are exact, so that no finite vector overflows or underflows. The sum is within 1e-13 of the exact one, relative
//! to Σ|x·y|. Loops run over arrays of eight, which compilers turn into vector instructions; they never fuse or reorder
//! floating-point sums.

use crate::f32_from_f16;

/// The number of parallel sums.
pub const LANES: usize = 8;

/// The numbers of a vector in place: little-endian, with any alignment, whole elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Elements<'a> {
    /// Single precision.
    F32(&'a [u8]),
    /// Half precision.
    F16(&'a [u8]),
    /// Whole numbers of 8 bits.
    I8(&'a [u8]),
    /// Double precision, only of lists.
    F64(&'a [u8]),
}

/// A query vector, prepared once for many records.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    values: Vec<f64>,
    norm: f64,
}

impl Query {
    /// Widens a query and computes its norm.
    pub fn new(values: &[f32]) -> Self {
        let values: Vec<f64> = values.iter().map(|&value| value.into()).collect();
        let norm = sums(&values, |&value| value, &values).1.sqrt();
        Self { values, norm }
    }

    /// The number of elements.
    pub fn dimensions(&self) -> usize {
        self.values.len()
    }

    /// The dot product with a vector of the same length. `O(dimensions)`, like all functions here.
    pub fn dot(&self, vector: Elements<'_>) -> f64 {
        debug_assert_eq!(self.dimensions(), vector.count(), "the caller has checked");
        let query = &self.values;
        one_nan(match vector {
            Elements::F32(bytes) => sum(bytes.as_chunks().0, f32_element, query),
            Elements::F16(bytes) => sum(bytes.as_chunks().0, f16_element, query),
            Elements::I8(bytes) => sum(bytes.as_chunks().0, i8_element, query),
            Elements::F64(bytes) => sum(bytes.as_chunks().0, f64_element, query),
        })
    }

    /// The cosine with a vector of the same length; `None` if either has a norm of zero, or no elements.
    pub fn cosine(&self, vector: Elements<'_>) -> Option<f64> {
        debug_assert_eq!(self.dimensions(), vector.count(), "the caller has checked");
        let query = &self.values;
        let (dot, squares) = match vector {
            Elements::F32(bytes) => sums(bytes.as_chunks().0, f32_element, query),
            Elements::F16(bytes) => sums(bytes.as_chunks().0, f16_element, query),
            Elements::I8(bytes) => sums(bytes.as_chunks().0, i8_element, query),
            Elements::F64(bytes) => {
                let elements = bytes.as_chunks().0;
                match sums(elements, f64_element, query) {
                    (dot, squares) if squares.is_normal() => (dot, squares),
                    // Squares of doubles may overflow or underflow although their norm does not.
                    _ => scaled(elements, query)?,
                }
            }
        };
        if squares == 0.0 || self.norm == 0.0 {
            return None;
        }
        // Rounding may exceed 1 slightly. A NaN stays a NaN.
        Some(one_nan((dot / (squares.sqrt() * self.norm)).clamp(-1.0, 1.0)))
    }

    /// Appends the products of the elements as `f32`, or as `f64` for doubles.
    pub fn products(&self, vector: Elements<'_>, out: &mut Vec<u8>) {
        debug_assert_eq!(self.dimensions(), vector.count(), "the caller has checked");
        match vector {
            Elements::F32(bytes) => put_products(bytes.as_chunks().0, f32_element, &self.values, out),
            Elements::F16(bytes) => put_products(bytes.as_chunks().0, f16_element, &self.values, out),
            Elements::I8(bytes) => put_products(bytes.as_chunks().0, i8_element, &self.values, out),
            Elements::F64(bytes) => {
                let products = bytes.as_chunks().0.iter().zip(&self.values);
                out.extend(
                    products.flat_map(|(bytes, query)| one_nan(f64_element(bytes) * query).to_le_bytes()),
                );
            }
        }
    }
}

impl Elements<'_> {
    /// The number of elements.
    pub fn count(&self) -> usize {
        match self {
            Elements::F32(bytes) => bytes.len() / 4,
            Elements::F16(bytes) => bytes.len() / 2,
            Elements::I8(bytes) => bytes.len(),
            Elements::F64(bytes) => bytes.len() / 8,
        }
    }
}

#[inline(always)]
fn f32_element(bytes: &[u8; 4]) -> f64 {
    f32::from_le_bytes(*bytes).into()
}

#[inline(always)]
fn f16_element(bytes: &[u8; 2]) -> f64 {
    f32_from_f16(u16::from_le_bytes(*bytes)).into()
}

#[inline(always)]
fn i8_element(bytes: &[u8; 1]) -> f64 {
    f64::from(bytes[0] as i8)
}

#[inline(always)]
fn f64_element(bytes: &[u8; 8]) -> f64 {
    f64::from_le_bytes(*bytes)
}

/// Σ x·y.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "three arrays of eight, lane by lane")]
fn sum<E>(elements: &[E], value: impl Fn(&E) -> f64, query: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let ((blocks, rest), (queries, query_rest)) = (elements.as_chunks::<LANES>(), query.as_chunks::<LANES>());
    for (block, query) in blocks.iter().zip(queries) {
        for lane in 0..LANES {
            lanes[lane] += value(&block[lane]) * query[lane];
        }
    }
    for ((lane, element), query) in lanes.iter_mut().zip(rest).zip(query_rest) {
        *lane += value(element) * query;
    }
    tree(lanes)
}

/// Σ x·y and Σ x·x in one pass. The first equals [`sum`] bit for bit.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "four arrays of eight, lane by lane")]
fn sums<E>(elements: &[E], value: impl Fn(&E) -> f64, query: &[f64]) -> (f64, f64) {
    let (mut dots, mut squares) = ([0.0; LANES], [0.0; LANES]);
    let ((blocks, rest), (queries, query_rest)) = (elements.as_chunks::<LANES>(), query.as_chunks::<LANES>());
    for (block, query) in blocks.iter().zip(queries) {
        for lane in 0..LANES {
            let x = value(&block[lane]);
            dots[lane] += x * query[lane];
            squares[lane] += x * x;
        }
    }
    for (((dot, square), element), query) in dots.iter_mut().zip(&mut squares).zip(rest).zip(query_rest) {
        let x = value(element);
        *dot += x * query;
        *square += x * x;
    }
    (tree(dots), tree(squares))
}

/// [`sums`] of doubles divided by their greatest magnitude, which does not change a cosine; `None` if all are zero.
fn scaled(elements: &[[u8; 8]], query: &[f64]) -> Option<(f64, f64)> {
    let greatest = elements.iter().map(f64_element).fold(0.0, |greatest: f64, x| {
        // `max` would drop a NaN.
        if x.is_nan() || greatest.is_nan() { f64::NAN } else { greatest.max(x.abs()) }
    });
    (greatest != 0.0).then(|| sums(elements, |bytes| f64_element(bytes) / greatest, query))
}

fn put_products<E>(elements: &[E], value: impl Fn(&E) -> f64, query: &[f64], out: &mut Vec<u8>) {
    // Both factors are `f32` values, so rounding their exact product gives the `f32` product.
    let product = |(element, query): (&E, &f64)| match (value(element) * query) as f32 {
        product if product.is_nan() => f32::NAN,
        product => product,
    };
    out.extend(elements.iter().zip(query).flat_map(|pair| product(pair).to_le_bytes()));
}

#[inline]
fn tree(mut lanes: [f64; LANES]) -> f64 {
    for width in [4, 2, 1] {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
    }
    lanes[0]
}

/// The sign and payload of computed NaNs differ between machines, so they are replaced by one NaN.
fn one_nan(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value }
}
