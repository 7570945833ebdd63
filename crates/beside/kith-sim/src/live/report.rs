//! The results of a run.

/// The results of a run. Equal seeds give equal reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Descriptions of the promises that were broken; empty if none was.
    pub violations: Vec<String>,
    /// Writes that were acknowledged as done.
    pub done: u64,
    /// Writes that were refused because of the stored data.
    pub refused: u64,
    /// Writes that failed without having written anything.
    pub failed: u64,
    /// Writes whose outcome the client never learned.
    pub unknown: u64,
    /// Reads that were answered.
    pub reads: u64,
    /// Reads that failed.
    pub reads_failed: u64,
    /// Reads that failed because their ticket names a lost write.
    pub history_lost: u64,
    /// Transactions that the database carried out.
    pub commits: u64,
    /// Rows that caches refused because they had changed after they were read.
    pub fills_refused: u64,
    /// Terms that began.
    pub terms: u64,
    /// The number of times that the database was replaced by an older copy of itself.
    pub replaced: u64,
}

impl Report {
    /// Adds the counts and the violations of another run.
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
