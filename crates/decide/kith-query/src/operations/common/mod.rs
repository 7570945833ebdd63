//! The operation `common`: the common connections or entities of two members (Moolle, Algorithm 3).

mod answer;
#[cfg(feature = "nodes")]
mod machine;
#[cfg(test)]
pub(super) mod twin;

pub use answer::CommonAnswer;

#[cfg(feature = "testing")]
use super::Example;
use super::{
    fields::{Decoded, Fields},
    page::Pages,
};
use crate::convert::ConvertError;
use kith_wire::v1::{self, query_request::Operand};
use serde::{Deserialize, Serialize};

/// Asks for what two members have in common. Without a kind that is the edge type of the query, but for `Want::Exists` in a
/// query that names neither an edge type nor a direction, it is every kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct CommonQuery {
    /// One member
    pub id: u64,
    /// The other member
    pub to: u64,
    /// An edge type or an entity kind [default: the edge type that is followed; with --return exists, every one]
    #[cfg_attr(feature = "flags", arg(long))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What to return of the common ids
    #[cfg_attr(feature = "flags", arg(long = "return", value_name = "WHAT", value_enum, default_value_t))]
    #[serde(rename = "return", default)]
    pub returns: Want,
    /// How to find them
    #[cfg_attr(feature = "flags", arg(long, value_enum, default_value_t))]
    #[serde(default, skip_serializing_if = "CommonPlan::is_auto")]
    pub plan: CommonPlan,
}

/// The requested form of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Want {
    /// The ids
    #[default]
    Ids,
    /// Their number
    Size,
    /// Whether there is one
    Exists,
}

/// The way to intersect two members' lists (Moolle §II-C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum CommonPlan {
    /// Choose by the lengths of the lists
    #[default]
    Auto,
    /// Fetch both lists and intersect them at the caller
    Fetch,
    /// Ask the inverted index of every partition
    Push,
}

impl CommonPlan {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_auto(&self) -> bool {
        *self == CommonPlan::Auto
    }
}

impl Fields for CommonQuery {
    fn to_message(&self) -> Operand {
        Operand::Common(v1::CommonOperand {
            id: self.id,
            to: self.to,
            kind: self.kind.clone().unwrap_or_default(),
            want: match self.returns {
                Want::Size => v1::Want::Size.into(),
                Want::Ids => v1::Want::Ids.into(),
                Want::Exists => v1::Want::Exists.into(),
            },
            plan: match self.plan {
                CommonPlan::Auto => v1::CommonPlan::PlanAuto.into(),
                CommonPlan::Fetch => v1::CommonPlan::Fetch.into(),
                CommonPlan::Push => v1::CommonPlan::Push.into(),
            },
        })
    }

    fn from_message(operand: Operand) -> Decoded<Self, Operand> {
        match operand {
            Operand::Common(message) => Decoded::Here(fields_of(message)),
            operand => Decoded::Elsewhere(operand),
        }
    }

    fn ids(&self) -> Vec<u64> {
        vec![self.id, self.to]
    }

    fn id_fields() -> &'static [&'static str] {
        &["id", "to"]
    }

    #[cfg(feature = "testing")]
    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                r#"{"op":"common","graph":"g","id":5,"to":9,"kind":"school","return":"ids","plan":"fetch","limit":2,"after":6}"#,
                crate::GraphAnswer::Common(CommonAnswer::Ids(vec![7])),
                r#"{"ids":[7]}"#,
            ),
            Example::new(
                r#"{"op":"common","graph":"g","id":5,"to":9,"return":"size","plan":"push"}"#,
                crate::GraphAnswer::Common(CommonAnswer::Size(4)),
                r#"{"size":4}"#,
            ),
            Example::new(
                r#"{"op":"common","graph":"g","id":5,"to":9,"return":"exists"}"#,
                crate::GraphAnswer::Common(CommonAnswer::Exists(true)),
                r#"{"exists":true}"#,
            ),
        ]
    }

    fn pages(&self) -> Pages {
        if self.returns == Want::Ids { Pages::Ids } else { Pages::None }
    }

    fn wants_ids(&self) -> bool {
        self.returns == Want::Ids
    }
}

fn fields_of(message: v1::CommonOperand) -> Result<CommonQuery, ConvertError> {
    Ok(CommonQuery {
        id: message.id,
        to: message.to,
        kind: (!message.kind.is_empty()).then_some(message.kind),
        returns: match v1::Want::try_from(message.want) {
            Ok(v1::Want::Size) => Want::Size,
            Ok(v1::Want::Ids) => Want::Ids,
            Ok(v1::Want::Exists) => Want::Exists,
            Err(_) => return Err(ConvertError::Unknown { field: "want", got: message.want }),
        },
        plan: match v1::CommonPlan::try_from(message.plan) {
            Ok(v1::CommonPlan::PlanAuto) => CommonPlan::Auto,
            Ok(v1::CommonPlan::Fetch) => CommonPlan::Fetch,
            Ok(v1::CommonPlan::Push) => CommonPlan::Push,
            Err(_) => return Err(ConvertError::Unknown { field: "plan", got: message.plan }),
        },
    })
}
