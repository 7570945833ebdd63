//! The answer of `path`: as a message, and as it is printed.

use super::PathQuery;
use crate::{
    GraphAnswer,
    operations::{
        fields::{AnswerKind, Decoded, Presentation},
        ids,
        view::{Block, PrintedAnswer, WrongAnswer},
    },
};
use kith_wire::v1::{self, query_reply::Answer};
use serde::Serialize;

/// A shortest path, or none if it is longer than the limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathAnswer {
    /// The members from start to end, both included; empty if there is no path.
    pub members: Vec<u64>,
}

impl AnswerKind for PathAnswer {
    fn to_message(&self) -> Answer {
        Answer::Path(v1::PathReply { members: self.members.clone() })
    }

    fn bytes(&self) -> usize {
        0
    }

    fn from_message(message: Answer, _: bool) -> Decoded<Self, Answer> {
        match message {
            Answer::Path(v1::PathReply { members }) => Decoded::valid(Self { members }),
            message => Decoded::Elsewhere(message),
        }
    }
}

impl Presentation for PathQuery {
    type View = PathView;

    fn view(&self, answer: GraphAnswer) -> Result<PathView, WrongAnswer> {
        match answer {
            GraphAnswer::Path(PathAnswer { members }) => {
                Ok(PathView { length: members.len().checked_sub(1), path: members })
            }
            answer => Err(WrongAnswer::kind(&answer)),
        }
    }
}

/// A path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathView {
    /// The number of hops; `None` if there is no path within the limit.
    pub length: Option<usize>,
    /// The members along the path.
    #[serde(serialize_with = "ids::many")]
    pub path: Vec<u64>,
}

impl PrintedAnswer for PathView {
    fn text(&self) -> Vec<Block> {
        let Some(length) = self.length else {
            return vec![Block::Line("no path within the limit".to_owned())];
        };
        let steps: Vec<String> = self.path.iter().map(ToString::to_string).collect();
        vec![Block::Line(steps.join(" -> ")), Block::Line(format!("length {length}"))]
    }
}
