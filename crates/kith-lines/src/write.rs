//! A request as the line that `kith run` reads: for the record and the slow-query log.

use crate::Operation;
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use kith_api::{BatchKeys, CacheMode, QueryOptions, Question, Request};
use kith_ops::{GraphQuery, Operand};
use kith_routing::FanOutLimits;
use kith_schema::compute::{
    AggregatePlan, Bucket, ComputeFunction, ComputePlan, GroupBy, Operand as Compared, Predicate,
};
use kith_types::{ByteKeys, Direction, Workflow};
use serde_json::{Map, Value, json};

/// A request as the line that `kith run` reads; `None` if there is no such line.
pub fn request_json(Request { question, options }: &Request) -> Option<Value> {
    Some(match question {
        Question::Graph { graph, query } => query_json(graph, query, options),
        Question::Values { store, keys } => batch_json(store, keys, options),
        Question::Compute { store, keys, query } => compute_json(store, keys, &query.plan, options),
        Question::Aggregate { store, keys, query } => aggregate_json(store, keys, &query.plan, options),
        Question::Explain { .. } | Question::Shape { .. } | Question::Schema { .. } => return None,
    })
}

/// A request as the slow-query log shows it, with the number of keys in place of the keys. `op` is its name in metrics.
pub fn summary_json(Request { question, options }: &Request, op: &'static str) -> Value {
    match question {
        Question::Graph { graph, query } => query_json(graph, query, options),
        Question::Explain { graph, query } => {
            let mut line = query_json(graph, query, options);
            line["explain"] = Value::Bool(true);
            line
        }
        _ => {
            let op = options.door.map_or(op, |_| question.name());
            json!({"op": op, "store": question.of(), "keys": question.keys().map(BatchKeys::len)})
        }
    }
}

