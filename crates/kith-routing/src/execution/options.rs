//! How an execution behaves.

use crate::execution::HedgeRule;
use kith_types::Timestamp;

/// How an execution behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionOptions {
    /// When the answer is no longer of use.
    pub deadline: Option<Timestamp>,
    /// Whether an answer without some keys is of use.
    pub partial: bool,
    /// Whether [`Event::Satisfied`](crate::execution::Event::Satisfied) ends it.
    pub stop_early: bool,
    /// How often a key is asked again, each time of a node not asked before, hedges included. Two: one for
    /// the usual lost node, one more for the second of a pair that went together.
    pub retries_max: u32,
    /// Spreads retries over the groups; should differ between queries.
    pub seed: u64,
    /// When requests are late; `None`: never.
    pub hedging: Option<HedgeRule>,
    /// What may be done with a reply some keys of which are answered already.
    pub answers: Answers,
    /// How often a key may be asked for.
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

/// How often a key may be asked for, which is a property of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// As often as it takes. Asking twice has the effect of asking once, as with everything that only reads.
    #[default]
    AtLeastOnce,
    /// Once. A node that did not answer may have done what it was asked all the same, so a key whose request was sent is neither
    /// retried nor hedged, whatever became of that request. A key that the plan left out may still be sent.
    AtMostOnce,
}

/// What the answers of nodes are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// Something for each key, as records, or a set, which a key that is answered twice does not change.
    #[default]
    ByKey,
    /// One thing for all keys, as a sum: it counts whole or not at all.
    Together,
}
