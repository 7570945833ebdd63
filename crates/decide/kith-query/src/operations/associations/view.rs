//! Associations as they are printed. In JSON, their fields are exactly as the node wrote them.

use super::AssociationsAnswer;
use crate::{
    GraphAnswer,
    operations::{
        ids::Id,
        view::{Block, Cell, Column, Json, PrintedAnswer, WrongAnswer},
    },
};
use kith_schema::live::ListedAssociation;
use serde::{Serialize, Serializer};

/// Associations of one list, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AssociationsView {
    /// The associations.
    pub out: Vec<AssociationView>,
    /// Whether more associations follow; omitted from answers that have no pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<bool>,
    /// The name of their type.
    #[serde(skip)]
    pub kind: String,
    /// Whether the next page begins after the last association of this one.
    #[serde(skip)]
    pub has_after: bool,
}

/// An association: a JSON list of its other end and its time, followed by its fields and its version if they were requested.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub struct AssociationView {
    pub id2: u64,
    pub time: u64,
    pub data: Option<Json>,
    pub version: Option<u64>,
}

impl Serialize for AssociationView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { id2, time, data, version } = self;
        let id2 = Id(*id2);
        match (data, version) {
            (None, None) => (id2, time).serialize(serializer),
            (Some(data), None) => (id2, time, data).serialize(serializer),
            (None, Some(version)) => (id2, time, version).serialize(serializer),
            (Some(data), Some(version)) => (id2, time, data, version).serialize(serializer),
        }
    }
}

impl AssociationsView {
    pub(in crate::operations) fn of(
        answer: GraphAnswer,
        kind: &str,
        has_after: bool,
    ) -> Result<Self, WrongAnswer> {
        let AssociationsAnswer { out, more } = match answer {
            GraphAnswer::Associations(answer) => answer,
            answer => return Err(WrongAnswer::kind(&answer)),
        };
        let association = |ListedAssociation { id2, time, data, version }| {
            Ok(AssociationView { id2, time, data: data.map(Json::of).transpose()?, version })
        };
        let out: Result<_, WrongAnswer> = out.into_iter().map(association).collect();
        Ok(Self { out: out?, more, kind: kind.to_owned(), has_after })
    }
}

impl PrintedAnswer for AssociationsView {
    fn text(&self) -> Vec<Block> {
        let Some(last) = self.out.last() else { return vec![Block::Line("no associations".to_owned())] };
        let row = |AssociationView { id2, time, data, version }: &AssociationView| {
            let cells = [Cell::text(id2), Cell::Time(*time)].into_iter();
            let cells = cells.chain(version.iter().map(Cell::text));
            let fields = data.iter().map(|data| Cell::Fields {
                is_object: false,
                kind: self.kind.clone(),
                json: data.text().to_owned(),
            });
            cells.chain(fields).collect()
        };
        let mut columns = vec![Column::right("id2"), Column::right("time")];
        columns.extend(last.version.map(|_| Column::right("version")));
        columns.extend(last.data.as_ref().map(|_| Column::left("data")));
        let mut blocks = vec![Block::Table { columns, rows: self.out.iter().map(row).collect() }];
        if self.more == Some(true) {
            blocks.push(Block::Line(match self.has_after {
                true => format!("there are more: --after {},{}", last.time, last.id2),
                false => "there are more".to_owned(),
            }));
        }
        blocks
    }
}
