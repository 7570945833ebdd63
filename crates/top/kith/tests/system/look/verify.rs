//! `kith store verify`: what is wrong with which file of which node.

use super::World;
use crate::support::disk::{flip, packs, remove_packs, truncate, version_folder};
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Takes a copy of a folder's files and puts them back.
struct Saved {
    folder: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Saved {
    fn of(folder: &Path) -> Self {
        let paths = fs::read_dir(folder).expect("readable").flatten().map(|entry| entry.path());
        let files = paths.map(|path| (path.clone(), fs::read(path).expect("read"))).collect();
        Self { folder: folder.to_owned(), files }
    }

    fn restore(&self) {
        let _ = fs::remove_dir_all(&self.folder);
        fs::create_dir_all(&self.folder).expect("made");
        self.files.iter().for_each(|(path, bytes)| fs::write(path, bytes).expect("written"));
    }
}

/// Name, fault, the reported state, whether a quick look finds it.
type Fault<'a> = (&'a str, &'a dyn Fn(), &'a str, bool);

fn assert_two_are_whole(world: &World) {
    for depth in [&[][..], &["--deep"]] {
        let (report, code) = world.verify(&[&["words"], depth].concat());
        assert_eq!((&report["ok"], code), (&json!(true), Some(0)), "{report}");
        assert_eq!(report["nodes"].as_array().map(Vec::len), Some(2), "{report}");
    }
}

/// A fault of node 0 is reported for it and for no other.
fn assert_found(world: &World, what: &str, state: &str, quick: bool) {
    let (report, code) = world.verify(&["words"]);
    assert_eq!(code, Some(if quick { 3 } else { 0 }), "{what}: {report}");
    let (report, code) = world.verify(&["words", "--deep"]);
    assert_eq!((code, &report["ok"]), (Some(3), &json!(false)), "{what}: {report}");
    assert_eq!(report["nodes"][0]["state"], state, "{what}: {report}");
    assert_eq!(report["nodes"][1]["state"], "ok", "{what}: {report}");
    if state == "damaged" {
        let damage = &report["nodes"][0]["components"][0]["damages"][0];
        assert!(damage["file"].is_string() && damage["fault"].is_string(), "{what}: {report}");
        assert!(!what.starts_with("flipped") || damage["offset"].is_u64(), "{what}: {report}");
    }
}

#[test]
fn verify_tells_what_is_wrong_on_which_node() {
    let world = World::start(&["--nodes", "1", "--groups", "2", "--partitions", "8"]);
    for store in ["words", "others"] {
        world.create(store, &[]);
        // Large enough for several packs.
        let rows: String = (0..3_000).map(|key| format!("{store} {key},{}\n", "x".repeat(4_000))).collect();
        let rows = world.write("rows.csv", &format!("key,value\n{rows}"));
        world.push(store, &[&rows, "--version", "1"]);
    }
    assert_two_are_whole(&world);
    let folder = version_folder(&world.cluster, 0, "words", 1);
    let other = version_folder(&world.cluster, 0, "others", 1);
    assert!(1 < packs(&folder).len(), "packs to swap");
    let saved = Saved::of(&folder);
    let scribble = || fs::write(folder.join("manifest.json"), "{").expect("written");
    let faults: [Fault<'_>; 10] = [
        ("flipped data", &|| flip(&folder, "data"), "damaged", false),
        ("flipped indexes", &|| flip(&folder, "index"), "damaged", false),
        ("cut packs", &|| truncate(&folder), "damaged", true),
        ("no packs", &|| remove_packs(&folder), "damaged", true),
        ("swapped packs", &|| swap(&folder), "damaged", true),
        ("a file too many", &|| fs::write(folder.join("extra"), "x").expect("written"), "damaged", true),
        ("a manifest of another store", &|| copy(&other, &folder, "manifest.json"), "differs", true),
        ("no manifest", &|| fs::remove_file(folder.join("manifest.json")).expect("removed"), "damaged", true),
        ("a damaged manifest", &scribble, "damaged", true),
        ("no folder", &|| fs::remove_dir_all(&folder).expect("removed"), "missing", true),
    ];
    for (what, fault, state, quick) in faults {
        fault();
        assert_found(&world, what, state, quick);
        saved.restore();
    }
    assert_eq!(world.verify(&["words", "--deep"]).1, Some(0));
    let (report, code) = world.verify(&["words", "--version", "9"]);
    assert_eq!((&report["error"]["code"], code), (&json!("version_not_kept"), Some(1)), "{report}");
}

fn copy(from: &Path, to: &Path, name: &str) {
    fs::copy(from.join(name), to.join(name)).expect("copied");
}

/// Two packs under each other's names.
fn swap(folder: &Path) {
    let packs = packs(folder);
    let aside = folder.join("aside");
    fs::rename(&packs[0], &aside).expect("renamed");
    fs::rename(&packs[1], &packs[0]).expect("renamed");
    fs::rename(&aside, &packs[1]).expect("renamed");
}
