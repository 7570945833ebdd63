//! A batch of byte keys in one buffer, for reads of thousands of keys.

/// Keys of any bytes, in the order in which they were added; repeats are allowed.
///
/// Uses one allocation for all bytes and one for their ends, so that a batch of thousands costs no allocation per key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteKeys {
    bytes: Vec<u8>,
    /// The offset at which the bytes of each key end, by the key's index.
    ends: Vec<u32>,
}

impl ByteKeys {
    /// The most bytes of all keys together, because ends have 32 bits.
    pub const BYTES_MAX: usize = u32::MAX as usize;

    /// Creates a batch with room for `count` keys of `bytes` bytes in all.
    pub fn with_capacity(count: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(count) }
    }

    /// Adds a key.
    ///
    /// # Panics
    /// If all keys together are longer than [`Self::BYTES_MAX`]. Callers that take keys from outside have much lower
    /// limits.
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(u32::try_from(self.bytes.len()).expect("batches are bounded far below 4 GiB"));
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The total size of all keys in bytes.
    pub fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    /// The key at an index.
    ///
    /// # Panics
    /// If the index is beyond the last key.
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

/// A key, in the order of keys: ids are ordered as numbers, and other keys by their bytes.
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
