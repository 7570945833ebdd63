//! The operation `assoc_range`: the associations of an object from a place in their list on, newest first (TAO, `assoc_range`).

#[cfg(feature = "testing")]
use super::Example;
use super::{
    PageStart,
    associations::{self, AssociationsView, ListFields},
    fields::Presentation,
    page::{AnswerPage, Pages},
    view::WrongAnswer,
};
use crate::GraphAnswer;
use kith_schema::live::{AssociationRead, ListPlace, Select, Start};
use serde::{Deserialize, Serialize};

/// Asks for associations of one list.
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

impl ListFields for AssocRangeQuery {
    const PAGES: Pages = Pages::Associations;

    fn id1(&self) -> u64 {
        self.id1
    }

    fn read(&self) -> AssociationRead {
        let Self { kind, with_data, with_versions, .. } = self.clone();
        let start = self.after.map_or(Start::Index(self.pos.unwrap_or(0)), Start::After);
        AssociationRead { kind, select: Select::Range { start, limit: self.limit }, with_data, with_versions }
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

    #[cfg(feature = "testing")]
    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                r#"{"op":"assoc_range","graph":"g","id1":5,"type":"likes","pos":3,"with_data":true,"with_versions":true,"limit":2}"#,
                associations::example(Some(true)),
                r#"{"out":[[7,50,{"stars":3},4]],"more":true}"#,
            ),
            Example::new(
                r#"{"op":"assoc_range","graph":"g","id1":5,"type":"likes","after":[60,6]}"#,
                associations::example(Some(false)),
                r#"{"out":[[7,50,{"stars":3},4]],"more":false}"#,
            ),
        ]
    }

    fn page(&self) -> AnswerPage {
        associations::page(self.limit, self.after.map(PageStart::Place))
    }

    fn set_page(&mut self, page: AnswerPage) {
        (self.limit, self.after) = (associations::limit(page), page.association());
    }

    fn conflict(&self, page: &AnswerPage) -> Option<&'static str> {
        let has_both = self.pos.is_some() && page.association().is_some();
        has_both.then_some("give `pos` or `after`, not both")
    }
}

impl Presentation for AssocRangeQuery {
    type View = AssociationsView;

    fn view(&self, answer: GraphAnswer) -> Result<AssociationsView, WrongAnswer> {
        AssociationsView::of(answer, &self.kind, true)
    }
}
