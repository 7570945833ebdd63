//! Memory-mapped files that survive being cut short: the one module with `unsafe`.
//!
//! Reading a page of a mapping whose file has lost it (cut by somebody, or a bad
//! sector) raises SIGBUS. A handler, installed once per process, finds the mapping
//! in a registry of atomics, marks it as lost, notes the page, lays a page of zeros over the hole
//! and lets the read go on. Readers ask [`Slice::is_lost`] *after* reading and
//! before they trust what they read; the zeros themselves never pass a checksum.
//! Faults elsewhere go to the handler that was there before.
//!
//! A mapping is a whole pack; a [`Slice`] is one logical file in it, and only those that a lost page belongs to are lost.
//!
//! A mapping whose pages are not all in memory may be told so ([`Mapping::set_cold`]): then what readers load ahead are
//! pages from the disk, many at a time, instead of cache lines.

#![allow(unsafe_code)]

use memmap2::{Mmap, MmapOptions};
use parking_lot::Mutex;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Once, OnceLock};

/// The most mappings at a time: Linux allows about as many per process (`vm.max_map_count`).
const MAPPINGS_MAX: usize = 65_536;

/// One registered mapping. A `start` of 0 marks a free slot.
struct Slot {
    start: AtomicUsize,
    bytes: AtomicUsize,
    /// Whether any page of it is lost.
    lost: AtomicBool,
    /// Whether more pages are lost than could be noted: then all of it counts as lost.
    unnoted: AtomicBool,
}

/// Addresses of lost pages of live mappings; 0 is free. Written by the handler, which may not allocate.
static LOST_PAGES: [AtomicUsize; LOST_PAGES_MAX] = [const { AtomicUsize::new(0) }; LOST_PAGES_MAX];

/// Lost pages that are told apart. A disk that loses more is past saving file by file.
const LOST_PAGES_MAX: usize = 4_096;

/// Entries of [`LOST_PAGES`] ever used: nobody looks further.
static LOST_PAGES_USED: AtomicUsize = AtomicUsize::new(0);

/// Read by the signal handler, which may not lock or allocate; written under [`FREE`].
static SLOTS: [Slot; MAPPINGS_MAX] = [const {
    Slot {
        start: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
        lost: AtomicBool::new(false),
        unnoted: AtomicBool::new(false),
    }
}; MAPPINGS_MAX];

/// Slots ever used: the handler looks no further.
static SLOTS_USED: AtomicUsize = AtomicUsize::new(0);

/// Slots given back.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// What handled SIGBUS before. Set before the handler is installed.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

static PAGE_BYTES: AtomicUsize = AtomicUsize::new(4096);

/// A read-only mapping of a whole file.
pub(crate) struct Mapping {
    map: Mmap,
    slot: usize,
    /// Whether pages of it have to come from the disk.
    is_cold: AtomicBool,
}

impl Mapping {
    /// Maps the first `bytes` of a file.
    ///
    /// # Errors
    /// If the system refuses, or too many files are mapped.
    pub(crate) fn new(file: &File, bytes: usize) -> io::Result<Self> {
        install_handler()?;
        // SAFETY: component files are never written once they are under their final name. If somebody does so
        // all the same, readers may see other bytes, which checksums refuse; a cut is what the handler is for.
        let map = unsafe { MmapOptions::new().len(bytes).map(file)? };
        let slot = register(map.as_ptr() as usize, bytes)?;
        Ok(Self { map, slot, is_cold: AtomicBool::new(false) })
    }

    /// Bytes of the file.
    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether some of it is not in memory, as far as known.
    #[inline]
    pub(crate) fn is_cold(&self) -> bool {
        self.is_cold.load(Ordering::Relaxed)
    }

    /// Tells readers whether to load pages ahead, and the system whether to read what lies around a page that is missed:
    /// where memory is short that would push out a hundred kibibytes for each record read.
    pub(crate) fn set_cold(&self, is_cold: bool) {
        if self.is_cold.swap(is_cold, Ordering::Relaxed) != is_cold {
            let advice = if is_cold { memmap2::Advice::Random } else { memmap2::Advice::Normal };
            // Only speed depends on it.
            let _ = self.map.advise(advice);
        }
    }

