//! The operation `distance`: badges 0, 1, 2, 3 or unknown, from one member to many (Moolle, Algorithm 1).

mod answer;
#[cfg(feature = "nodes")]
mod machine;
#[cfg(test)]
pub(super) mod twin;

#[cfg(feature = "testing")]
use super::Example;
use super::fields::{Decoded, Fields};
use kith_wire::v1::{self, query_request::Operand};
use serde::{Deserialize, Serialize};

/// Asks how far members are from one member. Targets may come in any order and be repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct DistanceQuery {
    /// The member to start from
    #[cfg_attr(feature = "flags", arg(id = "id", value_name = "ID"))]
    #[serde(rename = "id")]
    pub from: u64,
    /// The members to reach
    #[cfg_attr(feature = "flags", arg(required = true))]
    pub to: Vec<u64>,
}

impl Fields for DistanceQuery {
    fn to_message(&self) -> Operand {
        Operand::Distance(v1::DistanceOperand { from: self.from, to: self.to.clone() })
    }

    fn from_message(operand: Operand) -> Decoded<Self, Operand> {
        match operand {
            Operand::Distance(message) => Decoded::valid(Self { from: message.from, to: message.to }),
            operand => Decoded::Elsewhere(operand),
        }
    }

    fn ids(&self) -> Vec<u64> {
        [self.from].into_iter().chain(self.to.iter().copied()).collect()
    }

    fn id_fields() -> &'static [&'static str] {
        &["id", "to"]
    }

    #[cfg(feature = "testing")]
    fn examples() -> Vec<Example> {
        vec![Example::new(
            r#"{"op":"distance","graph":"g","id":5,"to":[5,7,9]}"#,
            crate::GraphAnswer::Distances(vec![Some(0), Some(2), None]),
            r#"{"distances":[0,2,null]}"#,
        )]
    }

    fn cached_member(&self) -> Option<u64> {
        Some(self.from)
    }
}
