//! Mappings of files that are truncated.

use super::*;
use std::io::Write;

fn file_of(pages: usize) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![7; pages * 4096]).unwrap();
    file
}

#[test]
fn a_file_cut_under_its_mapping_is_lost_and_the_process_lives() {
    let file = file_of(8);
    let map = Mapping::new(&file, 8 * 4096).unwrap().all();
    let other = file_of(1);
    let other = Mapping::new(&other, 4096).unwrap().all();
    assert_eq!(map.bytes()[5 * 4096], 7);
    assert!(!map.is_lost());
    file.set_len(4096).unwrap();
    let sum: u64 = map.bytes().iter().map(|&byte| u64::from(byte)).sum();
    assert_eq!(sum, 7 * 4096, "the hole reads as zeros");
    assert!(map.is_lost());
    assert!(!other.is_lost());
    assert_eq!(other.bytes()[4095], 7);
}

/// Slices of 1,000 bytes: most lie on one page, and some on two.
#[test]
fn only_the_slices_on_lost_pages_are_lost() {
    let file = file_of(16);
    let map = Arc::new(Mapping::new(&file, 16 * 4096).unwrap());
    let slices: Vec<Slice> =
        (0..65).map(|slice| Slice::new(Arc::clone(&map), slice * 1_000, 1_000)).collect();
    file.set_len(10 * 4096).unwrap();
    let read = |page: usize| std::hint::black_box(&map.map)[page * 4096];
    assert_eq!((read(9), read(12), read(14)), (7, 0, 0));
    let pages = |slice: usize| slice * 1_000 / 4_096..=(slice * 1_000 + 999) / 4_096;
    for (number, slice) in slices.iter().enumerate() {
        let lost = pages(number).any(|page| page == 12 || page == 14);
        assert_eq!(slice.is_lost(), lost, "slice {number}");
    }
}

#[test]
fn a_slot_given_back_starts_whole() {
    for _ in 0..100 {
        let file = file_of(2);
        let map = Mapping::new(&file, 2 * 4096).unwrap().all();
        assert!(!map.is_lost());
        file.set_len(0).unwrap();
        assert_eq!(std::hint::black_box(map.bytes())[4096], 0);
        assert!(map.is_lost());
    }
}

#[test]
fn many_threads_may_fall_into_the_same_hole() {
    let file = file_of(64);
    let map = Mapping::new(&file, 64 * 4096).unwrap().all();
    file.set_len(0).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for page in 0..64 {
                    assert_eq!(std::hint::black_box(map.bytes())[page * 4096], 0);
                    assert!(map.is_lost());
                }
            });
        }
    });
}

/// The child process of this test reads a hole in a mapping that is not registered. It must die, as it would without the
/// handler.
#[test]
fn a_fault_elsewhere_ends_the_process_as_before() {
    use std::os::unix::process::ExitStatusExt;
    const CHILD: &str = "KITH_TEST_FOREIGN_FAULT";
    if std::env::var_os(CHILD).is_some() {
        let ours = file_of(1);
        let _installed = Mapping::new(&ours, 4096).unwrap();
        let foreign = file_of(2);
        // SAFETY: reading the hole is the purpose of the test; it ends the process.
        let map = unsafe { Mmap::map(&foreign).unwrap() };
        foreign.set_len(0).unwrap();
        std::process::exit(i32::from(std::hint::black_box(&map)[4096]));
    }
    let name = "map::tests::a_fault_elsewhere_ends_the_process_as_before";
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert_eq!(child.status.signal(), Some(libc::SIGBUS), "{child:?}");
}
