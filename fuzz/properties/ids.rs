//! Sorted ids, and the varints that they are made of.

use super::{Seed, take};
use kith_types::delta;

/// Input: the number of ids, then their bytes.
pub fn check(mut input: &[u8]) {
    let count = usize::from(take(&mut input));
    let mut rest = input;
    let mut ids = Vec::new();
    let decoded = delta::decode(&mut rest, count, &mut ids);
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    assert!(ids.len() <= input.len());
    if decoded.is_ok() {
        assert_eq!(ids.len(), count);
        let mut bytes = Vec::new();
        delta::encode(&ids, &mut bytes);
        // The decoder also accepts varints that are longer than necessary.
        assert!(bytes.len() <= input.len() - rest.len());
        let (mut coded, mut again) = (bytes.as_slice(), Vec::new());
        assert_eq!(delta::decode(&mut coded, count, &mut again), Ok(()));
        assert_eq!((again, coded.len()), (ids, 0));
    }
    let mut rest = input;
    if let Ok(value) = delta::take_varint(&mut rest) {
        let mut bytes = Vec::new();
        delta::put_varint(&mut bytes, value);
        assert!(bytes.len() <= input.len() - rest.len());
        assert_eq!(delta::take_varint(&mut bytes.as_slice()), Ok(value));
    }
}

pub fn seeds() -> Vec<Seed> {
    let list = |ids: &[u64]| {
        let mut bytes = vec![ids.len() as u8];
        delta::encode(ids, &mut bytes);
        bytes
    };
    vec![
        ("few", list(&[5, 133, 1_000])),
        ("ends", list(&[0, 1, u64::MAX])),
        ("many", list(&(0..200).map(|id| id * id * 977).collect::<Vec<_>>())),
        ("gap-of-zero", vec![2, 7, 0]),
        ("overflow", [&[2][..], &[0xff; 9], &[1, 1]].concat()),
        ("varint-of-eleven-bytes", [&[1][..], &[0xff; 11]].concat()),
        ("varint-beyond-64-bits", [&[1][..], &[0xff; 9], &[2]].concat()),
    ]
}
