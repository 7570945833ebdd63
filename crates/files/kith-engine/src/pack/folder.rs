//! The folder of a version, with each of its packs mapped once.

use super::Layout;
use crate::errors::{Damage, Fault, OpenError};
use crate::files::FileId;
use crate::manifest::{Manifest, PackEntry};
use crate::map::{Mapping, Slice};
use crate::residency::MappedPacks;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of a built or fetched version. Readers that are opened from it share its mappings, which live as long as
/// these readers.
#[derive(Debug)]
pub struct VersionFolder {
    dir: PathBuf,
    manifest: Manifest,
    layout: Layout,
    /// The mapping of each pack by number, created when it is first needed.
    maps: Mutex<BTreeMap<u32, Arc<Mapping>>>,
}

impl VersionFolder {
    /// Reads the manifest and layout and checks their seals.
    ///
    /// # Errors
    /// Those of [`Manifest::read`]; an error if the folder's layout is damaged or belongs to another manifest.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        let manifest = Manifest::read(dir)?;
        let layout = Layout::read(dir, &manifest)?;
        Ok(Self { dir: dir.to_owned(), manifest, layout, maps: Mutex::default() })
    }

    /// Opens a folder like [`VersionFolder::open`], but only if it holds the version with this manifest. Any other version
    /// is refused, even if it is intact.
    ///
    /// # Errors
    /// Those of [`VersionFolder::open`]; [`OpenError::OtherVersion`] if it holds another version.
    pub fn open_version(dir: &Path, manifest_hash: &str) -> Result<Self, OpenError> {
        let folder = Self::open(dir)?;
        let got = folder.manifest.hash();
        if got == manifest_hash {
            return Ok(folder);
        }
        Err(OpenError::OtherVersion { path: dir.to_owned(), expected: manifest_hash.to_owned(), got })
    }

    /// Refuses an intact version that does not belong to this component of this store.
    ///
    /// # Errors
    /// [`OpenError::OtherStore`] if it belongs to another component or store.
    pub fn check_is_of(&self, store: &str, component: &str) -> Result<(), OpenError> {
        if self.manifest.is_of(store, component) {
            return Ok(());
        }
        Err(OpenError::OtherStore {
            path: self.dir.clone(),
            got: format!("{:?} of {:?}", self.manifest.component, self.manifest.store()),
            expected: format!("{component:?} of {store:?}"),
        })
    }

    /// The path of the folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The manifest of the version.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The packs that are mapped so far.
    pub fn mapped(&self) -> MappedPacks {
        let maps = self.maps.lock();
        MappedPacks::new(maps.values().map(Arc::clone).collect())
    }

    /// Returns the manifest and drops the rest.
    pub fn into_manifest(self) -> Manifest {
        self.manifest
    }

    /// The path of the pack that a logical file lies in, and the offset at which it begins.
    pub fn place_of(&self, id: FileId) -> Option<(PathBuf, u64)> {
        let (pack, position) = self.layout.find(&id.to_string())?;
        Some((self.dir.join(&pack.name), position.offset))
    }

    /// The bytes of a logical file, unproven.
    pub(crate) fn slice(&self, id: FileId, bytes: u64) -> Result<Slice, OpenError> {
        let missing = || OpenError::from(Damage { file: id.to_string(), fault: Fault::Missing });
        let (pack, position) = self.layout.find(&id.to_string()).ok_or_else(missing)?;
        let mut maps = self.maps.lock();
        let map = match maps.get(&position.pack) {
            Some(map) => Arc::clone(map),
            None => {
                let map = Arc::new(self.map(pack)?.ok_or_else(missing)?);
                maps.insert(position.pack, Arc::clone(&map));
                map
            }
        };
        // Both were checked against the size of the pack when the layout was read.
        Ok(Slice::new(map, position.offset as usize, bytes as usize))
    }

    /// Maps a pack, which must have the stated size; `None` if it is missing.
    fn map(&self, pack: &PackEntry) -> Result<Option<Mapping>, OpenError> {
        let path = self.dir.join(&pack.name);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(OpenError::Io { path, source }),
        };
        let got = file.metadata().map_err(|source| OpenError::Io { path: path.clone(), source })?.len();
        if got != pack.bytes {
            let fault = Fault::Size { expected: pack.bytes, got };
            return Err(Damage { file: pack.name.clone(), fault }.into());
        }
        let mapped = usize::try_from(got).map_err(io::Error::other).and_then(|got| Mapping::new(&file, got));
        mapped.map(Some).map_err(|source| OpenError::Io { path, source })
    }
}
