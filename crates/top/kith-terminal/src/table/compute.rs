//! Results of computations on records, as text for people.

use super::{
    Side, table as rows,
    values::{KeyLine, footer, key_lines, name, shown},
};
use crate::reply::{AggregateReply, ComputeReply, CountReply, Json, reason};

/// Returns one line per key, and the number of keys in each state.
pub fn results(reply: &ComputeReply) -> String {
    let lines = reply.results.iter().map(|key| KeyLine {
        key: &key.key,
        state: key.state,
        value: key.record.as_ref().map(Json::text),
        reason: reason(key.state, key.error.as_ref()),
    });
    key_lines("record", lines) + &footer(&reply.last)
}

/// Returns one line per value or bucket, and the number of keys in each state.
pub fn counts(reply: &AggregateReply) -> String {
    let columns = [("value", Side::Left), ("count", Side::Right)];
    let rows = rows(
        &columns,
        reply.counts.iter().map(|counted| match counted {
            CountReply::Value { value, count } => vec![name(value), count.to_string()],
            CountReply::Bucket { bucket, count } => vec![shown(bucket), count.to_string()],
        }),
    );
    let cut = if reply.truncated {
        "there are more distinct values than can be kept: some are not counted\n"
    } else {
        ""
    };
    rows + cut + &footer(&reply.last)
}
