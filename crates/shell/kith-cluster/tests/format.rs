//! Golden bytes of the embedded store's file; `testdata/formats/README.md` lists it.

// The lint spares functions marked as tests, not the helpers that they call.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use kith_cluster::metadata::{EmbeddedMetadata, MetadataStore, Write};
use kith_sim::golden;
use std::{fs, time::Duration};

fn put(key: &str, value: &str) -> Write {
    Write { key: key.to_owned(), value: Some(value.into()), lease: None }
}

#[tokio::test]
async fn the_file_of_the_embedded_store() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("metadata.json");
    let store = EmbeddedMetadata::open(&file).unwrap();
    store.commit(vec![], vec![put("stores/people", "{\"format\":1}"), put("gone", "")]).await.unwrap();
    let lease = store.lease(Duration::from_secs(60)).await.unwrap();
    let leased = Write { key: "live/nodes/000001".to_owned(), value: Some(vec![]), lease: Some(lease) };
    let gone = Write { key: "gone".to_owned(), value: None, lease: None };
    store
        .commit(vec![], vec![put("cluster", "{\"format\":1,\"name\":\"für alle\"}"), leased, gone])
        .await
        .unwrap();
    let golden = golden::file("metadata.json", &fs::read(&file).unwrap());

    let file = folder.path().join("golden.json");
    fs::write(&file, &golden).unwrap();
    let read = EmbeddedMetadata::open(&file).unwrap().read("").await.unwrap();
    let entries: Vec<_> =
        read.entries.iter().map(|entry| (entry.key.as_str(), &entry.value[..], entry.revision)).collect();
    let expected: [(&str, &[u8], u64); 2] = [
        ("cluster", "{\"format\":1,\"name\":\"für alle\"}".as_bytes(), 2),
        ("stores/people", b"{\"format\":1}", 1),
    ];
    assert_eq!((entries.as_slice(), read.revision), (&expected[..], 2));

    let text = String::from_utf8(golden).unwrap();
    for got in [0, 2] {
        fs::write(&file, text.replacen("\"format\": 1", &format!("\"format\": {got}"), 1)).unwrap();
        let error = EmbeddedMetadata::open(&file).err().unwrap().to_string();
        assert!(error.ends_with(&format!("it has format {got}, this release reads format 1")), "{error}");
    }
    // A newer release may add members.
    fs::write(&file, text.replacen('{', "{\"what_is_new\": 7,", 1)).unwrap();
    assert_eq!(EmbeddedMetadata::open(&file).unwrap().read("").await.unwrap().entries.len(), 2);
}
