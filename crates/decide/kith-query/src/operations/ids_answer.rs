//! The answer of operations whose answers are ids.

use super::{
    fields::{AnswerKind, Decoded, ID_BYTES},
    ids,
    view::{Block, PrintedAnswer, WrongAnswer},
};
use crate::GraphAnswer;
use kith_wire::v1::{self, query_reply::Answer};
use serde::Serialize;

/// A set of ids: `{"ids": [...]}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IdsView {
    /// The ids.
    #[serde(serialize_with = "ids::many")]
    pub ids: Vec<u64>,
}

impl IdsView {
    /// The answer of an operation whose answers are ids.
    pub(crate) fn of(answer: GraphAnswer) -> Result<Self, WrongAnswer> {
        match answer {
            GraphAnswer::Ids(ids) => Ok(Self { ids }),
            answer => Err(WrongAnswer::kind(&answer)),
        }
    }
}

impl PrintedAnswer for IdsView {
    fn text(&self) -> Vec<Block> {
        vec![Block::Ids { title: "ids", ids: self.ids.clone() }]
    }
}

impl AnswerKind for Vec<u64> {
    fn to_message(&self) -> Answer {
        Answer::Ids(v1::IdSet { ids: self.clone() })
    }

    fn bytes(&self) -> usize {
        self.len() * ID_BYTES
    }

    fn from_message(message: Answer, _: bool) -> Decoded<Self, Answer> {
        match message {
            Answer::Ids(v1::IdSet { ids }) => Decoded::valid(ids),
            message => Decoded::Elsewhere(message),
        }
    }
}
