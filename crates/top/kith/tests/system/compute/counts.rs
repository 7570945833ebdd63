//! Counts over records: by value and by bucket.

use super::{WAYS, ask, one, people, with};
use serde_json::{Value, json};

#[test]
fn counts_are_exact_on_every_way_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = people(folder.path());
    let keys = json!([1, 2, 3, 4, 5, 9]);
    let request = |fields: Value| with(json!({"op": "aggregate", "store": "people", "keys": keys}), fields);
    let by_tag = request(json!({"count_by_value": {"field": "tags", "top": 2}}));
    let by_age = request(json!({"count_by_value": {"field": "age", "top": 9}}));
    let buckets = json!([{"name": "young", "lt": 18}, {"name": "named", "any_of": [17, 30]}, {"name": "none", "gt": 17, "lt": 30},
        {"name": "either", "or": [{"eq": -1}, {"and": [{"ge": 30}, {"le": 30.5}]}]}]);
    let by_bucket = request(json!({"count_by_bucket": {"field": "age", "buckets": buckets}}));
    let footer = json!({"found": 5, "absent": 1, "error": 0, "unanswered": 0, "versions": [1]});
    let value = |value: Value, count: u64| json!({"value": value, "count": count});
    let expected = [
        json!({"counts": [value(json!("a"), 3), value(json!("b"), 1)], "distinct": 3, "truncated": false, "footer": footer}),
        json!({"counts": [value(json!(30), 2), value(json!(-1), 1), value(json!(17), 1)], "distinct": 3, "truncated": false, "footer": footer}),
        json!({"counts": [{"bucket": "young", "count": 2}, {"bucket": "named", "count": 3}, {"bucket": "none", "count": 0},
            {"bucket": "either", "count": 3}], "truncated": false, "footer": footer}),
    ];
    for (way, at) in WAYS {
        let requests = [&by_tag, &by_age, &by_bucket].map(|request| with(request.clone(), json!({"at": at})));
        assert_eq!(ask(&cluster, way, &requests), expected, "{way:?} {at}");
    }
    let code = |fields: Value| one(&cluster, request(fields))["error"]["code"].clone();
    assert_eq!(code(json!({"count_by_value": {"field": "embed", "top": 2}})), "wrong_field_type");
    assert_eq!(code(json!({"count_by_value": {"field": "agee", "top": 2}})), "unknown_field");
    assert_eq!(
        code(json!({"count_by_bucket": {"field": "age", "buckets": [{"name": "x", "eq": "old"}]}})),
        "wrong_field_type"
    );
    assert_eq!(code(json!({})), "bad_request");
}
