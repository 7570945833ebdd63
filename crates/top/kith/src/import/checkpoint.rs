//! The checkpoint file of an import. After an interruption, the same command continues from it.
//!
//! The file is locked while an import runs. Every write replaces its whole content with one call, and pads it to one size.
//! So a process that is killed leaves the old or the new state. If the file is damaged, the import starts from the first
//! row, which is slow but correct. A file that never was a checkpoint is refused and stays as it is.

use super::window::Counts;
use crate::failure::Failure;
use kith_types::ErrorCode;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File, TryLockError},
    io::{self, Read},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// The size of the file. It is fixed, so that a shorter state never leaves the end of a longer one behind.
const FILE_BYTES: usize = 1024;
const FORMAT: u32 = 1;
/// The beginning of the content.
const BEGINS_WITH: &[u8] = b"{\"format\"";

/// The progress of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    format: u32,
    /// A random number that names the import. The names of its writes are derived from it.
    pub import: String,
    /// The subject of the import.
    pub subject: ImportIdentity,
    /// The number of rows, counted from the first, that have all been written or refused.
    pub done: u64,
    /// The outcomes of those rows.
    pub counts: Counts,
}

/// The subject of an import. If any field differs, it is a different import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportIdentity {
    /// The identity of the graph. A graph that was dropped and created again has another identity.
    pub graph: u64,
    /// The name of the type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The checksum of the rows.
    pub rows: String,
}

impl Progress {
    /// Returns the progress of an import that begins.
    pub fn begin(subject: ImportIdentity) -> Self {
        let import = format!("{:032x}", rand::random::<u128>());
        Self { format: FORMAT, import, subject, done: 0, counts: Counts::default() }
    }
}

/// The open checkpoint file of a running import.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    file: File,
}

impl Checkpoint {
    /// Opens or creates the file, and returns the progress of an interrupted import of the same subject. Calls `note` with
    /// the reason if an existing file cannot be used.
    ///
    /// # Errors
    /// `load_running` if another process imports the same file; `cannot_write` if the file cannot be created, or is something
    /// else than a checkpoint.
    pub fn open(
        path: &Path,
        subject: &ImportIdentity,
        note: &mut dyn FnMut(&str),
    ) -> Result<(Self, Option<Progress>), Failure> {
        let mut options = File::options();
        // The file is in a folder that others may write to: a link or a pipe there must not take its place.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.custom_flags(flags.bits() as i32).open(path);
        let mut file = file.map_err(|error| unwritable(path, &error))?;
        let metadata = file.metadata().map_err(|error| unwritable(path, &error))?;
        if !metadata.is_file() || metadata.nlink() != 1 {
            return Err(foreign(path, "it is not a plain file with one name"));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("another import of the same file runs: it holds {}", path.display());
                return Err(Failure::new(ErrorCode::LoadRunning, message, "wait until it has ended"));
            }
            Err(TryLockError::Error(error)) => return Err(unwritable(path, &error)),
        }
        let mut text = Vec::new();
        file.by_ref()
            .take(FILE_BYTES as u64)
            .read_to_end(&mut text)
            .map_err(|error| unwritable(path, &error))?;
        if metadata.len() > FILE_BYTES as u64 || !may_be_checkpoint(&text) {
            return Err(foreign(path, "it holds something else"));
        }
        file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(|error| unwritable(path, &error))?;
        let known = match known(&text) {
            Ok(known) if known.as_ref().is_some_and(|known| known.subject != *subject) => {
                note(
                    "the file or the graph has changed since the import was interrupted: it starts from the first row",
                );
                None
            }
            Ok(known) => known,
            Err(()) => {
                note(&format!("{} cannot be read: the import starts from the first row", path.display()));
                None
            }
        };
        Ok((Self { path: path.to_owned(), file }, known))
    }

    /// Records how far the import has come.
    ///
    /// # Errors
    /// `cannot_write`.
    pub fn save(&self, progress: &Progress) -> Result<(), Failure> {
        let text = serde_json::to_string(progress).expect("progress holds only strings and numbers");
        let padded = format!("{text:<width$}\n", width = FILE_BYTES - 1);
        self.file.write_all_at(padded.as_bytes(), 0).map_err(|error| unwritable(&self.path, &error))
    }

    /// Removes the file once the import has ended.
    ///
    /// # Errors
    /// `cannot_write`.
    pub fn remove(self) -> Result<(), Failure> {
        fs::remove_file(&self.path).map_err(|error| unwritable(&self.path, &error))
    }
}

/// Whether the content is that of a checkpoint. A machine that lost its power may have left zeros.
fn may_be_checkpoint(text: &[u8]) -> bool {
    let text = kith_types::byte_order_mark(text).map_or(text, |mark| &text[mark..]);
    let length = text.len().min(BEGINS_WITH.len());
    text[..length] == BEGINS_WITH[..length] || text.iter().all(|byte| *byte == 0)
}

