//! Writes a request as the line that `kith run` reads, for the record of requests and the slow-query log. The types that
//! parse a line also write it.

use crate::{
    BatchKeys, GraphQuery, QueryOptions, Question, Request,
    line::{
        AggregateFields, BatchFields, ComputeFields, ReadOptions, WriteLine,
        compute::{AGGREGATE, COMPUTE},
        gremlin,
        json::members,
        options::{GraphOptions, WorkflowName},
        store::{MGET, StoreKeys},
    },
};
use kith_types::Workflow;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Returns a request as the line that `kith run` reads; `None` if there is no such line.
pub fn request_json(Request { question, options }: &Request) -> Option<Value> {
    Some(match question {
        Question::Graph { graph, query } => query_json(graph, query, options),
        Question::Values { store, keys } => {
            store_json(MGET, StoreKeys::of(store, keys), &BatchFields {}, options)
        }
        Question::Compute { store, keys, query } => {
            store_json(COMPUTE, StoreKeys::of(store, keys), &ComputeFields::of(&query.plan), options)
        }
        Question::Aggregate { store, keys, query } => {
            store_json(AGGREGATE, StoreKeys::of(store, keys), &AggregateFields::of(&query.plan), options)
        }
        Question::Write { graph, write } => write_json(&WriteLine::of(graph, write, options)?),
        Question::Gremlin { graph, query } => gremlin::gremlin_json(graph, query, options)?,
        Question::Explain { .. } | Question::Shape { .. } | Question::Schema { .. } => return None,
    })
}

/// Returns a request as the slow-query log shows it: with the number of keys in place of the keys. `op` is the name of the
/// request in metrics.
pub fn summary_json(Request { question, options }: &Request, op: &'static str) -> Value {
    match question {
        Question::Graph { graph, query } => query_json(graph, query, options),
        Question::Explain { graph, query } => {
            let mut line = query_json(graph, query, options);
            line["explain"] = Value::Bool(true);
            line
        }
        Question::Gremlin { graph, query } => gremlin::summary(graph, query),
        Question::Write { graph, write } => {
            // The data are omitted because they may be long or private.
            json!({"op": write.mutation.name(), "graph": graph, "write_id": write.write_id.as_ref().map(ToString::to_string)})
        }
        _ => {
            let op = options.door.map_or(op, |_| question.name());
            json!({"op": op, "store": question.of(), "keys": question.keys().map(BatchKeys::len)})
        }
    }
}

/// The JSON object of a graph query's line. Options with their default values are omitted.
fn query_json(graph: &str, query: &GraphQuery, options: &QueryOptions) -> Value {
    let mut read = ReadOptions::of(options);
    if query.workflow == Workflow::Background {
        read.workflow = WorkflowName::Background;
    }
    let mut line = operation(&query.operation);
    line.extend(members(&GraphOptions::of(graph, query, options)));
    line.extend(members(&read));
    Value::Object(line)
}

/// The JSON object of a write's line.
fn write_json(line: &WriteLine) -> Value {
    let mut written = operation(&line.operation);
    written.extend(members(&line.options));
    Value::Object(written)
}

/// Returns the name of the operation and its own fields.
fn operation(operation: &impl Serialize) -> Map<String, Value> {
    let mut line = Map::new();
    // serde writes a variant with fields as an object with one member, which has the name of the operation.
    for (op, fields) in members(operation) {
        line.insert("op".to_owned(), Value::String(op));
        line.extend(members(&fields));
    }
    line
}

