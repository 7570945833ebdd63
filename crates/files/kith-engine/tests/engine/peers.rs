//! Fetches versions from peers, and reads what is present meanwhile.

use crate::flaky::{Flaky, pull};
use crate::stores::{Stores, all};
use kith_engine::{
    FetchError, FetchOptions, FolderSource, HeldSource, Manifest, ObjectError, Source, SplicedSource,
    VerifyDepth, release_partitions, verify_again, verify_component, verify_slowly,
};
use kith_types::PartitionId;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
#[test]
fn a_peer_gives_what_it_holds_as_if_it_were_the_built_version() {
    let stores = Stores::new(true);
    let built = stores.built("people", 2);
    let (first, second) = (stores.held("people", 2), built.parent().unwrap().join("second/2"));
    let (some, rest): (Vec<PartitionId>, Vec<PartitionId>) = all().into_iter().partition(|p| p.0 % 3 == 1);
    release_partitions(&first, &some).unwrap();
    let peer = HeldSource::open(&first).unwrap();
    assert_eq!(peer.partitions(), some);
    pull(&peer, &second, &some, &FetchOptions::default()).unwrap();
    assert!(verify_component(&second, Some(&some)).unwrap().damages.is_empty());
    // A node does not provide files that it does not hold: the zeros in their place are never accepted.
    for partition in &rest {
        let target = second.with_file_name("third");
        let refused = pull(&peer, &target, &[*partition], &FetchOptions::default());
        assert!(matches!(refused, Err(FetchError::Damaged(_))), "{refused:?}");
        assert!(!target.exists());
    }
    // A third node fetches from two peers that hold a part each.
    pull(&FolderSource::new(&built), &first, &rest, &FetchOptions::default()).unwrap();
    release_partitions(&first, &rest).unwrap();
    pull(&HeldSource::open(&first).unwrap(), &second, &rest, &FetchOptions::default()).unwrap();
    assert!(verify_component(&second, None).unwrap().damages.is_empty());
    let mut lost = fs::read_dir(&first).unwrap().map(|entry| entry.unwrap().path());
    let lost = lost.find(|path| path.extension().is_some_and(|extension| extension == "pack")).unwrap();
    let before = HeldSource::open(&first).unwrap();
    fs::remove_file(lost).unwrap();
    assert_eq!(before.partitions(), []);
    let fourth = second.with_file_name("fourth");
    assert!(matches!(pull(&before, &fourth, &rest, &FetchOptions::default()), Err(FetchError::Damaged(_))));
}

/// Two nodes hold a part each, and one of them dies after some reads. Checks which parts are requested from the built
/// version.
#[test]
fn a_version_is_put_together_from_peers_and_the_built_one_is_asked_for_the_rest() {
    let stores = Stores::new(true);
    let built = stores.built("people", 2);
    let folder = built.parent().unwrap();
    let parts: [Vec<PartitionId>; 2] = {
        let (odd, even) = all().into_iter().partition(|partition| partition.0 % 2 == 1);
        [odd, even]
    };
    let nodes: Vec<PathBuf> = ["odd", "even"].map(|name| folder.join(name)).to_vec();
    for (node, part) in nodes.iter().zip(&parts) {
        pull(&FolderSource::new(&built), node, part, &FetchOptions::default()).unwrap();
    }
    let wanted: Vec<PartitionId> = all().into_iter().filter(|partition| partition.0 != 4).collect();
    let (mut whole_reads, mut broken) = (0, 0);
    for dies_after in [u64::MAX, 2, 1, 0] {
        let [odd, even] = [0, 1].map(|at: usize| HeldSource::open(&nodes[at]).unwrap());
        let dying = Dying { inner: odd, reads: AtomicU64::new(0), dies_after };
        let rest = Flaky::new(&built, u64::MAX);
        let peers: Vec<(&dyn Source, _)> =
            vec![(&dying, parts[0].iter().copied().collect()), (&even, parts[1].iter().copied().collect())];
        let manifest = Manifest::read(&built).unwrap();
        let source = SplicedSource::new(manifest, peers, &rest, wanted.iter().copied().collect());
        let target = folder.join(format!("after-{dies_after}"));
        let options = FetchOptions { threads: 3, ..FetchOptions::default() };
        pull(&source, &target, &wanted, &options).unwrap();
        assert!(verify_component(&target, Some(&wanted)).unwrap().damages.is_empty());
        let reads = dying.reads.load(Ordering::SeqCst);
        if reads <= dies_after {
            assert_eq!((source.failed(), rest.reads()), (vec![], 0), "the built version is not asked");
            whole_reads = reads;
        } else {
            assert!(dies_after < whole_reads && 0 < rest.reads());
            assert_eq!(source.failed(), [0]);
            broken += 1;
        }
    }
    assert!(0 < broken);
    // A peer lacks a partition that it was said to have, and no peer has another wanted partition.
    let even = HeldSource::open(&nodes[1]).unwrap();
    let rest = Flaky::new(&built, u64::MAX);
    let lying: Vec<(&dyn Source, _)> = vec![(&even, all().into_iter().collect())];
    let manifest = || Manifest::read(&built).unwrap();
    let source = SplicedSource::new(manifest(), lying, &rest, all().into_iter().collect());
    let target = folder.join("lied-to");
    let refused = pull(&source, &target, &all(), &FetchOptions::default());
    assert!(matches!(refused, Err(FetchError::Damaged(_))), "{refused:?}");
    assert!(!target.exists());
    let honest: Vec<(&dyn Source, _)> = vec![(&even, parts[1].iter().copied().collect())];
    let source = SplicedSource::new(manifest(), honest, &rest, all().into_iter().collect());
    pull(&source, &target, &all(), &FetchOptions::default()).unwrap();
    assert!(verify_component(&target, None).unwrap().damages.is_empty() && 0 < rest.reads());
}

