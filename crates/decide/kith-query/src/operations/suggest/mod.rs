//! The operation `suggest`: the people that a member may know.

mod answer;
#[cfg(feature = "nodes")]
mod machine;
#[cfg(test)]
pub(super) mod twin;

#[cfg(feature = "testing")]
use super::Example;
use super::fields::{Decoded, Effort, Fields};
use kith_wire::v1::{self, query_request::Operand};
use serde::{Deserialize, Serialize};

/// Asks for the first `k` members of the second degree by number of common connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct SuggestQuery {
    /// The member
    pub id: u64,
    /// How many
    #[cfg_attr(feature = "flags", arg(short, long, default_value_t = count()))]
    #[serde(default = "count")]
    pub k: u32,
}

impl Fields for SuggestQuery {
    fn to_message(&self) -> Operand {
        Operand::Suggest(v1::SuggestOperand { id: self.id, k: self.k })
    }

    fn from_message(operand: Operand) -> Decoded<Self, Operand> {
        match operand {
            Operand::Suggest(message) => Decoded::valid(Self { id: message.id, k: message.k }),
            operand => Decoded::Elsewhere(operand),
        }
    }

    // It weighs all members at distance 2.
    fn effort(&self) -> Effort {
        Effort::LongWork
    }

    fn ids(&self) -> Vec<u64> {
        vec![self.id]
    }

    fn id_fields() -> &'static [&'static str] {
        &["id"]
    }

    #[cfg(feature = "testing")]
    fn examples() -> Vec<Example> {
        vec![Example::new(
            r#"{"op":"suggest","graph":"g","id":5,"k":3}"#,
            crate::GraphAnswer::Suggestions(vec![(9, 2), (7, 1)]),
            r#"{"suggestions":[[9,2],[7,1]]}"#,
        )]
    }
}

/// The default number of members.
fn count() -> u32 {
    20
}
