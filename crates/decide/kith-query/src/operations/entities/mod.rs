//! The operation `entities`: the entities of one kind that a member has edges to.

#[cfg(feature = "nodes")]
mod machine;
#[cfg(test)]
mod twin;

#[cfg(feature = "testing")]
use super::Example;
use super::{
    fields::{Decoded, Fields, Presentation},
    ids,
    ids_answer::IdsView,
    page::Pages,
    view::{Block, PrintedAnswer, WrongAnswer},
};
use crate::GraphAnswer;
use kith_wire::v1::{self, query_request::Operand};
use serde::{Deserialize, Serialize};

/// Asks for a member's entities of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct EntitiesQuery {
    /// The member
    pub id: u64,
    /// The entity kind, such as `school`
    #[cfg_attr(feature = "flags", arg(long))]
    pub kind: String,
}

impl Fields for EntitiesQuery {
    fn to_message(&self) -> Operand {
        Operand::Entities(v1::EntitiesOperand { id: self.id, kind: self.kind.clone() })
    }

    fn from_message(operand: Operand) -> Decoded<Self, Operand> {
        match operand {
            Operand::Entities(message) => Decoded::valid(Self { id: message.id, kind: message.kind }),
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
            r#"{"op":"entities","graph":"g","id":5,"kind":"school","limit":2,"after":6}"#,
            GraphAnswer::Ids(vec![7, 9]),
            r#"{"entities":[7,9]}"#,
        )]
    }

    fn pages(&self) -> Pages {
        Pages::Ids
    }

    fn wants_ids(&self) -> bool {
        true
    }
}

impl Presentation for EntitiesQuery {
    type View = EntitiesView;

    fn view(&self, answer: GraphAnswer) -> Result<EntitiesView, WrongAnswer> {
        IdsView::of(answer).map(|IdsView { ids }| EntitiesView { entities: ids })
    }
}

/// The entities of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EntitiesView {
    /// The ids.
    #[serde(serialize_with = "ids::many")]
    pub entities: Vec<u64>,
}

impl PrintedAnswer for EntitiesView {
    fn text(&self) -> Vec<Block> {
        vec![Block::Ids { title: "entities", ids: self.entities.clone() }]
    }
}
