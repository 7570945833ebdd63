//! The answer of `suggest`: as a message, and as it is printed.

use super::SuggestQuery;
use crate::{
    GraphAnswer,
    operations::{
        fields::{AnswerKind, Decoded, ID_BYTES, Presentation},
        ids,
        view::{Block, Cell, Column, PrintedAnswer, WrongAnswer},
    },
};
use kith_wire::v1::{self, query_reply::Answer};
use serde::Serialize;

impl AnswerKind for Vec<(u64, u32)> {
    fn to_message(&self) -> Answer {
        let (ids, common) = self.iter().copied().unzip();
        Answer::Suggestions(v1::Suggestions { ids, common })
    }

    fn bytes(&self) -> usize {
        self.len() * 2 * ID_BYTES
    }

    fn from_message(message: Answer, _: bool) -> Decoded<Self, Answer> {
        match message {
            Answer::Suggestions(v1::Suggestions { ids, common }) => {
                Decoded::valid(ids.into_iter().zip(common).collect())
            }
            message => Decoded::Elsewhere(message),
        }
    }
}

impl Presentation for SuggestQuery {
    type View = SuggestionsView;

    fn view(&self, answer: GraphAnswer) -> Result<SuggestionsView, WrongAnswer> {
        match answer {
            GraphAnswer::Suggestions(suggestions) => Ok(SuggestionsView { suggestions }),
            answer => Err(WrongAnswer::kind(&answer)),
        }
    }
}

/// People that a member may know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SuggestionsView {
    /// Members, each with the number of common connections.
    #[serde(serialize_with = "ids::counted")]
    pub suggestions: Vec<(u64, u32)>,
}

impl PrintedAnswer for SuggestionsView {
    fn text(&self) -> Vec<Block> {
        let row = |&(id, common): &(u64, u32)| vec![Cell::text(id), Cell::Count(common.into())];
        let columns = vec![Column::right("member"), Column::right("in common")];
        vec![Block::Table { columns, rows: self.suggestions.iter().map(row).collect() }]
    }
}
