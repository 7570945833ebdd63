//! Verifies that a component on this node's disk is the one that the metadata describes, byte for byte.

mod built;

pub(crate) use built::{CopyLocation, unreachable, verify_built};

use kith_engine::{
    Damage, Fault, Manifest, OnVerify, OpenError, VerifyDepth, VerifyReport, verify_again, verify_slowly,
};
use kith_types::PartitionId;
use kith_wire::{documents::ComponentDocument, v1};
use std::path::Path;

pub(crate) use kith_engine::VerifyDepth as Depth;

/// The findings of one verification.
#[derive(Debug)]
pub(crate) struct VerifyFindings {
    component: String,
    pub(crate) state: ComponentState,
    manifest_hash: String,
    files: u64,
    bytes: u64,
    pub(crate) damages: Vec<Damage>,
    /// Whether it ended before everything was read.
    pub(crate) is_cut: bool,
}

/// The state of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ComponentState {
    /// It is as the metadata describes it.
    Ok,
    /// Its folder does not exist.
    Missing,
    /// Some of its files are damaged or missing.
    Damaged,
    /// The folder has another version or another store.
    Differs,
}

impl ComponentState {
    fn name(self) -> &'static str {
        match self {
            ComponentState::Ok => "ok",
            ComponentState::Missing => "missing",
            ComponentState::Damaged => "damaged",
            ComponentState::Differs => "differs",
        }
    }
}

/// Compares the files in `folder` with their manifest, and the manifest with the metadata. `on_bytes` is called as in
/// [`kith_engine::verify_slowly`]. Blocks.
///
/// # Errors
/// If this process lacks descriptors or memory; nothing is known about the files then.
pub(crate) fn verify(
    folder: &Path,
    component: &ComponentDocument,
    partitions: &[PartitionId],
    depth: VerifyDepth,
    on_bytes: &mut OnVerify<'_>,
) -> Result<VerifyFindings, OpenError> {
    look(folder, component, || verify_slowly(folder, Some(partitions), depth, on_bytes))
}

/// Returns those findings of an earlier verification that are still true. The caller must prevent changes of the folder
/// meanwhile. Blocks.
///
/// # Errors
/// The errors of [`verify`].
pub(crate) fn confirm(
    folder: &Path,
    component: &ComponentDocument,
    partitions: &[PartitionId],
    found: VerifyFindings,
) -> Result<VerifyFindings, OpenError> {
    if found.state == ComponentState::Ok {
        return Ok(found);
    }
    let again = look(folder, component, || verify_again(folder, Some(partitions), &found.damages))?;
    Ok(VerifyFindings {
        state: again.state,
        damages: again.damages,
        manifest_hash: again.manifest_hash,
        ..found
    })
}

fn look(
    folder: &Path,
    component: &ComponentDocument,
    verify: impl FnOnce() -> Result<VerifyReport, OpenError>,
) -> Result<VerifyFindings, OpenError> {
    let mut found = VerifyFindings {
        component: component.name.clone(),
        state: ComponentState::Ok,
        manifest_hash: String::new(),
        files: 0,
        bytes: 0,
        damages: Vec::new(),
        is_cut: false,
    };
    if matches!(folder.try_exists(), Ok(false)) {
        found.state = ComponentState::Missing;
        return Ok(found);
    }
    match Manifest::read(folder) {
        Ok(manifest) => {
            found.manifest_hash = manifest.hash();
            if found.manifest_hash != component.manifest_hash {
                found.state = ComponentState::Differs;
                return Ok(found);
            }
        }
        Err(error) if error.lacks_resources() => return Err(error),
        // The verification below reports this error.
        Err(_) => {}
    }
    match verify() {
        Ok(report) => {
            (found.files, found.bytes, found.is_cut) = (report.files, report.bytes, report.is_cut);
            found.damages = report.damages;
        }
        Err(error) if error.lacks_resources() => return Err(error),
        Err(error) => found.damages.push(damage_of(error)),
    }
    if !found.damages.is_empty() {
        found.state = ComponentState::Damaged;
    }
    Ok(found)
}

/// Converts the reason why a folder cannot be verified to damage of the file that causes it.
fn damage_of(error: OpenError) -> Damage {
    match error {
        OpenError::Damaged(damage) => damage,
        OpenError::OtherFormat { file, got, supported } => {
            Damage { file, fault: Fault::OtherFormat { got, supported } }
        }
        OpenError::NoComponent { .. } => {
            Damage { file: kith_engine::MANIFEST_NAME.to_owned(), fault: Fault::Missing }
        }
        OpenError::Io { path, .. } => {
            let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            Damage { file, fault: Fault::Lost }
        }
        _ => {
            let file = kith_engine::MANIFEST_NAME.to_owned();
            Damage { file, fault: Fault::Foreign { what: "format or content" } }
        }
    }
}

impl VerifyFindings {
    pub(crate) fn to_wire(&self) -> v1::ComponentFinding {
        let damages = self.damages.iter().map(|damage| v1::DamagedFile {
            file: damage.file.clone(),
            fault: damage.fault.to_string(),
            offset: match damage.fault {
                Fault::Checksum { offset, .. } | Fault::Content { offset, .. } => Some(offset),
                _ => None,
            },
        });
        v1::ComponentFinding {
            component: self.component.clone(),
            state: self.state.name().to_owned(),
            manifest_hash: self.manifest_hash.clone(),
            files: self.files,
            bytes: self.bytes,
            damages: damages.collect(),
            place: String::new(),
        }
    }
}
