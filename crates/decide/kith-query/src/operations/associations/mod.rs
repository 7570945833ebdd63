//! The shared parts of the operations that read one list of associations.

mod machine;
mod view;

pub(super) use machine::Associations;
pub use view::{AssociationView, AssociationsView};

use super::{
    PageStart,
    fields::{AnswerKind, Decoded, ID_BYTES},
    page::AnswerPage,
};
use crate::convert::{
    ConvertError, association_read_from_wire, association_read_to_wire, associations_from_wire,
    associations_to_wire,
};
use kith_schema::live::{AssociationRead, ListedAssociation};
use kith_wire::v1::{self, query_reply::Answer, query_request::Operand};

/// Associations of one list, newest first. Of associations with equal times, the one with the smaller id comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssociationsAnswer {
    /// The associations.
    pub out: Vec<ListedAssociation>,
    /// Whether the limit or the cap of the type cut off further associations; `None` for `assoc_get`, which cuts nothing
    /// off.
    pub more: Option<bool>,
}

impl AnswerKind for AssociationsAnswer {
    fn to_message(&self) -> Answer {
        Answer::Associations(associations_to_wire(self))
    }

    fn bytes(&self) -> usize {
        let data = self.out.iter().filter_map(|association| association.data.as_ref());
        self.out.len() * 2 * ID_BYTES + data.map(String::len).sum::<usize>()
    }

    fn from_message(message: Answer, _: bool) -> Decoded<Self, Answer> {
        match message {
            Answer::Associations(reply) => Decoded::Here(associations_from_wire(reply)),
            message => Decoded::Elsewhere(message),
        }
    }
}

/// Encodes a read of a list.
pub(super) fn to_message(id1: u64, read: &AssociationRead) -> Operand {
    Operand::Associations(v1::AssociationsOperand { id1, read: Some(association_read_to_wire(read)) })
}

/// Decodes a read of a list, if `fields` makes the fields of an operation from it. All reads are one kind of message.
pub(super) fn from_message<T>(
    operand: Operand,
    fields: impl FnOnce(u64, AssociationRead) -> Option<T>,
) -> Decoded<T, Operand> {
    let message = match operand {
        Operand::Associations(message) => message,
        operand => return Decoded::Elsewhere(operand),
    };
    let read = message.read.as_ref().ok_or(ConvertError::Missing("associations.read"));
    match read.and_then(association_read_from_wire) {
        Ok(read) => match fields(message.id1, read) {
            Some(fields) => Decoded::valid(fields),
            None => Decoded::Elsewhere(Operand::Associations(message)),
        },
        Err(error) => Decoded::Here(Err(error)),
    }
}

/// The page of a list that a read asks for.
pub(super) fn page(limit: Option<u32>, after: Option<PageStart>) -> AnswerPage {
    AnswerPage { limit: limit.map(u64::from), after }
}

/// The most associations of a page; a list is shorter than the greatest limit.
pub(super) fn limit(page: AnswerPage) -> Option<u32> {
    page.limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX))
}
