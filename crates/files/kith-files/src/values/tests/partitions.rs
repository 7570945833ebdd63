//! Partitions that are built separately.

use super::*;

#[test]
fn partitions_built_one_by_one_make_the_same_version() {
    let rows = people(3_000);
    let dir = tempfile::tempdir().unwrap();
    let mut sample = DictionarySample::new(Duplicates::Refuse);
    rows.iter().for_each(|(key, value)| sample.add(key, value));
    let dictionary = sample.train();
    assert!(!dictionary.is_empty());
    let with = |out: &str, dictionary| ValuesOptions {
        compression: zstd(dictionary),
        key: KeyType::String,
        value: ValueType::Json,
        out_dir: dir.path().join(out),
        ..options(dir.path(), 6)
    };
    let whole = build(with("whole", None), &rows).unwrap().0;

    let parts = with("people", Some(dictionary));
    let mut folders = Vec::new();
    for partition in parts.partitions.iter() {
        // A task may run twice, and its result may be listed twice.
        for attempt in 0..2 {
            let folder = dir.path().join(format!("parts/{}", partition.0));
            let mut builder = PartitionBuilder::new(parts.clone(), partition, &folder).unwrap();
            let mut ours: Vec<_> =
                rows.iter().filter(|(key, _)| partition_of_key(key, parts.partitions) == partition).collect();
            if attempt == 1 {
                ours.reverse();
            }
            ours.iter().for_each(|(key, value)| builder.row(key, value).unwrap());
            builder.finish(&mut |_| {}).unwrap();
            folders.push(folder);
        }
    }
    let assembled = assemble(&parts, &folders).unwrap();
    assert_eq!(assembled, whole);
    check(&open(dir.path(), 3), &map(&rows), &[b"nobody".to_vec()]);
    assert_eq!(std::fs::read_dir(dir.path().join("parts")).unwrap().count(), 6, "nothing is left over");

    let again = |version, folders: &[PathBuf]| {
        let options = ValuesOptions { version: StoreVersion(version), ..parts.clone() };
        assemble(&options, folders).unwrap_err().to_string()
    };
    assert!(again(4, &folders).contains("other options"));
    let next = ValuesOptions { out_dir: dir.path().join("next"), ..parts.clone() };
    let missing = assemble(&next, &folders[2..]).unwrap_err().to_string();
    assert!(missing.ends_with("partition 0 is missing"), "{missing}");
    // The file of a task is truncated.
    let torn = folders[0].join("p00000.data");
    let bytes = std::fs::read(&torn).unwrap();
    std::fs::write(&torn, &bytes[..bytes.len() - 9]).unwrap();
    let error = assemble(&next, &folders).unwrap_err().to_string();
    assert!(error.contains("p00000.data is damaged"), "{error}");
    assert!(!dir.path().join("next/3").exists());
}

#[test]
fn a_partition_refuses_rows_of_another_and_a_second_outcome() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path(), 8);
    let rows = people(50);
    let here = |partition: u32| {
        rows.iter().find(|(key, _)| partition_of_key(key, options.partitions).0 == partition).unwrap()
    };
    let folder = dir.path().join("part");
    let mut builder = PartitionBuilder::new(options.clone(), PartitionId(2), &folder).unwrap();
    let (key, value) = here(3);
    let error = builder.row(key, value).unwrap_err();
    assert!(matches!(error, ValuesBuildError::OtherPartition { expected: 2, got: 3, .. }), "{error}");
    builder.row(&here(2).0, b"one").unwrap();
    builder.finish(&mut |_| {}).unwrap();
    let mut builder = PartitionBuilder::new(options.clone(), PartitionId(2), &folder).unwrap();
    builder.row(&here(2).0, b"two").unwrap();
    let error = builder.finish(&mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("of other rows or options"), "{error}");
    let compressed = ValuesOptions { compression: zstd(None), ..options };
    let error = PartitionBuilder::new(compressed, PartitionId(2), &folder).err().unwrap();
    assert!(matches!(error, ValuesBuildError::NoDictionary), "{error}");
}