    /// Whether the page that a byte lies on is in memory; true where the system does not tell.
    pub(crate) fn is_resident(&self, offset: usize) -> bool {
        let page_bytes = PAGE_BYTES.load(Ordering::SeqCst);
        let page = (self.map.as_ptr() as usize + offset) / page_bytes * page_bytes;
        let mut resident = 1u8;
        // SAFETY: the page is one of a live mapping of ours; one byte is written for it, which there is room for.
        let told = unsafe { libc::mincore(page as *mut libc::c_void, 1, (&raw mut resident).cast()) };
        told != 0 || resident & 1 == 1
    }

    /// The whole file.
    #[cfg(test)]
    fn all(self) -> Slice {
        let bytes = self.map.len();
        Slice::new(Arc::new(self), 0, bytes)
    }
}

impl std::fmt::Debug for Mapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapping").field("bytes", &self.map.len()).finish_non_exhaustive()
    }
}

/// A part of a mapping: the bytes of one logical file.
pub(crate) struct Slice {
    map: Arc<Mapping>,
    /// Into `map`, with `bytes` bytes behind it.
    start: *const u8,
    bytes: usize,
}

// SAFETY: `start` points into the mapping that `map` keeps alive, which is only ever read.
unsafe impl Send for Slice {}
// SAFETY: as above.
unsafe impl Sync for Slice {}

impl Slice {
    /// # Panics
    /// If the part does not lie within the mapping.
    pub(crate) fn new(map: Arc<Mapping>, offset: usize, bytes: usize) -> Self {
        let start = map.map[offset..][..bytes].as_ptr();
        Self { map, start, bytes }
    }

    /// The file's bytes. Not to be trusted before a checksum, and [`Slice::is_lost`] after it, say so.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: checked against the mapping's length in `new`; the mapping lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }

    /// Whether a page of the file was missing at some read before this call.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        // Orders the reads of mapped bytes before the read of the flag, which the handler sets before it maps zeros.
        fence(Ordering::Acquire);
        SLOTS[self.map.slot].lost.load(Ordering::Relaxed) && self.has_lost_page()
    }

    #[cold]
    fn has_lost_page(&self) -> bool {
        let (start, page_bytes) = (self.start as usize, PAGE_BYTES.load(Ordering::SeqCst));
        SLOTS[self.map.slot].unnoted.load(Ordering::SeqCst)
            || lost_pages().any(|page| page < start + self.bytes && start < page + page_bytes)
    }

    /// Asks the processor to load the cache line at `offset`; a hint without effect on what is read.
    #[inline]
    pub(crate) fn prefetch(&self, offset: usize) {
        #[cfg(target_arch = "x86_64")]
        if offset < self.bytes {
            // SAFETY: the address lies within the mapping, and a prefetch never faults.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(self.start.add(offset).cast());
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = offset;
    }

    /// Whether loading ahead is a matter of pages, not of cache lines.
    #[inline]
    pub(crate) fn is_cold(&self) -> bool {
        self.map.is_cold()
    }

    /// Has the system begin to read the pages of some bytes of the file, all at once, and does not wait for them.
    #[cold]
    pub(crate) fn fetch_ahead(&self, offset: usize, bytes: usize) {
        if offset < self.bytes {
            let start = self.start as usize - self.map.map.as_ptr() as usize + offset;
            let bytes = bytes.min(self.bytes - offset);
            // Only speed depends on it.
            let _ = self.map.map.advise_range(memmap2::Advice::WillNeed, start, bytes);
        }
    }

    /// Brings the first `bytes` of the file into memory and the page table, as far as the system is able to.
    pub(crate) fn populate(&self, bytes: usize) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            let offset = self.start as usize - self.map.map.as_ptr() as usize;
            self.map.map.advise_range(memmap2::Advice::PopulateRead, offset, bytes.min(self.bytes))?;
        }
        #[cfg(not(target_os = "linux"))]
        let _ = bytes;
        Ok(())
    }

    /// Addresses of the pages that the first `bytes` of the file lie on.
    pub(crate) fn pages(&self, bytes: usize) -> Range<usize> {
        let (start, page_bytes) = (self.start as usize, self.page_bytes());
        start / page_bytes * page_bytes..(start + bytes.min(self.bytes)).next_multiple_of(page_bytes)
    }

    /// Bytes of a page.
    pub(crate) fn page_bytes(&self) -> usize {
        PAGE_BYTES.load(Ordering::SeqCst)
    }
}

