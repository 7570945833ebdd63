//! The places of logical files in a version's folder.
//!
//! For a built version, the manifest states the places. A node holds only some partitions, and gets others later. The
//! places of its files are in `layout.json`, which names its manifest and is sealed in the same way as a manifest. Packs
//! that were added or repaired come into use when that file is replaced.

use super::{PackPlace, is_pack_name};
use crate::document::{json_text, seal_of};
use crate::errors::{Damage, Fault, OpenError};
use crate::manifest::{FileEntry, Manifest, PackEntry};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

/// The name of a node's layout in a version's folder.
pub const LAYOUT_NAME: &str = "layout.json";

/// The format version of layouts.
const LAYOUT_FORMAT: u32 = 1;

/// The packs, and the place of each logical file that is present.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    pub packs: Vec<PackEntry>,
    pub files: BTreeMap<String, PackPlace>,
}

#[derive(Deserialize)]
struct Preamble {
    kith_layout: u32,
}

/// The document. The order of the fields is part of the format.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    kith_layout: u32,
    /// The hash of the manifest.
    manifest: String,
    packs: Vec<PackEntry>,
    files: Vec<FileDocument>,
    /// BLAKE3 of the document with this field empty.
    seal: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileDocument {
    name: String,
    pack: u32,
    offset: u64,
}

impl Layout {
    /// The layout of a built version.
    pub fn built(manifest: &Manifest) -> Self {
        let position = |entry: &FileEntry| PackPlace { pack: entry.pack, offset: entry.offset };
        let files = manifest.files.iter().map(|entry| (entry.name.clone(), position(entry))).collect();
        Self { packs: manifest.packs(), files }
    }

    /// Reads the layout of a folder: the node's own if there is one, else that of the built version.
    pub fn read(dir: &Path, manifest: &Manifest) -> Result<Self, OpenError> {
        let path = dir.join(LAYOUT_NAME);
        match fs::read(&path) {
            Ok(bytes) => Self::decode(&bytes, manifest),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::built(manifest)),
            Err(source) => Err(OpenError::Io { path, source }),
        }
    }

    /// The pack of a file that is present, and its place in the pack.
    pub fn find(&self, name: &str) -> Option<(&PackEntry, PackPlace)> {
        let position = *self.files.get(name)?;
        Some((&self.packs[position.pack as usize], position))
    }

    /// The bytes of the layout's file.
    pub fn encode(&self, manifest: &Manifest) -> Vec<u8> {
        let file = |(name, position): (&String, &PackPlace)| FileDocument {
            name: name.clone(),
            pack: position.pack,
            offset: position.offset,
        };
        let mut document = Document {
            kith_layout: LAYOUT_FORMAT,
            manifest: manifest.hash(),
            packs: self.packs.clone(),
            files: self.files.iter().map(file).collect(),
            seal: String::new(),
        };
        document.seal = seal_of(&document);
        json_text(&document)
    }

    /// Decodes a layout, and checks that every file in it is listed in the manifest and lies within its pack.
    pub fn decode(bytes: &[u8], manifest: &Manifest) -> Result<Self, OpenError> {
        let damaged = |fault| OpenError::from(Damage { file: LAYOUT_NAME.to_owned(), fault });
        if let Ok(Preamble { kith_layout: got }) = serde_json::from_slice(bytes)
            && got != LAYOUT_FORMAT
        {
            let file = LAYOUT_NAME.to_owned();
            return Err(OpenError::OtherFormat { file, got, supported: LAYOUT_FORMAT });
        }
        let document: Document = serde_json::from_slice(bytes)
            .map_err(|error| damaged(Fault::Content { what: "JSON line", offset: error.line() as u64 }))?;
        let stated = document.manifest.clone();
        let layout =
            content(document, manifest).map_err(|what| damaged(Fault::Content { what, offset: 0 }))?;
        if stated != manifest.hash() {
            return Err(damaged(Fault::Foreign { what: "manifest" }));
        }
        if layout.encode(manifest) != bytes {
            return Err(damaged(Fault::Checksum { what: "layout", offset: 0 }));
        }
        Ok(layout)
    }

    /// Removes files that `keep` rejects, and packs that hold no files any more. Returns the names of these packs.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) -> Vec<String> {
        self.files.retain(|name, _| keep(name));
        let used: BTreeSet<u32> = self.files.values().map(|position| position.pack).collect();
        let (mut kept, mut dropped, mut renumbered) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (number, pack) in (0u32..).zip(std::mem::take(&mut self.packs)) {
            if used.contains(&number) {
                renumbered.insert(number, kept.len() as u32);
                kept.push(pack);
            } else {
                dropped.push(pack.name);
            }
        }
        self.packs = kept;
        self.files.values_mut().for_each(|position| position.pack = renumbered[&position.pack]);
        dropped
    }
}

/// Validates the document, or names the invalid field.
fn content(document: Document, manifest: &Manifest) -> Result<Layout, &'static str> {
    let names: BTreeSet<&str> = document.packs.iter().map(|pack| pack.name.as_str()).collect();
    if names.len() < document.packs.len() || !names.iter().all(|name| is_pack_name(name)) {
        return Err("pack name");
    }
    let mut files = BTreeMap::new();
    for file in document.files {
        let entry = manifest.files.binary_search_by(|entry| entry.name.cmp(&file.name));
        let entry = &manifest.files[entry.map_err(|_| "file name")?];
        let pack = document.packs.get(file.pack as usize).ok_or("pack of a file")?;
        let end = file.offset.checked_add(entry.bytes).ok_or("place of a file")?;
        if end > pack.bytes || file.offset % 64 != 0 {
            return Err("place of a file");
        }
        files.insert(file.name, PackPlace { pack: file.pack, offset: file.offset });
    }
    Ok(Layout { packs: document.packs, files })
}

#[cfg(test)]
mod tests;
