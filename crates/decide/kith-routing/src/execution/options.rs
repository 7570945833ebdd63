//! The options of an execution.

use crate::execution::HedgeRule;
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
    /// The rule for how often a key may be asked for.
    pub delivery: Delivery,
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
            delivery: Delivery::AtLeastOnce,
        }
    }
}

/// The rule for how often a key may be requested. This is a property of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// As often as needed. Asking twice has the effect of asking once, which is true for all reads.
    #[default]
    AtLeastOnce,
    /// Once. A node that did not answer may nevertheless have carried out the request. A key whose request was sent is
    /// therefore neither retried nor hedged, whatever happened to that request. A key that the plan left out may still be
    /// sent.
    AtMostOnce,
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
