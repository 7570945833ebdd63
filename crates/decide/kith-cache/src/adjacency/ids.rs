//! Sorted lists of ids. Changes stay cheap even if a list is long.

/// The most ids in one chunk, which is 16 KiB. An insertion moves at most this many ids, whatever the length of the
/// list.
const CHUNK_IDS_MAX: usize = 2_048;

/// A chunk with fewer ids is joined with its neighbour if both fit into one chunk.
const CHUNK_IDS_LOW: usize = CHUNK_IDS_MAX / 8;

/// Ascending, distinct ids. A single id needs no memory of its own, and up to [`CHUNK_IDS_MAX`] ids are one block.
/// Longer lists are a vector of chunks, so that a change moves at most one chunk and that vector.
#[derive(Clone, Debug)]
pub(super) enum SortedIds {
    One(u64),
    Chunk(Vec<u64>),
    Chunks(Box<Chunks>),
}

/// At least two chunks, none of which is empty. All ids of a chunk are less than those of the next one.
#[derive(Clone, Debug)]
pub(super) struct Chunks {
    len: usize,
    chunks: Vec<Vec<u64>>,
}

impl Default for SortedIds {
    fn default() -> Self {
        Self::Chunk(Vec::new())
    }
}

impl SortedIds {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Chunk(ids) => ids.len(),
            Self::Chunks(chunks) => chunks.len,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over consecutive parts of the list.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[u64]> {
        let (one, more) = match self {
            Self::One(id) => (std::slice::from_ref(id), [].as_slice()),
            Self::Chunk(ids) => (ids.as_slice(), [].as_slice()),
            Self::Chunks(chunks) => ([].as_slice(), chunks.chunks.as_slice()),
        };
        std::iter::once(one).chain(more.iter().map(Vec::as_slice))
    }

    pub(super) fn contains(&self, id: u64) -> bool {
        let chunk = match self {
            Self::One(one) => return *one == id,
            Self::Chunk(ids) => ids,
            Self::Chunks(chunks) => &chunks.chunks[chunks.chunk_of(id)],
        };
        chunk.binary_search(&id).is_ok()
    }

    /// Adds an id. Returns `false` if the list contains it already.
    pub(super) fn insert(&mut self, id: u64) -> bool {
        match self {
            Self::One(one) if *one == id => return false,
            Self::One(one) => *self = Self::Chunk(vec![id.min(*one), id.max(*one)]),
            Self::Chunk(ids) if ids.is_empty() => *self = Self::One(id),
            Self::Chunk(ids) => {
                let Err(at) = ids.binary_search(&id) else { return false };
                match insert(ids, at, id) {
                    None => {}
                    Some(second) => {
                        let chunks = vec![std::mem::take(ids), second];
                        *self = Self::Chunks(Box::new(Chunks { len: CHUNK_IDS_MAX + 1, chunks }));
                    }
                }
            }
            Self::Chunks(chunks) => return chunks.insert(id),
        }
        true
    }

    /// Removes an id. Returns `false` if the list does not contain it.
    pub(super) fn remove(&mut self, id: u64) -> bool {
        match self {
            Self::One(one) if *one == id => *self = Self::default(),
            Self::One(_) => return false,
            Self::Chunk(ids) => {
                let Ok(at) = ids.binary_search(&id) else { return false };
                remove(ids, at);
                if let [one] = **ids {
                    *self = Self::One(one);
                }
            }
            Self::Chunks(chunks) => {
                if !chunks.remove(id) {
                    return false;
                }
                if let [only] = chunks.chunks.as_mut_slice() {
                    *self = Self::Chunk(std::mem::take(only));
                }
            }
        }
        true
    }
}

impl Chunks {
    /// Returns the index of the chunk that contains an id, or would contain it.
    fn chunk_of(&self, id: u64) -> usize {
        let before = self.chunks.partition_point(|chunk| chunk.last().is_some_and(|last| *last < id));
        before.min(self.chunks.len() - 1)
    }

    fn insert(&mut self, id: u64) -> bool {
        let objects = self.chunk_of(id);
        let Err(at) = self.chunks[objects].binary_search(&id) else { return false };
        if let Some(second) = insert(&mut self.chunks[objects], at, id) {
            self.chunks.insert(objects + 1, second);
        }
        self.len += 1;
        true
    }