fn lost_pages() -> impl Iterator<Item = usize> {
    let used = LOST_PAGES_USED.load(Ordering::SeqCst);
    LOST_PAGES.iter().take(used).map(|page| page.load(Ordering::SeqCst)).filter(|&page| page != 0)
}

/// Notes a lost page; `false` if there is no room. Called by the handler.
fn note(page: usize) -> bool {
    for (index, slot) in LOST_PAGES.iter().enumerate() {
        if slot.compare_exchange(0, page, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            LOST_PAGES_USED.fetch_max(index + 1, Ordering::SeqCst);
            return true;
        }
    }
    false
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // Before the memory is given back: the handler must not answer for what others map there.
        SLOTS[self.slot].start.store(0, Ordering::SeqCst);
        if SLOTS[self.slot].lost.load(Ordering::SeqCst) {
            let start = self.map.as_ptr() as usize;
            let ours = start..start + self.map.len();
            for page in LOST_PAGES.iter().take(LOST_PAGES_USED.load(Ordering::SeqCst)) {
                if ours.contains(&page.load(Ordering::SeqCst)) {
                    page.store(0, Ordering::SeqCst);
                }
            }
        }
        FREE.lock().push(self.slot);
    }
}

fn register(start: usize, bytes: usize) -> io::Result<usize> {
    let mut free = FREE.lock();
    let slot = match free.pop() {
        Some(slot) => slot,
        None => {
            let slot = SLOTS_USED.load(Ordering::SeqCst);
            if slot == MAPPINGS_MAX {
                let message = format!("more than {MAPPINGS_MAX} files mapped");
                return Err(io::Error::new(io::ErrorKind::OutOfMemory, message));
            }
            SLOTS_USED.store(slot + 1, Ordering::SeqCst);
            slot
        }
    };
    SLOTS[slot].lost.store(false, Ordering::SeqCst);
    SLOTS[slot].unnoted.store(false, Ordering::SeqCst);
    SLOTS[slot].bytes.store(bytes, Ordering::SeqCst);
    SLOTS[slot].start.store(start, Ordering::SeqCst);
    Ok(slot)
}

fn install_handler() -> io::Result<()> {
    static INSTALL: Once = Once::new();
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    INSTALL.call_once(|| {
        // SAFETY: plain system calls on local, initialised memory; the handler below keeps to what
        // POSIX allows in a handler, plus `mmap`, which is a bare system call on the systems served.
        unsafe {
            if let Ok(bytes) = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)) {
                PAGE_BYTES.store(bytes, Ordering::SeqCst);
            }
            let mut previous: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut previous) != 0 {
                return;
            }
            PREVIOUS.get_or_init(|| previous);
            let mut action: libc::sigaction = std::mem::zeroed();
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&mut action.sa_mask);
            INSTALLED
                .store(libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) == 0, Ordering::SeqCst);
        }
    });
    // Without the handler a cut file would end the process: rather map nothing.
    if INSTALLED.load(Ordering::SeqCst) { Ok(()) } else { Err(io::Error::other("cannot handle SIGBUS")) }
}

extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands a valid `info` to a handler installed with SA_SIGINFO.
    let (address, is_fault) = unsafe { ((*info).si_addr() as usize, (*info).si_code > 0) };
    if !(is_fault && cover(address)) {
        forward(signal, info, context);
    }
}

/// Marks the mapping at `address` as lost and puts zeros there; false if it is nobody's.
///
/// A mapping that faults is alive, so its slot stands still. Slots of others may change meanwhile and match by
/// accident; then one more mapping may count as lost, but never one less. Only the faulting page is replaced: whoever
/// owns it, it had nothing to read.
fn cover(address: usize) -> bool {
    let page_bytes = PAGE_BYTES.load(Ordering::SeqCst);
    let page = address & !(page_bytes - 1);
    let owners = || {
        SLOTS.iter().take(SLOTS_USED.load(Ordering::SeqCst)).filter(|slot| {
            let start = slot.start.load(Ordering::SeqCst);
            start != 0 && (start..start + slot.bytes.load(Ordering::SeqCst)).contains(&address)
        })
    };
    let found = owners().next().is_some();
    // The page before the flag, the flag before the zeros: whoever sees one sees what comes before it.
    let noted = found && note(page);
    for slot in owners() {
        slot.unnoted.fetch_or(!noted, Ordering::SeqCst);
        slot.lost.store(true, Ordering::SeqCst);
    }
    // SAFETY: replaces one page of a live, read-only mapping of ours by readable zeros.
    found
        && unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            libc::mmap(page as *mut libc::c_void, page_bytes, libc::PROT_READ, flags, -1, 0)
                != libc::MAP_FAILED
        }
}

