//! The handler of SIGBUS, and which mappings it answers for.
//!
//! It is installed once per process. It finds the mapping that a read fell into in a registry of atomics, marks it as lost,
//! notes the page, lays a page of zeros over the hole and lets the read go on. Faults elsewhere go to the handler that was there
//! before.

use parking_lot::Mutex;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};

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

/// Whether any page of a mapping is lost.
#[inline]
pub(super) fn is_lost(slot: usize) -> bool {
    SLOTS[slot].lost.load(Ordering::Relaxed)
}

/// Whether one of the lost pages is among those that some bytes of a mapping lie on.
#[cold]
pub(super) fn has_lost_page(slot: usize, start: usize, bytes: usize) -> bool {
    SLOTS[slot].unnoted.load(Ordering::SeqCst)
        || lost_pages().any(|page| page < start + bytes && start < page + page_bytes())
}

/// Bytes of a page.
pub(super) fn page_bytes() -> usize {
    PAGE_BYTES.load(Ordering::SeqCst)
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

/// Tells the handler of a mapping; gives its slot.
///
/// # Errors
/// If too many files are mapped.
pub(super) fn register(start: usize, bytes: usize) -> io::Result<usize> {
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

/// Gives the slot of a mapping back, while its memory is still there.
pub(super) fn release(slot: usize, start: usize, bytes: usize) {
    SLOTS[slot].start.store(0, Ordering::SeqCst);
    if SLOTS[slot].lost.load(Ordering::SeqCst) {
        let ours = start..start + bytes;
        for page in LOST_PAGES.iter().take(LOST_PAGES_USED.load(Ordering::SeqCst)) {
            if ours.contains(&page.load(Ordering::SeqCst)) {
                page.store(0, Ordering::SeqCst);
            }
        }
    }
    FREE.lock().push(slot);
}

/// Installs the handler, once per process.
///
/// # Errors
/// If the system refuses.
pub(super) fn install_handler() -> io::Result<()> {
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
    let page_bytes = page_bytes();
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
