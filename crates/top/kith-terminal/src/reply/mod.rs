//! Answers as JSON. Field names and forms are a contract, tested by golden files (`docs/queries.md`).

#![allow(missing_docs, reason = "fields are named as in the JSON, which `docs/queries.md` describes")]

mod batch;
mod compute;
pub mod graphs;
mod profile;
pub mod stores;
mod stream;

pub use batch::{BatchReply, Footer, FooterLine, Json, KeyReply, Values, key_name, reason};
pub use compute::{AggregateReply, ComputeContext, ComputeReply, ComputedReply, CountReply};
pub use profile::{ExplainReply, InputsReply, ProfileReply, RequestReply, RoundReply};
pub use stream::StreamFooterLine;

use crate::failure::Failure;
use kith_client::QueryAnswer;
use kith_query::{AnswerView, WrongAnswer, line::GraphLine};
use kith_types::ErrorCode;
use serde::Serialize;

/// One answer, as a line of `kith run`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GraphReply {
    /// The result.
    #[serde(flatten)]
    pub reply: AnswerView,
    /// `Some(false)` if partitions are missing; omitted otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
    /// The partitions for which no node answered; omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_partitions: Vec<u32>,
    /// The plan and its timings, if they were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileReply>,
}

impl GraphReply {
    /// Returns the answer to `question` in the form in which it is printed.
    ///
    /// # Errors
    /// Returns `internal` if the answer is of another kind than the question.
    pub fn new(question: &GraphLine, answered: QueryAnswer) -> Result<Self, Failure> {
        Ok(Self {
            reply: question.operation.view(answered.answer).map_err(|error| wrong_kind(&error))?,
            complete: (!answered.complete).then_some(false),
            missing_partitions: answered.missing_partitions,
            profile: answered.profile.as_ref().map(ProfileReply::from),
        })
    }

    /// Whether the answer covers all partitions.
    pub fn is_complete(&self) -> bool {
        self.complete.is_none()
    }
}

fn wrong_kind(error: &WrongAnswer) -> Failure {
    let help = "this is a defect of Kith: please report it with the question";
    Failure::new(ErrorCode::Internal, error.to_string(), help)
}
