//! Sorted ids in about one byte each, for storage: the cached second degree of a member.
//!
//! Each block of [`BLOCK`] ids is delta-encoded separately, and a directory holds the first id of each block. A look-up
//! decodes at most one block.

use super::pair::seek;
use kith_types::delta;

/// The number of ids per block. Longer blocks make the directory smaller and look-ups slower.
const BLOCK: usize = 64;

/// Packed sorted, distinct ids. Immutable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedIds {
    len: usize,
    /// The first id of each block.
    firsts: Box<[u64]>,
    /// The offset of each block's bytes.
    starts: Box<[u32]>,
    bytes: Box<[u8]>,
}

impl PackedIds {
    /// Packs sorted, distinct ids.
    ///
    /// # Panics
    /// If they take more than 4 GiB; in debug builds, if they are not strictly ascending.
    pub fn from_sorted(ids: &[u64]) -> Self {
        let blocks = ids.len().div_ceil(BLOCK);
        let (mut firsts, mut starts) = (Vec::with_capacity(blocks), Vec::with_capacity(blocks));
        let mut bytes = Vec::with_capacity(ids.len() + blocks * delta::VARINT_BYTES_MAX);
        for block in ids.chunks(BLOCK) {
            firsts.push(block[0]);
            starts.push(u32::try_from(bytes.len()).expect("a member's network takes less than 4 GiB"));
            delta::encode(block, &mut bytes);
        }
        Self { len: ids.len(), firsts: firsts.into(), starts: starts.into(), bytes: bytes.into() }
    }

    /// The number of ids.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no ids.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The size on the heap in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.len() + self.firsts.len() * (size_of::<u64>() + size_of::<u32>())
    }

    /// Whether it contains `id`. `O(log len)`, no allocation.
    pub fn contains(&self, id: u64) -> bool {
        self.cursor().seek(id) == Some(id)
    }

    /// Whether it contains any of the sorted, distinct `ids`. Stops at the first.
    pub fn intersects(&self, ids: &[u64]) -> bool {
        self.first_common(ids).is_some()
    }

    /// The least of the sorted, distinct `ids` that it contains.
    pub fn first_common(&self, ids: &[u64]) -> Option<u64> {
        let mut cursor = self.cursor();
        let mut at = 0;
        while let Some(&id) = ids.get(at) {
            match cursor.seek(id)? {
                found if found == id => return Some(id),
                found => at = seek(ids, at + 1, found),
            }
        }
        None
    }

    /// All ids, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + Clone {
        let mut cursor = self.cursor();
        let mut left = self.len;
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let id = cursor.current;
            cursor.advance();
            id
        })
    }

    /// All ids in a vector, ascending.
    pub fn to_vec(&self) -> Vec<u64> {
        let mut out = Vec::with_capacity(self.len);
        let mut rest = &*self.bytes;
        for block in 0..self.firsts.len() {
            let count = BLOCK.min(self.len - block * BLOCK);
            delta::decode(&mut rest, count, &mut out).expect(SOUND);
        }
        out
    }

    fn cursor(&self) -> Cursor<'_> {
        let mut cursor = Cursor { ids: self, block: 0, left: 0, rest: &[], current: None };
        cursor.enter(0);
        cursor
    }
}

const SOUND: &str = "the bytes are what from_sorted encoded";

/// A place in packed ids that moves only forward.
#[derive(Clone, Debug)]
struct Cursor<'a> {
    ids: &'a PackedIds,
    block: usize,
    /// The number of ids of the block after the current one.
    left: usize,
    rest: &'a [u8],
    /// The current id; `None` past the end.
    current: Option<u64>,
}

impl Cursor<'_> {
    /// Moves to the first id that is at least `id`, unless already past it. Returns the current id.
    fn seek(&mut self, id: u64) -> Option<u64> {
        if self.current.is_some_and(|current| current < id) {
            // The last block, from here on, whose first id is not above `id`.
            let block = seek(&self.ids.firsts, self.block + 1, id.saturating_add(1)) - 1;
            if block != self.block {
                self.enter(block);
            }
            while self.current.is_some_and(|current| current < id) {
                self.advance();
            }
        }
        self.current
    }

    fn advance(&mut self) {
        if self.left == 0 {
            self.enter(self.block + 1);
        } else {
            self.left -= 1;
            let gap = delta::take_varint(&mut self.rest).expect(SOUND);
            self.current = self.current.map(|id| id + gap);
        }
    }

    fn enter(&mut self, block: usize) {
        self.block = block;
        self.current = None;
        if let Some(&start) = self.ids.starts.get(block) {
            self.rest = &self.ids.bytes[start as usize..];
            self.left = BLOCK.min(self.ids.len - block * BLOCK) - 1;
            self.current = Some(delta::take_varint(&mut self.rest).expect(SOUND));
        }
    }
}
