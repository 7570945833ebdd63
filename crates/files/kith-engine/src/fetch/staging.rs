//! The hidden folder in which a fetch gathers its packs.

use super::FetchError;
use super::error::IoContext;
use super::plan::{Plan, WantedFile};
use super::space::Space;
use crate::files::MANIFEST_NAME;
use crate::manifest::Manifest;
use crate::pack::{LAYOUT_NAME, Layout, PackPlace, local_pack_number, sync};
use crate::proof::prove_at;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The name of the file that names the plan of the packs in the folder.
const PLAN_NAME: &str = "plan";

/// The hidden folder of a fetch to `target`. It lies next to the target and thus on the same disk, because a rename could
/// not be atomic otherwise. `None` if `target` cannot be the target of a fetch.
pub fn staging_of(target: &Path) -> Option<PathBuf> {
    let name = target.file_name()?.to_str()?;
    Some(target.with_file_name(format!(".{name}.fetching")))
}

/// The hidden folder, locked until dropped.
pub(super) struct Staging<'a> {
    target: &'a Path,
    dir: PathBuf,
    _lock: File,
}

impl<'a> Staging<'a> {
    /// Creates the hidden folder and locks it.
    pub(super) fn open(target: &'a Path) -> Result<Self, FetchError> {
        let dir = staging_of(target).ok_or_else(|| FetchError::Occupied { path: target.to_owned() })?;
        fs::create_dir_all(&dir).at(&dir)?;
        let lock = File::open(&dir).at(&dir)?;
        lock.try_lock().map_err(|_| FetchError::Busy { path: dir.clone() })?;
        Ok(Self { target, dir, _lock: lock })
    }

    pub(super) fn path(&self, pack: &str) -> PathBuf {
        self.dir.join(pack)
    }

    /// Keeps the files that an earlier attempt at the same plan left, and removes all others. Returns whether there are
    /// any.
    pub(super) fn prepare(&self, plan: &Plan, manifest: &Manifest) -> Result<bool, FetchError> {
        let id = format!("{} {:?}\n", manifest.hash(), plan.packed);
        let marker = self.path(PLAN_NAME);
        let same = fs::read(&marker).is_ok_and(|found| found == id.as_bytes());
        let ours: BTreeSet<&str> = plan.packs.iter().map(|pack| pack.name.as_str()).collect();
        let mut any = false;
        for entry in fs::read_dir(&self.dir).at(&self.dir)? {
            let entry = entry.at(&self.dir)?;
            let keep = same && entry.file_name().to_str().is_some_and(|name| ours.contains(name));
            any |= keep;
            if !keep {
                fs::remove_file(entry.path()).at(&entry.path())?;
            }
        }
        fs::write(&marker, id).at(&marker)?;
        Ok(any)
    }

