//! Replies that arrive in several messages, because one would be too long.

use kith_wire::v1::{self, query_reply::Answer};
use tonic::Status;

/// Joins the `pieces` of a reply.
pub(super) fn joined(
    pieces: impl IntoIterator<Item = Result<v1::QueryReply, Status>>,
) -> Result<v1::QueryReply, Status> {
    let mut pieces = pieces.into_iter();
    let mut whole = pieces
        .next()
        .unwrap_or_else(|| Err(Status::data_loss("the router's stream ended before its first message")))?;
    for piece in pieces {
        join(&mut whole, piece?);
    }
    Ok(whole)
}

fn join(whole: &mut v1::QueryReply, piece: v1::QueryReply) {
    match (&mut whole.answer, piece.answer) {
        (Some(Answer::Ids(into)), Some(Answer::Ids(from))) => into.ids.extend(from.ids),
        (Some(Answer::Network(into)), Some(Answer::Network(from))) => {
            into.first.extend(from.first);
            into.second.extend(from.second);
            into.fof_near.extend(from.fof_near);
        }
        (Some(Answer::Common(into)), Some(Answer::Common(from))) => {
            if let (Some(v1::common_reply::Result::Ids(into)), Some(v1::common_reply::Result::Ids(from))) =
                (&mut into.result, from.result)
            {
                into.ids.extend(from.ids);
            }
        }
        _ => {}
    }
    if piece.profile.is_some() {
        whole.profile = piece.profile;
    }
}
