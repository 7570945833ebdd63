//! A sample of rows that does not depend on their order, and the dictionary made from it.

use super::options::Duplicates;
use kith_types::position_of_key;
use std::collections::BTreeMap;

/// Rows of the sample.
const ROWS_MAX: usize = 4_096;

/// Bytes of each value that are looked at.
const VALUE_BYTES_MAX: usize = 4_096;

/// The longest dictionary: zstd's own default.
const DICTIONARY_BYTES_MAX: usize = 112 << 10;

/// The rows whose keys have the least positions: positions are a hash, so this is a fair sample, and the same one
/// whoever takes it. Memory: 16 MiB and keys.
#[derive(Clone, Debug)]
pub struct DictionarySample {
    duplicates: Duplicates,
    rows: BTreeMap<(u64, Vec<u8>), Vec<u8>>,
}

impl DictionarySample {
    /// `duplicates` is what the build does about rows with one key.
    pub fn new(duplicates: Duplicates) -> Self {
        Self { duplicates, rows: BTreeMap::new() }
    }

    /// Looks at a row.
    #[inline]
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        let position = position_of_key(key);
        let is_full = self.rows.len() >= ROWS_MAX;
        if is_full && self.rows.last_key_value().is_some_and(|((last, _), _)| *last < position) {
            return;
        }
        let value = &value[..value.len().min(VALUE_BYTES_MAX)];
        let row = (position, key.to_vec());
        match self.duplicates {
            Duplicates::Refuse | Duplicates::First => {
                self.rows.entry(row).or_insert_with(|| value.to_vec());
            }
            Duplicates::Last => {
                self.rows.insert(row, value.to_vec());
            }
        }
        if self.rows.len() > ROWS_MAX {
            self.rows.pop_last();
        }
    }

    /// Adds another part's sample: of rows that came after this one's.
    pub fn merge(&mut self, other: DictionarySample) {
        for ((_, key), value) in other.rows {
            self.add(&key, &value);
        }
    }

    /// Trains a dictionary; an empty one, which is none, if there is too little to learn from.
    pub fn train(&self) -> Vec<u8> {
        let samples: Vec<&[u8]> =
            self.rows.values().map(Vec::as_slice).filter(|value| !value.is_empty()).collect();
        // A dictionary that is most of the sample is learnt by heart.
        let bytes: usize = samples.iter().map(|sample| sample.len()).sum();
        let size = DICTIONARY_BYTES_MAX.min(bytes / 8);
        zstd::dict::from_samples(&samples, size).unwrap_or_default()
    }
}
