//! Accepted and refused files, with the error messages.

mod files;
mod layouts;
mod live;
mod rows;
mod wrong;

use super::*;
use crate::rows::{HeaderMode, ROW_ERRORS_SHOWN, ReadError, RowsError};
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

type Edge = (u64, u64, Vec<u64>);

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

fn edges_with(
    path: &Path,
    options: &FileOptions,
    columns: &EdgeColumns,
) -> Result<(Vec<Edge>, FileReport), FileError> {
    let mut edges = Vec::new();
    let read = read_edges(path, options, columns, &mut |_| {}, |src, dst, values| {
        edges.push((src, dst, values.to_vec()));
        Ok::<(), std::convert::Infallible>(())
    });
    match read {
        Ok(report) => Ok((edges, report)),
        Err(ReadError::Input(error)) => Err(error),
        Err(ReadError::Caller(never)) => match never {},
    }
}

fn edges(path: &Path) -> Result<Vec<(u64, u64)>, FileError> {
    let (edges, _) = edges_with(path, &FileOptions::default(), &EdgeColumns::default())?;
    Ok(edges.into_iter().map(|(src, dst, _)| (src, dst)).collect())
}

fn edges_of(text: &str) -> Vec<(u64, u64)> {
    edges(&Folder::new().file("edges.csv", text)).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The message of an error, without its folder.
fn message(folder: &Folder, error: &FileError) -> String {
    error.to_string().replace(&format!("{}/", folder.0.path().display()), "")
}

/// Text of several blocks, so that lines cross their borders.
fn many_lines() -> (String, Vec<(u64, u64)>) {
    let edges: Vec<(u64, u64)> = (0..120_000u64).map(|i| (i, i * 7_919 % 1_000_003)).collect();
    let lines: Vec<String> = edges.iter().map(|(src, dst)| format!("{src},{dst}")).collect();
    (format!("src,dst\n{}\n", lines.join("\n")), edges)
}
