//! The rules that keep pairs and logs correct. A test can switch off each of them to show what it prevents.

/// The rules that are in force: in production, all of them. The tests in `leader/tests/` show for each rule what goes wrong
/// without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct Guards {
    /// The first transaction of a write to a pair adds no forward row and removes no inverse row.
    pub forward_last: bool,
    /// Newer writes to the pair of an open intent, and writes with the write id of an open intent, wait for it to be
    /// complete.
    pub intents_block: bool,
    /// The outcome of a refused write is recorded under its id.
    pub refusals_recorded: bool,
    /// The partition that does not order a pair keeps the stamps of rows that it has removed.
    pub removed_rows_keep_stamps: bool,
    /// The stamps of removed rows are kept until the floor has passed them.
    pub stamps_kept_until_floor: bool,
    /// Deliveries with a stamp below the floor change nothing.
    pub floor_refuses: bool,
    /// The floor is not above an open intent.
    pub floor_below_intents: bool,
    /// If the answer to a commit is lost, the leader settles the commit by beginning its next term.
    pub unknown_settled: bool,
    /// An answer to a write that changes nothing is proven by a commit that writes nothing.
    pub answers_proven: bool,
    /// A leader gives up its term if the log ends before the log point that the leader knows.
    pub older_copies_noticed: bool,
    /// Deliveries, and the answers to them, take effect only in the history of the database that they come from.
    pub histories_match: bool,
}

impl Default for Guards {
    fn default() -> Self {
        Self {
            forward_last: true,
            intents_block: true,
            refusals_recorded: true,
            removed_rows_keep_stamps: true,
            stamps_kept_until_floor: true,
            floor_refuses: true,
            floor_below_intents: true,
            unknown_settled: true,
            answers_proven: true,
            older_copies_noticed: true,
            histories_match: true,
        }
    }
}
