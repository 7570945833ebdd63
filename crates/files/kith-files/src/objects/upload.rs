//! Uploads and downloads of versions. The manifest is written last, and never over another one. A place without a
//! manifest holds no version, whatever else is there.

use crate::objects::remote::{Remote, block_on};
use crate::objects::{Objects, ObjectsError};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use kith_engine::{MANIFEST_NAME, Manifest, PATCH_NAME, PackEntry, Source};
use object_store::{MultipartUpload, ObjectStoreExt};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The object that reserves a folder for the version that is being written there.
const RESERVATION_NAME: &str = ".build";
/// The size of one part of an upload. Stores accept parts of 5 MiB and more.
pub(crate) const PART_BYTES: u64 = 8 << 20;
/// The most parts of one file. Stores accept up to 10,000 parts, so larger files have larger parts.
pub(crate) const PARTS_MAX: u64 = 9_000;
/// The number of packs that are uploaded at a time, each one part at a time.
pub(crate) const PACKS_AT_A_TIME: usize = 4;

/// A callback for each part: the bytes done, and the bytes in total.
pub type Upload<'a> = dyn FnMut(u64, u64) + 'a;
/// As [`Upload`].
pub type Download<'a> = dyn FnMut(u64, u64) + 'a;

/// Progress that several uploads of one thread report together.
pub(crate) struct SharedProgress<'a, 'u> {
    state: RefCell<(u64, &'a mut Upload<'u>)>,
    total: u64,
}

impl<'a, 'u> SharedProgress<'a, 'u> {
    pub(crate) fn new(total: u64, on_progress: &'a mut Upload<'u>) -> Self {
        Self { total, state: RefCell::new((0, on_progress)) }
    }

    fn add(&self, bytes: u64) {
        let (done, on_progress) = &mut *self.state.borrow_mut();
        *done += bytes;
        on_progress(*done, self.total);
    }
}

/// The objects of the version that a place is the folder of.
#[derive(Clone, Copy, Debug)]
pub struct VersionObjects<'a> {
    pub(crate) objects: &'a Objects,
}

impl VersionObjects<'_> {
    /// Uploads the built version in `folder` to this place, which becomes the version's folder: first the packs and the
    /// patch, then the manifest. Failed requests are repeated, and repeating the upload is harmless. Does not work for
    /// folders of this machine, where builds write in place.
    ///
    /// # Errors
    /// If `folder` does not hold a built version, if another version is in this place, or if the store fails. This
    /// place then holds no version.
    pub fn upload(&self, folder: &Path, on_progress: &mut Upload<'_>) -> Result<Manifest, ObjectsError> {
        self.upload_on(None, folder, on_progress)
    }

    /// As [`VersionObjects::upload`], for a version that was made from the one in `base`. If both are in the same
    /// store, the store itself copies the packs that they have in common, which are then not uploaded. `on_progress` is
    /// called for the other packs only.
    ///
    /// # Errors
    /// As [`VersionObjects::upload`].
    pub fn upload_on(
        &self,
        base: Option<&Objects>,
        folder: &Path,
        on_progress: &mut Upload<'_>,
    ) -> Result<Manifest, ObjectsError> {
        let path = || folder.to_owned();
        let manifest =
            Manifest::read(folder).map_err(|source| ObjectsError::NoVersion { path: path(), source })?;
        let Some(remote) = &self.objects.remote else {
            let source = io::Error::new(io::ErrorKind::Unsupported, "it is a folder on this machine");
            return Err(ObjectsError::Local { path: path(), source });
        };
        self.check_free(&manifest)?;
        let mut packs = manifest.packs();
        if let Some(base) = base {
            let copied = self.copy_in_common(base, &manifest);
            packs.retain(|pack| !copied.contains(&pack.name));
        }
        if let Ok(patch) = fs::metadata(folder.join(PATCH_NAME)) {
            packs.push(PackEntry { name: PATCH_NAME.to_owned(), bytes: patch.len() });
        }
        let progress = SharedProgress::new(packs.iter().map(|pack| pack.bytes).sum(), on_progress);
        block_on(async {
            let uploads =
                futures::stream::iter(&packs).map(|pack| upload_pack(remote, folder, pack, &progress));
            uploads.buffer_unordered(PACKS_AT_A_TIME).try_for_each(async |()| Ok(())).await
        })?;
        // This is the manifest that was read before the packs. If a pack has changed since, every fetch will notice it.
        self.put_manifest(&manifest)?;
        Ok(manifest)
    }

    /// Writes the last object of a version. The version exists from then on.
    pub(crate) fn put_manifest(&self, manifest: &Manifest) -> Result<(), ObjectsError> {
        match self.objects.put_new(MANIFEST_NAME, manifest.encode()) {
            // Another process was faster, or the first try of this one succeeded but its answer was lost.
            Err(ObjectsError::Taken { .. }) => self.check_free(manifest),
            put => put,
        }
    }

    /// Reserves this place for the version that `manifest` describes, before anything of the version is written. The
    /// place is named by a number that others may choose too. Builds of the same version write the same bytes; any
    /// other build is refused.
    ///
    /// # Errors
    /// [`ObjectsError::Taken`] if another version is there; [`ObjectsError::Reserved`] if another one is being written
    /// there, or was begun.
    pub fn reserve(&self, manifest: &Manifest) -> Result<(), ObjectsError> {
        self.check_free(manifest)?;
        let hash = manifest.hash();
        let object = match self.objects.put_new(RESERVATION_NAME, hash.clone().into_bytes()) {
            Err(ObjectsError::Taken { object }) => object,
            put => return put,
        };
        let mut found = vec![0; hash.len() + 1];
        match self.objects.read(RESERVATION_NAME, 0, &mut found) {
            Ok(count) if found[..count] == *hash.as_bytes() => Ok(()),
            Ok(_) => Err(ObjectsError::Reserved { location: self.objects.location().to_string() }),
            Err(error) => Err(ObjectsError::Failed { object, source: Box::new(error) }),
        }
    }

    /// Makes the store copy the packs that a version has in common with the one in `base`, and returns their names in
    /// this place. Packs that the store does not copy, for whatever reason, must be uploaded.
    fn copy_in_common(&self, base: &Objects, manifest: &Manifest) -> BTreeSet<String> {
        let (Some(to), Some(from)) = (&self.objects.remote, &base.remote) else { return BTreeSet::new() };
        if !to.is_of_store(from) {
            return BTreeSet::new();
        }
        let Ok(before) = base.manifest() else { return BTreeSet::new() };
        let (packs, theirs) = (manifest.packs(), before.packs());
        let common = manifest.packs_in_common(&before);
        let copies = futures::stream::iter(common).map(async |(here, there)| {
            let (pack, its) = (packs.get(here as usize)?, theirs.get(there as usize)?);
            let copied = to.store.copy(&from.at(&its.name), &to.at(&pack.name)).await;
            copied.is_ok().then(|| pack.name.clone())
        });
        block_on(copies.buffer_unordered(PACKS_AT_A_TIME).filter_map(async |name| name).collect())
    }

    /// Checks that the place is free for a version, or holds it already.
    pub(crate) fn check_free(&self, manifest: &Manifest) -> Result<(), ObjectsError> {
        let object = || self.objects.location().join(MANIFEST_NAME).to_string();
        let mut found = vec![0; manifest.encode().len() + 1];
        match self.objects.read(MANIFEST_NAME, 0, &mut found) {
            Ok(count) if found[..count] == manifest.encode() => Ok(()),
            Ok(_) => Err(ObjectsError::Taken { object: object() }),
            Err(kith_engine::ObjectError::Missing { .. }) => Ok(()),
            Err(error) => Err(ObjectsError::Failed { object: object(), source: Box::new(error) }),
        }
    }

    /// Copies the objects of the version in this place to `folder`, the manifest last, and waits until they are on
    /// disk. The objects are not proven.
    ///
    /// If the objects cannot be read or written.
    pub fn download(
        &self,
        manifest: &Manifest,
        folder: &Path,
        on_progress: &mut Download<'_>,
    ) -> Result<(), ObjectsError> {
        let local = |path: &Path, source| ObjectsError::Local { path: path.to_owned(), source };
        let packs = manifest.packs();
        let total = packs.iter().map(|pack| pack.bytes).sum();
        let mut done = 0;
        fs::create_dir_all(folder).map_err(|source| local(folder, source))?;
        for pack in &packs {
            let path = folder.join(&pack.name);
            let mut counted = CountedReader {
                reader: self.objects.reader(&pack.name),
                done: &mut done,
                total,
                on_progress,
            };
            let copied = File::create(&path).and_then(|mut file| {
                io::copy(&mut counted, &mut file)?;
                file.sync_all()
            });
            copied.map_err(|source| local(&path, source))?;
        }
        let path = folder.join(MANIFEST_NAME);
        let written = fs::write(&path, manifest.encode()).and_then(|()| File::open(&path)?.sync_all());
        written.and_then(|()| File::open(folder)?.sync_all()).map_err(|source| local(&path, source))
    }
}

