//! Golden bytes: one component of each role as manifest format 3 wrote it, opened by today's code.
//! `BLESS=1` writes them anew, which is a change of format.

use crate::example::{Example, read_lists};
use kith_engine::verify_component;
use kith_ops::KindRole;
use kith_types::Direction;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;

fn examples() -> [Example; 4] {
    [
        Example::new("connection", KindRole::Undirected, 2, 30, 60),
        Example::new("follows", KindRole::Directed, 2, 12, 30),
        Example::new("school", KindRole::Entity, 2, 12, 20),
        Example::new("members", KindRole::MembersOnly, 1, 5, 0),
    ]
}

/// The folder of an example's golden bytes.
fn golden(example: &Example) -> PathBuf {
    static BLESSED: Once = Once::new();
    let folder = |example: &Example| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/formats/v3").join(example.name)
    };
    BLESSED.call_once(|| {
        if std::env::var_os("BLESS").is_some() {
            for example in examples() {
                let _ = fs::remove_dir_all(folder(&example));
                fs::create_dir_all(folder(&example)).unwrap();
                example.write(&folder(&example));
            }
        }
    });
    folder(example)
}

#[test]
fn old_bytes_stay_readable() {
    for example in examples() {
        let dir = golden(&example);
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
                    "{}: {key}",
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
            let (now, then) = (dir.path().join(&name), golden(&example).join(&name));
            assert_eq!(fs::read(now).unwrap(), fs::read(then).unwrap(), "{}", name.display());
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
