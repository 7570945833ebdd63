//! The operation `assoc_get`: the associations of an object that lead to certain objects (TAO, `assoc_get`).

#[cfg(feature = "testing")]
use super::{Example, associations};
use super::{
    associations::{AssociationsView, ListFields},
    fields::Presentation,
    view::WrongAnswer,
};
use crate::GraphAnswer;
use kith_schema::live::{AssociationRead, Select};
use serde::{Deserialize, Serialize};

/// Asks for associations of one list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct AssocGetQuery {
    /// The object that the associations leave
    #[cfg_attr(feature = "flags", arg(long, value_name = "ID"))]
    pub id1: u64,
    /// The association type
    #[cfg_attr(feature = "flags", arg(long = "type", value_name = "TYPE"))]
    #[serde(rename = "type")]
    pub kind: String,
    /// The objects that they lead to, separated by commas
    #[cfg_attr(feature = "flags", arg(long, required = true, value_name = "ID,ID", value_delimiter = ','))]
    pub ids: Vec<u64>,
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
}

impl ListFields for AssocGetQuery {
    fn id1(&self) -> u64 {
        self.id1
    }

    fn read(&self) -> AssociationRead {
        let Self { kind, with_data, with_versions, .. } = self.clone();
        AssociationRead {
            kind,
            select: Select::Ids { ids: self.ids.clone(), high: self.high, low: self.low },
            with_data,
            with_versions,
        }
    }

    fn of(id1: u64, read: AssociationRead) -> Option<Self> {
        let AssociationRead { kind, select, with_data, with_versions } = read;
        match select {
            Select::Ids { ids, high, low } => {
                Some(Self { id1, kind, ids, high, low, with_data, with_versions })
            }
            _ => None,
        }
    }

    fn id_fields() -> &'static [&'static str] {
        &["id1", "ids"]
    }

    #[cfg(feature = "testing")]
    fn examples() -> Vec<Example> {
        vec![Example::new(
            r#"{"op":"assoc_get","graph":"g","id1":5,"type":"likes","ids":[7,9],"high":60,"low":40,"with_data":true,"with_versions":true}"#,
            associations::example(None),
            r#"{"out":[[7,50,{"stars":3},4]]}"#,
        )]
    }
}

impl Presentation for AssocGetQuery {
    type View = AssociationsView;

    fn view(&self, answer: GraphAnswer) -> Result<AssociationsView, WrongAnswer> {
        AssociationsView::of(answer, &self.kind, false)
    }
}
