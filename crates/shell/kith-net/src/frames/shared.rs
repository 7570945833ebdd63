//! Shared memory for long replies between processes on one machine. The server writes bodies to memory that its client also
//! maps; the socket carries only their places (`docs/design/0004-framed-path.md`).
//!
//! The memory is an unnamed file that the server creates for one connection and seals: nobody can resize it, and no other
//! process can write to it. The client opens it through `/proc`, which the system permits to the same user and to root.

#![allow(unsafe_code)]

use super::ConnectionLoss;
use bytes::Bytes;
use kith_wire::frame::{Offer, SlotPlace};
use memmap2::{Mmap, MmapMut};
use parking_lot::Mutex;
use std::{
    fs::File,
    io,
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The size of a slot, and so the longest body that it can hold: one part of a long message.
pub const SLOT_BYTES: usize = 128 << 10;
/// Slots of one connection. Together they hold 16 MiB: three replies of 5,000 values of one kibibyte.
const SLOTS: u32 = 128;
/// How many connections of a process may have shared memory at a time, which bounds all of it to 512 MiB. Further
/// connections use their sockets alone.
const MEMORIES_MAX: usize = 32;

static MEMORIES: AtomicUsize = AtomicUsize::new(0);

/// The server's end of the shared memory of one connection. The slot that was given back last is used first, so that only
/// as much memory is touched as is in use.
#[derive(Debug)]
pub struct ReplyMemory {
    file: File,
    map: MmapMut,
    offer: Offer,
    free: Vec<u32>,
    is_taken: Vec<bool>,
    _counted: CountedMemory,
}

/// Counts one connection with shared memory while it exists.
#[derive(Debug)]
struct CountedMemory;

impl CountedMemory {
    fn new() -> Option<Self> {
        let more = |count| (count < MEMORIES_MAX).then_some(count + 1);
        MEMORIES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Self)
    }
}

impl Drop for CountedMemory {
    fn drop(&mut self) {
        MEMORIES.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ReplyMemory {
    /// Returns `None` if the system does not support such memory, or if `MEMORIES_MAX` connections have it already.
    pub fn new() -> Option<Self> {
        let counted = CountedMemory::new()?;
        let made = Self::make(counted);
        made.inspect_err(
            |error| tracing::debug!(%error, "cannot create shared memory for a local connection"),
        )
        .ok()
    }

    fn make(counted: CountedMemory) -> io::Result<Self> {
        let file = nameless()?;
        let descriptor = u32::try_from(file.as_raw_fd()).map_err(io::Error::other)?;
        let slot_bytes = SLOT_BYTES as u32;
        let offer = Offer { descriptor, slots: SLOTS, slot_bytes, token: rand::random() };
        file.set_len(offer.file_bytes())?;
        // SAFETY: the file was created here, so no other mapping of it can write, and `seal` prevents any from now on.
        let mut map = unsafe { MmapMut::map_mut(&file)? };
        map[offer.body_bytes() as usize..].copy_from_slice(&offer.token);
        seal(&file)?;
        let (free, is_taken) = ((0..SLOTS).rev().collect(), vec![false; SLOTS as usize]);
        Ok(Self { file, map, offer, free, is_taken, _counted: counted })
    }

    /// The offer from which the client opens the memory.
    pub fn offer(&self) -> Offer {
        debug_assert_eq!(self.offer.descriptor as i32, self.file.as_raw_fd(), "open as long as this is");
        self.offer
    }

    /// Copies a body, given as consecutive slices, to a free slot. `None` if it is longer than a slot, or no slot is free.
    pub fn put(&mut self, body: &[Bytes]) -> Option<SlotPlace> {
        let bytes: usize = body.iter().map(Bytes::len).sum();
        let slot = if bytes <= SLOT_BYTES { self.free.pop()? } else { return None };
        self.is_taken[slot as usize] = true;
        let mut at = slot as usize * SLOT_BYTES;
        for slice in body {
            self.map[at..][..slice.len()].copy_from_slice(slice);
            at += slice.len();
        }
        Some(SlotPlace { slot, bytes: bytes as u32 })
    }

    /// The number of slots that the client has not given back.
    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        self.is_taken.iter().filter(|is_taken| **is_taken).count()
    }

    /// Takes a slot back from the client, which does not read it any more. Returns `false` if the slot was not taken.
    #[must_use]
    pub fn take_back(&mut self, slot: u32) -> bool {
        let was_taken = self.is_taken.get_mut(slot as usize).is_some_and(std::mem::take);
        if was_taken {
            self.free.push(slot);
        }
        was_taken
    }
}

/// The client's end of the shared memory of one connection.
#[derive(Debug)]
pub(super) struct SharedReplies {
    map: Mmap,
    offer: Offer,
    /// Slots that nobody reads any more, which are to be given back.
    spent: Mutex<Vec<u32>>,
}

/// A body in a slot. Dropping it marks the slot to be given back.
#[derive(Debug)]
struct Lent {
    replies: Arc<SharedReplies>,
    span: SlotPlace,
}

impl SharedReplies {
    /// Opens the memory that the process `pid` offers.
    ///
    /// # Errors
    /// The system does not let this process open the file, or the file is not the offered one.
    pub fn open(pid: u32, offer: Offer) -> io::Result<Arc<Self>> {
        let file = File::open(format!("/proc/{pid}/fd/{}", offer.descriptor))?;
        let bytes = file.metadata()?.len();
        if !is_sealed(&file)? || bytes != offer.file_bytes() {
            return Err(io::Error::other("the file is not the one that the server offered"));
        }
        // SAFETY: the file cannot be shrunk, and only the server writes to it, which does not change a slot before it was
        // given back.
        let map = unsafe { Mmap::map(&file)? };
        if map[offer.body_bytes() as usize..] != offer.token {
            return Err(io::Error::other("the file is not the one that the server offered"));
        }
        Ok(Arc::new(Self { map, offer, spent: Mutex::default() }))
    }

