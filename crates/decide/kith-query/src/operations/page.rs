//! Pages of answers.

use super::cursor::{EdgeCursor, NotACursor};
use kith_schema::live::ListPlace;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::str::FromStr;

/// How an operation's answer is divided into pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// It is not.
    None,
    /// It is not, but a limit may cut it.
    First,
    /// One set of ids, whose pages begin after an id.
    Ids,
    /// Edges, whose pages begin after a cursor.
    Edges,
    /// Associations, whose pages begin after one of them.
    Associations,
    /// Associations, whose next page has an earlier time.
    Times,
}

/// A page of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AnswerPage {
    /// The most entries of the page.
    pub limit: Option<u64>,
    /// The start of a page: after an item, with which the previous page ended.
    pub after: Option<PageStart>,
}

impl AnswerPage {
    /// The page after an id.
    pub fn after_id(limit: Option<u64>, after: Option<u64>) -> Self {
        Self { limit, after: after.map(PageStart::Id) }
    }

    /// The id with which the previous page ended.
    pub fn id(&self) -> Option<u64> {
        match self.after {
            Some(PageStart::Id(id)) => Some(id),
            _ => None,
        }
    }

    /// The cursor with which the previous page ended.
    pub fn cursor(&self) -> Option<EdgeCursor> {
        match self.after {
            Some(PageStart::Cursor(cursor)) => Some(cursor),
            _ => None,
        }
    }

    /// The association with which the previous page ended.
    pub fn association(&self) -> Option<ListPlace> {
        match self.after {
            Some(PageStart::Place(association)) => Some(association),
            _ => None,
        }
    }
}

/// The start of a page: after an item, with which the previous page ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PageStart {
    /// After an id of a set of ids.
    Id(u64),
    /// After an edge.
    Cursor(EdgeCursor),
    /// After an association.
    Place(ListPlace),
}

impl FromStr for PageStart {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, NotACursor> {
        let association = text.split_once(',').and_then(|(time, id2)| {
            Some(ListPlace { time: time.trim().parse().ok()?, id2: id2.trim().parse().ok()? })
        });
        match association {
            Some(association) => Ok(PageStart::Place(association)),
            None => text.parse().map(PageStart::Id).or_else(|_| text.parse().map(PageStart::Cursor)),
        }
    }
}

impl Serialize for PageStart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            PageStart::Id(id) => serializer.serialize_u64(*id),
            PageStart::Cursor(cursor) => serializer.collect_str(cursor),
            PageStart::Place(association) => (association.time, association.id2).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for PageStart {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "expected an id, the cursor of an answer, or a list of a time and an id"
        )]
        enum Given {
            Id(u64),
            Cursor(String),
            Place(u64, u64),
        }
        match Given::deserialize(input)? {
            Given::Id(id) => Ok(PageStart::Id(id)),
            Given::Place(time, id2) => Ok(PageStart::Place(ListPlace { time, id2 })),
            Given::Cursor(text) => text.parse().map(PageStart::Cursor).map_err(D::Error::custom),
        }
    }
}
