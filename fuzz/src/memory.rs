//! An allocator that aborts the process when an input takes more memory than its target allows.

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::abort;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The number of allocated bytes.
static HELD: AtomicUsize = AtomicUsize::new(0);
/// The most bytes that may be allocated.
static HELD_MAX: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Allows `bytes` in addition to what is allocated now.
pub fn limit(bytes: usize) {
    HELD_MAX.store(HELD.load(Relaxed).saturating_add(bytes), Relaxed);
}

/// The system's allocator, with a limit.
pub struct Bounded;

impl Bounded {
    fn add(bytes: usize) {
        let held = HELD.fetch_add(bytes, Relaxed) + bytes;
        let allowed = HELD_MAX.load(Relaxed);
        if allowed < held {
            HELD_MAX.store(usize::MAX, Relaxed);
            eprintln!("an allocation of {bytes} bytes exceeds what the input may take by {}", held - allowed);
            abort();
        }
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the promises of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        // SAFETY: the caller keeps the promises of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // The caller holds one allocation before and one after; that both may exist for a moment does not count.
        HELD.fetch_sub(layout.size(), Relaxed);
        Self::add(bytes);
        // SAFETY: the caller keeps the promises of `realloc`.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}
