//! Verifies that the object store's copy of a component is the one that the metadata describes. A new or wiped node depends
//! on this copy.

use super::{ComponentState, damage_of};
use kith_engine::{
    Damage, Fault, FetchError, Manifest, OnVerify, Source, VerifyDepth, prove_pack, read_manifest,
};
use kith_files::objects::{ClaimError, ListedObject, Objects};
use kith_types::{ErrorCode, with_causes};
use kith_wire::{documents::ComponentDocument, v1};
use std::error::Error;
use tonic::Status;

/// The location of a component's copy.
pub(crate) struct CopyLocation<'a> {
    /// The folder of the component.
    pub objects: &'a Objects,
    /// A source on the same folder, throttled like the node's fetches.
    pub source: &'a dyn Source,
    /// The cluster's object store and the cluster's id; `None` if the component is elsewhere, where clusters do not record
    /// their id.
    pub cluster: Option<(&'a Objects, &'a str)>,
}

/// Compares the objects at a location with their manifest, and the manifest with the metadata. `on_bytes` is called as in
/// [`kith_engine::verify_slowly`]. Blocks.
///
/// # Errors
/// `object_store_unreachable`, `object_store_taken`, or `cancelled`. Nothing is known about the copy then.
pub(crate) fn verify_built(
    location: &CopyLocation<'_>,
    component: &ComponentDocument,
    depth: VerifyDepth,
    on_bytes: &mut OnVerify<'_>,
) -> Result<v1::ComponentFinding, Status> {
    let mut found = v1::ComponentFinding {
        component: component.name.clone(),
        place: location.objects.location().to_string(),
        ..Default::default()
    };
    let state = look(location, component, depth, on_bytes, &mut found)?;
    found.state = state.name().to_owned();
    Ok(found)
}

fn look(
    location: &CopyLocation<'_>,
    component: &ComponentDocument,
    depth: VerifyDepth,
    on_bytes: &mut OnVerify<'_>,
    found: &mut v1::ComponentFinding,
) -> Result<ComponentState, Status> {
    let listed = location.objects.list().map_err(|error| unreachable(&error, error.help()))?;
    if listed.is_empty() {
        location.check_store()?;
        return Ok(ComponentState::Missing);
    }
    let manifest = match read_manifest(location.source, None) {
        Ok(manifest) => manifest,
        Err(FetchError::Manifest(error)) => {
            found.damages.push(of_manifest(damage_of(error)));
            return Ok(ComponentState::Damaged);
        }
        Err(FetchError::Damaged(damage)) => {
            found.damages.push(of_manifest(damage));
            return Ok(ComponentState::Damaged);
        }
        Err(error) => return Err(unreachable(&error, HELP)),
    };
    found.files = 1;
    found.manifest_hash = manifest.hash();
    if found.manifest_hash != component.manifest_hash {
        return Ok(ComponentState::Differs);
    }
    for (number, pack) in (0..).zip(manifest.packs()) {
        let size = size_of(&listed, &pack.name);
        found.files += u64::from(size.is_some());
        let fault = match size {
            None => Some(Fault::Missing),
            Some(got) => (got != pack.bytes).then_some(Fault::Size { expected: pack.bytes, got }),
        };
        if let Some(fault) = fault {
            found.damages.push(v1::DamagedFile { file: pack.name, fault: fault.to_string(), offset: None });
        } else if depth == VerifyDepth::Deep {
            read_pack(location, &manifest, (number, &pack.name), on_bytes, found)?;
        }
    }
    Ok(if found.damages.is_empty() { ComponentState::Ok } else { ComponentState::Damaged })
}

/// Reads every byte of a pack, which is given by its number and its name.
fn read_pack(
    location: &CopyLocation<'_>,
    manifest: &Manifest,
    (number, name): (u32, &str),
    on_bytes: &mut OnVerify<'_>,
    found: &mut v1::ComponentFinding,
) -> Result<(), Status> {
    let mut each = |piece: &[u8]| on_bytes(piece.len() as u64);
    let proven = prove_pack(location.source, manifest, number, &mut each);
    let proven = proven.map_err(|error| unreachable(&error, HELP))?;
    if proven.is_cut {
        return Err(Status::cancelled("the caller has gone"));
    }
    found.bytes += proven.bytes;
    found.damages.extend(proven.damages.iter().map(|damage| in_pack(manifest, name, damage)));
    Ok(())
}

impl CopyLocation<'_> {
    /// Checks that the cluster's object store is present. Only then does a missing object prove that the version is damaged.
    fn check_store(&self) -> Result<(), Status> {
        let Some((store, cluster)) = self.cluster else { return Ok(()) };
        let location = store.location();
        match store.owner() {
            Ok(Some(owner)) if owner == cluster => Ok(()),
            Ok(Some(owner)) => {
                let message = format!("{location} is the object store of cluster {owner}, not of {cluster}");
                let help = "give each cluster a prefix or folder of its own";
                Err(kith_wire::status(ErrorCode::ObjectStoreTaken, message, help))
            }
            Ok(None) => {
                let message = format!(
                    "{location} is not there, or no cluster's object store: it has no {}",
                    kith_files::objects::IDENTITY_NAME
                );
                let help = "mount the folder on this node, or check the bucket, the endpoint and the keys in its environment";
                Err(kith_wire::status(ErrorCode::ObjectStoreUnreachable, message, help))
            }
            Err(ClaimError::Objects(error)) => Err(unreachable(&error, error.help())),
            Err(error) => {
                Err(kith_wire::status(ErrorCode::ObjectStoreTaken, error.to_string(), error.help()))
            }
        }
    }
}

const HELP: &str = "check that nodes can reach the object store, and the endpoint and keys in their environment: \
                    docs/operating/object-stores.md";

fn size_of(listed: &[ListedObject], name: &str) -> Option<u64> {
    let found = listed.binary_search_by(|listed| listed.name.as_str().cmp(name));
    found.ok().map(|index| listed[index].bytes)
}

/// Describes damage in a pack by the name of the object and the offset in it, so that an operator can inspect it.
fn in_pack(manifest: &Manifest, pack: &str, damage: &Damage) -> v1::DamagedFile {
    let entry = manifest.files.iter().find(|entry| entry.name == damage.file);
    let (fault, offset) = match (entry, &damage.fault) {
        (None, fault) => (fault.to_string(), None),
        (Some(entry), Fault::Checksum { offset, .. } | Fault::Content { offset, .. }) => {
            (format!("{}: {}", damage.file, damage.fault), Some(entry.offset + offset))
        }
        (Some(_), fault) => (format!("{}: {fault}", damage.file), None),
    };
    v1::DamagedFile { file: pack.to_owned(), fault, offset }
}

fn of_manifest(damage: Damage) -> v1::DamagedFile {
    v1::DamagedFile { fault: damage.fault.to_string(), file: damage.file, offset: None }
}

/// The object store cannot be reached. The message contains the causes of the error.
pub(crate) fn unreachable(error: &dyn Error, help: &str) -> Status {
    kith_wire::status(ErrorCode::ObjectStoreUnreachable, with_causes(error), help)
}
