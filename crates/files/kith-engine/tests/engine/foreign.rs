//! Files of a store in places where they do not belong.

use crate::stores::{KEYS, Stores, is_found, packs, survives};
use kith_engine::{Manifest, VerifyDepth, VersionFolder, verify_version};
use std::fs;

#[test]
fn manifests_layouts_and_packs_of_elsewhere_are_refused() {
    let stores = Stores::new(false);
    for (dir, names) in [
        (stores.built("people", 2), &["manifest.json"][..]),
        (stores.held("people", 2), &["manifest.json", "layout.json"]),
    ] {
        for name in names {
            let whole = fs::read(dir.join(name)).unwrap();
            for other in [stores.built("people", 1), stores.built("scores", 2)] {
                let foreign = other.join("manifest.json");
                fs::copy(foreign, dir.join(name)).unwrap();
                assert_eq!(survives(&dir, "foreign").0, 0, "nothing of another version is served");
                assert!(is_found(&dir, VerifyDepth::Quick));
            }
            fs::write(dir.join(name), whole).unwrap();
        }
        assert_eq!(survives(&dir, "restored"), (KEYS, 0));
    }
    // Only the identity of a whole version shows that another one is in its place.
    let (dir, older) = (stores.built("people", 2), stores.built("people", 1));
    let hash = Manifest::read(&dir).unwrap().hash();
    assert!(VersionFolder::open_version(&dir, &hash).is_ok());
    assert!(VersionFolder::open_version(&older, &hash).is_err());
}

#[test]
fn swapped_and_extra_files_are_met() {
    let stores = Stores::new(false);
    let dir = stores.held("people", 2);
    let [first, second] = packs(&dir).try_into().unwrap();
    let (a, b) = (fs::read(&first).unwrap(), fs::read(&second).unwrap());
    fs::write(&first, &b).unwrap();
    fs::write(&second, &a).unwrap();
    assert_eq!(survives(&dir, "packs swapped").0, 0);
    assert!(is_found(&dir, VerifyDepth::Quick));
    fs::write(&second, &b).unwrap();
    // The pack of another version has the same name and nearly the same size.
    fs::copy(stores.built("people", 1).join("00000.pack"), &first).unwrap();
    survives(&dir, "pack of another version");
    assert!(is_found(&dir, VerifyDepth::Quick));
    fs::write(&first, &a).unwrap();
    // Swaps two files inside a pack.
    let manifest = Manifest::read(&dir).unwrap();
    let layout = fs::read_to_string(dir.join("layout.json")).unwrap();
    let swapped = layout
        .replace("p00000.data", "x")
        .replace("p00001.data", "p00000.data")
        .replace("\"x\"", "\"p00001.data\"");
    assert_ne!(layout, swapped);
    fs::write(dir.join("layout.json"), swapped).unwrap();
    assert_eq!(survives(&dir, "places swapped").0, 0);
    fs::write(dir.join("layout.json"), layout).unwrap();
    // Files that no layout names change nothing, and are reported.
    for name in ["00000.pack", "local-00007.pack", "p00000.data", "manifest.json~"] {
        fs::write(dir.join(name), b"extra").unwrap();
        assert_eq!(survives(&dir, "extra").0, KEYS);
        let damages = verify_version(&dir, None, VerifyDepth::Quick).unwrap().damages;
        assert_eq!((damages.len(), damages[0].file.as_str()), (1, name));
        fs::remove_file(dir.join(name)).unwrap();
    }
    assert_eq!(manifest.files.len(), 16);
}
