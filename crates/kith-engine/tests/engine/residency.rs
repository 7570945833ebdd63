//! What files answer that are not in memory.

use kith_engine::{KeyType, ValuesReader};
use kith_load::{ValuesBuilder, ValuesOptions};
use kith_types::{PartitionCount, PartitionId, StoreVersion};

#[test]
fn cold_files_answer_like_warm_ones() {
    let dir = tempfile::tempdir().unwrap();
    let partitions = PartitionCount::new(2).unwrap();
    let options = ValuesOptions::new("cold", StoreVersion(1), partitions, dir.path().join("cold"));
    let mut builder = ValuesBuilder::new(ValuesOptions { key: KeyType::Id, ..options }).unwrap();
    // On one page, across two, and on many.
    let value = |id: u64| vec![id as u8; [10, 3_000, 300_000][id as usize % 3]];
    (0..300u64).for_each(|id| builder.row(&id.to_le_bytes(), &value(id)).unwrap());
    builder.finish(&mut |_| {}).unwrap();
    let all: Vec<PartitionId> = partitions.iter().collect();
    let reader = ValuesReader::open(&dir.path().join("cold/1"), &all).unwrap();
    let mapped = reader.mapped();
    assert!(mapped.residency(100, 1).is_whole(), "what was just written is in memory");
    for is_cold in [true, false] {
        mapped.set_cold(is_cold);
        assert_eq!(mapped.is_cold(), is_cold);
        for id in 0..400u64 {
            assert_eq!(reader.get(&id.to_le_bytes()).unwrap(), (id < 300).then(|| value(id)), "{id}");
        }
        let mut seen = 0;
        for partition in &all {
            let each = |key: &[u8], found: &[u8]| {
                seen += 1;
                assert_eq!(found, value(u64::from_le_bytes(key.try_into().unwrap())));
                std::ops::ControlFlow::Continue(())
            };
            reader.for_each(*partition, each).unwrap();
        }
        assert_eq!(seen, 300);
    }
}
