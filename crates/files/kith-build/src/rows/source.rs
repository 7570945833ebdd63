//! The sources of bytes: files, memory, or other implementations of [`RowSource`].

use std::fs::{self, File, Metadata};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// One input, such as a file or an object of an object store. It may be opened several times (a schema is inferred in a
/// separate pass) and returns the same bytes each time. It is read once from start to end, by one thread. To show progress,
/// an implementation can count the bytes that it returns.
pub trait RowSource: Send + Sync {
    /// Its name in messages.
    fn name(&self) -> &str;

    /// Its stored size in bytes, if known.
    fn size(&self) -> Option<u64>;

    /// Its bytes from the start.
    ///
    /// # Errors
    /// The error of the operating system.
    fn open(&self) -> io::Result<Box<dyn Read + Send>>;

    /// The file behind it, if it is a file on this machine. Formats with a footer are then read in place; otherwise they
    /// are first copied to a temporary file.
    ///
    /// # Errors
    /// The error of the operating system.
    fn open_file(&self) -> io::Result<Option<File>> {
        Ok(None)
    }
}

/// A file on this machine.
#[derive(Clone, Debug)]
pub struct FileSource {
    path: PathBuf,
    name: String,
    /// `None` for a pipe, whose size is not known.
    size: Option<u64>,
}

impl FileSource {
    /// A source for an existing file.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn new(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let size = Some(fs::metadata(&path)?).filter(Metadata::is_file).map(|file| file.len());
        Ok(FileSource { name: path.display().to_string(), path, size })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl RowSource for FileSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> Option<u64> {
        self.size
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(File::open(&self.path)?))
    }

    fn open_file(&self) -> io::Result<Option<File>> {
        File::open(&self.path).map(Some)
    }
}

/// Bytes in memory.
#[derive(Clone, Debug)]
pub struct MemorySource {
    name: String,
    bytes: Arc<[u8]>,
}

impl MemorySource {
    /// Creates a source; `name` is its name in messages.
    pub fn new(name: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        MemorySource { name: name.into(), bytes: bytes.as_ref().into() }
    }
}

impl RowSource for MemorySource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> Option<u64> {
        Some(self.bytes.len() as u64)
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(Cursor::new(Arc::clone(&self.bytes))))
    }
}

/// Why an input names no files.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum InputError {
    /// The pattern is invalid.
    #[error("{input:?} is no valid pattern: {why}")]
    Pattern {
        /// The input as written.
        input: String,
        /// The fault in it.
        why: &'static str,
    },
    /// There is no such file.
    #[error("{input:?} names no file")]
    Nothing {
        /// The input as written.
        input: String,
    },
    /// A path cannot be read.
    #[error("{} cannot be read", path.display())]
    Path {
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Finds the files of `inputs`. Each input is a file, a folder (all files below it, sorted by path) or a pattern (`*`, `?`,
/// `[…]`, `**`; matches are sorted). Folders and patterns skip names that begin with `.` or `_`, which Spark and other
/// programs use for marker files beside data. A file that is named exactly is always taken.
///
/// # Errors
/// [`InputError`], also for an input without any file.
pub fn find_files<S: AsRef<str>>(inputs: &[S]) -> Result<Vec<FileSource>, InputError> {
    let mut found = Vec::new();
    for input in inputs.iter().map(AsRef::as_ref) {
        let before = found.len();
        let path = Path::new(input);
        if path.is_dir() {
            below(path, &mut found)?;
        } else if path.exists() || !input.contains(['*', '?', '[']) {
            found.push(file(path)?);
        } else {
            let wrong =
                |error: glob::PatternError| InputError::Pattern { input: input.to_owned(), why: error.msg };
            for entry in glob::glob(input).map_err(wrong)? {
                let path = entry.map_err(|error| InputError::Path {
                    path: error.path().to_owned(),
                    source: error.into(),
                })?;
                if path.is_file() && !is_mark(&path) {
                    found.push(file(&path)?);
                }
            }
        }
        if found.len() == before {
            return Err(InputError::Nothing { input: input.to_owned() });
        }
    }
    Ok(found)
}

fn file(path: &Path) -> Result<FileSource, InputError> {
    FileSource::new(path).map_err(|source| InputError::Path { path: path.to_owned(), source })
}

fn is_mark(path: &Path) -> bool {
    path.file_name().is_some_and(|name| matches!(name.as_encoded_bytes().first(), Some(b'.' | b'_')))
}

/// The files below a folder. The files and subfolders of each folder are sorted together.
fn below(folder: &Path, found: &mut Vec<FileSource>) -> Result<(), InputError> {
    let failed = |source| InputError::Path { path: folder.to_owned(), source };
    let entries = fs::read_dir(folder).map_err(failed)?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    paths.sort();
    for path in paths.iter().filter(|path| !is_mark(path)) {
        if path.is_dir() { below(path, found)? } else { found.push(file(path)?) }
    }
    Ok(())
}
