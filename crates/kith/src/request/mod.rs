//! One question, however it is stated: a line of `kith run`, `kith graph …` or `kith explain …`.
//!
//! [`Operation`] is the one place that names the operations. A new one is a variant there, with
//! a struct of its fields; JSON, command line, completions and near-miss hints follow from it.

mod batch;
mod compute;
mod json;
mod line;
mod names;
mod operation;
mod options;
mod question;

pub use batch::{Batch, BatchFields, KeyEncoding, ReadOptions};
pub use compute::{
    AggregateFields, Asked, At, BucketFields, ByBucketFields, ByValueFields, ComputeFields, CountFields,
    TopKFields, VectorFields, predicate_of, single_precision,
};
pub use line::{Request, parse};
pub use operation::{Operation, Shape};
pub use question::Question;

#[cfg(test)]
mod tests {
    use super::{
        AggregateFields, BatchFields, ByBucketFields, ComputeFields, Operation, ReadOptions, Request,
        VectorFields,
        batch::MGET,
        compute::{AGGREGATE, COMPUTE, PredicateFields},
        names::{fields_of_variant, names_of},
        options::Options,
        parse,
    };
    use kith_types::OperationName;
    use std::{fs, path::Path};

    /// They are golden bytes, which `router::query_json` writes.
    #[test]
    fn lines_that_a_router_records_are_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/formats/record.jsonl");
        let text = fs::read_to_string(path).unwrap();
        let read: Vec<Request> = text.lines().map(|line| parse(line).unwrap()).collect();
        let [
            Request::Graph(question),
            Request::Batch(batch),
            Request::Compute(compute),
            Request::Aggregate(_),
        ] = &read[..]
        else {
            panic!("{read:?}")
        };
        let (query, options) = (question.query(), question.options.query_options());
        let shown = format!("{query:?} {options:?} {batch:?} {compute:?}");
        let expected = ["id: 42", "Size", "follows", "Out", "Background", "borrow", "250", "\"a\"", "title"];
        let missing: Vec<_> = expected.into_iter().filter(|part| !shown.contains(part)).collect();
        assert!(missing.is_empty(), "{missing:?} in {shown}");
    }

    #[test]
    fn operations_are_those_that_controllers_are_chosen_by() {
        let asked: Vec<&str> =
            names_of::<Operation>().iter().chain(&[MGET, COMPUTE, AGGREGATE]).copied().collect();
        assert_eq!(asked, OperationName::ALL.map(OperationName::name));
    }

    #[test]
    fn every_operation_and_field_is_documented() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/queries.md");
        let text = fs::read_to_string(path).unwrap();
        let operations = names_of::<Operation>();
        let fields = operations.iter().flat_map(|name| fields_of_variant::<Operation>(name));
        let reads = [MGET, COMPUTE, AGGREGATE].iter().chain(names_of::<BatchFields>());
        let reads = reads.chain(names_of::<ComputeFields>()).chain(names_of::<AggregateFields>());
        let reads = reads.chain(names_of::<VectorFields>()).chain(names_of::<ByBucketFields>());
        let reads = reads.chain(names_of::<PredicateFields>()).chain(names_of::<ReadOptions>());
        let names = operations.iter().chain(fields).chain(names_of::<Options>()).chain(reads);
        let missing: Vec<&&str> = names.filter(|name| !text.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "docs/queries.md lacks {missing:?}");
    }
}
