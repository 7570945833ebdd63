//! The operation `members`: the members that have edges to an entity.

#[cfg(feature = "nodes")]
mod machine;

#[cfg(feature = "testing")]
use super::Example;
use super::{
    fields::{Decoded, Effort, Fields, Presentation},
    ids_answer::IdsView,
    page::Pages,
    view::WrongAnswer,
};
use crate::GraphAnswer;
use kith_wire::v1::{self, query_request::Operand};
use serde::{Deserialize, Serialize};

/// Asks for the members of an entity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct MembersQuery {
    /// The entity; unique only together with its kind
    pub entity: u64,
    /// The entity kind, such as `school`
    #[cfg_attr(feature = "flags", arg(long))]
    pub kind: String,
}

impl Fields for MembersQuery {
    fn to_message(&self) -> Operand {
        Operand::Members(v1::MembersOperand { kind: self.kind.clone(), entity: self.entity })
    }

    fn from_message(operand: Operand) -> Decoded<Self, Operand> {
        match operand {
            Operand::Members(message) => Decoded::valid(Self { entity: message.entity, kind: message.kind }),
            operand => Decoded::Elsewhere(operand),
        }
    }

    fn effort(&self) -> Effort {
        Effort::LongAnswer
    }

    fn ids(&self) -> Vec<u64> {
        vec![self.entity]
    }

    fn id_fields() -> &'static [&'static str] {
        &["entity"]
    }

    #[cfg(feature = "testing")]
    fn examples() -> Vec<Example> {
        vec![Example::new(
            r#"{"op":"members","graph":"g","entity":5,"kind":"school","limit":2,"after":6}"#,
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

impl Presentation for MembersQuery {
    type View = IdsView;

    fn view(&self, answer: GraphAnswer) -> Result<IdsView, WrongAnswer> {
        IdsView::of(answer)
    }
}
