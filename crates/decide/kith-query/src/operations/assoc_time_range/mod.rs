//! The operation `assoc_time_range`: the associations of an object whose time lies in a range, newest first (TAO, `assoc_time_range`).

use super::{
    Machine,
    associations::{self, Associations, AssociationsView},
    fields::{Decoded, Fields, Presentation},
    page::{AnswerPage, Pages},
    resolve::Resolver,
    view::WrongAnswer,
};
use crate::{GraphAnswer, OperationError};
use kith_schema::live::{AssociationRead, Select};
use kith_wire::v1::query_request::Operand;
use serde::{Deserialize, Serialize};

// Asks for associations of one list.
#[allow(missing_docs, reason = "a doc line would replace that of the subcommand")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct AssocTimeRangeQuery {
    /// The object that the associations leave
    #[cfg_attr(feature = "flags", arg(long, value_name = "ID"))]
    pub id1: u64,
    /// The association type
    #[cfg_attr(feature = "flags", arg(long = "type", value_name = "TYPE"))]
    #[serde(rename = "type")]
    pub kind: String,
    /// Only those whose time is not above this one
    #[cfg_attr(feature = "flags", arg(long, value_name = "TIME"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<u64>,
    /// Only those whose time is not below this one
    #[cfg_attr(feature = "flags", arg(long, value_name = "TIME"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<u64>,
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
}

impl AssocTimeRangeQuery {
    fn read(&self) -> AssociationRead {
        let Self { kind, with_data, with_versions, .. } = self.clone();
        AssociationRead {
            kind,
            select: Select::Times { high: self.high, low: self.low, limit: self.limit },
            with_data,
            with_versions,
        }
    }

    fn of(id1: u64, read: AssociationRead) -> Option<Self> {
        let AssociationRead { kind, select, with_data, with_versions } = read;
        match select {
            Select::Times { high, low, limit } => {
                Some(Self { id1, kind, high, low, with_data, with_versions, limit })
            }
            _ => None,
        }
    }
}

impl Fields for AssocTimeRangeQuery {
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
        Pages::Times
    }

    fn page(&self) -> Option<AnswerPage> {
        Some(associations::page(self.limit, None))
    }

    fn set_page(&mut self, page: AnswerPage) {
        self.limit = associations::limit(page);
    }

    fn needs_live_graph(&self) -> bool {
        true
    }
}

impl Presentation for AssocTimeRangeQuery {
    type View = AssociationsView;

    fn view(&self, answer: GraphAnswer) -> Result<AssociationsView, WrongAnswer> {
        AssociationsView::of(answer, &self.kind, false)
    }
}
