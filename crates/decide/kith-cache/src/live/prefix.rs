//! The newest part of an association list, without gaps (TAO §4.4: only contiguous prefixes are cached).

use kith_live::{Association, ListPlace};

/// All associations of a list up to a place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prefix {
    /// The associations, in the order of the list.
    items: Vec<Association>,
    /// The end of the prefix.
    end: End,
    /// The memory of the fields of all associations, in bytes.
    data_bytes: usize,
}

/// The end of a prefix. A greater value reaches further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// Nothing is known.
    Nothing,
    /// The prefix has every association at or before this place.
    At(ListPlace),
    /// The prefix is the whole list.
    Whole,
}

/// The memory of the fields of an association in addition to their bytes: the counters of an `Arc`.
const DATA_OVERHEAD: usize = 2 * size_of::<usize>();

impl Prefix {
    /// Returns the prefix that a database answers if it is asked for at most `limit` associations. If it returns fewer,
    /// they are the whole list.
    pub(crate) fn read(items: &[Association], limit: u32) -> Self {
        debug_assert!(
            items.is_sorted_by_key(Association::place),
            "databases answer in the order of the list"
        );
        let end = if (items.len() as u64) < u64::from(limit) { End::Whole } else { End::of(items) };
        let data_bytes = items.iter().map(data_bytes).sum();
        Self { items: items.to_vec(), end, data_bytes }
    }

    pub(crate) fn items(&self) -> &[Association] {
        &self.items
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.end == End::Whole
    }

    /// Whether the prefix has every association of the list at or before `position`.
    pub(crate) fn covers(&self, position: ListPlace) -> bool {
        End::At(position) <= self.end
    }

    /// Whether this prefix knows at least as much of the list as `other`.
    pub(crate) fn covers_all_of(&self, other: &Prefix) -> bool {
        other.end <= self.end
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.items.capacity() * size_of::<Association>() + self.data_bytes
    }

    /// Removes all but the `most` newest associations.
    pub(crate) fn truncate(&mut self, most: usize) {
        if self.items.len() <= most {
            return;
        }
        self.data_bytes -= self.items.drain(most..).map(|item| data_bytes(&item)).sum::<usize>();
        self.end = End::of(&self.items);
        self.items.shrink_to_fit();
    }

    /// Adds or replaces an association. Returns `false` if the change contradicts the prefix, which is then useless.
    pub(crate) fn put(&mut self, now: &Association, was: Option<u64>, count: u64) -> bool {
        if was.is_some_and(|time| !self.take(ListPlace { time, id2: now.id2 })) {
            return false;
        }
        if self.covers(now.place()) {
            match self.search(now.place()) {
                Ok(_) => return false,
                Err(index) => self.items.insert(index, now.clone()),
            }
            self.data_bytes += data_bytes(now);
        }
        self.agrees_with(count)
    }

    /// Removes an association. Returns `false` as [`Prefix::put`] does.
    pub(crate) fn remove(&mut self, position: ListPlace, count: u64) -> bool {
        self.take(position) && self.agrees_with(count)
    }

    /// Removes an association. Returns `false` if the prefix should have it but does not.
    fn take(&mut self, position: ListPlace) -> bool {
        match self.search(position) {
            Ok(index) => {
                self.data_bytes -= data_bytes(&self.items.remove(index));
                true
            }
            Err(_) => !self.covers(position),
        }
    }

    /// Compares the prefix with the length of the list. If it has all associations, it is the whole list from now on.
    fn agrees_with(&mut self, count: u64) -> bool {
        let here = self.items.len() as u64;
        if self.is_whole() {
            return here == count;
        }
        if here == count {
            self.end = End::Whole;
        }
        here <= count
    }

    fn search(&self, position: ListPlace) -> Result<usize, usize> {
        self.items.binary_search_by(|item| item.place().cmp(&position))
    }
}

impl End {
    /// Returns the end of a prefix of these associations.
    fn of(items: &[Association]) -> Self {
        items.last().map_or(End::Nothing, |last| End::At(last.place()))
    }
}

fn data_bytes(item: &Association) -> usize {
    item.data.bytes.len() + DATA_OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_live::Data;
    use kith_types::LogPoint;

    fn item(time: u64, id2: u64) -> Association {
        Association { id2, time, stamp: LogPoint::default(), data: Data::default() }
    }

    fn places(prefix: &Prefix) -> Vec<(u64, u64)> {
        prefix.items().iter().map(|item| (item.time, item.id2)).collect()
    }

    #[test]
    fn a_read_that_returns_less_than_it_may_is_the_whole_list() {
        let items = [item(9, 1), item(7, 2)];
        assert!(Prefix::read(&items, 3).is_whole() && !Prefix::read(&items, 2).is_whole());
        assert!(Prefix::read(&[], 1).is_whole());
        let nothing = Prefix::read(&[], 0);
        assert!(!nothing.is_whole() && !nothing.covers(item(u64::MAX, 0).place()));
    }

    #[test]
    fn what_moves_out_of_a_prefix_leaves_it_and_what_moves_in_is_put_in_order() {
        let mut prefix = Prefix::read(&[item(9, 1), item(7, 2)], 2);
        assert!(prefix.put(&item(8, 3), Some(2), 5), "from beyond the prefix");
        assert_eq!(places(&prefix), [(9, 1), (8, 3), (7, 2)]);
        assert!(prefix.put(&item(1, 1), Some(9), 5), "out of it");
        assert!(prefix.remove(item(7, 2).place(), 4));
        assert_eq!(places(&prefix), [(8, 3)]);
        assert!(prefix.covers(item(7, 2).place()), "it still knows that nothing is there");
        assert!(prefix.put(&item(7, 1), None, 5));
        assert_eq!(places(&prefix), [(8, 3), (7, 1)]);
    }

    #[test]
    fn a_prefix_that_holds_everything_becomes_whole() {
        let mut prefix = Prefix::read(&[item(9, 1), item(7, 2)], 2);
        assert!(prefix.remove(ListPlace { time: 3, id2: 3 }, 2));
        assert!(prefix.is_whole());
        assert!(prefix.put(&item(1, 8), None, 3));
        assert_eq!(places(&prefix), [(9, 1), (7, 2), (1, 8)]);
    }

    #[test]
    fn a_change_that_does_not_fit_is_reported() {
        let whole = || Prefix::read(&[item(9, 1), item(7, 2)], 3);
        assert!(!whole().remove(item(8, 1).place(), 1), "it is not there");
        assert!(!whole().put(&item(9, 1), None, 3), "it is there already");
        assert!(!whole().put(&item(5, 5), None, 4), "another association is missing");
        let mut part = Prefix::read(&[item(9, 1), item(7, 2)], 2);
        assert!(!part.remove(item(8, 1).place(), 5), "it would be here");
    }

    #[test]
    fn bytes_follow_the_items() {
        let mut prefix = Prefix::read(&[item(9, 1), item(7, 2), item(5, 3)], 4);
        prefix.truncate(1);
        assert_eq!(prefix.heap_bytes(), size_of::<Association>() + DATA_OVERHEAD);
        assert!(prefix.covers(item(9, 1).place()) && !prefix.covers(item(7, 2).place()));
        prefix.truncate(0);
        assert_eq!((prefix.heap_bytes(), prefix.is_whole()), (0, false));
    }
}