    /// Removes from `left` the small files that are staged already, after checking every byte. Each block of a large file
    /// is checked when its turn comes.
    pub(super) fn keep_whole(
        &self,
        left: &mut Vec<WantedFile<'_>>,
        kept: &mut dyn FnMut(&WantedFile<'_>) -> Result<(), FetchError>,
    ) -> Result<(), FetchError> {
        let mut outcome = Ok(());
        left.retain(|file| {
            let is_large = file.entry.bytes > super::plan::WHOLE_BYTES_MAX;
            let path = self.path(&file.pack);
            let whole = outcome.is_ok()
                && !is_large
                && path.exists()
                && prove_at(&path, file.offset, file.entry).is_ok();
            if whole {
                outcome = kept(file);
            }
            !whole
        });
        outcome
    }

    /// Opens a staged pack to write a file into it. A pack that is linked to another version's is not written to, because
    /// that would change the other too.
    pub(super) fn open_pack(&self, pack: &str) -> Result<File, FetchError> {
        let path = self.path(pack);
        let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = open().at(&path)?;
        if file.metadata().at(&path)?.nlink() <= 1 {
            return Ok(file);
        }
        let copy = self.path("unlinked");
        fs::copy(&path, &copy).and_then(|_| fs::rename(&copy, &path)).at(&path)?;
        open().at(&path)
    }

    /// Refuses to begin if the disk has too little space beside other fetches. Blocks that are staged already are not
    /// counted again.
    pub(super) fn promise_space(&self, needed: u64) -> Result<Space, FetchError> {
        let mut staged = 0;
        for entry in fs::read_dir(&self.dir).at(&self.dir)? {
            let metadata = entry.and_then(|entry| entry.metadata()).at(&self.dir)?;
            staged += if metadata.nlink() > 1 { 0 } else { metadata.blocks() * 512 };
        }
        Space::promise(&self.dir, needed.saturating_sub(staged))
    }

    /// Syncs all packs to the disk.
    pub(super) fn sync(&self, plan: &Plan) -> Result<(), FetchError> {
        let paths: Vec<_> = plan.packs.iter().map(|pack| self.path(&pack.name)).collect();
        Ok(sync(&paths)?)
    }

    /// Removes the hidden folder.
    pub(super) fn discard(self) -> Result<(), FetchError> {
        fs::remove_dir_all(&self.dir).at(&self.dir)
    }

    /// Turns the hidden folder into the target.
    pub(super) fn publish(self, manifest: &Manifest, plan: &Plan) -> Result<(), FetchError> {
        let layout = added(Layout::default(), plan);
        for (name, bytes) in [(MANIFEST_NAME, manifest.encode()), (LAYOUT_NAME, layout.encode(manifest))] {
            write_synced(&self.path(name), &bytes)?;
        }
        fs::remove_file(self.path(PLAN_NAME)).at(&self.dir)?;
        sync_folder(&self.dir)?;
        fs::rename(&self.dir, self.target).at(self.target)?;
        sync_folder(parent(self.target))
    }

    /// Adds the packs to a target that holds other files of the same version. The new layout takes effect in one rename.
    /// Packs that it no longer names are removed after that.
    pub(super) fn merge(self, manifest: &Manifest, plan: &Plan, layout: Layout) -> Result<(), FetchError> {
        for pack in &plan.packs {
            let path = self.target.join(&pack.name);
            fs::rename(self.path(&pack.name), &path).at(&path)?;
        }
        sync_folder(self.target)?;
        let layout = added(layout, plan);
        replace_layout(self.target, manifest, &layout)?;
        self.discard()
    }
}

/// A layout with the plan's packs after its own. The files of the plan move there.
fn added(mut layout: Layout, plan: &Plan) -> Layout {
    let moved: BTreeSet<&str> = plan.packed.iter().map(|(name, _)| name.as_str()).collect();
    layout.retain(|name| !moved.contains(name));
    let first = layout.packs.len() as u32;
    layout.packs.extend(plan.packs.iter().cloned());
    let packed = plan.packed.iter();
    let packed =
        packed.map(|(name, position)| (name.clone(), PackPlace { pack: first + position.pack, ..*position }));
    layout.files.extend(packed);
    layout
}

/// Makes a layout the layout of a folder, then removes local packs that it does not name. Returns the number of freed
/// bytes.
pub(super) fn replace_layout(target: &Path, manifest: &Manifest, layout: &Layout) -> Result<u64, FetchError> {
    let (path, draft) = (target.join(LAYOUT_NAME), target.join(".layout.json"));
    write_synced(&draft, &layout.encode(manifest))?;
    fs::rename(&draft, &path).at(&path)?;
    sync_folder(target)?;
    let named: BTreeSet<&str> = layout.packs.iter().map(|pack| pack.name.as_str()).collect();
    let mut freed = 0;
    for entry in fs::read_dir(target).at(target)? {
        let entry = entry.at(target)?;
        let name = entry.file_name();
        let stray = name.to_str().filter(|name| local_pack_number(name).is_some() && !named.contains(name));
        if stray.is_some() {
            freed += entry.metadata().at(&entry.path())?.len();
            fs::remove_file(entry.path()).at(&entry.path())?;
        }
    }
    Ok(freed)
}

fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), FetchError> {
    fs::write(path, bytes).and_then(|()| File::open(path)?.sync_all()).at(path)
}

/// Syncs the names in a folder to the disk.
fn sync_folder(folder: &Path) -> Result<(), FetchError> {
    File::open(folder).and_then(|folder| folder.sync_all()).at(folder)
}

fn parent(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
