//! The options of an execution.

use crate::load::HedgeRule;
use kith_types::Timestamp;

/// The options of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionOptions {
    /// The time after which the answer is useless.
    pub deadline: Option<Timestamp>,
    /// Whether the caller accepts an answer without some keys.
    pub partial: bool,
    /// Whether [`Event::Satisfied`](crate::execution::Event::Satisfied) ends the execution.
    pub stop_early: bool,
    /// The maximum number of times that a key is asked again, hedges included, each time of another node. The default
    /// of two covers the usual lost node, and a second node that is lost at the same time.
    pub retries_max: u32,
    /// Spreads retries over the groups. It should differ between queries.
    pub seed: u64,
    /// The rule by which requests count as late; `None` if they never do.
    pub hedging: Option<HedgeRule>,
    /// Whether the answer of a request can be divided by key.
    pub answers: Answers,
}

impl Default for ExecutionOptions {
    fn default() -> Self {
        Self {
            deadline: None,
            partial: false,
            stop_early: false,
            retries_max: 2,
            seed: 0,
            hedging: None,
            answers: Answers::ByKey,
        }
    }
}

/// The relation of the answer of a request to its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// The answer has something for each key, as records have, or is a set, which a key that is answered twice does not
    /// change.
    #[default]
    ByKey,
    /// The answer is one value for all keys, such as a sum. It counts as a whole or not at all.
    Together,
}
