//! The operation `assoc_time_range`: the associations of an object whose time lies in a range, newest first (TAO, `assoc_time_range`).

#[cfg(feature = "testing")]
use super::Example;
use super::{
    associations::{self, AssociationsView, ListFields},
    fields::Presentation,
    page::{AnswerPage, Pages},
    view::WrongAnswer,
};
use crate::GraphAnswer;
use kith_schema::live::{AssociationRead, Select};
use serde::{Deserialize, Serialize};

/// Asks for associations of one list.
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

impl ListFields for AssocTimeRangeQuery {
    const PAGES: Pages = Pages::Times;

    fn id1(&self) -> u64 {
        self.id1
    }

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

    #[cfg(feature = "testing")]
    fn examples() -> Vec<Example> {
        vec![Example::new(
            r#"{"op":"assoc_time_range","graph":"g","id1":5,"type":"likes","high":60,"low":40,"with_data":true,"with_versions":true,"limit":2}"#,
            associations::example(Some(true)),
            r#"{"out":[[7,50,{"stars":3},4]],"more":true}"#,
        )]
    }

    fn page(&self) -> AnswerPage {
        associations::page(self.limit, None)
    }

    fn set_page(&mut self, page: AnswerPage) {
        self.limit = associations::limit(page);
    }
}

impl Presentation for AssocTimeRangeQuery {
    type View = AssociationsView;

    fn view(&self, answer: GraphAnswer) -> Result<AssociationsView, WrongAnswer> {
        AssociationsView::of(answer, &self.kind, false)
    }
}
