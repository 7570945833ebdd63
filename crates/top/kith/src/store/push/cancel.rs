//! `kith store push STORE --cancel`: ends a push before its version is served.

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

/// A cancelled push, as JSON. The field names are a contract: see `docs/stores.md`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CancelReply {
    pub store: String,
    pub push: String,
    /// The number that its version would have had; `null` if the push had not begun.
    pub version: Option<u64>,
    /// Always true: a push that cannot be cancelled is an error.
    pub cancelled: bool,
    /// The version that stays served; `null` if there is none.
    pub serves: Option<u64>,
}

/// Cancels the running push, or the push with this id.
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
    // The history does not contain a push that had not begun, or that had failed before, as cancelled.
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
