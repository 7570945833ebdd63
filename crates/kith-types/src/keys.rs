//! A batch of byte keys in one buffer: what a batch read of thousands of keys is made of.

/// Keys of any bytes, in the order in which they were added; repeats are allowed.
///
/// One allocation for all bytes and one for their ends, so that a batch of thousands costs no allocation per key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteKeys {
    bytes: Vec<u8>,
    /// At each key's index, where its bytes end.
    ends: Vec<u32>,
}

impl ByteKeys {
    /// The most bytes of all keys together: ends are 32 bits wide.
    pub const BYTES_MAX: usize = u32::MAX as usize;

    /// Room for `count` keys of `bytes` bytes in all.
    pub fn with_capacity(count: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(count) }
    }

    /// Adds a key.
    ///
    /// # Panics
    /// If all keys together are longer than [`Self::BYTES_MAX`]; whoever takes keys from outside bounds them far below.
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(u32::try_from(self.bytes.len()).expect("batches are bounded far below 4 GiB"));
    }

    /// How many keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all keys.
    pub fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    /// The key at an index.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.bytes[start..self.ends[index] as usize]
    }

    /// The keys in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The keys at the given indexes, in their order.
    ///
    /// # Panics
    /// If an index is beyond the last key.
    pub fn select(&self, indexes: &[u32]) -> Self {
        let bytes = indexes.iter().map(|&index| self.get(index as usize).len()).sum();
        let mut selected = Self::with_capacity(indexes.len(), bytes);
        for &index in indexes {
            selected.push(self.get(index as usize));
        }
        selected
    }
}

impl<K: AsRef<[u8]>> FromIterator<K> for ByteKeys {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let mut batch = Self::default();
        keys.into_iter().for_each(|key| batch.push(key.as_ref()));
        batch
    }
}

/// A key, in the order of keys: ids as numbers, bytes as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyRef<'a> {
    /// An id.
    Id(u64),
    /// A string or bytes.
    Bytes(&'a [u8]),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_as_they_went_empty_ones_too() {
        let keys = ["", "a", "", "people", "a"];
        let batch: ByteKeys = keys.iter().collect();
        assert_eq!(batch.iter().collect::<Vec<_>>(), keys.map(str::as_bytes));
        assert_eq!((batch.len(), batch.byte_count()), (5, 8));
        assert_eq!(batch.select(&[3, 0, 3]), ["people", "", "people"].iter().collect());
        assert!(ByteKeys::default().is_empty());
    }
}
