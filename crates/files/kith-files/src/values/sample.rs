//! A sample of rows that does not depend on their order, and the dictionary that is trained on it.

use super::options::Duplicates;
use kith_types::position_of_key;
use std::collections::BTreeMap;

/// The number of rows in the sample.
const ROWS_MAX: usize = 4_096;

/// The number of bytes of each value that are used.
const VALUE_BYTES_MAX: usize = 4_096;

/// The longest dictionary, which is zstd's default.
const DICTIONARY_BYTES_MAX: usize = 112 << 10;

/// The rows whose keys have the least positions. Positions are a hash, so this is a fair sample, and all builders choose
/// the same. Memory: 16 MiB and the keys.
#[derive(Clone, Debug)]
pub struct DictionarySample {
    duplicates: Duplicates,
    rows: BTreeMap<(u64, Vec<u8>), Vec<u8>>,
}

impl DictionarySample {
    /// `duplicates` must be the build's treatment of rows with the same key.
    pub fn new(duplicates: Duplicates) -> Self {
        Self { duplicates, rows: BTreeMap::new() }
    }

    /// Considers a row for the sample.
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

    /// Adds the sample of another part, whose rows come after those of this one.
    pub fn merge(&mut self, other: DictionarySample) {
        for ((_, key), value) in other.rows {
            self.add(&key, &value);
        }
    }

    /// Trains a dictionary. It is empty, which means none, if the sample is too small.
    pub fn train(&self) -> Vec<u8> {
        let samples: Vec<&[u8]> =
            self.rows.values().map(Vec::as_slice).filter(|value| !value.is_empty()).collect();
        // A dictionary that is a large part of the sample would only repeat it.
        let bytes: usize = samples.iter().map(|sample| sample.len()).sum();
        let size = DICTIONARY_BYTES_MAX.min(bytes / 8);
        zstd::dict::from_samples(&samples, size).unwrap_or_default()
    }
}
