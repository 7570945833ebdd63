//! The operation `assoc_range`: the associations of an object from a place in their list on, newest first (TAO, `assoc_range`).

use super::{
    Machine, PageStart,
    associations::{self, Associations, AssociationsView},
    fields::{Decoded, Fields, Presentation},
    page::{AnswerPage, Pages},
    resolve::Resolver,
    view::WrongAnswer,
};
use crate::{GraphAnswer, OperationError};
use kith_schema::live::{AssociationRead, ListPlace, Select, Start};
use kith_wire::v1::query_request::Operand;
use serde::{Deserialize, Serialize};

// Asks for associations of one list.
#[allow(missing_docs, reason = "a doc line would replace that of the subcommand")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct AssocRangeQuery {
    /// The object that the associations leave
    #[cfg_attr(feature = "flags", arg(long, value_name = "ID"))]
    pub id1: u64,
    /// The association type
    #[cfg_attr(feature = "flags", arg(long = "type", value_name = "TYPE"))]
    #[serde(rename = "type")]
    pub kind: String,
    /// How many of the newest associations to skip [default: 0]
    #[cfg_attr(feature = "flags", arg(long, value_name = "N"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pos: Option<u64>,
    /// Print their fields too
    #[cfg_attr(feature = "flags", arg(long))]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_data: bool,
    /// Print their versions too, for `--if-version` of writes
    #[cfg_attr(feature = "flags", arg(long))]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_versions: bool,
    /// The most associations of the page. An option of the line.
    #[cfg_attr(feature = "flags", arg(skip))]
    #[serde(skip)]
    pub limit: Option<u32>,
    /// The last association of the previous page. An option of the line.
    #[cfg_attr(feature = "flags", arg(skip))]
    #[serde(skip)]
    pub after: Option<ListPlace>,
}

impl AssocRangeQuery {
    fn start(&self) -> Start {
        self.after.map_or(Start::Index(self.pos.unwrap_or(0)), Start::After)
    }

    fn read(&self) -> AssociationRead {
        let Self { kind, with_data, with_versions, .. } = self.clone();
        AssociationRead {
            kind,
            select: Select::Range { start: self.start(), limit: self.limit },
            with_data,
            with_versions,
        }
    }

    fn of(id1: u64, read: AssociationRead) -> Option<Self> {
        let AssociationRead { kind, select, with_data, with_versions } = read;
        match select {
            Select::Range { start, limit } => {
                let (pos, after) = match start {
                    Start::Index(0) => (None, None),
                    Start::Index(index) => (Some(index), None),
                    Start::After(last) => (None, Some(last)),
                };
                Some(Self { id1, kind, pos, with_data, with_versions, limit, after })
            }
            _ => None,
        }
    }
}

impl Fields for AssocRangeQuery {
    fn to_message(&self) -> Operand {
        associations::to_message(self.id1, &self.read())
    }

    fn from_message(operand: Operand) -> Decoded<Self, Operand> {
        associations::from_message(operand, Self::of)
    }

    fn machine(&self, _: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError> {
        Ok(Box::new(Associations::new(self.id1, &self.read())?))
    }

    fn ids(&self) -> Vec<u64> {
        vec![self.id1]
    }

    fn pages(&self) -> Pages {
        Pages::Associations
    }

    fn page(&self) -> Option<AnswerPage> {
        Some(associations::page(self.limit, self.after.map(PageStart::Place)))
    }

    fn set_page(&mut self, page: AnswerPage) {
        (self.limit, self.after) = (associations::limit(page), page.association());
    }

    fn conflict(&self, page: &AnswerPage) -> Option<&'static str> {
        let has_both = self.pos.is_some() && page.association().is_some();
        has_both.then_some("give `pos` or `after`, not both")
    }

    fn needs_live_graph(&self) -> bool {
        true
    }
}

impl Presentation for AssocRangeQuery {
    type View = AssociationsView;

    fn view(&self, answer: GraphAnswer) -> Result<AssociationsView, WrongAnswer> {
        AssociationsView::of(answer, &self.kind, true)
    }
}
