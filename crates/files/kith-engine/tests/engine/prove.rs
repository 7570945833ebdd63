//! Verifies versions where they lie: every fault of a pack is found, and nothing else is reported.

use crate::stores::Stores;
use kith_engine::{
    Damage, Fault, FolderSource, Manifest, ObjectError, PackReport, Source, prove_pack, read_manifest,
};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

/// Returns bytes in pieces of this size, so that files begin and end anywhere in them.
struct Pieces(FolderSource, usize);

impl Source for Pieces {
    fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
        self.0.read(object, offset, into)
    }

    fn piece_bytes(&self) -> usize {
        self.1
    }
}

/// Verifies the only pack of a store, in pieces of several sizes.
fn prove(dir: &Path, manifest: &Manifest) -> PackReport {
    let reports = [61, 64, 1 << 20].map(|piece| {
        let mut passed = Vec::new();
        let source = Pieces(FolderSource::new(dir), piece);
        let report = prove_pack(&source, manifest, 0, &mut |bytes| {
            passed.extend_from_slice(bytes);
            ControlFlow::Continue(())
        });
        let report = report.expect("a folder answers");
        assert_eq!(report.bytes, passed.len() as u64);
        let pack = fs::read(dir.join("00000.pack")).unwrap_or_default();
        assert_eq!(passed, pack[..pack.len().min(manifest.packs()[0].bytes as usize)], "all bytes, in order");
        report
    });
    assert!(reports.iter().all(|report| *report == reports[0]), "{reports:?}");
    reports[0].clone()
}

#[test]
fn whatever_is_wrong_with_a_pack_is_found_in_the_file_that_it_is_in() {
    let stores = Stores::new(true);
    let dir = stores.built("people", 1);
    let manifest = read_manifest(&FolderSource::new(&dir), None).unwrap();
    assert_eq!(manifest.packs().len(), 1, "many files in one pack");
    let path = dir.join("00000.pack");
    let whole = fs::read(&path).unwrap();
    let (bytes, damages) = (whole.len() as u64, Vec::new());
    assert_eq!(prove(&dir, &manifest), PackReport { bytes, damages, is_cut: false });
    for entry in &manifest.files {
        for at in [entry.offset, entry.offset + entry.bytes / 2, entry.offset + entry.bytes - 1] {
            let mut flipped = whole.clone();
            flipped[at as usize] ^= 1;
            fs::write(&path, flipped).unwrap();
            let found = prove(&dir, &manifest).damages;
            assert!(found.len() == 1 && found[0].file == entry.name, "byte {at}: {found:?}");
        }
    }
    let file = || "00000.pack".to_owned();
    for left in [0, 1, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..left]).unwrap();
        let fault = Fault::Size { expected: bytes, got: left as u64 };
        assert_eq!(prove(&dir, &manifest).damages, [Damage { file: file(), fault }]);
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(prove(&dir, &manifest).damages, [Damage { file: file(), fault: Fault::Missing }]);
}

#[test]
fn a_source_that_does_not_answer_is_not_damage_and_a_reader_that_has_enough_ends_it() {
    struct Silent;
    impl Source for Silent {
        fn read(&self, object: &str, _: u64, _: &mut [u8]) -> Result<usize, ObjectError> {
            Err(ObjectError::Failed { object: object.to_owned(), source: "no answer".into() })
        }
    }
    let stores = Stores::new(false);
    let dir = stores.built("people", 1);
    let manifest = Manifest::read(&dir).unwrap();
    assert!(prove_pack(&Silent, &manifest, 0, &mut |_| ControlFlow::Continue(())).is_err());
    let source = Pieces(FolderSource::new(&dir), 100);
    let report = prove_pack(&source, &manifest, 0, &mut |_| ControlFlow::Break(())).unwrap();
    assert_eq!(report, PackReport { bytes: 100, damages: Vec::new(), is_cut: true });
}