    fn remove(&mut self, id: u64) -> bool {
        let objects = self.chunk_of(id);
        let Ok(at) = self.chunks[objects].binary_search(&id) else { return false };
        remove(&mut self.chunks[objects], at);
        self.len -= 1;
        if self.chunks[objects].len() < CHUNK_IDS_LOW {
            self.join(objects.min(self.chunks.len() - 2));
        }
        true
    }

    /// Joins a chunk and the next one if they fit into one.
    fn join(&mut self, index: usize) {
        if CHUNK_IDS_MAX < self.chunks[index].len() + self.chunks[index + 1].len() {
            return;
        }
        let second = self.chunks.remove(index + 1);
        self.chunks[index].extend(second);
    }
}

/// Adds an id to a chunk. If the chunk must be divided, returns its second part. A chunk that grows at its end stays
/// full, so that a list that is built in ascending order takes little more memory than its ids.
fn insert(chunk: &mut Vec<u64>, at: usize, id: u64) -> Option<Vec<u64>> {
    if chunk.len() < CHUNK_IDS_MAX {
        if chunk.len() == chunk.capacity() {
            chunk.reserve_exact(2 + chunk.len() / 8);
        }
        chunk.insert(at, id);
        return None;
    }
    if at == chunk.len() {
        return Some(vec![id]);
    }
    let mut second = chunk.split_off(CHUNK_IDS_MAX / 2);
    match at.checked_sub(chunk.len()) {
        None => chunk.insert(at, id),
        Some(at) => second.insert(at, id),
    }
    Some(second)
}

/// Removes an id from a chunk, and frees memory if most of it is unused.
fn remove(chunk: &mut Vec<u64>, at: usize) {
    chunk.remove(at);
    if chunk.len() * 4 < chunk.capacity() {
        chunk.shrink_to(chunk.len() * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::fmix64;
    use std::collections::BTreeSet;

    fn check(ids: &SortedIds, twin: &BTreeSet<u64>) {
        assert_eq!(ids.len(), twin.len());
        assert!(ids.parts().flatten().eq(twin));
        assert!(ids.parts().all(|part| part.len() <= CHUNK_IDS_MAX));
        match ids {
            SortedIds::One(_) => {}
            SortedIds::Chunk(ids) => assert_ne!(ids.len(), 1),
            SortedIds::Chunks(chunks) => {
                assert!(2 <= chunks.chunks.len() && !chunks.chunks.iter().any(Vec::is_empty));
            }
        }
    }

    /// The list grows to many chunks and shrinks to nothing. The ids are random.
    #[test]
    fn ids_are_those_of_a_set() {
        for (seed, space) in [(1, 12), (2, 3_000), (3, 40_000), (4, u64::MAX)] {
            let (mut ids, mut twin, mut state) = (SortedIds::default(), BTreeSet::new(), seed);
            for step in 0..60_000u64 {
                state = fmix64(state + step);
                let id = state % space;
                let grows = (step / 20_000) % 2 == 0;
                match grows != (state >> 40).is_multiple_of(4) {
                    true => assert_eq!(ids.insert(id), twin.insert(id)),
                    false => {
                        let id = twin.range(id..).next().copied().unwrap_or(id);
                        assert_eq!(ids.remove(id), twin.remove(&id));
                    }
                }
                assert_eq!(ids.contains(id), twin.contains(&id));
                if step % 1_500 == 0 {
                    check(&ids, &twin);
                }
            }
            check(&ids, &twin);
            for id in std::mem::take(&mut twin) {
                assert!(ids.remove(id) && !ids.remove(id));
            }
            check(&ids, &twin);
        }
    }

    #[test]
    fn a_list_that_grows_at_its_end_has_full_chunks() {
        let mut ids = SortedIds::default();
        (0..10 * CHUNK_IDS_MAX as u64).for_each(|id| assert!(ids.insert(id)));
        assert!(ids.parts().skip(1).all(|part| part.len() == CHUNK_IDS_MAX));
    }

    #[test]
    fn a_short_list_takes_three_words() {
        assert_eq!(size_of::<SortedIds>(), 24);
    }
}
