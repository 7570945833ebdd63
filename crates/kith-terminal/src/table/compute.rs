//! What was worked out of records, for people.

use super::{
    Side, table as rows,
    values::{KeyLine, footer, key_lines, name, shown},
};
use crate::reply::{AggregateReply, ComputeReply, CountReply, Json, reason};

/// A line a key, and how many ended how.
pub fn results(reply: &ComputeReply) -> String {
    let lines = reply.results.iter().map(|key| KeyLine {
        key: &key.key,
        state: key.state,
        value: key.record.as_ref().map(Json::text),
        reason: reason(key.state, key.error.as_ref()),
    });
    key_lines("record", lines) + &footer(&reply.last)
}

/// A line a value or bucket, and how many keys ended how.
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
