//! What was worked out of records, for people.

use super::{
    Side, table as rows,
    values::{footer, shown},
};
use crate::reply::{AggregateReply, ComputeReply, CountReply};
use serde_json::Value;

/// A line a key, and how many ended how.
pub fn results(reply: &ComputeReply) -> String {
    let columns = [("key", Side::Left), ("state", Side::Left), ("record", Side::Left)];
    let rows = rows(
        &columns,
        reply.results.iter().map(|key| {
            let record = key.record.as_ref().map(|json| shown(json.text())).unwrap_or_default();
            vec![text(&key.key), key.state.to_owned(), record]
        }),
    );
    rows + &footer(&reply.last)
}

/// A line a value or bucket, and how many keys ended how.
pub fn counts(reply: &AggregateReply) -> String {
    let columns = [("value", Side::Left), ("count", Side::Right)];
    let rows = rows(
        &columns,
        reply.counts.iter().map(|counted| match counted {
            CountReply::Value { value, count } => vec![text(value), count.to_string()],
            CountReply::Bucket { bucket, count } => vec![shown(bucket), count.to_string()],
        }),
    );
    let cut =
        if reply.truncated { "there are more values than are kept: some are not counted\n" } else { "" };
    rows + cut + &footer(&reply.last)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), shown)
}
