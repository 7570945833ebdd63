//! The operation `degree`: the number of connections of each member.

mod answer;
#[cfg(feature = "nodes")]
mod machine;
#[cfg(test)]
pub(super) mod twin;

#[cfg(feature = "testing")]
use super::Example;
use super::fields::{Decoded, Fields};
use crate::{
    ColumnFilter,
    convert::{filter_from_wire, filter_to_wire},
};
use kith_wire::v1::{self, query_request::Operand};
use serde::{Deserialize, Serialize};

/// Asks for the number of connections of each member. Members may come in any order and be repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct DegreeQuery {
    /// The members
    #[cfg_attr(feature = "flags", arg(required = true, value_name = "ID"))]
    pub ids: Vec<u64>,
    /// Count only edges whose value in a column lies in a range, both ends included
    #[cfg_attr(feature = "flags", arg(long, value_name = "COLUMN=LOW..HIGH"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<ColumnFilter>,
}

impl Fields for DegreeQuery {
    fn to_message(&self) -> Operand {
        Operand::Degree(v1::DegreeOperand {
            ids: self.ids.clone(),
            filter: self.filter.as_ref().map(filter_to_wire),
        })
    }

    fn from_message(operand: Operand) -> Decoded<Self, Operand> {
        match operand {
            Operand::Degree(message) => {
                let filter = message.filter.map(filter_from_wire).transpose();
                Decoded::Here(filter.map(|filter| Self { ids: message.ids, filter }))
            }
            operand => Decoded::Elsewhere(operand),
        }
    }

    fn ids(&self) -> Vec<u64> {
        self.ids.clone()
    }

    fn id_fields() -> &'static [&'static str] {
        &["ids"]
    }

    #[cfg(feature = "testing")]
    fn examples() -> Vec<Example> {
        vec![Example::new(
            r#"{"op":"degree","graph":"g","ids":[5,6,5],"filter":{"column":"since","low":1,"high":9}}"#,
            crate::GraphAnswer::Degrees(vec![Some(3), None, Some(3)]),
            r#"{"degrees":[3,null,3]}"#,
        )]
    }
}
