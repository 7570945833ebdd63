//! Tests servers that fail, and objects that are damaged.

use super::*;

#[test]
fn an_upload_that_is_cut_off_leaves_no_version_and_can_be_repeated() {
    let (mut server, folder) = (S3::start(), tempfile::tempdir().unwrap());
    let access = Access { retry_for: Duration::from_millis(300), ..access(&server) };
    build(folder.path(), 1, ROWS);
    let remote = objects(&access, "people/1");
    let error = remote
        .version()
        .upload(&folder.path().join("1"), &mut |done, total| {
            if total / 2 < done {
                server.kill();
            }
        })
        .unwrap_err();
    assert!(matches!(error, ObjectsError::Failed { .. }), "{error:?}");
    server.restart();
    assert!(matches!(remote.manifest(), Err(FetchError::Manifest(_))), "{:?}", remote.manifest());
    remote.version().upload(&folder.path().join("1"), &mut |_, _| {}).unwrap();
    let target = folder.path().join("fetched");
    fetched(&remote, &target, &mut go_on).unwrap();
    assert_right(&target, 1);
}

#[test]
fn a_fetch_goes_on_when_the_server_comes_back() {
    let (mut server, access, folder, _) = uploaded(ROWS);
    let remote = objects(&access, "people/1");
    let target = folder.path().join("fetched");
    let mut restarts = 0;
    fetched(&remote, &target, &mut |state| {
        if restarts == 0 && state.bytes / 2 < state.bytes_done {
            restarts += 1;
            server.restart();
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(restarts, 1);
    assert_right(&target, 1);
}

#[test]
fn a_fetch_from_a_server_that_stays_away_fails_and_is_resumed() {
    let (mut server, access, folder, _) = uploaded(ROWS);
    let access = Access { retry_for: Duration::from_millis(300), ..access };
    let remote = objects(&access, "people/1");
    let target = folder.path().join("fetched");
    let error = fetched(&remote, &target, &mut |state| {
        if state.bytes / 2 < state.bytes_done {
            server.kill();
        }
        ControlFlow::Continue(())
    })
    .unwrap_err();
    assert!(matches!(error, FetchError::Source(_)), "{error:?}");
    assert!(!target.exists(), "what is half fetched is no version");
    server.restart();
    let mut last = FetchProgress::default();
    fetched(&remote, &target, &mut |state| {
        last = state.clone();
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(last.bytes_copied < last.bytes * 3 / 4, "half of it was here: {last:?}");
    assert_right(&target, 1);
}

#[test]
fn an_answer_that_breaks_off_is_asked_for_again() {
    let (server, access, folder, _) = uploaded(ROWS);
    let remote = objects(&access, "people/1");
    for cut_after in [100_000, 3_000_000, 20_000_000] {
        server.cut_after(cut_after);
        let target = folder.path().join(format!("fetched-{cut_after}"));
        fetched(&remote, &target, &mut go_on).unwrap();
        assert!(server.has_cut());
        assert_right(&target, 1);
    }
}

#[test]
fn a_wrong_secret_is_refused_and_said_so() {
    let (_server, mut access, folder, _) = uploaded(100);
    for (name, value) in &mut access.settings {
        if name == "aws_secret_access_key" {
            *value = "wrong".to_owned();
        }
    }
    let remote = objects(&access, "people/1");
    let error = fetched(&remote, &folder.path().join("fetched"), &mut go_on).unwrap_err();
    let text = chain(&error);
    assert!(text.contains("was refused") && text.contains("people/1/manifest.json"), "{text}");
    let error = remote.list().unwrap_err();
    assert!(matches!(error, ObjectsError::Refused { .. }), "{error:?}");
    assert!(error.help().contains("AWS_SECRET_ACCESS_KEY"));
    assert!(matches!(
        objects(&access, "people/2").version().upload(&folder.path().join("1"), &mut |_, _| {}),
        Err(ObjectsError::Refused { .. } | ObjectsError::Failed { .. })
    ));
}

#[test]
fn damaged_objects_are_errors_and_never_versions() {
    let (server, access, folder, manifest) = uploaded(ROWS);
    let remote = objects(&access, "people/1");
    let pack = &manifest.packs()[0];
    let file = server.file(&format!("people/1/{}", pack.name));
    let whole = std::fs::read(&file).unwrap();
    let target = folder.path().join("fetched");
    // The object is truncated to half, and to nothing.
    for bytes in [pack.bytes / 2, 0] {
        kith_files::testing::truncate(&file, bytes);
        let error = fetched(&remote, &target, &mut go_on).unwrap_err();
        assert!(matches!(error, FetchError::Damaged(Damage { fault: Fault::Size { .. }, .. })), "{error:?}");
    }
    let mut flipped = whole.clone();
    flipped[whole.len() / 3] ^= 1;
    std::fs::write(&file, flipped).unwrap();
    let error = fetched(&remote, &target, &mut go_on).unwrap_err();
    assert!(matches!(error, FetchError::Damaged(Damage { fault: Fault::Checksum { .. }, .. })), "{error:?}");
    std::fs::remove_file(&file).unwrap();
    let error = fetched(&remote, &target, &mut go_on).unwrap_err();
    assert!(matches!(error, FetchError::Damaged(Damage { fault: Fault::Missing, .. })), "{error:?}");
    assert!(!target.exists());
    std::fs::write(&file, whole).unwrap();
    fetched(&remote, &target, &mut go_on).unwrap();
    assert_right(&target, 1);
    // The manifest is not the expected one.
    let options = FetchOptions { manifest_hash: Some("0".repeat(64)), ..FetchOptions::default() };
    let error = fetch(&remote, &folder.path().join("other"), &all(), &options, &mut |state| go_on(state))
        .unwrap_err();
    assert!(matches!(error, FetchError::Manifest(kith_engine::OpenError::OtherVersion { .. })), "{error:?}");
}