struct CountedReader<'a, 'd> {
    reader: crate::objects::ObjectReader,
    done: &'a mut u64,
    total: u64,
    on_progress: &'a mut Download<'d>,
}

impl io::Read for CountedReader<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(into)?;
        *self.done += count as u64;
        (self.on_progress)(*self.done, self.total);
        Ok(count)
    }
}

pub(crate) async fn upload_pack(
    remote: &Remote,
    folder: &Path,
    pack: &PackEntry,
    progress: &SharedProgress<'_, '_>,
) -> Result<(), ObjectsError> {
    let path = folder.join(&pack.name);
    let local = |source| ObjectsError::Local { path: path.clone(), source };
    let failed = |error| ObjectsError::of(remote.named(&pack.name), error);
    let file = File::open(&path).map_err(local)?;
    if pack.bytes <= PART_BYTES {
        let bytes = part(&file, 0, pack.bytes).map_err(local)?;
        remote.store.put(&remote.at(&pack.name), bytes.into()).await.map_err(failed)?;
        progress.add(pack.bytes);
        return Ok(());
    }
    let mut upload = remote.store.put_multipart(&remote.at(&pack.name)).await.map_err(failed)?;
    let sent = async {
        let part_bytes = PART_BYTES.max(pack.bytes.div_ceil(PARTS_MAX));
        for start in (0..pack.bytes).step_by(part_bytes as usize) {
            let bytes = part(&file, start, part_bytes.min(pack.bytes - start)).map_err(local)?;
            let count = bytes.len() as u64;
            upload.put_part(bytes.into()).await.map_err(failed)?;
            progress.add(count);
        }
        upload.complete().await.map_err(failed)
    };
    let sent = sent.await;
    if sent.is_err() {
        // Parts that remain cost space, but do no other harm. Report the error that ended the upload.
        let _ = upload.abort().await;
    }
    sent.map(|_| ())
}

/// Reads a part on the runtime's own thread, which has nothing else to do that would not also wait for the disk.
fn part(file: &File, start: u64, bytes: u64) -> io::Result<Bytes> {
    let mut part = vec![0; bytes as usize];
    file.read_exact_at(&mut part, start)?;
    Ok(part.into())
}
