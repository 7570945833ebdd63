//! Assembles a version in a bucket from data in another place. The data is read, proven and uploaded piece by piece,
//! and the whole version never lies on this machine.

use crate::objects::remote::{Remote, block_on};
use crate::objects::upload::{PACKS_AT_A_TIME, PART_BYTES, PARTS_MAX};
use crate::objects::{ObjectsError, VersionObjects};
use kith_engine::{Manifest, PackEntry, Source, prove_pack};
use object_store::{MultipartUpload, ObjectStoreExt};
use parking_lot::Mutex;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A callback for each piece, called by the thread that read it, with the length of the piece.
type Read<'a> = dyn Fn(u64) + Sync + 'a;

impl VersionObjects<'_> {
    /// Uploads the version that `manifest` describes to this place, with packs read from `source`. A pack becomes
    /// visible once all of its bytes are proven, and the manifest is written last. The call may be repeated, and
    /// another build of the same rows may run at the same time; a build of other rows is refused. Uses about four parts
    /// of 8 MiB of memory. Local folders are not supported.
    ///
    /// # Errors
    /// As [`VersionObjects::reserve`]; [`ObjectsError::Damaged`]; if the source or the store fails. The place then
    /// holds no version.
    pub fn upload_proven(
        &self,
        source: &dyn Source,
        manifest: &Manifest,
        on_progress: &mut (dyn FnMut(u64, u64) + Send),
    ) -> Result<(), ObjectsError> {
        let location = || self.objects.location().to_string();
        let Some(remote) = &self.objects.remote else {
            let source = io::Error::new(io::ErrorKind::Unsupported, "it is a folder on this machine");
            return Err(ObjectsError::Local { path: location().into(), source });
        };
        self.reserve(manifest)?;
        let packs = manifest.packs();
        let total = packs.iter().map(|pack| pack.bytes).sum();
        let progress = Mutex::new((0, on_progress));
        let read = |bytes: u64| {
            let (done, report) = &mut *progress.lock();
            *done += bytes;
            report(*done, total);
        };
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(pack) = packs.get(number) else { return Ok(()) };
                upload_pack(remote, source, manifest, (number as u32, pack), &read).inspect_err(|_| {
                    // The other threads begin no further pack.
                    next.store(packs.len(), Ordering::Relaxed);
                })?;
            }
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..PACKS_AT_A_TIME).map(|_| scope.spawn(work)).collect();
            let ended = threads.into_iter().map(|thread| thread.join().expect("an upload does not panic"));
            ended.collect::<Vec<_>>().into_iter().collect::<Result<(), ObjectsError>>()
        })?;
        self.put_manifest(manifest)
    }
}

/// Reads, proves and uploads one pack, as one object or in parts. The parts become an object only at the end.
fn upload_pack(
    remote: &Remote,
    source: &dyn Source,
    manifest: &Manifest,
    (number, pack): (u32, &PackEntry),
    read: &Read<'_>,
) -> Result<(), ObjectsError> {
    let failed = |error| ObjectsError::of(remote.named(&pack.name), error);
    if pack.bytes <= PART_BYTES {
        let mut all = Vec::with_capacity(pack.bytes as usize);
        prove(remote, source, manifest, (number, pack), &mut |piece| {
            all.extend_from_slice(piece);
            read(piece.len() as u64);
            Ok(())
        })?;
        return block_on(remote.store.put(&remote.at(&pack.name), all.into())).map(|_| ()).map_err(failed);
    }
    let part_bytes = PART_BYTES.max(pack.bytes.div_ceil(PARTS_MAX)) as usize;
    let upload = block_on(remote.store.put_multipart(&remote.at(&pack.name))).map_err(failed)?;
    let mut parts = Parts { upload, part: Vec::with_capacity(part_bytes), part_bytes };
    let sent = prove(remote, source, manifest, (number, pack), &mut |piece| {
        read(piece.len() as u64);
        parts.push(piece).map_err(failed)
    });
    parts.end(sent, failed)
}

/// An object that is uploaded in parts.
struct Parts {
    upload: Box<dyn MultipartUpload>,
    /// The bytes of the next part that are known so far.
    part: Vec<u8>,
    part_bytes: usize,
}

impl Parts {
    fn push(&mut self, mut piece: &[u8]) -> object_store::Result<()> {
        while !piece.is_empty() {
            let (now, later) = piece.split_at(piece.len().min(self.part_bytes - self.part.len()));
            self.part.extend_from_slice(now);
            piece = later;
            if self.part.len() == self.part_bytes {
                let full = std::mem::replace(&mut self.part, Vec::with_capacity(self.part_bytes));
                block_on(self.upload.put_part(full.into()))?;
            }
        }
        Ok(())
    }

    /// Completes the object from its parts, or aborts the upload if `sent` is an error.
    fn end(
        mut self,
        mut sent: Result<(), ObjectsError>,
        failed: impl Fn(object_store::Error) -> ObjectsError,
    ) -> Result<(), ObjectsError> {
        if sent.is_ok() && !self.part.is_empty() {
            sent = block_on(self.upload.put_part(std::mem::take(&mut self.part).into())).map_err(&failed);
        }
        if sent.is_ok() {
            sent = block_on(self.upload.complete()).map(|_| ()).map_err(failed);
        }
        if sent.is_err() {
            // Parts that remain cost space, but do no other harm. Report the error that ended the upload.
            let _ = block_on(self.upload.abort());
        }
        sent
    }
}

/// Passes every piece of a pack to `each`. Returns an error if any part of the pack is damaged.
fn prove(
    remote: &Remote,
    source: &dyn Source,
    manifest: &Manifest,
    (number, pack): (u32, &PackEntry),
    each: &mut dyn FnMut(&[u8]) -> Result<(), ObjectsError>,
) -> Result<(), ObjectsError> {
    let mut sent = Ok(());
    let report = prove_pack(source, manifest, number, &mut |piece| {
        sent = each(piece);
        if sent.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    sent?;
    let object = remote.named(&pack.name);
    let report =
        report.map_err(|error| ObjectsError::Failed { object: object.clone(), source: Box::new(error) })?;
    match report.damages.into_iter().next() {
        Some(damage) => Err(ObjectsError::Damaged { location: object, source: damage }),
        None => Ok(()),
    }
}
