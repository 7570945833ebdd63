//! The handler of SIGBUS, and the mappings that it covers.
//!
//! The handler is installed once per process. It looks up the mapping that a read fell into in a registry of atomics, marks
//! the mapping as lost, notes the page, maps a page of zeros over the hole, and lets the read go on. Faults elsewhere go to
//! the previous handler.

use parking_lot::Mutex;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};

/// The most mappings at a time. Linux allows about as many per process (`vm.max_map_count`).
const MAPPINGS_MAX: usize = 65_536;

/// One registered mapping. A `start` of 0 marks a free slot.
struct Slot {
    start: AtomicUsize,
    bytes: AtomicUsize,
    /// Whether any page of it is lost.
    lost: AtomicBool,
    /// Whether more pages are lost than could be noted. Then the whole mapping counts as lost.
    unnoted: AtomicBool,
}

/// The addresses of lost pages of live mappings; 0 marks a free entry. The handler writes them, and may not allocate.
static LOST_PAGES: [AtomicUsize; LOST_PAGES_MAX] = [const { AtomicUsize::new(0) }; LOST_PAGES_MAX];

/// The number of lost pages that are distinguished. A disk that loses more cannot be repaired file by file.
const LOST_PAGES_MAX: usize = 4_096;

/// The number of entries of [`LOST_PAGES`] that were ever used. Searches end there.
static LOST_PAGES_USED: AtomicUsize = AtomicUsize::new(0);

/// The registered mappings. The signal handler reads them, and may not lock or allocate; they are written under
/// [`FREE`].
static SLOTS: [Slot; MAPPINGS_MAX] = [const {
    Slot {
        start: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
        lost: AtomicBool::new(false),
        unnoted: AtomicBool::new(false),
    }
}; MAPPINGS_MAX];

/// The number of slots that were ever used. The handler's search ends there.
static SLOTS_USED: AtomicUsize = AtomicUsize::new(0);

/// The released slots.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The previous handler of SIGBUS. It is set before the handler is installed.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

static PAGE_BYTES: AtomicUsize = AtomicUsize::new(4096);

/// Whether any page of a mapping is lost.
#[inline]
pub(super) fn is_lost(slot: usize) -> bool {
    SLOTS[slot].lost.load(Ordering::Relaxed)
}

/// Whether a lost page overlaps some bytes of a mapping.
#[cold]
pub(super) fn has_lost_page(slot: usize, start: usize, bytes: usize) -> bool {
    SLOTS[slot].unnoted.load(Ordering::SeqCst)
        || lost_pages().any(|page| page < start + bytes && start < page + page_bytes())
}

/// The size of a page in bytes.
pub(super) fn page_bytes() -> usize {
    PAGE_BYTES.load(Ordering::SeqCst)
}

fn lost_pages() -> impl Iterator<Item = usize> {
    let used = LOST_PAGES_USED.load(Ordering::SeqCst);
    LOST_PAGES.iter().take(used).map(|page| page.load(Ordering::SeqCst)).filter(|&page| page != 0)
}

/// Notes a lost page. Returns `false` if there is no room. The handler calls it.
fn note(page: usize) -> bool {
    for (index, slot) in LOST_PAGES.iter().enumerate() {
        if slot.compare_exchange(0, page, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            LOST_PAGES_USED.fetch_max(index + 1, Ordering::SeqCst);
            return true;
        }
    }
    false
}

/// Registers a mapping for the handler. Returns its slot.
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

/// Releases the slot of a mapping. Call it while the memory is still mapped.
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
        // SAFETY: plain system calls on local, initialised memory. The handler below does only what POSIX allows in a
        // handler, plus `mmap`, which is a bare system call on the supported systems.
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
    // Without the handler a truncated file would end the process, so nothing is mapped then.
    if INSTALLED.load(Ordering::SeqCst) { Ok(()) } else { Err(io::Error::other("cannot handle SIGBUS")) }
}

extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `info` to a handler that is installed with SA_SIGINFO.
    let (address, is_fault) = unsafe { ((*info).si_addr() as usize, (*info).si_code > 0) };
    if !(is_fault && cover(address)) {
        forward(signal, info, context);
    }
}

/// Marks the mapping at `address` as lost and puts zeros there. Returns `false` if no registered mapping covers it.
///
/// A mapping that faults is alive, so its slot does not change. Slots of other mappings may change meanwhile and match by
/// accident. Then one mapping too many may count as lost, but never one too few. Only the faulting page is replaced, and
/// that page could not be read anyway.
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
    // The page is stored before the flag, and the flag before the zeros: a reader that sees one of them sees all earlier
    // ones.
    let noted = found && note(page);
    for slot in owners() {
        slot.unnoted.fetch_or(!noted, Ordering::SeqCst);
        slot.lost.store(true, Ordering::SeqCst);
    }
    // SAFETY: replaces one page of a live, read-only mapping of this process by readable zeros.
    found
        && unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            libc::mmap(page as *mut libc::c_void, page_bytes, libc::PROT_READ, flags, -1, 0)
                != libc::MAP_FAILED
        }
}

/// Does what would have happened without this handler.
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
