//! The operation `assoc_count`: the number of associations of one type that leave an object (TAO, `assoc_count`).

#[cfg(feature = "testing")]
use super::Example;
use super::{
    associations::ListFields,
    fields::{AnswerKind, Decoded, Presentation},
    view::{Block, PrintedAnswer, WrongAnswer},
};
use crate::GraphAnswer;
use kith_schema::live::{AssociationRead, Select};
use kith_wire::v1::{self, query_reply::Answer};
use serde::{Deserialize, Serialize};

/// Asks for the length of one list.
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

impl ListFields for AssocCountQuery {
    fn id1(&self) -> u64 {
        self.id1
    }

    fn read(&self) -> AssociationRead {
        let kind = self.kind.clone();
        AssociationRead { kind, select: Select::Count, with_data: false, with_versions: false }
    }

    fn of(id1: u64, read: AssociationRead) -> Option<Self> {
        (read.select == Select::Count).then_some(Self { id1, kind: read.kind })
    }

    #[cfg(feature = "testing")]
    fn examples() -> Vec<Example> {
        vec![Example::new(
            r#"{"op":"assoc_count","graph":"g","id1":5,"type":"likes"}"#,
            GraphAnswer::AssociationCount(Some(7)),
            r#"{"count":7}"#,
        )]
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
