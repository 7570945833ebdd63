//! The shared parts of the operations that read one list of associations.

#[cfg(feature = "nodes")]
pub(super) mod machine;
mod view;

pub use view::{AssociationView, AssociationsView};

#[cfg(feature = "testing")]
use super::Example;
use super::{
    PageStart,
    fields::{AnswerKind, Decoded, Fields, ID_BYTES},
    page::{AnswerPage, Pages},
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

/// The fields of an operation that reads one list of associations. All these operations are one kind of message, and one state
/// machine answers them.
pub(super) trait ListFields: Sized {
    /// How the list is divided into pages.
    const PAGES: Pages = Pages::None;

    /// The object that the associations leave.
    fn id1(&self) -> u64;

    /// The read that the fields ask for.
    fn read(&self) -> AssociationRead;

    /// The fields that ask for a read, if it is one of this operation.
    fn of(id1: u64, read: AssociationRead) -> Option<Self>;

    /// See [`Fields::id_fields`].
    fn id_fields() -> &'static [&'static str] {
        &["id1"]
    }

    /// See [`Fields::examples`].
    #[cfg(feature = "testing")]
    fn examples() -> Vec<Example>;

    /// The page that the fields ask for.
    fn page(&self) -> AnswerPage {
        AnswerPage::default()
    }

    /// See [`Fields::set_page`].
    fn set_page(&mut self, _: AnswerPage) {}

    /// See [`Fields::conflict`].
    fn conflict(&self, _: &AnswerPage) -> Option<&'static str> {
        None
    }
}

impl<F: ListFields> Fields for F {
    fn to_message(&self) -> Operand {
        let (id1, read) = (self.id1(), Some(association_read_to_wire(&self.read())));
        Operand::Associations(v1::AssociationsOperand { id1, read })
    }

    fn from_message(operand: Operand) -> Decoded<Self, Operand> {
        let message = match operand {
            Operand::Associations(message) => message,
            operand => return Decoded::Elsewhere(operand),
        };
        let read = message.read.as_ref().ok_or(ConvertError::Missing("associations.read"));
        match read.and_then(association_read_from_wire) {
            Ok(read) => match F::of(message.id1, read) {
                Some(fields) => Decoded::valid(fields),
                None => Decoded::Elsewhere(Operand::Associations(message)),
            },
            Err(error) => Decoded::Here(Err(error)),
        }
    }

    fn ids(&self) -> Vec<u64> {
        vec![self.id1()]
    }

    fn id_fields() -> &'static [&'static str] {
        <F as ListFields>::id_fields()
    }

    #[cfg(feature = "testing")]
    fn examples() -> Vec<Example> {
        <F as ListFields>::examples()
    }

    fn pages(&self) -> Pages {
        F::PAGES
    }

    fn page(&self) -> Option<AnswerPage> {
        Some(ListFields::page(self))
    }

    fn set_page(&mut self, page: AnswerPage) {
        ListFields::set_page(self, page);
    }

    fn conflict(&self, page: &AnswerPage) -> Option<&'static str> {
        ListFields::conflict(self, page)
    }

    fn needs_live_graph(&self) -> bool {
        true
    }
}

/// A page of a list.
pub(super) fn page(limit: Option<u32>, after: Option<PageStart>) -> AnswerPage {
    AnswerPage { limit: limit.map(u64::from), after }
}

/// The most associations of a page; a list is shorter than the greatest limit.
pub(super) fn limit(page: AnswerPage) -> Option<u32> {
    page.limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX))
}

#[cfg(feature = "testing")]
pub(super) fn example(more: Option<bool>) -> crate::GraphAnswer {
    let data = Some(r#"{"stars":3}"#.to_owned());
    let association = ListedAssociation { id2: 7, time: 50, data, version: Some(4) };
    crate::GraphAnswer::Associations(AssociationsAnswer { out: vec![association], more })
}
