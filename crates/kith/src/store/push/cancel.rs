//! `kith store push S --cancel`: ends a push before it serves.

use crate::{
    connect::{self, TargetFlags},
    failure::Failure,
    output::{self, Format},
    store::one,
    table,
};
use kith_types::ErrorCode;
use kith_wire::v1::{self, store_request::Command};
use serde::Serialize;

/// A push that does not serve, as JSON: field names are a contract (`docs/stores.md`).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CancelReply {
    pub store: String,
    pub push: String,
    /// What it would have made; `null`: it had not begun.
    pub version: Option<u64>,
    /// Always: a push that cannot be cancelled is an error.
    pub cancelled: bool,
    /// The version that serves on; `null`: none.
    pub serves: Option<u64>,
}

/// Cancels the push under way, or that of an id.
///
/// # Errors
/// `no_push`, `push_served`, or if the cluster does not answer.
pub async fn run(
    target: &TargetFlags,
    format: Format,
    store: &str,
    push: Option<&str>,
) -> anyhow::Result<()> {
    let router = connect::router(target).await?;
    let command = Command::Cancel(v1::CancelPush { push: push.unwrap_or_default().to_owned() });
    let (document, _) = one(&router, store, command).await?;
    let mut ended = document.history.iter().rev();
    let ended = ended.find(|entry| {
        entry.cancelled.is_some() && push.is_none_or(|push| entry.push.as_deref() == Some(push))
    });
    // A push that has not begun, or that failed before, is no cancelled one of the history.
    let (push, version) = match (ended, push) {
        (Some(ended), _) => {
            (ended.push.clone().unwrap_or_default(), Some(ended.version).filter(|version| *version != 0))
        }
        (None, Some(push)) => (push.to_owned(), None),
        (None, None) => {
            let message = "the record does not name the push that was cancelled";
            return Err(Failure::new(ErrorCode::Internal, message, "report this with its log").into());
        }
    };
    let reply = CancelReply {
        store: store.to_owned(),
        push,
        version,
        cancelled: true,
        serves: document.current().map(|current| current.version),
    };
    output::print(format, &reply, table::push::cancelled)
}
