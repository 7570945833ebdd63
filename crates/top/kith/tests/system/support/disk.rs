//! A node's files, and what can happen to them.

use super::cluster::Cluster;
use serde_json::Value;
use std::{
    fs::{self, File},
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
};

/// Where a node keeps a version of a store of values.
pub fn version_folder(cluster: &Cluster, node: u64, store: &str, version: u64) -> PathBuf {
    let data = cluster.ready_file.parent().expect("a folder").join("data");
    data.join(format!("node-{node:03}/components/{store}/values/{version}"))
}

/// Bytes on the disk of the packs that a fetch has gathered so far.
pub fn staged_bytes(staging: &Path) -> u64 {
    let entries = fs::read_dir(staging).into_iter().flatten().flatten();
    let packs = entries.filter(|entry| entry.path().extension().is_some_and(|it| it == "pack"));
    packs.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.blocks() * 512).sum()
}

/// The packs in a folder.
pub fn packs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("readable").flatten().map(|entry| entry.path());
    let mut packs: Vec<_> = entries.filter(|path| path.extension().is_some_and(|it| it == "pack")).collect();
    packs.sort();
    packs
}

/// Flips a byte in every 512 of the middle of each logical file of a kind, `data` or `index`.
pub fn flip(folder: &Path, kind: &str) {
    let read = |name: &str| -> Value {
        let text = fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        serde_json::from_slice(&text).expect("JSON")
    };
    let (layout, manifest) = (read("layout.json"), read("manifest.json"));
    let sizes = manifest["files"].as_array().expect("files");
    let mut count = 0;
    for file in layout["files"].as_array().expect("files") {
        let name = file["name"].as_str().expect("a name");
        if !name.ends_with(&format!(".{kind}")) {
            continue;
        }
        let bytes = sizes.iter().find(|entry| entry["name"] == name).expect("listed")["bytes"].as_u64();
        let (bytes, start) = (bytes.expect("a size"), file["offset"].as_u64().expect("an offset"));
        let pack = file["pack"].as_u64().expect("a number") as usize;
        let pack = layout["packs"][pack]["name"].as_str().expect("a name");
        flip_range(&folder.join(pack), start + bytes / 10, start + bytes / 10 * 9);
        count += 1;
    }
    assert_ne!(count, 0, "no {kind} in {}", folder.display());
}

fn flip_range(path: &Path, start: u64, end: u64) {
    let file = File::options().read(true).write(true).open(path).expect("it opens");
    for at in (start..end).step_by(512) {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).expect("read");
        file.write_all_at(&[!byte[0]], at).expect("written");
    }
}

/// Cuts each pack in half.
pub fn truncate(folder: &Path) {
    for pack in packs(folder) {
        let file = File::options().write(true).open(pack).expect("it opens");
        let bytes = file.metadata().expect("it has a length").len();
        file.set_len(bytes / 2).expect("cut");
    }
}

/// Removes every pack: data and indexes.
pub fn remove_packs(folder: &Path) {
    packs(folder).iter().for_each(|pack| fs::remove_file(pack).expect("removed"));
}
