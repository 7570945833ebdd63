//! The answer of `reciprocal`: as a message, and as it is printed.

use super::{LIMIT_MAX, ReciprocalQuery};
use crate::{
    GraphAnswer,
    operations::{
        fields::{AnswerKind, Decoded, ID_BYTES, Presentation},
        ids,
        view::{Block, PrintedAnswer, WrongAnswer},
    },
};
use kith_wire::v1::{self, query_reply::Answer};
use serde::Serialize;

/// The members that a member follows and that follow it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReciprocalAnswer {
    /// The ids, sorted and distinct.
    #[serde(serialize_with = "ids::many")]
    pub ids: Vec<u64>,
    /// Whether there are more than the limit.
    pub truncated: bool,
}

impl AnswerKind for ReciprocalAnswer {
    fn to_message(&self) -> Answer {
        Answer::Reciprocal(v1::ReciprocalReply { ids: self.ids.clone(), truncated: self.truncated })
    }

    fn bytes(&self) -> usize {
        self.ids.len() * ID_BYTES
    }

    fn from_message(message: Answer, _: bool) -> Decoded<Self, Answer> {
        match message {
            Answer::Reciprocal(v1::ReciprocalReply { ids, truncated }) => {
                Decoded::valid(Self { ids, truncated })
            }
            message => Decoded::Elsewhere(message),
        }
    }
}

impl Presentation for ReciprocalQuery {
    type View = ReciprocalAnswer;

    fn view(&self, answer: GraphAnswer) -> Result<ReciprocalAnswer, WrongAnswer> {
        match answer {
            GraphAnswer::Reciprocal(answer) => Ok(answer),
            answer => Err(WrongAnswer::kind(&answer)),
        }
    }
}

impl PrintedAnswer for ReciprocalAnswer {
    fn text(&self) -> Vec<Block> {
        let mut blocks = vec![Block::Ids { title: "ids", ids: self.ids.clone() }];
        if self.truncated {
            blocks.push(Block::Line(format!("there are more: --limit may be up to {LIMIT_MAX}")));
        }
        blocks
    }
}