#[test]
fn the_next_peer_gives_what_one_that_went_away_owed() {
    let stores = Stores::new(true);
    let built = stores.built("people", 2);
    let (held, everything) = (stores.held("people", 2), || all().into_iter().collect());
    let dying = Dying { inner: HeldSource::open(&held).unwrap(), reads: AtomicU64::new(0), dies_after: 0 };
    let living = HeldSource::open(&held).unwrap();
    let rest = Flaky::new(&built, 0);
    let peers: Vec<(&dyn Source, _)> = vec![(&dying, everything()), (&living, everything())];
    let source = SplicedSource::new(Manifest::read(&built).unwrap(), peers, &rest, everything());
    let target = built.with_file_name("from-peers");
    pull(&source, &target, &all(), &FetchOptions::default()).unwrap();
    assert!(verify_component(&target, None).unwrap().damages.is_empty());
    assert_eq!((source.failed(), rest.reads()), (vec![0], 0), "the built version is not asked");
}

#[test]
fn partitions_that_come_and_go_during_a_verification_are_no_damage() {
    let stores = Stores::new(true);
    let built = FolderSource::new(&stores.built("people", 2));
    let dir = stores.held("people", 2);
    let some: Vec<PartitionId> = all().into_iter().filter(|partition| partition.0 % 3 == 1).collect();
    let changes: [&dyn Fn(); 2] = [
        &|| {
            release_partitions(&dir, &some).unwrap();
        },
        &|| {
            pull(&built, &dir, &all(), &FetchOptions::default()).unwrap();
        },
    ];
    for change in changes {
        let mut left = Some(change);
        let report = verify_slowly(&dir, Some(&some), VerifyDepth::Deep, &mut |_| {
            if let Some(change) = left.take() {
                change();
            }
            ControlFlow::Continue(())
        });
        assert_eq!((report.unwrap().damages, left.is_none()), (vec![], true));
    }
    // Damage is found all the same.
    let mut packs = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let pack = packs.find(|path| path.extension().is_some_and(|extension| extension == "pack")).unwrap();
    fs::write(&pack, vec![0; fs::metadata(&pack).unwrap().len() as usize]).unwrap();
    fs::write(dir.join("stranger"), "").unwrap();
    let damages = verify_component(&dir, None).unwrap().damages;
    assert!(damages.iter().any(|damage| damage.file == "stranger") && 1 < damages.len(), "{damages:?}");
    assert_eq!(verify_again(&dir, None, &damages).unwrap().damages, damages);
}

/// A peer that goes away after some reads.
struct Dying {
    inner: HeldSource,
    reads: AtomicU64,
    dies_after: u64,
}

impl Source for Dying {
    fn read(&self, object: &str, offset: u64, into: &mut [u8]) -> Result<usize, ObjectError> {
        if self.reads.fetch_add(1, Ordering::SeqCst) >= self.dies_after {
            return Err(ObjectError::Failed { object: object.to_owned(), source: "gone".into() });
        }
        self.inner.read(object, offset, into)
    }
}
