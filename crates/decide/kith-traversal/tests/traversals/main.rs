//! Traversals over the toy graph of TinkerPop's documentation, from text to results.

mod asides;
mod bounds;
mod changes;
mod explanations;
mod growth;
mod labels;
mod limits;
mod merges;
mod profiles;
mod refusals;
mod repeats;
mod rules;
mod values;

use kith_gremlin::{
    GremlinError, Result, text,
    value::{Map, Value},
};
use kith_traversal::{
    evaluate::{Evaluation, Limits},
    plan::{self, TraversalPlan},
    testing::{MemoryGraph, finished},
};
use std::sync::atomic::{AtomicU64, Ordering};

const TOY: &str = r#"g.addV("person").property(T.id, 1).property("name", "marko").property("age", 29).as("marko").
    addV("person").property(T.id, 2).property("name", "vadas").property("age", 27).as("vadas").
    addV("software").property(T.id, 3).property("name", "lop").property("lang", "java").as("lop").
    addV("person").property(T.id, 4).property("name", "josh").property("age", 32).as("josh").
    addE("knows").from("marko").to("vadas").property("weight", 0.5).
    addE("knows").from("marko").to("josh").property("weight", 1.0).
    addE("created").from("josh").to("lop").property("weight", 0.4)"#;

/// The toy graph.
fn toy() -> MemoryGraph {
    let graph = MemoryGraph::default();
    ask(&graph, TOY).expect("the toy graph is written");
    graph
}

fn compiled(gremlin: &str) -> Result<TraversalPlan> {
    let bindings = Map::default();
    let inputs =
        text::Inputs { bindings: &bindings, now: chrono::DateTime::UNIX_EPOCH.fixed_offset(), entropy: 7 };
    let script = text::parse(gremlin, &inputs).map_err(|error| GremlinError::bad(error.to_string()))?;
    plan::compile(&script.bytecode)
}

/// The results of a traversal. By its clock, a tenth of a millisecond passes at each look.
fn ask(graph: &MemoryGraph, gremlin: &str) -> Result<Vec<Value>> {
    let plan = compiled(gremlin)?;
    let looks = AtomicU64::new(0);
    let clock = || looks.fetch_add(100_000, Ordering::Relaxed);
    let evaluation = Evaluation::new(&plan, graph, Limits::default()).with_clock(&clock);
    let all = finished(evaluation.all())?;
    Ok(all.into_iter().flat_map(|(value, bulk)| std::iter::repeat_n(value, bulk as usize)).collect())
}

/// The results as a text, or the error after an exclamation mark.
fn shown(graph: &MemoryGraph, gremlin: &str) -> String {
    match ask(graph, gremlin) {
        Ok(values) => values.iter().map(Value::to_string).collect::<Vec<_>>().join(" "),
        Err(error) => format!("! {error}"),
    }
}

/// Asks the toy graph what each row asks, one traversal after the other; the results of the last are expected. Of an error, a
/// part is.
fn check(rows: &[(&[&str], &str)]) {
    for (traversals, expected) in rows {
        let graph = toy();
        let last =
            traversals.iter().map(|gremlin| shown(&graph, gremlin)).last().expect("a row has traversals");
        match expected.strip_prefix("! ") {
            Some(part) => assert!(last.starts_with("! ") && last.contains(part), "{traversals:?}: {last}"),
            None => assert_eq!(last, *expected, "{traversals:?}"),
        }
    }
}
