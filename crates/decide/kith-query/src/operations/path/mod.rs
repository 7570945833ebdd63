//! The operation `path`: a shortest path between two members.

mod answer;
#[cfg(feature = "nodes")]
mod machine;
#[cfg(feature = "nodes")]
mod trace;
#[cfg(test)]
pub(super) mod twin;

pub use answer::PathAnswer;

#[cfg(feature = "testing")]
use super::Example;
use super::{
    fields::{Decoded, Fields},
    limits::PATH_LENGTH_MAX,
};
use kith_wire::v1::{self, query_request::Operand};
use serde::{Deserialize, Deserializer, Serialize, de::Error};

/// Asks for a shortest path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct PathQuery {
    /// The member to start from
    #[cfg_attr(feature = "flags", arg(id = "id", value_name = "ID"))]
    #[serde(rename = "id")]
    pub from: u64,
    /// The member to reach
    pub to: u64,
    /// The longest path to look for, 0 to 6
    #[cfg_attr(feature = "flags", arg(long, default_value_t = length(), allow_negative_numbers = true, value_parser = parse_length))]
    #[serde(default = "length", deserialize_with = "read_length")]
    pub max: u32,
}

impl Fields for PathQuery {
    fn to_message(&self) -> Operand {
        Operand::Path(v1::PathOperand { from: self.from, to: self.to, max: self.max })
    }

    fn from_message(operand: Operand) -> Decoded<Self, Operand> {
        match operand {
            Operand::Path(message) => {
                Decoded::valid(Self { from: message.from, to: message.to, max: message.max })
            }
            operand => Decoded::Elsewhere(operand),
        }
    }

    fn ids(&self) -> Vec<u64> {
        vec![self.from, self.to]
    }

    fn id_fields() -> &'static [&'static str] {
        &["id", "to"]
    }

    #[cfg(feature = "testing")]
    fn examples() -> Vec<Example> {
        vec![Example::new(
            r#"{"op":"path","graph":"g","id":5,"to":9,"max":3}"#,
            crate::GraphAnswer::Path(PathAnswer { members: vec![5, 7, 9] }),
            r#"{"length":2,"path":[5,7,9]}"#,
        )]
    }
}

fn length() -> u32 {
    PATH_LENGTH_MAX
}

// Numbers above the maximum are accepted here, because the operation itself refuses them as `out_of_range`, for every client.
#[cfg(feature = "flags")]
fn parse_length(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| length_expected())
}

fn read_length<'de, D: Deserializer<'de>>(input: D) -> Result<u32, D::Error> {
    u32::deserialize(input).map_err(|_| D::Error::custom(length_expected()))
}

fn length_expected() -> String {
    format!("the longest path to look for is a whole number from 0 to {PATH_LENGTH_MAX}")
}
