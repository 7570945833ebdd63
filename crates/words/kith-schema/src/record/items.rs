//! Encodes lists, vectors and maps.

use super::number::{Clock, put_element, put_scalar};
use super::{Scalar, ValueFault};
use crate::{ElementType, FieldType, ScalarType, VALUE_BYTES_MAX};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;

/// Appends text from JSON: decodes base64 for bytes, copies text, and refuses it for other types.
pub(super) fn put_text(
    scalar: ScalarType,
    text: &str,
    clock: &mut Clock,
    out: &mut Vec<u8>,
) -> Result<(), ValueFault> {
    if scalar == ScalarType::Bytes {
        return STANDARD.decode_vec(text, out).map_err(|_| ValueFault::NotBase64);
    }
    put_scalar(scalar, Scalar::Text(text), clock, out)
}

/// The type of the items of a list or vector.
#[derive(Clone, Copy)]
enum Item {
    Scalar(ScalarType),
    Element(ElementType),
}

/// Appends the items of one list or vector to a buffer.
pub(super) struct Items<'w> {
    item: Item,
    /// The required number of items, for a vector.
    dimensions: Option<u32>,
    count: u64,
    /// The end offsets of items of variable size.
    ends: Option<Vec<u32>>,
    /// How items that are times are read.
    pub(super) clock: Clock,
    out: &'w mut Vec<u8>,
}

impl<'w> Items<'w> {
    /// Begins to fill `out`, which is cleared first; `None` if the type has no items.
    pub(super) fn begin(field_type: FieldType, clock: Clock, out: &'w mut Vec<u8>) -> Option<Self> {
        out.clear();
        let (item, dimensions) = match field_type {
            FieldType::List(scalar) => (Item::Scalar(scalar), None),
            FieldType::Vector { element, dimensions } => (Item::Element(element), Some(dimensions)),
            FieldType::Scalar(_) | FieldType::Map(_) => return None,
        };
        let variable = matches!(item, Item::Scalar(scalar) if scalar.width().is_none());
        Some(Items { item, dimensions, count: 0, ends: variable.then(Vec::new), clock, out })
    }

    /// The number of items so far. After a fault, it is the number of the faulty item.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn push(&mut self, value: Scalar<'_>) -> Result<(), ValueFault> {
        self.next()?;
        match self.item {
            Item::Scalar(scalar) => put_scalar(scalar, value, &mut self.clock, self.out)?,
            Item::Element(element) => put_element(element, value, self.out)?,
        }
        self.ended()
    }

    /// Adds text from JSON, like [`Items::push`].
    pub(super) fn push_json_text(&mut self, text: &str) -> Result<(), ValueFault> {
        match self.item {
            Item::Scalar(scalar) => {
                self.next()?;
                put_text(scalar, text, &mut self.clock, self.out)?;
                self.ended()
            }
            Item::Element(_) => self.push(Scalar::Text(text)),
        }
    }

    fn next(&mut self) -> Result<(), ValueFault> {
        self.count += 1;
        match self.dimensions {
            Some(expected) if u64::from(expected) < self.count => {
                Err(ValueFault::Dimensions { expected, got: self.count })
            }
            _ => Ok(()),
        }
    }

    fn ended(&mut self) -> Result<(), ValueFault> {
        if VALUE_BYTES_MAX < self.out.len() {
            return Err(ValueFault::TooLarge);
        }
        if let Some(ends) = &mut self.ends {
            ends.push(self.out.len() as u32);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(), ValueFault> {
        if let Some(expected) = self.dimensions
            && u64::from(expected) != self.count
        {
            return Err(ValueFault::Dimensions { expected, got: self.count });
        }
        let ends = self.ends.filter(|ends| !ends.is_empty());
        if let Some(ends) = ends {
            let head = std::iter::once(ends.len() as u32).chain(ends);
            self.out.splice(0..0, head.flat_map(u32::to_le_bytes));
        }
        Ok(())
    }
}

/// Collects the entries of one map.
pub(super) struct Entries {
    value: ScalarType,
    /// How values that are times are read.
    pub(super) clock: Clock,
    entries: BTreeMap<String, Vec<u8>>,
}

impl Entries {
    /// Begins a map; `None` if the type is not a map.
    pub(super) fn begin(field_type: FieldType, clock: Clock) -> Option<Self> {
        match field_type {
            FieldType::Map(value) => Some(Entries { value, clock, entries: BTreeMap::new() }),
            _ => None,
        }
    }

    /// The number of entries so far.
    pub(super) fn count(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn push(&mut self, key: &str, value: Scalar<'_>) -> Result<(), ValueFault> {
        let mut bytes = Vec::new();
        put_scalar(self.value, value, &mut self.clock, &mut bytes)?;
        self.insert(key, bytes)
    }

    pub(super) fn push_json_text(&mut self, key: &str, text: &str) -> Result<(), ValueFault> {
        let mut bytes = Vec::new();
        put_text(self.value, text, &mut self.clock, &mut bytes)?;
        self.insert(key, bytes)
    }

    fn insert(&mut self, key: &str, value: Vec<u8>) -> Result<(), ValueFault> {
        match self.entries.insert(key.to_owned(), value) {
            Some(_) => Err(ValueFault::RepeatedKey { key: key.to_owned() }),
            None => Ok(()),
        }
    }

    /// Encodes the map into `out`, which is cleared first.
    pub(super) fn finish(self, out: &mut Vec<u8>) -> Result<(), ValueFault> {
        out.clear();
        if self.entries.is_empty() {
            return Ok(());
        }
        let keys: usize = self.entries.keys().map(String::len).sum();
        let values: usize = self.entries.values().map(Vec::len).sum();
        if VALUE_BYTES_MAX < keys + values + 8 * self.entries.len() + 4 {
            return Err(ValueFault::TooLarge);
        }
        out.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        let put_ends = |out: &mut Vec<u8>, lengths: &mut dyn Iterator<Item = usize>| {
            let mut end = 0u32;
            for length in lengths {
                end += length as u32;
                out.extend_from_slice(&end.to_le_bytes());
            }
        };
        put_ends(out, &mut self.entries.keys().map(String::len));
        if self.value.width().is_none() {
            put_ends(out, &mut self.entries.values().map(Vec::len));
        }
        self.entries.keys().for_each(|key| out.extend_from_slice(key.as_bytes()));
        self.entries.values().for_each(|value| out.extend_from_slice(value));
        Ok(())
    }
}
