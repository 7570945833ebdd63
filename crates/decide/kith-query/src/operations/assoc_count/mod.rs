//! The operation `assoc_count`: the number of associations of one type that leave an object (TAO, `assoc_count`).

use super::{
    Machine,
    associations::{self, Associations},
    fields::{AnswerKind, Decoded, Fields, Presentation},
    page::AnswerPage,
    resolve::Resolver,
    view::{Block, PrintedAnswer, WrongAnswer},
};
use crate::{GraphAnswer, OperationError};
use kith_schema::live::{AssociationRead, Select};
use kith_wire::v1::{self, query_reply::Answer, query_request::Operand};
use serde::{Deserialize, Serialize};

// Asks for the length of one list.
#[allow(missing_docs, reason = "a doc line would replace that of the subcommand")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct AssocCountQuery {
    /// The object that the associations leave
    #[cfg_attr(feature = "flags", arg(long, value_name = "ID"))]
    pub id1: u64,
    /// The association type
    #[cfg_attr(feature = "flags", arg(long = "type", value_name = "TYPE"))]
    #[serde(rename = "type")]
    pub kind: String,
}

impl AssocCountQuery {
    fn read(&self) -> AssociationRead {
        let kind = self.kind.clone();
        AssociationRead { kind, select: Select::Count, with_data: false, with_versions: false }
    }
}

impl Fields for AssocCountQuery {
    fn to_message(&self) -> Operand {
        associations::to_message(self.id1, &self.read())
    }

    fn from_message(operand: Operand) -> Decoded<Self, Operand> {
        associations::from_message(operand, |id1, read| {
            (read.select == Select::Count).then_some(Self { id1, kind: read.kind })
        })
    }

    fn machine(&self, _: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError> {
        Ok(Box::new(Associations::new(self.id1, &self.read())?))
    }

    fn ids(&self) -> Vec<u64> {
        vec![self.id1]
    }

    fn page(&self) -> Option<AnswerPage> {
        Some(AnswerPage::default())
    }

    fn needs_live_graph(&self) -> bool {
        true
    }
}

impl AnswerKind for Option<u64> {
    fn to_message(&self) -> Answer {
        Answer::AssociationCount(v1::AssociationCount { count: *self })
    }

    fn bytes(&self) -> usize {
        0
    }

    fn from_message(message: Answer, _: bool) -> Decoded<Self, Answer> {
        match message {
            Answer::AssociationCount(v1::AssociationCount { count }) => Decoded::valid(count),
            message => Decoded::Elsewhere(message),
        }
    }
}

impl Presentation for AssocCountQuery {
    type View = AssocCountView;

    fn view(&self, answer: GraphAnswer) -> Result<AssocCountView, WrongAnswer> {
        match answer {
            GraphAnswer::AssociationCount(count) => Ok(AssocCountView { count }),
            answer => Err(WrongAnswer::kind(&answer)),
        }
    }
}

/// The number of associations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AssocCountView {
    /// The number; `None` if no node answered.
    pub count: Option<u64>,
}

impl PrintedAnswer for AssocCountView {
    fn text(&self) -> Vec<Block> {
        vec![match self.count {
            Some(count) => Block::Count(count),
            None => Block::Line("nobody answered".to_owned()),
        }]
    }
}
