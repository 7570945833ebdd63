//! Lists and maps, read in place.

use super::Scalar;
use crate::ScalarType;
use std::cmp::Ordering;

/// A list inside a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListView<'a> {
    items: Run<'a>,
}

/// A map inside a record. Its entries are in the order of their keys' bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MapView<'a> {
    keys: Run<'a>,
    values: Run<'a>,
}

/// Values of one type, end to end. Values of variable size are preceded by their end offsets.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run<'a> {
    scalar: ScalarType,
    count: usize,
    /// `count` u32 end offsets, for values of variable size; else empty.
    ends: &'a [u8],
    body: &'a [u8],
}

const ENDS: &str = "its ends are not in it or not in order";

impl<'a> Run<'a> {
    /// Checks that the last value ends with the body, or that values of fixed size fill it.
    fn new(scalar: ScalarType, count: usize, ends: &'a [u8], body: &'a [u8]) -> Result<Self, &'static str> {
        let run = Run { scalar, count, ends, body };
        let bytes = match scalar.width() {
            Some(width) => count.checked_mul(width),
            None => Some(count.checked_sub(1).map_or(0, |last| run.end(last))),
        };
        if bytes == Some(body.len()) { Ok(run) } else { Err(ENDS) }
    }

    fn end(&self, index: usize) -> usize {
        let bytes = self.ends.get(4 * index..).and_then(|rest| rest.first_chunk::<4>());
        bytes.map_or(usize::MAX, |bytes| u32::from_le_bytes(*bytes) as usize)
    }

    fn bytes(&self, index: usize) -> Result<&'a [u8], &'static str> {
        let range = match self.scalar.width() {
            Some(width) => index * width..(index + 1) * width,
            None => index.checked_sub(1).map_or(0, |before| self.end(before))..self.end(index),
        };
        self.body.get(range).ok_or(ENDS)
    }

    fn get(&self, index: usize) -> Result<Scalar<'a>, &'static str> {
        Scalar::decode(self.scalar, self.bytes(index)?)
    }
}

/// Splits off the count. Empty bytes are a count of 0, which has no other encoding.
fn take_count(bytes: &[u8]) -> Result<(usize, &[u8]), &'static str> {
    if bytes.is_empty() {
        return Ok((0, bytes));
    }
    let (count, rest) = bytes.split_first_chunk::<4>().ok_or("it ends inside its count")?;
    match u32::from_le_bytes(*count) as usize {
        0 => Err("it is empty but not written so"),
        count => Ok((count, rest)),
    }
}

fn take_ends(bytes: &[u8], count: usize) -> Result<(&[u8], &[u8]), &'static str> {
    count.checked_mul(4).and_then(|ends| bytes.split_at_checked(ends)).ok_or("it ends inside its ends")
}

impl<'a> ListView<'a> {
    #[inline]
    pub(crate) fn new(scalar: ScalarType, bytes: &'a [u8]) -> Result<Self, &'static str> {
        let items = match scalar.width() {
            Some(width) => Run::new(scalar, bytes.len() / width, &[], bytes)?,
            None => {
                let (count, rest) = take_count(bytes)?;
                let (ends, body) = take_ends(rest, count)?;
                Run::new(scalar, count, ends, body)?
            }
        };
        Ok(ListView { items })
    }

    /// The type of its items.
    pub fn item_type(&self) -> ScalarType {
        self.items.scalar
    }

    /// The bytes of all items, end to end.
    pub(crate) fn body(&self) -> &'a [u8] {
        self.items.body
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.items.count
    }

    /// Whether it has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at `index`, which must be below [`ListView::len`]. `O(1)`.
    ///
    /// # Errors
    /// A description of the fault, if its bytes are damaged.
    ///
    /// # Panics
    /// If `index` is beyond the end.
    pub fn get(&self, index: usize) -> Result<Scalar<'a>, &'static str> {
        assert!(index < self.len(), "the index is below the length");
        self.items.get(index)
    }

    /// All items in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Scalar<'a>, &'static str>> + 'a {
        let items = self.items;
        (0..items.count).map(move |index| items.get(index))
    }
}

impl<'a> MapView<'a> {
    #[inline]
    pub(crate) fn new(scalar: ScalarType, bytes: &'a [u8]) -> Result<Self, &'static str> {
        let (count, rest) = take_count(bytes)?;
        let (key_ends, rest) = take_ends(rest, count)?;
        let (value_ends, rest) =
            if scalar.width().is_none() { take_ends(rest, count)? } else { (&[][..], rest) };
        let unchecked = Run { scalar: ScalarType::Text, count, ends: key_ends, body: rest };
        let key_bytes = count.checked_sub(1).map_or(0, |last| unchecked.end(last));
        let (keys, values) = rest.split_at_checked(key_bytes).ok_or(ENDS)?;
        Ok(MapView {
            keys: Run::new(ScalarType::Text, count, key_ends, keys)?,
            values: Run::new(scalar, count, value_ends, values)?,
        })
    }

    /// The type of its values.
    pub fn value_type(&self) -> ScalarType {
        self.values.scalar
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.keys.count
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of `key`. `O(log len)`. Relies on the order of the keys, which [`super::RecordView::verify`] checks.
    ///
    /// # Errors
    /// A description of the fault, if the bytes that were read are damaged.
    pub fn get(&self, key: &str) -> Result<Option<Scalar<'a>>, &'static str> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.keys.bytes(middle)?.cmp(key.as_bytes()) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return self.values.get(middle).map(Some),
            }
        }
        Ok(None)
    }

    /// All entries in the order of their keys' bytes. A key that is out of order is an error.
    pub fn iter(&self) -> impl Iterator<Item = Result<(&'a str, Scalar<'a>), &'static str>> + 'a {
        let map = *self;
        (0..map.len()).map(move |index| {
            let Scalar::Text(key) = map.keys.get(index)? else { return Err("its keys are not text") };
            if 0 < index && key.as_bytes() <= map.keys.bytes(index - 1)? {
                return Err("its keys are not in order");
            }
            Ok((key, map.values.get(index)?))
        })
    }
}
