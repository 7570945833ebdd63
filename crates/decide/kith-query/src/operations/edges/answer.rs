//! The answer of `edges`: as a message, and as it is printed.

use super::EdgesQuery;
use crate::{
    EdgeCursor, GraphAnswer,
    convert::ConvertError,
    operations::{
        fields::{AnswerKind, Decoded, ID_BYTES, Presentation},
        ids::Id,
        view::{Block, Cell, Column, PrintedAnswer, WrongAnswer},
    },
};
use kith_schema::ColumnNumber;
use kith_wire::v1::{self, query_reply::Answer};
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::sync::Arc;

/// Edges with their columns, in the requested order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgesAnswer {
    /// The other end of each edge.
    pub ids: Vec<u64>,
    /// The requested columns, in the order of the request.
    pub columns: Vec<EdgeColumn>,
    /// The cursor of the next page if there are more edges.
    pub after: Option<EdgeCursor>,
}

/// One column of some edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeColumn {
    /// Its name.
    pub name: String,
    /// Whether its numbers are times, in milliseconds since 1970-01-01 UTC.
    pub is_time: bool,
    /// The number of each edge, in the order of the edges.
    pub numbers: Vec<ColumnNumber>,
}

impl AnswerKind for EdgesAnswer {
    fn to_message(&self) -> Answer {
        Answer::Edges(v1::EdgesReply {
            ids: self.ids.clone(),
            columns: self.columns.iter().map(column_to_message).collect(),
            after: self.after.map(|cursor| cursor.to_string()),
        })
    }

    fn bytes(&self) -> usize {
        self.ids.len() * ID_BYTES * (1 + 2 * self.columns.len())
    }

    fn from_message(message: Answer, _: bool) -> Decoded<Self, Answer> {
        match message {
            Answer::Edges(reply) => Decoded::Here(answer_of(reply)),
            message => Decoded::Elsewhere(message),
        }
    }
}

fn column_to_message(column: &EdgeColumn) -> v1::EdgeColumn {
    let mut message =
        v1::EdgeColumn { name: column.name.clone(), times: column.is_time, ..Default::default() };
    for number in &column.numbers {
        match *number {
            ColumnNumber::U64(number) => message.unsigned.push(number),
            ColumnNumber::I64(number) => message.signed.push(number),
            ColumnNumber::F64(number) => message.floating.push(number),
        }
    }
    message
}

fn answer_of(reply: v1::EdgesReply) -> Result<EdgesAnswer, ConvertError> {
    let edges = reply.ids.len();
    let column = |message: v1::EdgeColumn| {
        let unsigned = message.unsigned.into_iter().map(ColumnNumber::U64);
        let signed = message.signed.into_iter().map(ColumnNumber::I64);
        let floating = message.floating.into_iter().map(ColumnNumber::F64);
        let numbers: Vec<ColumnNumber> = unsigned.chain(signed).chain(floating).collect();
        let is_whole = numbers.len() == edges;
        is_whole
            .then_some(EdgeColumn { name: message.name, is_time: message.times, numbers })
            .ok_or(ConvertError::Missing("edges.columns"))
    };
    let after = reply.after.map(|after| after.parse()).transpose();
    Ok(EdgesAnswer {
        ids: reply.ids,
        columns: reply.columns.into_iter().map(column).collect::<Result<_, _>>()?,
        after: after.map_err(ConvertError::Cursor)?,
    })
}

impl Presentation for EdgesQuery {
    type View = EdgesView;

    fn view(&self, answer: GraphAnswer) -> Result<EdgesView, WrongAnswer> {
        match answer {
            GraphAnswer::Edges(answer) => Ok(EdgesView::of(&answer)),
            answer => Err(WrongAnswer::kind(&answer)),
        }
    }
}

/// Edges, one object each.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EdgesView {
    /// The edges of the page.
    pub edges: Vec<EdgeView>,
    /// The cursor of the next page if there are more edges.
    pub after: Option<String>,
}

/// One edge, with the other end as `id`, and with the columns under their names.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeView {
    /// The other end.
    pub id: u64,
    /// The names of the columns, which all edges of an answer share.
    pub names: Arc<[String]>,
    /// For each column, whether it has times. JSON has them as numbers, text as dates.
    pub are_times: Arc<[bool]>,
    /// The value in each column.
    pub numbers: Vec<ColumnNumber>,
}

impl Serialize for EdgeView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1 + self.numbers.len()))?;
        map.serialize_entry("id", &Id(self.id))?;
        for (name, number) in self.names.iter().zip(&self.numbers) {
            map.serialize_entry(name, number)?;
        }
        map.end()
    }
}

impl EdgesView {
    fn of(answer: &EdgesAnswer) -> Self {
        let names: Arc<[String]> = answer.columns.iter().map(|column| column.name.clone()).collect();
        let are_times: Arc<[bool]> = answer.columns.iter().map(|column| column.is_time).collect();
        let edge = |(index, id): (usize, &u64)| EdgeView {
            id: *id,
            names: Arc::clone(&names),
            are_times: Arc::clone(&are_times),
            numbers: answer.columns.iter().map(|column| column.numbers[index]).collect(),
        };
        let edges = answer.ids.iter().enumerate().map(edge).collect();
        Self { edges, after: answer.after.map(|cursor| cursor.to_string()) }
    }
}

impl PrintedAnswer for EdgesView {
    fn text(&self) -> Vec<Block> {
        let Some(first) = self.edges.first() else { return vec![Block::Line("no edges".to_owned())] };
        let names = first.names.iter().map(Column::right);
        let columns = [Column::right("member")].into_iter().chain(names).collect();
        let cell = |(number, is_time): (&ColumnNumber, &bool)| match *number {
            ColumnNumber::U64(ms) if *is_time => Cell::Time(ms),
            number => Cell::text(number),
        };
        let row = |edge: &EdgeView| {
            let cells = edge.numbers.iter().zip(edge.are_times.iter()).map(cell);
            [Cell::text(edge.id)].into_iter().chain(cells).collect()
        };
        let mut blocks = vec![Block::Table { columns, rows: self.edges.iter().map(row).collect() }];
        blocks.extend(self.after.iter().map(|after| Block::Line(format!("there are more: --after {after}"))));
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_times_are_dates_and_other_numbers_are_not() {
        let column = |name: &str, is_time, number| EdgeColumn {
            name: name.to_owned(),
            is_time,
            numbers: vec![ColumnNumber::U64(number)],
        };
        let columns = vec![column("since", true, 1_700_000_000_250), column("weight", false, 3)];
        let view = EdgesView::of(&EdgesAnswer { ids: vec![7], columns, after: None });
        let cells = vec![Cell::text(7), Cell::Time(1_700_000_000_250), Cell::text(3)];
        let columns = ["member", "since", "weight"].map(Column::right).to_vec();
        assert_eq!(view.text(), [Block::Table { columns, rows: vec![cells] }]);
        let json = serde_json::to_string(&view).unwrap();
        assert_eq!(json, r#"{"edges":[{"id":7,"since":1700000000250,"weight":3}],"after":null}"#);
    }
}
