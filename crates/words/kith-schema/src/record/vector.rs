//! A vector, read in place.

use crate::{ElementType, f32_from_f16};

/// A vector inside a record: bytes with any alignment, and the type of the elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VectorView<'a> {
    element: ElementType,
    bytes: &'a [u8],
}

impl<'a> VectorView<'a> {
    /// `bytes` must contain a whole number of elements, which the schema's dimensions ensure.
    #[inline]
    pub(crate) fn new(element: ElementType, bytes: &'a [u8]) -> Self {
        debug_assert!(bytes.len().is_multiple_of(element.width()), "a vector has whole elements");
        VectorView { element, bytes }
    }

    /// The type of its elements.
    #[inline]
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// The encoded elements, little-endian and with any alignment, for kernels, which use `chunks_exact(element().width())`
    /// of them.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The number of elements.
    #[inline]
    pub fn dimensions(&self) -> usize {
        self.bytes.len() / self.element.width()
    }

    /// The exact value of the element at `index` as an `f32`; `None` beyond the end.
    #[inline]
    pub fn get(&self, index: usize) -> Option<f32> {
        let width = self.element.width();
        let start = index.checked_mul(width)?;
        self.bytes.get(start..start.checked_add(width)?).map(|bytes| value(self.element, bytes))
    }

    /// The exact values of all elements in order, as `f32`.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = f32> + 'a {
        let element = self.element;
        self.bytes.chunks_exact(element.width()).map(move |bytes| value(element, bytes))
    }

    /// Writes all elements into `out`.
    ///
    /// # Panics
    /// If the length of `out` is not [`VectorView::dimensions`].
    pub fn copy_to(&self, out: &mut [f32]) {
        assert!(out.len() == self.dimensions(), "the slice is as long as the vector");
        out.iter_mut().zip(self.iter()).for_each(|(to, from)| *to = from);
    }
}

/// Decodes one element.
#[inline]
fn value(element: ElementType, bytes: &[u8]) -> f32 {
    match (element, bytes) {
        (ElementType::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
        (ElementType::F16, &[a, b]) => f32_from_f16(u16::from_le_bytes([a, b])),
        (ElementType::I8, &[a]) => f32::from(a as i8),
        _ => unreachable!("the caller takes as many bytes as an element has"),
    }
}
