//! Plays `testdata/scenarios/gremlin`: see `docs/testing.md`.

mod asked;

use asked::LoggingGraph;
use futures::FutureExt;
use kith_gremlin::{
    GremlinError, text,
    value::{Map, Value},
};
use kith_sim::scenario::{Area, Command, Player, check};
use kith_traversal::{
    evaluate::{Evaluation, Limits},
    graph::{Graph, Mutation},
    plan,
    testing::finished,
};
use std::{panic::AssertUnwindSafe, sync::Arc};

const LANGUAGE: &[(&str, &str)] = &[
    (
        "vertex ID LABEL, KEY VALUE, …",
        "adds a vertex; a value is an integer, a number with a point, or a word",
    ),
    ("edge ID LABEL ID, KEY VALUE, …", "adds an edge from the first vertex to the second"),
    ("g.STEPS", "evaluates a traversal and prints its results, a line for each"),
    ("questions", "prints what the last traversal asked of the graph, a line for each fan-out"),
];

#[derive(Default)]
struct Traversals {
    graph: LoggingGraph,
}

impl Traversals {
    fn write(&self, mutation: Mutation) -> Result<Vec<String>, String> {
        finished(self.graph.write(mutation)).map_err(|error| error.to_string())?;
        Ok(Vec::new())
    }

    fn results(&self, gremlin: &str) -> Result<Vec<(Value, i64)>, GremlinError> {
        let now = "2026-01-31T12:00:00Z".parse().expect("a time");
        let inputs = text::Inputs { bindings: &Map::new(), now, entropy: 0 };
        let plan = plan::compile(&text::parse(gremlin, &inputs)?.bytecode)?;
        self.graph.forget();
        finished(Evaluation::new(&plan, &self.graph, Limits::default()).all())
    }

    fn evaluate(&self, gremlin: &str) -> Vec<String> {
        let evaluated = AssertUnwindSafe(async { self.results(gremlin) }).catch_unwind();
        match finished(evaluated).unwrap_or_else(|_| Err(GremlinError::bad("the evaluation panicked"))) {
            Err(GremlinError { code, message }) => vec![format!("refused: {code}: {message}")],
            Ok(results) if results.is_empty() => vec!["nothing".to_owned()],
            Ok(results) => {
                let lines = results.into_iter().map(|(value, bulk)| (value.to_string(), bulk as usize));
                lines.flat_map(|(line, bulk)| std::iter::repeat_n(line, bulk)).collect()
            }
        }
    }
}

impl Player for Traversals {
    fn play(&mut self, command: &Command<'_>) -> Result<Vec<String>, String> {
        let properties = || {
            let clauses = command.text.split(',').skip(1);
            clauses.map(|clause| property(clause.trim())).collect::<Result<Vec<_>, String>>()
        };
        match command.words.as_slice() {
            _ if command.text.starts_with("g.") => Ok(self.evaluate(command.text)),
            ["questions"] => Ok(self.graph.questions()),
            ["vertex", id, label] => self.write(Mutation::AddVertex {
                id: Some(value(id)),
                label: (*label).into(),
                properties: properties()?,
            }),
            ["edge", from, label, to] => self.write(Mutation::AddEdge {
                id: None,
                label: (*label).into(),
                out_vertex: value(from),
                in_vertex: value(to),
                properties: properties()?,
                replaces: false,
            }),
            _ => Err(command.unknown(LANGUAGE)),
        }
    }
}

fn property(clause: &str) -> Result<(Arc<str>, Value), String> {
    let (key, text) = clause.split_once(' ').ok_or_else(|| format!("{clause:?} is no key with a value"))?;
    Ok((key.into(), value(text)))
}

fn value(text: &str) -> Value {
    let integer = text.parse().map(Value::Int).ok();
    integer.or(text.parse().map(Value::Double).ok()).unwrap_or_else(|| text.into())
}

#[test]
fn traversals_are_evaluated_as_the_scripts_say() {
    let area = Area { folder: "gremlin", test: "-p kith-traversal --test scenarios", language: LANGUAGE };
    check(&area, Traversals::default);
}
