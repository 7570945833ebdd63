//! The answer of `distance`: as a message, and as it is printed.

use super::DistanceQuery;
use crate::{
    GraphAnswer,
    operations::{
        fields::{AnswerKind, Decoded, Presentation},
        view::{Block, Cell, Column, PrintedAnswer, WrongAnswer},
    },
};
use kith_wire::v1::{self, query_reply::Answer};
use serde::Serialize;

impl AnswerKind for Vec<Option<u8>> {
    fn to_message(&self) -> Answer {
        let distances = self.iter().map(|distance| distance.map_or(-1, i32::from));
        Answer::Distances(v1::Distances { distances: distances.collect() })
    }

    fn bytes(&self) -> usize {
        0
    }

    fn from_message(message: Answer, _: bool) -> Decoded<Self, Answer> {
        match message {
            Answer::Distances(v1::Distances { distances }) => {
                Decoded::valid(distances.into_iter().map(|distance| u8::try_from(distance).ok()).collect())
            }
            message => Decoded::Elsewhere(message),
        }
    }
}

impl Presentation for DistanceQuery {
    type View = DistancesView;

    fn view(&self, answer: GraphAnswer) -> Result<DistancesView, WrongAnswer> {
        match answer {
            GraphAnswer::Distances(distances) => Ok(DistancesView { distances, members: self.to.clone() }),
            answer => Err(WrongAnswer::kind(&answer)),
        }
    }
}

/// The distances of members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DistancesView {
    /// The distance of each member; `None` if it is farther than 3 or unreachable.
    pub distances: Vec<Option<u8>>,
    /// The members.
    #[serde(skip)]
    pub members: Vec<u64>,
}

impl PrintedAnswer for DistancesView {
    fn text(&self) -> Vec<Block> {
        let distance = |distance: &Option<u8>| match distance {
            Some(distance) => Cell::text(distance),
            None => Cell::text("farther"),
        };
        let rows = self.members.iter().zip(&self.distances);
        let rows = rows.map(|(id, number)| vec![Cell::text(id), distance(number)]).collect();
        vec![Block::Table { columns: vec![Column::right("member"), Column::right("distance")], rows }]
    }
}
