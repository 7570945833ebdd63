//! Requests in the form in which people write them: lines of `kith run`, arguments of `kith graph …`, `kith explain …`
//! and `kith compute …`, and the lines in which a router records its requests. The command line, the benchmarks and the
//! router use this module. It parses and prints; it sends nothing.
//!
//! ```text
//! {"op":"distance","graph":"g","id":1,…} ──► parse ──┐
//! kith graph distance 1 … ──► clap (command) ────────┴─► Operation + options ──► crate::Question
//! crate::Request ──► write ──► the same line, for the query record and the slow-query log
//! ```
//!
//! - `operation`, `live`: the operations of graphs ([`crate::Operation`]) as subcommands.
//! - `mutation`: writes of objects and associations.
//! - `store`, `compute`, `gremlin`: requests about keys, about records, and traversals.
//! - `options`: fields that several operations have.
//! - `parse`, `json`, `error`: parsing, and errors that name the nearest known word.
//! - `command`: operations as subcommands. `write`: a request as a line.
//!
//! Every field is described once, for JSON and for flags, and its name is a contract (`docs/queries.md`). An unknown or
//! repeated field is refused, never ignored.
//!
//! The JSON form, the subcommand, completions and hints of an operation follow from its fields and its line in the registry.

#![allow(missing_docs, reason = "docs/queries.md describes every field, and a test holds it against them")]

mod command;
mod compute;
mod error;
mod graph;
mod gremlin;
mod json;
mod live;
mod mutation;
mod operation;
mod options;
mod parse;
mod store;
mod write;

pub use command::{CommandLine, FromCommand};
pub use compute::{
    AggregateFields, BucketFields, ByBucketFields, ByValueFields, ComputeFields, ComputeLocation,
    CountFields, TopKFields, VectorFields, predicate_of, single_precision,
};
pub use error::{LineError, near_miss};
pub use graph::{GraphLine, QueryFlags, ReadCommand};
pub use gremlin::{GREMLIN, GremlinFields, GremlinLine};
pub use live::{AssocOperation, ObjectOperation};
pub use mutation::{AssocWrite, ObjectWrite, WriteCommand, WriteLine, WriteOperation, WriteOptions};
pub use operation::{GraphOperation, Operations};
pub use options::{GraphOptions, ReadOptions};
pub use parse::{Line, parse};
pub use store::{BatchFields, KeyEncoding, StoreKeys, StoreLine};
pub use write::{request_json, summary_json};

#[cfg(test)]
mod tests {
    use super::{
        AggregateFields, ByBucketFields, ComputeFields, GREMLIN, GraphOptions, GremlinFields, Line,
        ReadOptions, StoreKeys, VectorFields,
        compute::{AGGREGATE, COMPUTE, PredicateFields},
        parse,
        store::MGET,
    };
    use crate::{
        Operation, Question,
        names::{fields_of_variant, names_of},
    };
    use kith_routing::fan_out::Selector;
    use std::{fs, path::Path};

    /// These golden bytes are written by `write.rs`.
    #[test]
    fn lines_that_a_router_records_are_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../testdata/formats/record.jsonl");
        let text = fs::read_to_string(path).unwrap();
        let read: Vec<Line> = text.lines().map(|line| parse(line).unwrap()).collect();
        let [Line::Graph(question), Line::Batch(batch), Line::Compute(compute), Line::Aggregate(_)] =
            &read[..]
        else {
            panic!("{read:?}")
        };
        let (query, options) = (question.query(), question.query_options());
        let shown = format!("{query:?} {options:?} {batch:?} {compute:?}");
        let expected = ["id: 42", "Size", "follows", "Out", "Background", "borrow", "250", "\"a\"", "title"];
        let missing: Vec<_> = expected.into_iter().filter(|part| !shown.contains(part)).collect();
        assert!(missing.is_empty(), "{missing:?} in {shown}");
    }

    #[test]
    fn operations_are_those_that_controllers_are_chosen_by() {
        let lines: Vec<&str> =
            names_of::<Operation>().iter().chain(&[MGET, COMPUTE, AGGREGATE, GREMLIN]).copied().collect();
        let operations = Question::operations();
        assert_eq!(lines, operations.iter().map(|operation| operation.name()).collect::<Vec<_>>());
        for operation in &operations {
            let selector = Selector::parse(operation.name(), &operations).expect("a known name");
            assert_eq!(
                (selector.operation, selector.kind),
                (Some(*operation), None),
                "not a kind of fan-out"
            );
        }
    }

    #[test]
    fn every_operation_and_field_is_documented() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/queries.md");
        let text = fs::read_to_string(path).unwrap();
        let operations = names_of::<Operation>();
        let fields = operations.iter().flat_map(|name| fields_of_variant::<Operation>(name));
        let reads = [MGET, COMPUTE, AGGREGATE, GREMLIN].iter().chain(names_of::<StoreKeys>());
        let reads = reads.chain(names_of::<GremlinFields>());
        let reads = reads.chain(names_of::<ComputeFields>()).chain(names_of::<AggregateFields>());
        let reads = reads.chain(names_of::<VectorFields>()).chain(names_of::<ByBucketFields>());
        let reads = reads.chain(names_of::<PredicateFields>()).chain(names_of::<ReadOptions>());
        let names = operations.iter().chain(fields).chain(names_of::<GraphOptions>()).chain(reads);
        let missing: Vec<&&str> = names.filter(|name| !text.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "docs/queries.md lacks {missing:?}");
    }
}