/// Does what would have happened without us.
fn forward(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let previous = PREVIOUS.get();
    let handler = previous.map_or(libc::SIG_DFL, |previous| previous.sa_sigaction);
    // SAFETY: `handler` is what `sigaction` reported, with the signature that its flags state.
    unsafe {
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(signal, &action, std::ptr::null_mut());
            libc::raise(signal);
        } else if previous.is_some_and(|previous| previous.sa_flags & libc::SA_SIGINFO != 0) {
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                std::mem::transmute(handler);
            handler(signal, info, context);
        } else {
            let handler: extern "C" fn(libc::c_int) = std::mem::transmute(handler);
            handler(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file_of(pages: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; pages * 4096]).unwrap();
        file
    }

    #[test]
    fn a_file_cut_under_its_mapping_is_lost_and_the_process_lives() {
        let file = file_of(8);
        let map = Mapping::new(&file, 8 * 4096).unwrap().all();
        let other = file_of(1);
        let other = Mapping::new(&other, 4096).unwrap().all();
        assert_eq!(map.bytes()[5 * 4096], 7);
        assert!(!map.is_lost());
        file.set_len(4096).unwrap();
        let sum: u64 = map.bytes().iter().map(|&byte| u64::from(byte)).sum();
        assert_eq!(sum, 7 * 4096, "the hole reads as zeros");
        assert!(map.is_lost());
        assert!(!other.is_lost());
        assert_eq!(other.bytes()[4095], 7);
    }

    /// Slices of 1,000 bytes: most lie on one page, some straddle two.
    #[test]
    fn only_the_slices_on_lost_pages_are_lost() {
        let file = file_of(16);
        let map = Arc::new(Mapping::new(&file, 16 * 4096).unwrap());
        let slices: Vec<Slice> =
            (0..65).map(|slice| Slice::new(Arc::clone(&map), slice * 1_000, 1_000)).collect();
        file.set_len(10 * 4096).unwrap();
        let read = |page: usize| std::hint::black_box(&map.map)[page * 4096];
        assert_eq!((read(9), read(12), read(14)), (7, 0, 0));
        let pages = |slice: usize| slice * 1_000 / 4_096..=(slice * 1_000 + 999) / 4_096;
        for (number, slice) in slices.iter().enumerate() {
            let lost = pages(number).any(|page| page == 12 || page == 14);
            assert_eq!(slice.is_lost(), lost, "slice {number}");
        }
    }

    #[test]
    fn a_slot_given_back_starts_whole() {
        for _ in 0..100 {
            let file = file_of(2);
            let map = Mapping::new(&file, 2 * 4096).unwrap().all();
            assert!(!map.is_lost());
            file.set_len(0).unwrap();
            assert_eq!(std::hint::black_box(map.bytes())[4096], 0);
            assert!(map.is_lost());
        }
    }

    #[test]
    fn many_threads_may_fall_into_the_same_hole() {
        let file = file_of(64);
        let map = Mapping::new(&file, 64 * 4096).unwrap().all();
        file.set_len(0).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for page in 0..64 {
                        assert_eq!(std::hint::black_box(map.bytes())[page * 4096], 0);
                        assert!(map.is_lost());
                    }
                });
            }
        });
    }

    /// The child of the test below reads a hole in a mapping that is not ours and must die of it, as without us.
    #[test]
    fn a_fault_elsewhere_ends_the_process_as_before() {
        use std::os::unix::process::ExitStatusExt;
        const CHILD: &str = "KITH_TEST_FOREIGN_FAULT";
        if std::env::var_os(CHILD).is_some() {
            let ours = file_of(1);
            let _installed = Mapping::new(&ours, 4096).unwrap();
            let foreign = file_of(2);
            // SAFETY: reading the hole is the point; it ends the process.
            let map = unsafe { Mmap::map(&foreign).unwrap() };
            foreign.set_len(0).unwrap();
            std::process::exit(i32::from(std::hint::black_box(&map)[4096]));
        }
        let name = "map::tests::a_fault_elsewhere_ends_the_process_as_before";
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert_eq!(child.status.signal(), Some(libc::SIGBUS), "{child:?}");
    }
}
