//! The answer of `common`: as a message, and as it is printed.

use super::CommonQuery;
use crate::{
    GraphAnswer,
    convert::ConvertError,
    operations::{
        fields::{AnswerKind, Decoded, ID_BYTES, Presentation},
        ids,
        view::{Block, PrintedAnswer, WrongAnswer},
    },
};
use kith_wire::v1::{self, common_reply::Result as Form, query_reply::Answer};
use serde::Serialize;

/// The common connections or entities of two members, in the requested form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommonAnswer {
    /// The sorted, distinct ids.
    Ids(Vec<u64>),
    /// The number of ids.
    Size(u64),
    /// Whether there is any.
    Exists(bool),
}

impl AnswerKind for CommonAnswer {
    fn to_message(&self) -> Answer {
        let form = match self {
            CommonAnswer::Ids(ids) => Form::Ids(v1::IdSet { ids: ids.clone() }),
            CommonAnswer::Size(size) => Form::Size(*size),
            CommonAnswer::Exists(exists) => Form::Exists(*exists),
        };
        Answer::Common(v1::CommonReply { result: Some(form) })
    }

    fn bytes(&self) -> usize {
        match self {
            CommonAnswer::Ids(ids) => ids.len() * ID_BYTES,
            CommonAnswer::Size(_) | CommonAnswer::Exists(_) => 0,
        }
    }

    fn from_message(message: Answer, _: bool) -> Decoded<Self, Answer> {
        let form = match message {
            Answer::Common(reply) => reply.result,
            message => return Decoded::Elsewhere(message),
        };
        Decoded::Here(match form {
            Some(Form::Ids(set)) => Ok(CommonAnswer::Ids(set.ids)),
            Some(Form::Size(size)) => Ok(CommonAnswer::Size(size)),
            Some(Form::Exists(exists)) => Ok(CommonAnswer::Exists(exists)),
            None => Err(ConvertError::Missing("common.result")),
        })
    }
}

impl Presentation for CommonQuery {
    type View = CommonView;

    fn view(&self, answer: GraphAnswer) -> Result<CommonView, WrongAnswer> {
        match answer {
            GraphAnswer::Common(CommonAnswer::Ids(ids)) => Ok(CommonView::Ids { ids }),
            GraphAnswer::Common(CommonAnswer::Size(size)) => Ok(CommonView::Size { size }),
            GraphAnswer::Common(CommonAnswer::Exists(exists)) => Ok(CommonView::Exists { exists }),
            answer => Err(WrongAnswer::kind(&answer)),
        }
    }
}

/// The ids that two members have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "fields are named as in the JSON, which `docs/queries.md` describes")]
pub enum CommonView {
    Ids {
        #[serde(serialize_with = "ids::many")]
        ids: Vec<u64>,
    },
    Size {
        size: u64,
    },
    Exists {
        exists: bool,
    },
}

impl PrintedAnswer for CommonView {
    fn text(&self) -> Vec<Block> {
        vec![match self {
            CommonView::Ids { ids } => Block::Ids { title: "ids", ids: ids.clone() },
            CommonView::Size { size } => Block::Count(*size),
            CommonView::Exists { exists } => Block::Line(if *exists { "yes" } else { "no" }.to_owned()),
        }]
    }
}
