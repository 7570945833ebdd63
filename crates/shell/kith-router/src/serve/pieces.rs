//! Splits replies to graph queries that are too long for one message.

use kith_wire::v1::{self, query_reply::Answer};

/// The most ids in one message of a stream: at most 640 KiB as varints.
const PIECE_IDS: usize = 65_536;

/// Splits a reply into messages of at most [`PIECE_IDS`] ids. The profile goes with the last one.
pub(crate) fn pieces(mut reply: v1::QueryReply) -> Vec<v1::QueryReply> {
    let profile = reply.profile.take();
    let answers: Vec<Answer> = match reply.answer.take() {
        Some(Answer::Ids(set)) => chunks(set.ids).map(|ids| Answer::Ids(v1::IdSet { ids })).collect(),
        Some(Answer::Common(v1::CommonReply { result: Some(v1::common_reply::Result::Ids(set)) })) => {
            chunks(set.ids)
                .map(|ids| {
                    Answer::Common(v1::CommonReply {
                        result: Some(v1::common_reply::Result::Ids(v1::IdSet { ids })),
                    })
                })
                .collect()
        }
        Some(Answer::Network(network)) => network_pieces(network).into_iter().map(Answer::Network).collect(),
        other => other.into_iter().collect(),
    };
    let mut pieces: Vec<v1::QueryReply> =
        answers.into_iter().map(|answer| v1::QueryReply { answer: Some(answer), ..reply.clone() }).collect();
    if let Some(last) = pieces.last_mut() {
        last.profile = profile;
    }
    pieces
}

/// Returns at least one chunk, so that an empty set is still an answer.
fn chunks(ids: Vec<u64>) -> impl Iterator<Item = Vec<u64>> {
    let count = ids.len().div_ceil(PIECE_IDS).max(1);
    (0..count).map(move |chunk| ids[chunk * PIECE_IDS..].iter().take(PIECE_IDS).copied().collect())
}

fn network_pieces(mut network: v1::NetworkReply) -> Vec<v1::NetworkReply> {
    let (first, second) = (std::mem::take(&mut network.first), std::mem::take(&mut network.second));
    let near = std::mem::take(&mut network.fof_near);
    let sizes = network.clone();
    let mut pieces = vec![network];
    pieces.extend(chunks(first).map(|first| v1::NetworkReply { first, ..sizes.clone() }));
    pieces.extend(chunks(second).map(|second| v1::NetworkReply { second, ..sizes.clone() }));
    pieces.extend(chunks(near).map(|fof_near| v1::NetworkReply { fof_near, ..sizes.clone() }));
    pieces
}

/// Whether the reply fits into one message.
pub(crate) fn is_short(reply: &v1::QueryReply) -> bool {
    ids_in(reply.answer.as_ref()) <= PIECE_IDS
}

fn ids_in(answer: Option<&Answer>) -> usize {
    match answer {
        Some(Answer::Ids(set)) => set.ids.len(),
        Some(Answer::Common(v1::CommonReply { result: Some(v1::common_reply::Result::Ids(set)) })) => {
            set.ids.len()
        }
        Some(Answer::Network(network)) => network.first.len() + network.second.len() + network.fof_near.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_sets_come_in_pieces_and_empty_ones_in_one() {
        let reply = |ids: Vec<u64>| v1::QueryReply {
            complete: true,
            profile: Some(v1::Profile::default()),
            answer: Some(Answer::Ids(v1::IdSet { ids })),
            ..Default::default()
        };
        let many = pieces(reply((0..PIECE_IDS as u64 * 2 + 1).collect()));
        let sizes: Vec<usize> = many
            .iter()
            .map(|piece| match &piece.answer {
                Some(Answer::Ids(set)) => set.ids.len(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(sizes, [PIECE_IDS, PIECE_IDS, 1]);
        assert!(many[0].profile.is_none() && many[2].profile.is_some());
        assert_eq!(pieces(reply(vec![])).len(), 1);
    }
}