    /// Returns the body at a place. Its slot is given back when the last clone or slice of the body is dropped.
    ///
    /// # Errors
    /// [`ConnectionLoss`] if the place is outside of the memory.
    pub fn body(self: &Arc<Self>, slot: SlotPlace) -> Result<Bytes, ConnectionLoss> {
        if self.offer.slots <= slot.slot || self.offer.slot_bytes < slot.bytes {
            return Err(ConnectionLoss::new("the peer sent a body without a valid place in shared memory"));
        }
        Ok(Bytes::from_owner(Lent { replies: Arc::clone(self), span: slot }))
    }

    /// Removes and returns the slots that are to be given back.
    pub fn take_spent(&self) -> Vec<u32> {
        std::mem::take(&mut self.spent.lock())
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        let start = self.span.slot as usize * self.replies.offer.slot_bytes as usize;
        &self.replies.map[start..][..self.span.bytes as usize]
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.replies.spent.lock().push(self.span.slot);
    }
}

#[cfg(target_os = "linux")]
fn nameless() -> io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    Ok(memfd_create("kith-replies", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?.into())
}

/// Seals the file: from now on it keeps its length, and nobody can map it for writing again.
#[cfg(target_os = "linux")]
fn seal(file: &File) -> io::Result<()> {
    use rustix::fs::{SealFlags, fcntl_add_seals};
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL;
    Ok(fcntl_add_seals(file, seals)?)
}

#[cfg(target_os = "linux")]
fn is_sealed(file: &File) -> io::Result<bool> {
    use rustix::fs::{SealFlags, fcntl_get_seals};
    Ok(fcntl_get_seals(file)?.contains(SealFlags::SHRINK | SealFlags::FUTURE_WRITE))
}

#[cfg(not(target_os = "linux"))]
fn nameless() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn seal(_: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn is_sealed(_: &File) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn seen(memory: &ReplyMemory) -> Arc<SharedReplies> {
        SharedReplies::open(std::process::id(), memory.offer()).expect("it is offered")
    }

    fn body(byte: u8, bytes: usize) -> [Bytes; 2] {
        let whole = Bytes::from(vec![byte; bytes]);
        [whole.slice(..bytes / 3), whole.slice(bytes / 3..)]
    }

    #[test]
    fn what_is_put_is_seen_until_it_is_given_back_and_never_changes() {
        let mut memory = ReplyMemory::new().expect("few are open");
        let replies = seen(&memory);
        let mut held = Vec::new();
        for number in 0..SLOTS {
            let bytes = SLOT_BYTES - number as usize;
            let reply_slot = memory.put(&body(number as u8, bytes)).expect("a slot is free");
            held.push((number as u8, bytes, replies.body(reply_slot).expect("it lies there")));
        }
        assert_eq!(memory.put(&body(0, 1)), None, "all are taken");
        assert!(
            held.iter().all(|(byte, bytes, body)| body.len() == *bytes && body.iter().all(|at| at == byte))
        );
        // A slice of a body keeps the body's slot.
        let kept = held[5].2.slice(7..9);
        held.drain(..10);
        let spent = replies.take_spent();
        assert_eq!(spent, [0, 1, 2, 3, 4, 6, 7, 8, 9]);
        assert!(replies.take_spent().is_empty(), "each is returned once");
        assert!(spent.iter().all(|slot| memory.take_back(*slot)));
        for _ in &spent {
            memory.put(&body(0xff, SLOT_BYTES)).expect("they are free again");
        }
        assert_eq!(memory.put(&body(0, 1)), None);
        assert!(
            held.iter().all(|(byte, bytes, body)| body.len() == *bytes && body.iter().all(|at| at == byte))
        );
        assert_eq!(kept[..], [5, 5]);
        // The server is gone, or has closed the connection.
        drop(memory);
        assert_eq!((kept[0], held[0].2[0]), (5, 10));
    }

    #[test]
    fn values_that_change_in_it_do_not_hold() {
        let value = vec![7; 1 << 10];
        let mut sent = kith_operators::RecordsBuilder::with_capacity(2);
        let key = |index: usize| kith_types::KeyRef::Id(index as u64);
        for index in 0..2 {
            assert!(sent.found_with(&value, Some(kith_types::ValueProof::of(key(index), &value))));
        }
        let body = kith_query::convert::records_to_wire(&sent.finish());
        let mut memory = ReplyMemory::new().expect("few are open");
        let replies = seen(&memory);
        let slot = memory.put(std::slice::from_ref(&body)).expect("a slot is free");
        let came = || kith_query::convert::records_from_wire(&replies.body(slot).expect("it lies there"), 2);
        assert!(came().expect("records").prove(key).is_empty());
        let held = came().expect("records");
        // The server writes to the slot again while somebody still reads it.
        assert!(memory.take_back(slot.slot));
        let mut other = body.to_vec();
        *other.last_mut().expect("a value") ^= 1;
        assert_eq!(memory.put(&[other.into()]), Some(slot));
        assert_eq!(held.clone().prove(key), [1]);
    }

    #[test]
    fn slots_that_are_not_taken_cannot_be_given_back_and_long_bodies_have_none() {
        let mut memory = ReplyMemory::new().expect("few are open");
        assert_eq!(memory.put(&body(0, SLOT_BYTES + 1)), None);
        let reply_slot = memory.put(&body(1, SLOT_BYTES)).expect("it fits");
        for slot in [reply_slot.slot + 1, SLOTS, u32::MAX] {
            assert!(!memory.take_back(slot), "{slot}");
        }
        assert!(memory.take_back(reply_slot.slot) && !memory.take_back(reply_slot.slot));
        assert_eq!(
            memory.put(&[]),
            Some(SlotPlace { slot: reply_slot.slot, bytes: 0 }),
            "it is taken again first"
        );
    }

    #[test]
    fn places_outside_are_refused() {
        let memory = ReplyMemory::new().expect("few are open");
        let replies = seen(&memory);
        for (slot, bytes) in [(SLOTS, 0), (u32::MAX, 1), (0, SLOT_BYTES as u32 + 1), (SLOTS - 1, u32::MAX)] {
            assert!(replies.body(SlotPlace { slot, bytes }).is_err(), "slot {slot}, {bytes} bytes");
        }
        let last = replies.body(SlotPlace { slot: SLOTS - 1, bytes: SLOT_BYTES as u32 });
        assert_eq!(last.expect("it lies within").len(), SLOT_BYTES);
    }

    #[test]
    fn nothing_but_what_was_offered_is_mapped() {
        let memory = ReplyMemory::new().expect("few are open");
        let offer = memory.offer();
        let unsealed = nameless().expect("a file");
        unsealed.set_len(offer.file_bytes()).expect("room");
        let descriptor = unsealed.as_raw_fd() as u32;
        for (why, offer) in [
            ("a token that is not its own", Offer { token: [0; 16], ..offer }),
            ("another length", Offer { slots: offer.slots + 1, ..offer }),
            ("a file that can be cut", Offer { descriptor, token: [0; 16], ..offer }),
            ("no file", Offer { descriptor: 1 << 30, ..offer }),
        ] {
            assert!(SharedReplies::open(std::process::id(), offer).is_err(), "{why}");
        }
        assert!(SharedReplies::open(std::process::id(), offer).is_ok());
        // The client can neither write to nor truncate what it maps; a truncated file would crash the server.
        let file = File::options().read(true).write(true).open(format!("/proc/self/fd/{}", offer.descriptor));
        let file = file.expect("it is this process's");
        // SAFETY: the mapping is refused.
        assert!(unsafe { MmapMut::map_mut(&file) }.is_err());
        assert!(file.set_len(0).is_err() && file.set_len(offer.file_bytes() * 2).is_err());
    }
}
