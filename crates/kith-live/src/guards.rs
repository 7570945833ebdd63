//! The rules that keep pairs and logs right, each of which a test can switch off to show what it prevents.

/// Which rules are kept: in production all of them. `leader/tests/` shows for each one what goes wrong without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct Guards {
    /// The first transaction of a pair adds no forward row and removes no inverse row.
    pub forward_last: bool,
    /// Newer writes to a pair, and lookups of a write id, wait for an open intent.
    pub intents_block: bool,
    /// The outcome of a refused write is recorded under its id.
    pub refusals_recorded: bool,
    /// The end that does not order a pair keeps the stamp of rows that it removed.
    pub removed_rows_keep_stamps: bool,
    /// Such stamps are kept until the floor has passed them.
    pub stamps_kept_until_floor: bool,
    /// Deliveries with a stamp below the floor change nothing.
    pub floor_refuses: bool,
    /// The floor is not above an open intent.
    pub floor_below_intents: bool,
    /// A commit without an answer is settled by the next term.
    pub unknown_settled: bool,
    /// Answers that write nothing are proven by a commit that writes nothing.
    pub answers_proven: bool,
    /// A leader whose log ends before the place that it knows gives up its term.
    pub older_copies_noticed: bool,
    /// Deliveries and answers to them count only in the history of the database that they are of.
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
