//! Reads the bytes of a patch from a source with few requests.

use super::head::Section;
use super::{Head, PATCH_NAME, UnusablePatch};
use crate::manifest::Manifest;
use crate::source::Source;
use kith_types::PartitionId;
use std::ops::Range;

/// The size of the first request: the head of most patches, and all of small ones.
const FIRST_BYTES: usize = 16 << 10;

/// The size of later requests. Only a single larger change needs more.
const WINDOW_BYTES: u64 = 1 << 20;

/// The largest gap between two wanted sections that is read through instead of starting another request.
const GAP_BYTES_MAX: u64 = 64 << 10;

/// A patch in a source, read from start to end. Memory: a window, or the largest change.
pub struct PatchBytes<'s> {
    source: &'s dyn Source,
    /// The bytes of the patch from `start` on.
    window: Vec<u8>,
    start: u64,
    /// The wanted ranges, ascending, with neighbours joined.
    spans: Vec<Range<u64>>,
    /// The number of bytes read from the source since the last [`Self::take_read`].
    read: u64,
}

impl<'s> PatchBytes<'s> {
    /// Reads the head of the patch that leads to the version of `manifest`. Fails if there is no patch.
    pub fn open(source: &'s dyn Source, manifest: &Manifest) -> Result<(Head, Self), UnusablePatch> {
        let mut bytes = Self { source, window: Vec::new(), start: 0, spans: Vec::new(), read: 0 };
        bytes.load(FIRST_BYTES)?;
        let head_bytes = Head::bytes_of(&bytes.window, manifest.partition_count.get())?;
        if bytes.window.len() < head_bytes {
            bytes.load(head_bytes)?;
        }
        let head = Head::decode(bytes.window.get(..head_bytes).ok_or(UnusablePatch)?)?;
        // No section is larger than the files that it produces, so no request is larger either, whatever the head states.
        let bytes_max: u64 = manifest.files.iter().map(|entry| entry.bytes).sum();
        let is_possible = head.sections.iter().all(|section| section.bytes <= bytes_max);
        if head.manifest == manifest.hash() && is_possible { Ok((head, bytes)) } else { Err(UnusablePatch) }
    }

    /// Sets the sections to be read, and returns them with their offsets.
    pub fn want(&mut self, head: &Head, wanted: &dyn Fn(PartitionId) -> bool) -> Vec<(Section, u64)> {
        let mut at = head.bytes();
        let mut sections = Vec::new();
        for &section in &head.sections {
            if wanted(section.partition) {
                sections.push((section, at));
            }
            at += section.bytes;
        }
        for (section, at) in &sections {
            match self.spans.last_mut() {
                Some(last) if *at - last.end <= GAP_BYTES_MAX => last.end = at + section.bytes,
                _ => self.spans.push(*at..at + section.bytes),
            }
        }
        sections
    }

    /// Returns bytes of a wanted section.
    pub(super) fn get(&mut self, at: u64, bytes: u64) -> Result<&[u8], UnusablePatch> {
        let end = at.checked_add(bytes).ok_or(UnusablePatch)?;
        if at < self.start || self.start + (self.window.len() as u64) < end {
            let span = self.spans.iter().find(|span| span.contains(&at)).ok_or(UnusablePatch)?;
            let ahead = (span.end.max(end) - at).min(WINDOW_BYTES.max(bytes));
            // Bytes that are here already are kept, because sections are read from start to end.
            let here = at.checked_sub(self.start).map_or(self.window.len(), |used| used as usize);
            self.window.drain(..here.min(self.window.len()));
            self.start = at;
            self.load(ahead as usize)?;
        }
        let from = (at - self.start) as usize;
        self.window.get(from..from + bytes as usize).ok_or(UnusablePatch)
    }

    /// The number of bytes read from the source since the last call.
    pub fn take_read(&mut self) -> u64 {
        std::mem::take(&mut self.read)
    }

    /// Reads until the window holds at least `bytes`, or the patch ends.
    fn load(&mut self, bytes: usize) -> Result<(), UnusablePatch> {
        let here = self.window.len();
        self.window.resize(bytes.max(here), 0);
        // If the source fails here, it fails again when the files are pulled instead, and that error is reported.
        let got = self.source.read(PATCH_NAME, self.start + here as u64, &mut self.window[here..]);
        let got = got.map_err(|_| UnusablePatch)?;
        self.window.truncate(here + got);
        self.read += got as u64;
        Ok(())
    }
}
