//! The operation `edges`: the edges of one member with their columns, in a given order, page by page.

mod answer;
#[cfg(feature = "nodes")]
mod machine;
#[cfg(test)]
pub(super) mod twin;

pub use answer::{EdgeColumn, EdgesAnswer};

#[cfg(feature = "testing")]
use super::Example;
use super::{
    PageStart,
    fields::{Decoded, Fields},
    page::{AnswerPage, Pages},
};
use crate::{
    ColumnFilter, EdgeCursor,
    convert::{ConvertError, filter_from_wire, filter_to_wire},
};
use kith_wire::v1::{self, query_request::Operand};
use serde::{Deserialize, Serialize};

/// Asks for the edges of a member, and which of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct EdgesQuery {
    /// The member
    pub id: u64,
    /// The columns to return, separated by commas [default: all]
    #[cfg_attr(feature = "flags", arg(long, value_name = "A,B,C", value_delimiter = ','))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// The column to sort by, ties by ascending id [default: sorted by id]
    #[cfg_attr(feature = "flags", arg(long, value_name = "COLUMN"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_by: Option<String>,
    /// Greatest first
    #[cfg_attr(feature = "flags", arg(long))]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub descending: bool,
    /// Return only edges whose value in a column lies in a range, both ends included
    #[cfg_attr(feature = "flags", arg(long, value_name = "COLUMN=LOW..HIGH"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<ColumnFilter>,
    /// The most edges of one answer, 1 to [`crate::EDGES_MAX`], which is the default. An option of the line.
    #[cfg_attr(feature = "flags", arg(skip))]
    #[serde(skip)]
    pub limit: Option<u64>,
    /// The cursor of the previous page. An option of the line.
    #[cfg_attr(feature = "flags", arg(skip))]
    #[serde(skip)]
    pub after: Option<EdgeCursor>,
}

impl Fields for EdgesQuery {
    fn to_message(&self) -> Operand {
        Operand::Edges(v1::EdgesOperand {
            id: self.id,
            all_columns: self.columns.is_none(),
            columns: self.columns.clone().unwrap_or_default(),
            order_by: self.order_by.clone(),
            descending: self.descending,
            filter: self.filter.as_ref().map(filter_to_wire),
            limit: self.limit,
            after: self.after.map(|cursor| cursor.to_string()),
        })
    }

    fn from_message(operand: Operand) -> Decoded<Self, Operand> {
        match operand {
            Operand::Edges(message) => Decoded::Here(fields_of(message)),
            operand => Decoded::Elsewhere(operand),
        }
    }

    fn ids(&self) -> Vec<u64> {
        vec![self.id]
    }

    fn id_fields() -> &'static [&'static str] {
        &["id"]
    }

    #[cfg(feature = "testing")]
    fn examples() -> Vec<Example> {
        let numbers = vec![kith_schema::ColumnNumber::U64(4)];
        let columns = vec![EdgeColumn { name: "since".to_owned(), is_time: true, numbers }];
        let after = "AQMAAAAAAAAABwAAAAQAAAAAAAAACQAAAAAAAAA".parse().ok();
        vec![Example::new(
            r#"{"op":"edges","graph":"g","id":5,"columns":["since"],"order_by":"since","descending":true,"filter":{"column":"since","low":1,"high":9},"limit":2,"after":"AQMAAAAAAAAABwAAAAQAAAAAAAAACQAAAAAAAAA"}"#,
            crate::GraphAnswer::Edges(EdgesAnswer { ids: vec![9], columns, after }),
            r#"{"edges":[{"id":9,"since":4}],"after":"AQMAAAAAAAAABwAAAAQAAAAAAAAACQAAAAAAAAA"}"#,
        )]
    }

    fn pages(&self) -> Pages {
        Pages::Edges
    }

    fn page(&self) -> Option<AnswerPage> {
        Some(AnswerPage { limit: self.limit, after: self.after.map(PageStart::Cursor) })
    }

    fn set_page(&mut self, page: AnswerPage) {
        (self.limit, self.after) = (page.limit, page.cursor());
    }
}

fn fields_of(message: v1::EdgesOperand) -> Result<EdgesQuery, ConvertError> {
    let after = message.after.map(|after| after.parse()).transpose();
    Ok(EdgesQuery {
        id: message.id,
        columns: (!message.all_columns).then_some(message.columns),
        order_by: message.order_by,
        descending: message.descending,
        filter: message.filter.map(filter_from_wire).transpose()?,
        limit: message.limit,
        after: after.map_err(ConvertError::Cursor)?,
    })
}
