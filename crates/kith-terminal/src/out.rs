//! Where exports go: standard output, or a file that appears whole.

use crate::failure::Failure;
use kith_types::ErrorCode;
use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// What is written to.
pub type Writer = Box<dyn Write + Send>;

/// Standard output, or a file that gets its name when it is whole.
pub struct Out {
    path: PathBuf,
    /// `None`: standard output.
    partial: Option<PathBuf>,
}

impl Out {
    /// The file at a path; `-` is standard output.
    pub fn open(path: &Path) -> Self {
        if path.as_os_str() == "-" {
            return Self { path: path.to_owned(), partial: None };
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        Self { path: path.to_owned(), partial: Some(path.with_file_name(name)) }
    }

    /// The path that the user gave.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it.
    ///
    /// # Errors
    /// `output_unwritable`.
    pub fn writer(&self) -> Result<Writer, Failure> {
        let Some(partial) = &self.partial else { return Ok(Box::new(io::stdout())) };
        let file = File::create(partial).map_err(|error| unwritable(partial, &error))?;
        Ok(Box::new(BufWriter::new(file)))
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Result<(), Failure> {
        let Some(partial) = self.partial else { return Ok(()) };
        let synced = File::open(&partial).and_then(|file| file.sync_all());
        let named = synced.and_then(|()| fs::rename(&partial, &self.path));
        named.map_err(|error| {
            let _ = fs::remove_file(&partial);
            unwritable(&self.path, &error)
        })
    }

    /// Removes what is not whole, so that nobody takes it for an export.
    pub fn give_up(self) {
        if let Some(partial) = self.partial {
            let _ = fs::remove_file(partial);
        }
    }
}

/// The failure to write a file.
pub fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot write {}: {error}", path.display());
    Failure::new(ErrorCode::OutputUnwritable, message, "check the path, its permissions and the free space")
}

/// A reader that went away is no failure of ours: the caller ends in silence.
pub fn closed_or(path: &Path, error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => error.into(),
        _ => unwritable(path, &error).into(),
    }
}
