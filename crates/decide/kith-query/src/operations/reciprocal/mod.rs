//! The operation `reciprocal`: the members that a member follows and that follow it.

mod answer;
#[cfg(feature = "nodes")]
mod machine;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod twin;

pub use answer::ReciprocalAnswer;

#[cfg(feature = "testing")]
use super::Example;
use super::{
    fields::{Decoded, Fields},
    page::{AnswerPage, Pages},
};
use kith_wire::v1::{self, query_request::Operand};
use serde::{Deserialize, Serialize};

/// The greatest `limit`.
const LIMIT_MAX: u64 = 100_000;

/// Asks for the members that a member follows and that follow it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct ReciprocalQuery {
    /// The member
    pub id: u64,
    /// The most ids of the answer, 1 to 100,000; 1,000 by default. An option of the line.
    #[cfg_attr(feature = "flags", arg(skip))]
    #[serde(skip)]
    pub limit: Option<u64>,
}

impl Fields for ReciprocalQuery {
    fn to_message(&self) -> Operand {
        Operand::Reciprocal(v1::ReciprocalOperand { id: self.id, limit: self.limit })
    }

    fn from_message(operand: Operand) -> Decoded<Self, Operand> {
        match operand {
            Operand::Reciprocal(message) => Decoded::valid(Self { id: message.id, limit: message.limit }),
            operand => Decoded::Elsewhere(operand),
        }
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
            r#"{"op":"reciprocal","graph":"g","id":5,"limit":2}"#,
            crate::GraphAnswer::Reciprocal(ReciprocalAnswer { ids: vec![7, 9], truncated: true }),
            r#"{"ids":[7,9],"truncated":true}"#,
        )]
    }

    fn pages(&self) -> Pages {
        Pages::First
    }

    fn page(&self) -> Option<AnswerPage> {
        Some(AnswerPage::after_id(self.limit, None))
    }

    fn set_page(&mut self, page: AnswerPage) {
        self.limit = page.limit;
    }
}
