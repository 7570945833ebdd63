//! The crates of the workspace, as checks of the repository find them.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().expect("the workspace root exists")
}

/// The folders `crates/<layer>/<crate>`, by the name of the crate.
pub fn crate_folders() -> BTreeMap<String, PathBuf> {
    let below = |folder: &Path| {
        let entries = fs::read_dir(folder).expect("a folder of the workspace can be read");
        entries.map(|entry| entry.expect("an entry can be read").path()).collect::<Vec<_>>()
    };
    let layers = below(&root().join("crates"));
    let folders = layers.iter().flat_map(|layer| below(layer));
    let folders = folders.filter(|folder| folder.join("Cargo.toml").is_file());
    let name =
        |folder: &Path| folder.file_name().expect("a folder has a name").to_string_lossy().into_owned();
    let named = folders.map(|folder| (name(&folder), folder));
    let named: BTreeMap<_, _> = named.collect();
    assert!(20 < named.len(), "the walk finds the crates");
    named
}

/// The path of a file that a document names as `<crate>/<path>`.
pub fn in_crate(file: &str) -> PathBuf {
    let (name, path) = file.split_once('/').unwrap_or((file, ""));
    let folder = crate_folders().remove(name).unwrap_or_else(|| panic!("{file}: there is no crate {name}"));
    folder.join(path)
}
