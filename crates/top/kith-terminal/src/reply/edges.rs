//! Edges as JSON: one object each, with the other end as `id`, and with the columns under their names.

use super::Reply;
use crate::ids::Id;
use kith_query::EdgesAnswer;
use kith_schema::ColumnNumber;
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::sync::Arc;

/// One edge.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// The other end.
    pub id: u64,
    /// The names of the columns, which all edges of an answer share.
    pub names: Arc<[String]>,
    /// For each column, whether it has times. JSON has them as numbers, text as dates.
    pub are_times: Arc<[bool]>,
    /// The value in each column.
    pub numbers: Vec<ColumnNumber>,
}

impl Serialize for Edge {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1 + self.numbers.len()))?;
        map.serialize_entry("id", &Id(self.id))?;
        for (name, number) in self.names.iter().zip(&self.numbers) {
            map.serialize_entry(name, number)?;
        }
        map.end()
    }
}

pub(super) fn reply(answer: EdgesAnswer) -> Reply {
    let names: Arc<[String]> = answer.columns.iter().map(|column| column.name.clone()).collect();
    let are_times: Arc<[bool]> = answer.columns.iter().map(|column| column.is_time).collect();
    let edge = |(place, id): (usize, &u64)| Edge {
        id: *id,
        names: Arc::clone(&names),
        are_times: Arc::clone(&are_times),
        numbers: answer.columns.iter().map(|column| column.numbers[place]).collect(),
    };
    let edges = answer.ids.iter().enumerate().map(edge).collect();
    Reply::Edges { edges, after: answer.after.map(|cursor| cursor.to_string()) }
}
