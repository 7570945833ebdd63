//! The output of exports: standard output, or a file that gets its name only when it is complete.

use crate::failure::Failure;
use kith_types::ErrorCode;
use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// A writer to an output.
pub type Writer = Box<dyn Write + Send>;

/// Standard output, or a file that gets its name when it is complete.
pub struct ExportOutput {
    path: PathBuf,
    /// The temporary name of the file; `None`: standard output.
    partial: Option<PathBuf>,
}

impl ExportOutput {
    /// Returns the output for a path; `-` is standard output.
    pub fn open(path: &Path) -> Self {
        if path.as_os_str() == "-" {
            return Self { path: path.to_owned(), partial: None };
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        Self { path: path.to_owned(), partial: Some(path.with_file_name(name)) }
    }

    /// Returns the path that the user gave.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the output for writing.
    ///
    /// # Errors
    /// Returns `output_unwritable` if the file cannot be created.
    pub fn writer(&self) -> Result<Writer, Failure> {
        let Some(partial) = &self.partial else { return Ok(Box::new(io::stdout())) };
        let file = File::create(partial).map_err(|error| unwritable(partial, &error))?;
        Ok(Box::new(BufWriter::new(file)))
    }

    /// Gives the complete file its name.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self) -> Result<(), Failure> {
        let Some(partial) = self.partial else { return Ok(()) };
        let synced = File::open(&partial).and_then(|file| file.sync_all());
        let named = synced.and_then(|()| fs::rename(&partial, &self.path));
        named.map_err(|error| {
            let _ = fs::remove_file(&partial);
            unwritable(&self.path, &error)
        })
    }

    /// Removes the incomplete file, so that nobody mistakes it for an export.
    pub fn give_up(self) {
        if let Some(partial) = self.partial {
            let _ = fs::remove_file(partial);
        }
    }
}

/// Returns the failure for a file that cannot be written.
pub fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot write {}: {error}", path.display());
    Failure::new(ErrorCode::OutputUnwritable, message, "check the path, its permissions and the free space")
}

/// Returns the error of a write. If the reader of the output closed it, this is not a failure, and the command ends without
/// a message.
pub fn closed_or(path: &Path, error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => error.into(),
        _ => unwritable(path, &error).into(),
    }
}
