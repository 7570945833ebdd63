//! Runs the fuzz targets (`fuzz/properties`) over their seeds: inputs that our encoders make, and inputs that once broke a decoder.

#[path = "../../../../fuzz/properties/mod.rs"]
#[allow(dead_code, reason = "only the fuzzer bounds the memory that an input may take")]
mod properties;

use properties::{TARGETS, Target};
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("names are text"))
        .collect();
    names.sort();
    names
}

/// Runs a target over all its seeds. `BLESS=1` first writes those that our encoders make.
fn check(target: &Target) {
    let folder = folder().join(target.name);
    for (name, bytes) in (target.seeds)() {
        let path = folder.join(name);
        if std::env::var_os("BLESS").is_some() {
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(&path, &bytes).expect("written");
        }
        let is_same = fs::read(&path).is_ok_and(|written| written == bytes);
        assert!(is_same, "{} is not what its encoder makes; `make bless` writes it again", path.display());
    }
    for name in names(&folder) {
        println!("{}/{name}", target.name);
        (target.check)(&fs::read(folder.join(name)).expect("a seed"));
    }
    (target.check)(b"");
}

#[test]
fn what_must_hold_of_decoders_holds_of_all_seeds() {
    TARGETS.iter().for_each(check);
    let mut targets: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    targets.sort_unstable();
    assert_eq!(names(&folder()), targets, "a folder for each target, and no other");
}
