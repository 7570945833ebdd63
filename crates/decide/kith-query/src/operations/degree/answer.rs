//! The answer of `degree`: as a message, and as it is printed.

use super::DegreeQuery;
use crate::{
    GraphAnswer,
    operations::{
        fields::{AnswerKind, Decoded, ID_BYTES, Presentation},
        view::{Block, Cell, Column, PrintedAnswer, WrongAnswer},
    },
};
use kith_wire::v1::{self, query_reply::Answer};
use serde::Serialize;

impl AnswerKind for Vec<Option<u64>> {
    fn to_message(&self) -> Answer {
        let degrees = self.iter().map(|degree| degree.map_or(0, |degree| degree.saturating_add(1)));
        Answer::Degrees(v1::Degrees { degrees: degrees.collect() })
    }

    fn bytes(&self) -> usize {
        self.len() * 2 * ID_BYTES
    }

    fn from_message(message: Answer, _: bool) -> Decoded<Self, Answer> {
        match message {
            Answer::Degrees(v1::Degrees { degrees }) => {
                Decoded::valid(degrees.into_iter().map(|degree| degree.checked_sub(1)).collect())
            }
            message => Decoded::Elsewhere(message),
        }
    }
}

impl Presentation for DegreeQuery {
    type View = DegreesView;

    fn view(&self, answer: GraphAnswer) -> Result<DegreesView, WrongAnswer> {
        match answer {
            GraphAnswer::Degrees(degrees) => Ok(DegreesView { degrees, members: self.ids.clone() }),
            answer => Err(WrongAnswer::kind(&answer)),
        }
    }
}

/// The degrees of members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DegreesView {
    /// The degree of each member; `None` if it is not in the graph.
    pub degrees: Vec<Option<u64>>,
    /// The members.
    #[serde(skip)]
    pub members: Vec<u64>,
}

impl PrintedAnswer for DegreesView {
    fn text(&self) -> Vec<Block> {
        let degree = |degree: &Option<u64>| match degree {
            Some(degree) => Cell::Count(*degree),
            None => Cell::text("not in the graph"),
        };
        let rows = self.members.iter().zip(&self.degrees);
        let rows = rows.map(|(id, number)| vec![Cell::text(id), degree(number)]).collect();
        vec![Block::Table { columns: vec![Column::right("member"), Column::right("degree")], rows }]
    }
}
