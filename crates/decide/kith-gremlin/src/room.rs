//! How much decoding may take. A decoder asks for room before it allocates, so that a short request cannot become large values.

use crate::{
    bytecode::Instruction,
    error::{GremlinError, Result},
    value::Value,
};
use kith_types::ErrorCode;
use std::fmt;

/// The most bytes of memory that the decoded form of one request takes.
pub const DECODED_BYTES_MAX: usize = 64 << 20;
/// The most instructions that the traversal of a request has, those of nested traversals included.
pub const INSTRUCTIONS_MAX: usize = 10_000;

/// Memory is asked for in steps of this size.
const STEP: usize = 8 << 10;
/// A list of more items than this grows by half of its size instead of doubling.
const DOUBLED_MAX: usize = 1 << 10;
/// The memory of a value in a list whose length is known before.
pub(crate) const VALUE: usize = size_of::<Value>();
/// The memory of an entry of a map or set: its hash, its place in the table, and the key or value.
pub(crate) const ENTRY: usize = 48 + 2 * VALUE;
/// The memory of an entry of a map or set that grows: at its peak, the table is copied to one of twice its size.
pub(crate) const GROWING_ENTRY: usize = 3 * ENTRY;
/// The memory of an instruction without its arguments, but with its name.
pub(crate) const INSTRUCTION: usize = size_of::<Instruction>() + 2 * HEAD;
/// The memory of the allocator and a reference count for something that a value points to.
pub(crate) const HEAD: usize = 48;
/// The memory of an element of a graph without its values.
pub(crate) const ELEMENT: usize = 256;

/// Makes a request hold this number of bytes of memory in all; `false` if there is too little memory.
type Hold = Box<dyn FnMut(usize) -> bool + Send + Sync>;

/// The room for the decoded form of one request. The memory is held until this is dropped.
pub struct Room {
    taken: usize,
    held: usize,
    bytes_max: usize,
    instructions: usize,
    /// `None` if nothing is bounded.
    hold: Option<Hold>,
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").field("taken", &self.taken).field("held", &self.held).finish_non_exhaustive()
    }
}

impl Default for Room {
    fn default() -> Self {
        Self::unbounded()
    }
}

impl Room {
    /// Room for [`DECODED_BYTES_MAX`] bytes and [`INSTRUCTIONS_MAX`] instructions. `hold` is asked for the memory.
    pub fn new(hold: impl FnMut(usize) -> bool + Send + Sync + 'static) -> Self {
        let hold: Hold = Box::new(hold);
        Self { taken: 0, held: 0, bytes_max: DECODED_BYTES_MAX, instructions: 0, hold: Some(hold) }
    }

    /// The same bounds, without asking anybody for the memory.
    pub fn alone() -> Self {
        Self::new(|_| true)
    }

    /// Room for whatever the input holds. It is for input of which the process knows that it is short, or that it made itself.
    pub fn unbounded() -> Self {
        Self { taken: 0, held: 0, bytes_max: usize::MAX, instructions: 0, hold: None }
    }

    /// Whether nothing is bounded.
    pub fn is_unbounded(&self) -> bool {
        self.hold.is_none()
    }

    /// The bytes that are taken.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// The instructions that were read.
    pub fn instructions(&self) -> usize {
        self.instructions
    }

    /// Takes bytes for what is allocated next.
    ///
    /// # Errors
    /// `too_large` if the request would take more than it may; `overloaded` if there is too little memory.
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        let Some(hold) = &mut self.hold else { return Ok(()) };
        let taken = self.taken.saturating_add(bytes);
        if self.bytes_max < taken {
            return Err(GremlinError::new(
                ErrorCode::TooLarge,
                format!(
                    "the request takes more than {} bytes of memory when it is decoded; send it as several requests",
                    self.bytes_max
                ),
            ));
        }
        if self.held < taken {
            let wanted = taken.next_multiple_of(STEP);
            if !hold(wanted) {
                let message =
                    "the requests under way use all memory that this process has for requests; try again";
                return Err(GremlinError::new(ErrorCode::Overloaded, message));
            }
            self.held = wanted;
        }
        self.taken = taken;
        Ok(())
    }

    /// Gives back what was freed. The memory stays held for what is taken next.
    pub fn give_back(&mut self, bytes: usize) {
        self.taken = self.taken.saturating_sub(bytes);
    }

    /// Keeps only this number of bytes, because all else was freed.
    pub fn settle(&mut self, bytes: usize) {
        self.taken = bytes.min(self.taken);
        let wanted = self.taken.next_multiple_of(STEP);
        if let Some(hold) = &mut self.hold
            && wanted < self.held
            && hold(wanted)
        {
            self.held = wanted;
        }
    }

    /// Makes sure that one more item fits into a list, which takes room for the list before it grows.
    pub(crate) fn grow<T>(&mut self, list: &mut Vec<T>) -> Result<()> {
        let (length, capacity) = (list.len(), list.capacity());
        if length < capacity || self.is_unbounded() {
            return Ok(());
        }
        let more = if capacity < DOUBLED_MAX { capacity.max(4) } else { capacity / 2 };
        self.take((capacity + more) * size_of::<T>())?;
        list.reserve_exact(more);
        self.give_back(capacity * size_of::<T>());
        Ok(())
    }

    /// Takes room for further instructions.
    pub(crate) fn take_instructions(&mut self, count: usize) -> Result<()> {
        if self.is_unbounded() {
            return Ok(());
        }
        self.instructions = self.instructions.saturating_add(count);
        if INSTRUCTIONS_MAX < self.instructions {
            return Err(GremlinError::new(
                ErrorCode::TooLarge,
                format!("the traversal has more than {INSTRUCTIONS_MAX} steps; send several traversals"),
            ));
        }
        self.take(count.saturating_mul(INSTRUCTION))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    #[test]
    fn memory_is_held_before_it_is_taken_and_refused_where_there_is_none() {
        let held = Arc::new(AtomicUsize::new(0));
        let holding = Arc::clone(&held);
        let mut room = Room::new(move |bytes| {
            let is_free = bytes <= 3 * STEP;
            holding.fetch_max(if is_free { bytes } else { 0 }, Ordering::Relaxed);
            is_free
        });
        room.take(1).expect("free");
        assert_eq!(held.load(Ordering::Relaxed), STEP);
        room.take(3 * STEP - 1).expect("free");
        assert_eq!(room.take(1).expect_err("none is left").code, ErrorCode::Overloaded);
        room.give_back(5);
        room.take(5).expect("free again");
        assert_eq!(room.take(DECODED_BYTES_MAX).expect_err("never").code, ErrorCode::TooLarge);
        assert_eq!((room.taken(), held.load(Ordering::Relaxed)), (3 * STEP, 3 * STEP));
        assert_eq!(
            room.take_instructions(INSTRUCTIONS_MAX + 1).expect_err("never").code,
            ErrorCode::TooLarge
        );
        let mut unbounded = Room::unbounded();
        assert!(unbounded.take(usize::MAX).is_ok() && unbounded.take_instructions(usize::MAX).is_ok());
    }
}
