//! Verifies a built version where it lies. Every pack is read once from start to end, and not stored.

use crate::errors::{Damage, Fault};
use crate::manifest::{FileEntry, Manifest};
use crate::pack::pack_name;
use crate::proof::Proof;
use crate::source::{ObjectError, Source};
use std::ops::ControlFlow;

/// The callback that gets each piece of a pack in order, before it is known whether the pack is intact. `Break` ends
/// the reading.
pub type OnPiece<'a> = dyn FnMut(&[u8]) -> ControlFlow<()> + 'a;

/// The result of verifying a pack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackReport {
    /// The number of bytes that were read.
    pub bytes: u64,
    /// The pack itself if it is missing or too short, else each damaged logical file in it.
    pub damages: Vec<Damage>,
    /// Whether [`OnPiece`] ended the reading. The rest is unverified then.
    pub is_cut: bool,
}

/// Reads pack number `pack` of the version that `manifest` describes, and checks each logical file in it against block
/// checksums and BLAKE3. Memory: one piece, and the checksums of one file.
///
/// # Errors
/// If the source refuses or does not answer. That says nothing about the pack.
pub fn prove_pack(
    source: &dyn Source,
    manifest: &Manifest,
    pack: u32,
    each: &mut OnPiece<'_>,
) -> Result<PackReport, ObjectError> {
    let files = manifest.files_in_pack(pack);
    let expected = files.last().map_or(0, |last| last.offset.saturating_add(last.bytes));
    let name = pack_name(pack);
    let mut report = PackReport::default();
    let mut proofs = Proofs { files, proof: None, damages: Vec::new() };
    let mut buffer = vec![0; expected.min(source.piece_bytes() as u64).max(1) as usize];
    while report.bytes < expected {
        let want = (buffer.len() as u64).min(expected - report.bytes) as usize;
        let count = match source.read(&name, report.bytes, &mut buffer[..want]) {
            Err(ObjectError::Missing { .. }) => {
                report.damages = vec![Damage { file: name, fault: Fault::Missing }];
                return Ok(report);
            }
            read => read?,
        };
        proofs.push(report.bytes, &buffer[..count]);
        report.bytes += count as u64;
        if each(&buffer[..count]).is_break() {
            report.is_cut = true;
            break;
        }
        if count < want {
            let fault = Fault::Size { expected, got: report.bytes };
            proofs.damages.push(Damage { file: name, fault });
            break;
        }
    }
    report.damages = proofs.damages;
    Ok(report)
}

/// Verifies the files of a pack while its bytes pass by.
struct Proofs<'a> {
    /// The files that have not passed completely.
    files: &'a [FileEntry],
    /// The proof of the first of them, once it has begun.
    proof: Option<Result<Proof<'a>, Damage>>,
    damages: Vec<Damage>,
}

impl Proofs<'_> {
    fn push(&mut self, start: u64, bytes: &[u8]) {
        let end = start + bytes.len() as u64;
        while let [entry, later @ ..] = self.files {
            if end <= entry.offset {
                return;
            }
            let from = entry.offset.saturating_sub(start) as usize;
            let stop = entry.offset.saturating_add(entry.bytes);
            let to = stop.min(end).saturating_sub(start) as usize;
            if let Ok(proof) = self.proof.get_or_insert_with(|| Proof::new(entry)) {
                proof.push(bytes.get(from..to).unwrap_or_default());
            }
            if end < stop {
                return;
            }
            self.damages.extend(self.proof.take().and_then(|proof| proof.and_then(Proof::finish).err()));
            self.files = later;
        }
    }
}
