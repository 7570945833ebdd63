//! The traits by which the folder of an operation serves the rest of the crate.

#[cfg(feature = "testing")]
use super::Example;
use super::{
    page::{AnswerPage, Pages},
    view::{PrintedAnswer, WrongAnswer},
};
use crate::{GraphAnswer, convert::ConvertError};
use kith_wire::v1;
use v1::{query_reply::Answer as AnswerMessage, query_request::Operand};

/// The fields of an operation: one struct that is the JSON line, the flags and the parameters of a query.
pub(crate) trait Fields {
    /// Encodes the fields.
    fn to_message(&self) -> Operand;

    /// Decodes the fields, if they are those of this operation.
    fn from_message(operand: Operand) -> Decoded<Self, Operand>
    where
        Self: Sized;

    /// The ids of members, entities or objects that the fields name.
    fn ids(&self) -> Vec<u64>;

    /// The names of the fields that hold ids. Request lines may have these as texts of digits, because JavaScript rounds
    /// numbers above 2^53.
    fn id_fields() -> &'static [&'static str]
    where
        Self: Sized;

    /// Requests that together have every field, each with an answer, for the tests of all operations.
    #[cfg(feature = "testing")]
    fn examples() -> Vec<Example>
    where
        Self: Sized;

    /// How the answer is divided into pages.
    fn pages(&self) -> Pages {
        Pages::None
    }

    /// The page that the fields ask for; `None` if the page of the answer is an option of the query, not a field.
    fn page(&self) -> Option<AnswerPage> {
        None
    }

    /// Asks for a page, if the page is a field.
    fn set_page(&mut self, _: AnswerPage) {}

    /// The reason why the fields do not go together with this page.
    fn conflict(&self, _: &AnswerPage) -> Option<&'static str> {
        None
    }

    /// Whether only live graphs can answer.
    fn needs_live_graph(&self) -> bool {
        false
    }

    /// Whether the answer consists of ids, so that it can be too large for one message.
    fn wants_ids(&self) -> bool {
        false
    }

    /// The member whose network the operation reads through the cache.
    fn cached_member(&self) -> Option<u64> {
        None
    }

    /// How much the process that asks the nodes computes and keeps in memory.
    fn effort(&self) -> Effort {
        Effort::OfAnswers
    }
}

/// How much an operation computes in the process that asks the nodes, and keeps in memory there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// As much as nodes have answered, which is known only then.
    OfAnswers,
    /// The answer may have as many ids as the graph. It is in memory until it is encoded.
    LongAnswer,
    /// Much is computed before the answer.
    LongWork,
}

/// How the answer to an operation is printed.
pub trait Presentation {
    /// The answer as it is printed. Python returns the same as a dictionary or, if it has one member, the value of that
    /// member.
    type View: PrintedAnswer;

    /// Prepares an answer for being printed.
    ///
    /// # Errors
    /// If the answer is of another kind than the operation's.
    fn view(&self, answer: GraphAnswer) -> Result<Self::View, WrongAnswer>;
}

/// The size of an id in memory, for the estimates of [`AnswerKind::bytes`].
pub(crate) const ID_BYTES: usize = size_of::<u64>();

/// An answer that one or several operations give.
pub(crate) trait AnswerKind: Sized {
    /// Encodes the answer.
    fn to_message(&self) -> AnswerMessage;

    /// Roughly how many bytes the variable part of the answer takes, with which doors bound what they hold.
    fn bytes(&self) -> usize;

    /// Decodes the answer, if it is of this kind. The pieces of a stream must have been joined.
    fn from_message(message: AnswerMessage, ids_wanted: bool) -> Decoded<Self, AnswerMessage>;
}

/// A message that the folders of operations try to decode in turn.
pub(crate) enum Decoded<T, M> {
    /// The message belongs here.
    Here(Result<T, ConvertError>),
    /// The message belongs to another folder.
    Elsewhere(M),
}

impl<T, M> Decoded<T, M> {
    /// A message that is always valid.
    pub(crate) fn valid(value: T) -> Self {
        Self::Here(Ok(value))
    }
}
