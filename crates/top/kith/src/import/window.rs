//! Tracks which rows of a file are done. Rows end in any order; a checkpoint counts only the rows up to the first one that
//! has not ended.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The outcome of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was added.
    Added,
    /// It existed, and now has the data of the file.
    Existed,
    /// It cannot be written.
    Refused,
}

/// The number of rows with each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    pub added: u64,
    pub existed: u64,
    pub refused: u64,
}

impl Counts {
    fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Added => self.added += 1,
            Outcome::Existed => self.existed += 1,
            Outcome::Refused => self.refused += 1,
        }
    }
}

/// The rows that have begun.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// The number of rows, counted from the first, that have all ended.
    done: u64,
    /// The outcomes of those rows.
    counts: Counts,
    /// The rows after them that have begun, with the outcome of each that has ended.
    ahead: VecDeque<Option<Outcome>>,
}

impl Window {
    /// Continues after `done` rows.
    pub fn after(done: u64, counts: Counts) -> Self {
        Self { done, counts, ahead: VecDeque::new() }
    }

    /// Begins the next row. Returns its index.
    pub fn begin(&mut self) -> u64 {
        self.ahead.push_back(None);
        self.done + self.ahead.len() as u64 - 1
    }

    /// Ends a row that has begun.
    pub fn end(&mut self, index: u64, outcome: Outcome) {
        let position = index.checked_sub(self.done).and_then(|position| usize::try_from(position).ok());
        if let Some(slot) = position.and_then(|position| self.ahead.get_mut(position)) {
            *slot = Some(outcome);
        }
        while let Some(Some(outcome)) = self.ahead.front().copied() {
            self.ahead.pop_front();
            self.counts.add(outcome);
            self.done += 1;
        }
    }

    /// The number of rows, counted from the first, that have all ended.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// The outcomes of those rows.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The number of rows that have begun but that a checkpoint does not count yet.
    pub fn ahead(&self) -> usize {
        self.ahead.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_without_a_gap_before_them_are_done() {
        let mut window = Window::after(10, Counts { added: 10, ..Counts::default() });
        let rows: Vec<u64> = (0..4).map(|_| window.begin()).collect();
        assert_eq!(rows, [10, 11, 12, 13]);
        window.end(12, Outcome::Existed);
        window.end(11, Outcome::Refused);
        assert_eq!((window.done(), window.ahead()), (10, 4), "row 10 has not ended");
        window.end(10, Outcome::Added);
        assert_eq!((window.done(), window.ahead()), (13, 1));
        assert_eq!(window.counts(), Counts { added: 11, existed: 1, refused: 1 });
        window.end(13, Outcome::Added);
        assert_eq!((window.done(), window.begin()), (14, 14));
    }

    #[test]
    fn a_row_that_has_not_begun_ends_nothing() {
        let mut window = Window::default();
        window.end(0, Outcome::Added);
        assert_eq!((window.done(), window.counts()), (0, Counts::default()));
    }
}
