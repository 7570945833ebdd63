//! The manifest as JSON. One content has one spelling: a file is accepted only if
//! writing its content again gives the same bytes, so that a changed, missing or
//! extra byte cannot hide in whitespace or a repeated field.

use super::{Counts, FileEntry, Manifest, SUPPORTED};
use crate::errors::{Damage, Fault, OpenError};
use crate::files::{FileId, MANIFEST_NAME};
use kith_ops::KindRole;
use kith_types::{PartitionCount, StoreVersion};
use serde::{Deserialize, Serialize};

/// What any format version of the manifest begins with.
#[derive(Deserialize)]
struct Preamble {
    kith_manifest: u32,
}

/// The document. Fields stay in this order.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// The format version.
    kith_manifest: u32,
    component: String,
    version: u64,
    role: String,
    partition_count: u32,
    columns: Vec<String>,
    counts: Counts,
    files: Vec<FileEntry>,
    /// BLAKE3 of the document with this field empty.
    seal: String,
}

const ROLES: [(KindRole, &str); 4] = [
    (KindRole::Undirected, "undirected"),
    (KindRole::Directed, "directed"),
    (KindRole::Entity, "entity"),
    (KindRole::MembersOnly, "members-only"),
];

pub(super) fn encode(manifest: &Manifest) -> Vec<u8> {
    let role = ROLES.iter().find(|(role, _)| *role == manifest.role).expect("every role has a name").1;
    let mut document = Document {
        kith_manifest: SUPPORTED,
        component: manifest.component.clone(),
        version: manifest.version.0,
        role: role.to_owned(),
        partition_count: manifest.partition_count.get(),
        columns: manifest.columns.clone(),
        counts: manifest.counts,
        files: manifest.files.clone(),
        seal: String::new(),
    };
    document.seal = blake3::hash(&text(&document)).to_hex().to_string();
    text(&document)
}

fn text(document: &Document) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(document).expect("strings and numbers always serialize");
    bytes.push(b'\n');
    bytes
}

pub(super) fn decode(bytes: &[u8]) -> Result<Manifest, OpenError> {
    let damaged = |fault| OpenError::from(Damage { file: MANIFEST_NAME.to_owned(), fault });
    if let Ok(Preamble { kith_manifest }) = serde_json::from_slice(bytes)
        && kith_manifest > SUPPORTED
    {
        return Err(OpenError::FormatTooNew {
            file: MANIFEST_NAME.to_owned(),
            got: kith_manifest,
            supported: SUPPORTED,
        });
    }
    let document: Document = serde_json::from_slice(bytes)
        .map_err(|error| damaged(Fault::Content { what: "JSON line", offset: error.line() as u64 }))?;
    let manifest = content(document).map_err(|what| damaged(Fault::Content { what, offset: 0 }))?;
    if encode(&manifest) != bytes {
        return Err(damaged(Fault::Checksum { what: "manifest", offset: 0 }));
    }
    Ok(manifest)
}

/// Takes the document for what it says, or names the field that cannot be.
fn content(document: Document) -> Result<Manifest, &'static str> {
    let role = ROLES.iter().find(|(_, name)| *name == document.role).ok_or("role")?.0;
    let partition_count = PartitionCount::new(document.partition_count).ok_or("partition_count")?;
    if !document.files.is_sorted_by(|a, b| a.name < b.name) {
        return Err("order of files");
    }
    for entry in &document.files {
        // A name that is not one of ours could also lead out of the folder.
        let id = FileId::parse(&entry.name).ok_or("file name")?;
        if id.partition.0 >= partition_count.get() {
            return Err("partition of a file");
        }
        if entry.first_position.as_ref().is_some_and(|text| u64::from_str_radix(text, 16).is_err()) {
            return Err("first_position");
        }
    }
    Ok(Manifest {
        component: document.component,
        version: StoreVersion(document.version),
        role,
        partition_count,
        columns: document.columns,
        counts: document.counts,
        files: document.files,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Manifest {
        let entry = |name: &str, first: Option<u64>| FileEntry {
            name: name.to_owned(),
            bytes: 1_234,
            records: 7,
            blake3: blake3::hash(name.as_bytes()).to_hex().to_string(),
            crc32c: 0xfeed_beef,
            first_position: first.map(|position| format!("{position:016x}")),
        };
        Manifest {
            component: "connection".to_owned(),
            version: StoreVersion(3),
            role: KindRole::Undirected,
            partition_count: PartitionCount::new(24).unwrap(),
            columns: vec!["created_ms".to_owned()],
            counts: Counts { members: 10, edges: 20, entities: 0 },
            files: vec![entry("p00000.both.data", Some(u64::MAX)), entry("p00000.both.index", None)],
        }
    }

    #[test]
    fn a_manifest_comes_back_as_it_was() {
        let manifest = example();
        let back = Manifest::decode(&manifest.encode()).unwrap();
        assert_eq!(back, manifest);
        assert_eq!(back.hash(), manifest.hash());
    }

    #[test]
    fn any_other_byte_length_or_end_is_refused() {
        let bytes = example().encode();
        for at in 0..bytes.len() {
            for flip in [1, 0x20, 0x80] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                assert!(Manifest::decode(&changed).is_err(), "byte {at} ^ {flip}");
            }
            assert!(Manifest::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
        assert!(Manifest::decode(&[bytes.as_slice(), b"\n"].concat()).is_err());
    }

    #[test]
    fn a_newer_format_is_told_apart_from_damage() {
        let newer = br#"{"kith_manifest": 2, "something": "else"}"#;
        assert!(matches!(Manifest::decode(newer), Err(OpenError::FormatTooNew { got: 2, supported: 1, .. })));
    }

    #[test]
    fn file_names_cannot_lead_out_of_the_folder() {
        let mut manifest = example();
        manifest.files[0].name = "../p00000.both.data".to_owned();
        assert!(Manifest::decode(&manifest.encode()).is_err());
    }
}
