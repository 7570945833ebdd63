//! Tests uploads and downloads of versions and rows.

use super::*;

#[test]
fn a_version_goes_up_and_comes_down_the_same() {
    let (_server, access, folder, manifest) = uploaded(ROWS);
    assert!(manifest.packs().iter().any(|pack| 8 << 20 < pack.bytes), "some packs go up in parts");
    let remote = objects(&access, "people/1");
    assert_eq!(remote.manifest().unwrap(), manifest);
    assert_eq!(objects(&access, "people").children().unwrap(), ["1".to_owned()].into());
    let names: Vec<String> = remote.list().unwrap().into_iter().map(|listed| listed.name).collect();
    assert_eq!(names.len(), manifest.packs().len() + 1);
    let target = folder.path().join("fetched/1");
    fetched(&remote, &target, &mut go_on).unwrap();
    assert_right(&target, 1);
    // Copied unchanged, for the object store of another cluster.
    remote.version().download(&manifest, &folder.path().join("copy"), &mut |_, _| {}).unwrap();
    for name in names {
        let [built, copied] =
            ["1", "copy"].map(|dir| std::fs::read(folder.path().join(dir).join(&name)).unwrap());
        assert!(built == copied, "{name}");
    }
    remote.remove_all().unwrap();
    assert_eq!(remote.list().unwrap(), []);
    remote.remove_all().unwrap();
}

#[test]
fn a_version_made_of_another_sends_what_changed_and_the_store_copies_the_rest() {
    let (server, access, folder, base) = uploaded(ROWS);
    let options = DeltaOptions::new(StoreVersion(2), folder.path().to_owned());
    let mut delta = DeltaBuilder::new(&folder.path().join("1"), options).unwrap();
    delta.put(&7u64.to_le_bytes(), b"changed").unwrap();
    let (manifest, summary) = delta.finish(&mut |_| {}).unwrap();
    assert_eq!(manifest.packs_in_common(&base).len(), PARTITIONS as usize - 1);
    let (built, remote) = (folder.path().join("2"), objects(&access, "people/2"));
    let before = (server.bytes_sent(), server.bytes_received());
    remote.version().upload_on(Some(&objects(&access, "people/1")), &built, &mut |_, _| {}).unwrap();
    let sent = server.bytes_received() - before.1;
    assert!(sent < summary.bytes_changed + (1 << 20), "{sent} bytes for {summary:?}");
    assert!(server.bytes_sent() - before.0 < 1 << 20, "a copy by the store does not pass here");
    // The new version is complete without the one before. A node that holds the old version needs only the patch.
    let held = folder.path().join("node/1");
    fetched(&objects(&access, "people/1"), &held, &mut go_on).unwrap();
    objects(&access, "people/1").remove_all().unwrap();
    fetched(&remote, &folder.path().join("whole/2"), &mut go_on).unwrap();
    for listed in remote.list().unwrap() {
        let ours = std::fs::read(built.join(&listed.name)).unwrap();
        assert!(ours == std::fs::read(server.file(&format!("people/2/{}", listed.name))).unwrap());
    }
    let before = server.bytes_sent();
    let options = FetchOptions { held: vec![held], ..FetchOptions::default() };
    fetch(&remote, &folder.path().join("node/2"), &all(), &options, &mut |_| ControlFlow::Continue(()))
        .unwrap();
    let sent = server.bytes_sent() - before;
    assert!(sent < 32 << 10, "{sent} bytes for one key");
    // Packs of a removed version cannot be copied, so everything is uploaded.
    let again = objects(&access, "people/3");
    again.version().upload_on(Some(&objects(&access, "people/1")), &built, &mut |_, _| {}).unwrap();
    let names_and_sizes = |remote: &Objects| -> Vec<(String, u64)> {
        remote.list().unwrap().into_iter().map(|object| (object.name, object.bytes)).collect()
    };
    assert_eq!(names_and_sizes(&again), names_and_sizes(&remote));
}

#[test]
fn a_place_takes_one_version_and_the_same_one_again() {
    let (_server, access, folder, _) = uploaded(100);
    let remote = objects(&access, "people/1");
    remote.version().upload(&folder.path().join("1"), &mut |_, _| {}).unwrap();
    build(folder.path(), 2, 100);
    let error = remote.version().upload(&folder.path().join("2"), &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, ObjectsError::Taken { .. }), "{error:?}");
    fetched(&remote, &folder.path().join("fetched"), &mut go_on).unwrap();
}

#[test]
fn rows_are_read_as_they_were_written() {
    let (server, access, ..) = uploaded(10);
    let bytes: Vec<u8> = (0..20_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(server.file("rows.csv"), &bytes).unwrap();
    std::fs::write(server.file("empty.csv"), b"").unwrap();
    let remote = objects(&access, "");
    let read = |name: &str| {
        let mut got = Vec::new();
        remote.reader(name).read_to_end(&mut got).map(|_| got)
    };
    server.cut_after(9_000_000);
    assert!(read("rows.csv").unwrap() == bytes);
    assert_eq!(read("empty.csv").unwrap(), b"");
    assert!(read("no.csv").unwrap_err().to_string().contains("no.csv"));
}