/// Returns the progress in the content of a file, or `None` if the file is empty. Fails if the content is damaged or of
/// another format.
fn known(text: &[u8]) -> Result<Option<Progress>, ()> {
    if text.is_empty() {
        return Ok(None);
    }
    let mark = kith_types::byte_order_mark(text).map_err(|_| ())?;
    let progress = serde_json::from_slice::<Progress>(&text[mark..]).map_err(|_| ())?;
    if progress.format == FORMAT { Ok(Some(progress)) } else { Err(()) }
}

fn foreign(path: &Path, why: &str) -> Failure {
    let message = format!("the progress of the import cannot be kept in {}: {why}", path.display());
    Failure::new(ErrorCode::CannotWrite, message, "remove it, or name another file with --checkpoint")
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("the progress of the import cannot be kept in {}: {error}", path.display());
    Failure::new(ErrorCode::CannotWrite, message, "name a file that can be written with --checkpoint")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(rows: &str) -> ImportIdentity {
        ImportIdentity { graph: u64::MAX, kind: "x".repeat(64), rows: rows.to_owned() }
    }

    /// Opens the checkpoint. Returns it, the progress that it holds, and the notes.
    fn open(path: &Path, subject: &ImportIdentity) -> (Checkpoint, Option<Progress>, String) {
        let mut notes = String::new();
        let (checkpoint, known) = Checkpoint::open(path, subject, &mut |note| notes += note).unwrap();
        (checkpoint, known, notes)
    }

    #[test]
    fn progress_is_found_again_until_the_import_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c");
        let subject = subject(&"f".repeat(64));
        let (checkpoint, known, _) = open(&path, &subject);
        assert_eq!(known, None);
        let mut progress = Progress::begin(subject.clone());
        for done in [u64::MAX, 7] {
            progress.done = done;
            checkpoint.save(&progress).unwrap();
            assert_eq!(
                fs::metadata(&path).unwrap().len(),
                FILE_BYTES as u64,
                "every state has the same size"
            );
        }
        drop(checkpoint);
        let (checkpoint, known, notes) = open(&path, &subject);
        assert_eq!((known, notes.as_str()), (Some(progress), ""));
        checkpoint.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn progress_of_other_rows_or_another_graph_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c");
        let (checkpoint, _, _) = open(&path, &subject("a"));
        checkpoint.save(&Progress { done: 5, ..Progress::begin(subject("a")) }).unwrap();
        drop(checkpoint);
        for other in [subject("b"), ImportIdentity { graph: 1, ..subject("a") }] {
            let (_, known, notes) = open(&path, &other);
            assert!(known.is_none() && notes.contains("has changed"), "{notes}");
        }
        // An editor may have saved it with a byte order mark.
        let (checkpoint, ..) = open(&path, &subject("c"));
        let progress = Progress { done: 5, ..Progress::begin(subject("c")) };
        checkpoint.save(&progress).unwrap();
        drop(checkpoint);
        let text = format!("\u{feff}{}", fs::read_to_string(&path).unwrap().trim());
        fs::write(&path, text).unwrap();
        assert_eq!(open(&path, &subject("c")).1, Some(progress));
        fs::write(&path, "{\"format\":1").unwrap();
        let (_, known, notes) = open(&path, &subject("a"));
        assert!(known.is_none() && notes.contains("cannot be read"), "{notes}");
    }

    #[test]
    fn a_link_is_not_followed_and_the_file_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("c"), folder.path().join("other"));
        fs::write(&other, "kept").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        let refused = Checkpoint::open(&path, &subject("a"), &mut |_| ());
        assert_eq!(refused.unwrap_err().code, ErrorCode::CannotWrite);
        assert_eq!(fs::read_to_string(&other).unwrap(), "kept");
        fs::remove_file(&path).unwrap();
        let _held = open(&path, &subject("a"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_is_no_checkpoint_is_refused_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let refused = |path: &Path| {
            let refused = Checkpoint::open(path, &subject("a"), &mut |_| ());
            assert_eq!(refused.unwrap_err().code, ErrorCode::CannotWrite, "{}", path.display());
        };
        for (name, content) in [("text", "kept".to_owned()), ("long", "{\"format\":1".repeat(FILE_BYTES))] {
            fs::write(at(name), &content).unwrap();
            refused(&at(name));
            assert_eq!(fs::read_to_string(at(name)).unwrap(), content);
        }
        drop(open(&at("c"), &subject("a")));
        fs::hard_link(at("c"), at("second")).unwrap();
        refused(&at("second"));
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RWXU).unwrap();
        refused(&at("pipe"));
        // A checkpoint that others could read is made private, and zeros are a damaged one.
        for (name, content) in [("open", "{\"format\":1"), ("zeros", "\0\0\0")] {
            fs::write(at(name), content).unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(0o644)).unwrap();
            let (_, known, notes) = open(&at(name), &subject("a"));
            assert!(known.is_none() && notes.contains("cannot be read"), "{notes}");
            assert_eq!(fs::metadata(at(name)).unwrap().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn two_imports_do_not_share_a_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c");
        let _held = open(&path, &subject("a"));
        let second = Checkpoint::open(&path, &subject("a"), &mut |_| ());
        assert_eq!(second.unwrap_err().code, ErrorCode::LoadRunning);
    }
}
