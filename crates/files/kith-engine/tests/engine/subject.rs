//! A component that is damaged byte by byte, and read completely each time.

use crate::example::{Example, read_lists};
use kith_engine::{GraphReader, MANIFEST_NAME, Manifest, OpenError, verify_component};
use kith_schema::{KindRole, NeighbourSource, SourceError};
use kith_types::{Direction, PartitionId, fmix64};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// A component on disk with all its correct answers.
pub struct Subject {
    pub example: Example,
    pub dir: tempfile::TempDir,
    pub directions: &'static [Direction],
    /// The correct answer for each direction and key, present and absent.
    pub answers: Vec<(Direction, Answers)>,
    pub postings: Vec<(Direction, BTreeMap<u64, Vec<u64>>)>,
}

pub type Answers = BTreeMap<u64, Option<Vec<u64>>>;

impl Subject {
    pub fn new(role: KindRole, members: u64, edges: u64, absent: u64) -> Self {
        let example = Example::new("connection", role, 1, members, edges);
        let dir = tempfile::tempdir().unwrap();
        example.write(dir.path());
        let directions: &[Direction] = match role {
            KindRole::Undirected => &[Direction::Both],
            _ => &[Direction::Out, Direction::In],
        };
        let absent = (0..absent).map(|index| fmix64(index) | 1 << 63);
        let keys: Vec<u64> =
            example.members.iter().copied().chain(5_000_000..5_000_020).chain(absent).collect();
        let mut answers = Vec::new();
        let mut postings = Vec::new();
        for &direction in directions {
            let lists = example.lists(direction);
            let answer = |key: &u64| match lists.get(key) {
                Some(list) => Some(list.keys().copied().collect()),
                None => example.answer(direction, *key, 0, &example.members),
            };
            answers.push((direction, keys.iter().map(|key| (*key, answer(key))).collect()));
            let holders = |id: u64| {
                lists.iter().filter(|(_, list)| list.contains_key(&id)).map(|(&key, _)| key).collect()
            };
            postings.push((direction, keys.iter().map(|&id| (id, holders(id))).collect()));
        }
        Self { example, dir, directions, answers, postings }
    }

    /// The places of the logical files of a kind: the pack and the range in it. `json` stands for the manifest.
    pub fn files(&self, extension: &str) -> Vec<(PathBuf, Range<u64>)> {
        let dir = self.dir.path();
        if extension == "json" {
            let path = dir.join(MANIFEST_NAME);
            let bytes = fs::metadata(&path).unwrap().len();
            return vec![(path, 0..bytes)];
        }
        let manifest = Manifest::read(dir).unwrap();
        let packs = manifest.packs();
        let of_kind = manifest.files.iter().filter(|file| file.name.ends_with(extension));
        of_kind
            .map(|file| (dir.join(&packs[file.pack as usize].name), file.offset..file.offset + file.bytes))
            .collect()
    }

    /// The physical files in the folder.
    pub fn physical(&self) -> Vec<PathBuf> {
        fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// Reads everything. Each answer must be correct or an error. Returns the number of errors.
    pub fn interrogate(&self, source: &GraphReader, context: &str) -> usize {
        let mut errors = 0;
        for (direction, answers) in &self.answers {
            let edge = self.example.selector(*direction, 0);
            let keys: Vec<u64> = answers.keys().copied().collect();
            let batch = read_lists(source, &edge, &keys);
            for (key, expected) in answers {
                match read_lists(source, &edge, &[*key]) {
                    Ok(got) => assert_eq!(&got[0], expected, "{context}: list {direction:?} of {key}"),
                    Err(error) => errors += self.count(&error),
                }
            }
            if let Ok(batch) = batch {
                assert!(batch.iter().eq(answers.values()), "{context}: batch");
            }
        }
        for (direction, postings) in &self.postings {
            let edge = self.example.selector(*direction, 0);
            for (id, expected) in postings {
                let mut got = Vec::new();
                match source.postings(&edge, PartitionId(0), *id, &mut got) {
                    Ok(()) => assert_eq!(&got, expected, "{context}: postings {direction:?} of {id}"),
                    Err(error) => errors += self.count(&error),
                }
            }
        }
        errors
    }

    pub fn count(&self, error: &SourceError) -> usize {
        assert!(matches!(error, SourceError::Damaged { .. }), "{error:?}");
        1
    }

    /// Opens and reads the component as it is on disk. Returns `true` if the damage was detected.
    pub fn survives(&self, context: &str) -> bool {
        match self.example.open(self.dir.path()) {
            Ok(source) => self.interrogate(&source, context) > 0,
            Err(error) => {
                assert!(
                    matches!(
                        error,
                        OpenError::Damaged(_) | OpenError::NoComponent { .. } | OpenError::OtherFormat { .. }
                    ),
                    "{context}: {error:?}"
                );
                true
            }
        }
    }

    /// Asserts that verification finds the damage.
    pub fn is_found(&self, context: &str) {
        let found = verify_component(self.dir.path(), None).map_or(true, |report| !report.damages.is_empty());
        assert!(found, "{context}: verification found nothing");
    }

    /// Flips each byte of each file of the kind in turn. Returns how many flips were detected without verification, and how
    /// many there were.
    pub fn flip_every_byte(&self, extension: &str) -> (usize, usize) {
        let (mut met, mut flips) = (0, 0);
        for (path, range) in self.files(extension) {
            let file = File::options().read(true).write(true).open(&path).unwrap();
            for at in range {
                let mut byte = [0];
                file.read_exact_at(&mut byte, at).unwrap();
                let mask = [0x01, 0x80, 0xff, 0x10][(fmix64(at) % 4) as usize];
                file.write_all_at(&[byte[0] ^ mask], at).unwrap();
                let context = format!("{} byte {at} ^ {mask:#x}", path.display());
                met += usize::from(self.survives(&context));
                self.is_found(&context);
                file.write_all_at(&byte, at).unwrap();
                flips += 1;
            }
        }
        assert!(!self.survives("restored"));
        (met, flips)
    }
}

pub fn undirected() -> Subject {
    Subject::new(KindRole::Undirected, 140, 500, 2_000)
}

/// An entity kind, whose `in` postings have a table of their own.
pub fn entity() -> Subject {
    Subject::new(KindRole::Entity, 90, 150, 200)
}