/// The JSON object of a graph query's line. Options with their default values are omitted.
pub fn query_json(graph: &str, query: &GraphQuery, options: &QueryOptions) -> Value {
    let mut object = operation(&query.operand);
    object.insert("graph".into(), json!(graph));
    if query.workflow == Workflow::Background {
        object.insert("workflow".into(), json!("background"));
    }
    if let Some(edge_type) = &query.edge_type {
        object.insert("edge_type".into(), json!(edge_type));
    }
    if let Some(direction) = query.direction {
        let name = match direction {
            Direction::Out => "out",
            Direction::In => "in",
            Direction::Both => "both",
        };
        object.insert("direction".into(), json!(name));
    }
    object.extend(options_json(options));
    match options.cache {
        CacheMode::Use => {}
        CacheMode::Bypass => drop(object.insert("cache".into(), json!("bypass"))),
        CacheMode::Refresh => drop(object.insert("cache".into(), json!("refresh"))),
    }
    let (after, limit) = match &query.operand {
        Operand::Edges(edges) => (edges.after.map(|cursor| json!(cursor.to_string())), edges.limit),
        _ => (options.page.after.map(Value::from), options.page.limit),
    };
    let page = [("after", after), ("limit", limit.map(Value::from))];
    object.extend(page.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    Value::Object(object)
}

/// The options that graphs and stores share, without those that have their default values.
fn options_json(options: &QueryOptions) -> Map<String, Value> {
    let mut object = Map::new();
    if options.workflow == Workflow::Background {
        object.insert("workflow".into(), json!("background"));
    }
    if options.fan_out != FanOutLimits::default() {
        object.insert("fan_out".into(), json!(options.fan_out.to_string()));
    }
    if let Some(policy) = &options.policy {
        object.insert("policy".into(), json!(policy));
    }
    if let Some(hedging) = options.hedging {
        object.insert("hedge".into(), json!(hedging.name()));
    }
    if let Some(deadline) = options.deadline {
        object.insert("deadline_ms".into(), json!(deadline.as_millis() as u64));
    }
    if options.partial {
        object.insert("partial".into(), json!(true));
    }
    object
}

/// The name of the operation and its own fields.
fn operation(operand: &Operand) -> Map<String, Value> {
    let mut fields = Map::new();
    // serde writes a variant with fields as an object with one member, which has the name of the operation.
    if let Ok(Value::Object(tagged)) = serde_json::to_value(Operation::of(operand)) {
        for (op, own) in tagged {
            fields.insert("op".to_owned(), Value::String(op));
            fields.extend(own.as_object().cloned().unwrap_or_default());
        }
    }
    fields
}

/// The JSON object of a batch read's line. Options with their default values are omitted.
pub fn batch_json(store: &str, keys: &BatchKeys, options: &QueryOptions) -> Value {
    Value::Object(keyed("mget", store, keys, options))
}

/// The JSON object of a computation's line.
pub fn compute_json(store: &str, keys: &BatchKeys, plan: &ComputePlan, options: &QueryOptions) -> Value {
    let mut line = keyed("compute", store, keys, options);
    if !plan.project.is_empty() {
        line.insert("project".into(), json!(plan.project));
    }
    for operator in &plan.operators {
        let mut entry = json!({"field": operator.field, "as": operator.name});
        match &operator.function {
            ComputeFunction::Dot(query)
            | ComputeFunction::Cosine(query)
            | ComputeFunction::Hadamard(query) => {
                entry["query"] = json!(query);
            }
            ComputeFunction::Count => {}
        }
        let entries = line.entry(operator.function.name()).or_insert_with(|| json!([]));
        entries.as_array_mut().expect("made so").push(entry);
    }
    if let Some(top_k) = &plan.top_k {
        line.insert("top_k".into(), json!({"by": top_k.by, "k": top_k.k}));
    }
    Value::Object(line)
}

/// The JSON object of an aggregation's line.
pub fn aggregate_json(store: &str, keys: &BatchKeys, plan: &AggregatePlan, options: &QueryOptions) -> Value {
    let mut line = keyed("aggregate", store, keys, options);
    let field = &plan.field;
    match &plan.by {
        GroupBy::Value { top } => {
            line.insert("count_by_value".into(), json!({"field": field, "top": top}));
        }
        GroupBy::Bucket(buckets) => {
            let buckets: Vec<Value> = buckets.iter().map(bucket_json).collect();
            line.insert("count_by_bucket".into(), json!({"field": field, "buckets": buckets}));
        }
    }
    Value::Object(line)
}

/// The members of its condition, and its name.
fn bucket_json(bucket: &Bucket) -> Value {
    let mut object = predicate_json(&bucket.predicate);
    object.insert("name".into(), json!(bucket.name));
    Value::Object(object)
}

fn predicate_json(predicate: &Predicate) -> Map<String, Value> {
    let several =
        |inner: &[Predicate]| inner.iter().map(|inner| Value::Object(predicate_json(inner))).collect();
    let (name, value) = match predicate {
        Predicate::Compare(comparison, operand) => (comparison.name(), operand_json(operand)),
        Predicate::AnyOf(operands) => ("any_of", operands.iter().map(operand_json).collect()),
        Predicate::And(inner) => ("and", several(inner)),
        Predicate::Or(inner) => ("or", several(inner)),
    };
    Map::from_iter([(name.to_owned(), value)])
}

fn operand_json(operand: &Compared) -> Value {
    match operand {
        Compared::Bool(value) => json!(value),
        Compared::Whole(value) => json!(value),
        Compared::Float(value) => json!(value),
        Compared::Text(text) => json!(text),
    }
}

fn keyed(op: &str, store: &str, keys: &BatchKeys, options: &QueryOptions) -> Map<String, Value> {
    let mut line = options_json(options);
    line.insert("op".into(), json!(op));
    line.insert("store".into(), json!(store));
    let (keys, encoding) = match keys {
        BatchKeys::Ids(ids) => (json!(ids), None),
        BatchKeys::Bytes(keys) => keys_json(keys),
    };
    line.insert("keys".into(), keys);
    if let Some(encoding) = encoding {
        line.insert("key_encoding".into(), json!(encoding));
    }
    line
}

/// Keys are written as text if all of them are text, else in base64.
fn keys_json(keys: &ByteKeys) -> (Value, Option<&'static str>) {
    let text: Result<Vec<&str>, _> = keys.iter().map(std::str::from_utf8).collect();
    match text {
        Ok(text) => (json!(text), Some("text")),
        Err(_) => (keys.iter().map(|key| BASE64.encode(key)).collect(), Some("base64")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_ops::Want;

    /// A test in `lib.rs` reads these golden bytes.
    #[test]
    fn golden_bytes_of_recorded_lines() {
        let options = QueryOptions {
            workflow: Workflow::Background,
            policy: Some("borrow".to_owned()),
            deadline: Some(std::time::Duration::from_millis(250)),
            partial: true,
            ..QueryOptions::default()
        };
        let network = GraphQuery {
            operand: Operand::Network { id: 42, want: Want::Size },
            edge_type: Some("follows".to_owned()),
            direction: Some(Direction::Out),
            workflow: Workflow::Background,
        };
        let keys = BatchKeys::Ids(vec![u64::MAX, 1]);
        let compute = ComputePlan { project: vec!["title".to_owned()], ..ComputePlan::default() };
        let aggregate =
            AggregatePlan { field: "age".to_owned(), by: GroupBy::Value { top: 3 }, reader: None };
        let lines = [
            query_json("people", &network, &options),
            batch_json("people", &BatchKeys::Bytes(["a", ""].iter().collect()), &options),
            compute_json("people", &keys, &compute, &options),
            aggregate_json("people", &keys, &aggregate, &options),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        crate::golden::file("record.jsonl", text.as_bytes());
    }

    #[test]
    fn batches_are_recorded_as_lines_that_can_be_replayed() {
        let options = QueryOptions { partial: true, ..QueryOptions::default() };
        let line = |keys| batch_json("people", &keys, &options);
        let ids = json!({"op": "mget", "store": "people", "keys": [u64::MAX, 1], "partial": true});
        assert_eq!(line(BatchKeys::Ids(vec![u64::MAX, 1])), ids);
        let text = line(BatchKeys::Bytes(["a", ""].iter().collect()));
        assert_eq!((&text["keys"], &text["key_encoding"]), (&json!(["a", ""]), &json!("text")));
        let bytes = line(BatchKeys::Bytes([[0xff_u8, 0]].iter().collect()));
        assert_eq!((&bytes["keys"], &bytes["key_encoding"]), (&json!(["/wA="]), &json!("base64")));
    }
}
