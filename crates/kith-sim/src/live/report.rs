//! What came of a run.

/// What came of a run. Equal seeds give equal reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Promises that were broken, in words. Empty if all is well.
    pub violations: Vec<String>,
    /// Writes that clients were told to be done.
    pub done: u64,
    /// Writes that were refused because of what was stored.
    pub refused: u64,
    /// Writes that failed without having written anything.
    pub failed: u64,
    /// Writes whose outcome the client never learned.
    pub unknown: u64,
    /// Reads that were answered.
    pub reads: u64,
    /// Reads that failed.
    pub reads_failed: u64,
    /// Reads that were told that their ticket names a lost write.
    pub history_lost: u64,
    /// Transactions that the database carried out.
    pub commits: u64,
    /// Rows that were read but had changed meanwhile.
    pub fills_refused: u64,
    /// Terms that began.
    pub terms: u64,
    /// How often the database was replaced by an older copy of itself.
    pub replaced: u64,
}

impl Report {
    /// Adds the numbers of another run, and its violations.
    pub fn add(&mut self, other: &Report) {
        self.violations.extend(other.violations.iter().cloned());
        let own = [
            &mut self.done,
            &mut self.refused,
            &mut self.failed,
            &mut self.unknown,
            &mut self.reads,
            &mut self.reads_failed,
            &mut self.history_lost,
            &mut self.commits,
            &mut self.fills_refused,
            &mut self.terms,
            &mut self.replaced,
        ];
        let others = [
            other.done,
            other.refused,
            other.failed,
            other.unknown,
            other.reads,
            other.reads_failed,
            other.history_lost,
            other.commits,
            other.fills_refused,
            other.terms,
            other.replaced,
        ];
        own.into_iter().zip(others).for_each(|(sum, more)| *sum += more);
    }
}
