//! Golden bytes: one component of each role as each format wrote it, opened by today's code.
//! `BLESS=1` writes those of today's format anew, which is a change of it.

use crate::example::{Example, read_lists};
use kith_engine::verify_component;
use kith_ops::KindRole;
use kith_types::Direction;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Manifest format 3, data files of format 1: with the lengths of keys.
const BEFORE: &str = "v3";
/// Manifest format 3, data files of ids of format 2.
const TODAY: &str = "v3-ids";

fn examples() -> [Example; 4] {
    [
        Example::new("connection", KindRole::Undirected, 2, 30, 60),
        Example::new("follows", KindRole::Directed, 2, 12, 30),
        Example::new("school", KindRole::Entity, 2, 12, 20),
        Example::new("members", KindRole::MembersOnly, 1, 5, 0),
    ]
}

/// The folder of an example's golden bytes.
fn golden(format: &str, example: &Example) -> PathBuf {
    static BLESSED: Once = Once::new();
    let folder = |format: &str, example: &Example| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/formats").join(format).join(example.name)
    };
    BLESSED.call_once(|| {
        if std::env::var_os("BLESS").is_some() {
            for example in examples() {
                let today = folder(TODAY, &example);
                let _ = fs::remove_dir_all(&today);
                fs::create_dir_all(&today).unwrap();
                example.write(&today);
            }
        }
    });
    folder(format, example)
}

#[test]
fn old_bytes_stay_readable() {
    for (format, example) in [BEFORE, TODAY].into_iter().flat_map(|it| examples().map(|ex| (it, ex))) {
        let dir = golden(format, &example);
        assert!(verify_component(&dir, None).unwrap().damages.is_empty());
        let source = example.open(&dir).unwrap();
        let keys: Vec<u64> =
            example.members.iter().copied().chain(5_000_000..5_000_020).chain(0..9).collect();
        for direction in [Direction::Out, Direction::In] {
            let got = read_lists(&source, &example.selector(direction, 0), &keys).unwrap();
            for (&key, got) in keys.iter().zip(got) {
                assert_eq!(
                    got,
                    example.answer(direction, key, 0, &example.members),
                    "{format}, {}: {key}",
                    example.name
                );
            }
        }
    }
}

#[test]
fn the_same_content_gives_the_same_bytes() {
    for example in examples() {
        let dir = tempfile::tempdir().unwrap();
        example.write(dir.path());
        for entry in fs::read_dir(dir.path()).unwrap() {
            let name = entry.unwrap().file_name();
            let (now, then) = (dir.path().join(&name), golden(TODAY, &example).join(&name));
            assert!(fs::read(now).unwrap() == fs::read(then).unwrap(), "{}", name.display());
        }
    }
}

/// Format 1 had a file of its own for each logical file, format 2 another index. No release wrote them.
#[test]
fn an_older_manifest_is_refused_by_its_number() {
    for older in [1, 2] {
        let dir = tempfile::tempdir().unwrap();
        let manifest = format!("{{\n  \"kith_manifest\": {older},\n  \"component\": \"connection\"\n}}\n");
        fs::write(dir.path().join("manifest.json"), manifest).unwrap();
        let error = verify_component(dir.path(), None).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "manifest.json has format version {older}, but this release reads 3; build or load it again"
            )
        );
    }
}
