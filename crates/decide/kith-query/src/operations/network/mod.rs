//! The operation `network`: the first degree of a member, the members at distance exactly 2, their union, and the raw union
//! of the first degree's lists.

mod answer;
mod checksum;
#[cfg(feature = "nodes")]
pub(super) mod machine;
#[cfg(test)]
pub(super) mod twin;

pub use answer::NetworkAnswer;

#[cfg(feature = "testing")]
use super::Example;
use super::fields::{Decoded, Effort, Fields};
use crate::convert::ConvertError;
use kith_wire::v1::{self, query_request::Operand};
use serde::{Deserialize, Serialize};

/// Asks for the network of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct NetworkQuery {
    /// The member
    pub id: u64,
    /// What to return of the network
    #[cfg_attr(feature = "flags", arg(long = "return", value_name = "WHAT", value_enum, default_value_t))]
    #[serde(rename = "return", default)]
    pub returns: NetworkReturn,
}

/// The form of the sets in a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum NetworkReturn {
    /// Sizes and the ids of both degrees
    #[default]
    Ids,
    /// Sizes only
    Size,
    /// Sizes and a checksum of each set
    Sha,
}

impl NetworkReturn {
    /// Whether the ids must be fetched, because they are returned or summed.
    fn needs_ids(self) -> bool {
        self != NetworkReturn::Size
    }
}

impl Fields for NetworkQuery {
    fn to_message(&self) -> Operand {
        let want = if self.returns.needs_ids() { v1::Want::Ids } else { v1::Want::Size };
        Operand::Network(v1::NetworkOperand { id: self.id, want: want.into() })
    }

    fn from_message(operand: Operand) -> Decoded<Self, Operand> {
        let v1::NetworkOperand { id, want } = match operand {
            Operand::Network(message) => message,
            operand => return Decoded::Elsewhere(operand),
        };
        Decoded::Here(match v1::Want::try_from(want) {
            Ok(v1::Want::Ids) => Ok(Self { id, returns: NetworkReturn::Ids }),
            Ok(v1::Want::Size | v1::Want::Exists) => Ok(Self { id, returns: NetworkReturn::Size }),
            Err(_) => Err(ConvertError::Unknown { field: "want", got: want }),
        })
    }

    fn effort(&self) -> Effort {
        if self.returns == NetworkReturn::Ids { Effort::LongAnswer } else { Effort::OfAnswers }
    }

    fn ids(&self) -> Vec<u64> {
        vec![self.id]
    }

    fn id_fields() -> &'static [&'static str] {
        &["id"]
    }

    #[cfg(feature = "testing")]
    fn examples() -> Vec<Example> {
        let answer = |with_ids| {
            let network = kith_operators::Network::new(5, vec![6], &[5, 6, 7]);
            machine::answer(std::sync::Arc::new(network), with_ids)
        };
        vec![
            Example::new(
                r#"{"op":"network","graph":"g","id":5,"return":"ids"}"#,
                answer(true),
                r#"{"id":5,"degree":1,"n2":1,"net":2,"fof":3,"first":[6],"second":[7]}"#,
            ),
            Example::new(
                r#"{"op":"network","graph":"g","id":5,"return":"size"}"#,
                answer(false),
                r#"{"id":5,"degree":1,"n2":1,"net":2,"fof":3}"#,
            ),
        ]
    }

    fn wants_ids(&self) -> bool {
        self.returns.needs_ids()
    }

    fn cached_member(&self) -> Option<u64> {
        Some(self.id)
    }
}