/// The JSON object of a line about keys of a store. Options with their default values are omitted.
fn store_json(op: &str, keys: StoreKeys, fields: &impl Serialize, options: &QueryOptions) -> Value {
    let mut line = members(&keys);
    line.insert("op".to_owned(), json!(op));
    line.extend(members(fields));
    line.extend(members(&ReadOptions::of(options)));
    Value::Object(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{Line, parse};
    use crate::{AggregateQuery, ComputeAt, ComputeQuery};
    use crate::{NetworkQuery, NetworkReturn};
    use kith_schema::compute::{
        AggregatePlan, Bucket, Comparison, ComputeFunction, ComputePlan, GroupBy, Operand as Compared,
        Predicate, TopK,
    };
    use kith_types::Direction;

    fn line(question: Question, options: &QueryOptions) -> Value {
        request_json(&Request { question, options: options.clone() }).unwrap()
    }

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
            operation: NetworkQuery { id: 42, returns: NetworkReturn::Size }.into(),
            edge_type: Some("follows".to_owned()),
            direction: Some(Direction::Out),
            workflow: Workflow::Background,
        };
        let (store, ids) = (|| "people".to_owned(), BatchKeys::Ids(vec![u64::MAX, 1]));
        let plan = ComputePlan { project: vec!["title".to_owned()], ..ComputePlan::default() };
        let compute = ComputeQuery { plan, ..ComputeQuery::default() };
        let plan = AggregatePlan { field: "age".to_owned(), by: GroupBy::Value { top: 3 }, reader: None };
        let aggregate = AggregateQuery { plan, at: ComputeAt::Nodes };
        let lines = [
            Question::Graph { graph: store(), query: network },
            Question::Values { store: store(), keys: BatchKeys::Bytes(["a", ""].iter().collect()) },
            Question::Compute { store: store(), keys: ids.clone(), query: compute },
            Question::Aggregate { store: store(), keys: ids, query: aggregate },
        ];
        let text: String = lines.map(|question| format!("{}\n", line(question, &options))).concat();
        kith_sim::golden::file("record.jsonl", text.as_bytes());
    }

    #[test]
    fn batches_are_recorded_as_lines_that_can_be_replayed() {
        let options = QueryOptions { partial: true, ..QueryOptions::default() };
        let line = |keys| line(Question::Values { store: "people".to_owned(), keys }, &options);
        let ids = json!({"op": "mget", "store": "people", "keys": [u64::MAX, 1], "partial": true});
        assert_eq!(line(BatchKeys::Ids(vec![u64::MAX, 1])), ids);
        let text = line(BatchKeys::Bytes(["a", ""].iter().collect()));
        assert_eq!((&text["keys"], &text["key_encoding"]), (&json!(["a", ""]), &json!("text")));
        let bytes = line(BatchKeys::Bytes([[0xff_u8, 0]].iter().collect()));
        assert_eq!((&bytes["keys"], &bytes["key_encoding"]), (&json!(["/wA="]), &json!("base64")));
    }

    #[test]
    fn plans_come_back_from_the_lines_that_are_written() {
        let less = Predicate::Compare(Comparison::Lt, Compared::Float(30.5));
        let any = Predicate::AnyOf(vec![Compared::Text("a".to_owned()), Compared::Bool(true)]);
        let equal = Predicate::Compare(Comparison::Eq, Compared::Whole(u64::MAX.into()));
        let all = Predicate::And(vec![less, Predicate::Or(vec![any, equal])]);
        let by = GroupBy::Bucket(vec![Bucket { name: "b".to_owned(), predicate: all }]);
        let aggregate = AggregatePlan { field: "age".to_owned(), by, reader: None };
        let compute = ComputePlan::new()
            .operator(ComputeFunction::Dot(vec![0.5, -1.0]), "v", Some("score".to_owned()))
            .operator(ComputeFunction::Cosine(vec![0.1]), "v", None)
            .operator(ComputeFunction::Hadamard(vec![1.0]), "v", None)
            .operator(ComputeFunction::Count, "tags", Some("n".to_owned()));
        let top_k = Some(TopK { by: "score".to_owned(), k: 20 });
        let compute = ComputePlan { project: vec!["title".to_owned()], top_k, ..compute };
        let (store, keys) = ("people".to_owned(), BatchKeys::Ids(vec![1]));
        let query = ComputeQuery { plan: compute.clone(), ..ComputeQuery::default() };
        let written = line(
            Question::Compute { store: store.clone(), keys: keys.clone(), query },
            &QueryOptions::default(),
        );
        let Ok(Line::Compute(read)) = parse(&written.to_string()) else { panic!("{written}") };
        assert_eq!(read.fields.query().plan, compute);
        let query = AggregateQuery { plan: aggregate.clone(), at: ComputeAt::Nodes };
        let written = line(Question::Aggregate { store, keys, query }, &QueryOptions::default());
        let Ok(Line::Aggregate(read)) = parse(&written.to_string()) else { panic!("{written}") };
        assert_eq!(read.fields.query().unwrap().plan, aggregate);
    }
}
