//! The fault suite: if any byte of a component is damaged, each answer is correct or an error, and verification finds the
//! damage. Voldemort silently missed 250 keys for a lost chunk, and returned wrong values for flipped bytes.

use crate::subject::{entity, undirected};
use kith_engine::{FileKind, MANIFEST_NAME, verify_component};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

#[test]
fn a_whole_component_answers_everything() {
    for subject in [undirected(), entity()] {
        assert!(!subject.survives("whole"));
        let report = verify_component(subject.dir.path(), None).unwrap();
        assert_eq!(
            (report.damages.len(), report.files),
            (0, 4 + 3 * (subject.directions.len() as u64 - 1) + 1)
        );
    }
}

#[test]
fn every_flipped_byte_of_data_is_met() {
    for subject in [undirected(), entity()] {
        let (met, flips) = subject.flip_every_byte("data");
        // Reads detect all flips except those in the checksum table, which only verification reads.
        assert!(flips - met <= 16, "{met} of {flips} met");
    }
}

#[test]
fn flipped_bytes_of_an_index_never_lose_a_key() {
    for subject in [undirected(), entity()] {
        let (met, flips) = subject.flip_every_byte("index");
        assert!(met * 10 > flips * 9, "{met} of {flips} met: absent keys touch nearly every block");
    }
}

#[test]
fn flipped_bytes_of_postings_never_lose_a_member() {
    for subject in [undirected(), entity()] {
        let (met, flips) = subject.flip_every_byte("postings");
        assert!(met * 10 > flips * 9, "{met} of {flips} met");
    }
}

#[test]
fn flipped_bytes_of_a_member_table_never_lose_a_member() {
    for subject in [undirected(), entity()] {
        let (met, flips) = subject.flip_every_byte("members");
        assert!(met * 10 > flips * 9, "{met} of {flips} met");
    }
}

#[test]
fn every_flipped_byte_of_a_manifest_is_met_at_open() {
    let subject = undirected();
    let (met, flips) = subject.flip_every_byte("json");
    assert_eq!(met, flips);
}

#[test]
fn files_cut_extended_or_lost_are_met_at_open() {
    for subject in [undirected(), entity()] {
        for path in subject.physical() {
            let whole = fs::read(&path).unwrap();
            for length in 0..whole.len() {
                fs::write(&path, &whole[..length]).unwrap();
                assert!(
                    subject.example.open(subject.dir.path()).is_err(),
                    "{} cut to {length}",
                    path.display()
                );
            }
            subject.is_found("cut by one byte");
            for extra in [&b"\0"[..], b"\n", &whole] {
                fs::write(&path, [&whole, extra].concat()).unwrap();
                assert!(subject.example.open(subject.dir.path()).is_err(), "{} extended", path.display());
                subject.is_found("extended");
            }
            fs::remove_file(&path).unwrap();
            assert!(subject.example.open(subject.dir.path()).is_err(), "{} lost", path.display());
            subject.is_found("lost");
            fs::write(&path, &whole).unwrap();
        }
    }
}

#[test]
fn files_cut_while_they_are_open_never_lose_a_key() {
    for subject in [undirected(), entity()] {
        for extension in ["data", "index", "postings", "members"] {
            for (path, range) in subject.files(extension) {
                let whole = fs::read(&path).unwrap();
                let middle = (range.start + range.end) / 2;
                for length in range.clone().step_by((range.end - range.start) as usize / 23) {
                    let source = subject.example.open(subject.dir.path()).unwrap();
                    File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
                    let context = format!("{} cut to {length} while open", path.display());
                    let errors = subject.interrogate(&source, &context);
                    // The end of a file, its trailer, is read only when the file is opened.
                    assert!(errors > 0 || length > middle, "{context}");
                    fs::write(&path, &whole).unwrap();
                }
            }
        }
    }
}

#[test]
fn bytes_flipped_while_files_are_open_and_warm_never_lose_a_key() {
    for subject in [undirected(), entity()] {
        let source = subject.example.open(subject.dir.path()).unwrap();
        assert_eq!(subject.interrogate(&source, "whole"), 0, "every block was proven once");
        for extension in ["data", "index", "postings", "members"] {
            for (path, range) in subject.files(extension) {
                let file = File::options().read(true).write(true).open(&path).unwrap();
                for at in range.step_by(19) {
                    let mut byte = [0];
                    file.read_exact_at(&mut byte, at).unwrap();
                    file.write_all_at(&[!byte[0]], at).unwrap();
                    subject.interrogate(&source, &format!("{} byte {at} while open", path.display()));
                    file.write_all_at(&byte, at).unwrap();
                }
            }
        }
        assert_eq!(subject.interrogate(&source, "restored"), 0);
    }
}

#[test]
fn foreign_files_in_the_folder_are_reported() {
    let subject = undirected();
    fs::write(subject.dir.path().join("p00000.out.data"), b"").unwrap();
    let report = verify_component(subject.dir.path(), None).unwrap();
    assert_eq!(report.damages.len(), 1);
    assert_eq!(report.damages[0].file, "p00000.out.data");
    assert!(subject.dir.path().join(MANIFEST_NAME).exists());
    assert_eq!(FileKind::Data.extension(), "data");
}
