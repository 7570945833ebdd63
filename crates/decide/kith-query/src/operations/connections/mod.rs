//! The operation `connections`: the first degree of a member.

#[cfg(feature = "nodes")]
mod machine;
#[cfg(test)]
mod twin;

#[cfg(feature = "testing")]
use super::Example;
use super::{
    fields::{Decoded, Fields, Presentation},
    ids_answer::IdsView,
    page::Pages,
    view::WrongAnswer,
};
use crate::GraphAnswer;
use kith_wire::v1::{self, query_request::Operand};
use serde::{Deserialize, Serialize};

/// Asks for the members that a member is connected to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct ConnectionsQuery {
    /// The member
    pub id: u64,
}

impl Fields for ConnectionsQuery {
    fn to_message(&self) -> Operand {
        Operand::Connections(v1::ConnectionsOperand { id: self.id })
    }

    fn from_message(operand: Operand) -> Decoded<Self, Operand> {
        match operand {
            Operand::Connections(message) => Decoded::valid(Self { id: message.id }),
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
            r#"{"op":"connections","graph":"g","id":5,"limit":2,"after":6}"#,
            GraphAnswer::Ids(vec![7, 9]),
            r#"{"ids":[7,9]}"#,
        )]
    }

    fn pages(&self) -> Pages {
        Pages::Ids
    }

    fn wants_ids(&self) -> bool {
        true
    }
}

impl Presentation for ConnectionsQuery {
    type View = IdsView;

    fn view(&self, answer: GraphAnswer) -> Result<IdsView, WrongAnswer> {
        IdsView::of(answer)
    }
}
