//! `profile` and `explain`.

use super::{ask, check, compiled, toy};
use futures::FutureExt;
use kith_gremlin::value::{
    ELEMENT_COUNT, Metrics, PERCENT_OF_TIME, TRAVERSER_COUNT, TraversalMetrics, Value,
};
use kith_traversal::{
    evaluate::{Evaluation, Limits},
    plan,
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

fn metrics(value: &Value) -> &Arc<TraversalMetrics> {
    match value {
        Value::TraversalMetrics(metrics) => metrics,
        other => panic!("{other}"),
    }
}

fn counts(metrics: &Metrics) -> (i64, i64) {
    let count =
        |wanted: &str| metrics.counts.iter().find(|(name, _)| name == wanted).map_or(0, |(_, count)| *count);
    (count(TRAVERSER_COUNT), count(ELEMENT_COUNT))
}

#[test]
fn a_profile_counts_what_each_step_returns() {
    let results = ask(&toy(), "g.V().both().filter(out('created')).values('name').profile()").unwrap();
    let [result] = &results[..] else { panic!("{results:?}") };
    let steps = &metrics(result).steps;
    let names: Vec<&str> = steps.iter().map(|step| &*step.name).collect();
    assert_eq!(names, ["V()", "both()", "filter(out(created))", "values(name)"]);
    let all: Vec<(i64, i64)> = steps.iter().map(counts).collect();
    assert_eq!(all, [(4, 4), (4, 6), (1, 2), (1, 2)], "traversers and elements");
    assert_eq!(steps[2].nested[0].name, "out(created)");
    assert_eq!(counts(&steps[2].nested[0]), (1, 1));
}

#[test]
fn a_profile_can_be_put_aside() {
    let results = ask(&toy(), "g.V().out('knows').profile('x').cap('x')").unwrap();
    assert_eq!(counts(&metrics(&results[0]).steps[1]), (2, 2));
    check(&[
        (&["g.V().profile().count()"], "! profile() must be the last step"),
        (&["g.V().map(out().profile())"], "! cannot be inside another step"),
    ]);
}

#[test]
fn the_times_are_those_of_the_clock() {
    let now = AtomicU64::new(0);
    let clock = || now.fetch_add(1_000, Ordering::Relaxed);
    let (graph, plan) = (toy(), compiled("g.V().out().profile()").unwrap());
    let evaluation = Evaluation::new(&plan, &graph, Limits::default()).with_clock(&clock);
    let results = evaluation.all().now_or_never().unwrap().unwrap();
    let metrics = metrics(&results[0].0);
    assert!(metrics.steps.iter().all(|step| step.nanos >= 1_000), "{metrics}");
    assert_eq!(metrics.nanos, metrics.steps.iter().map(|step| step.nanos).sum::<i64>());
    let percent = |step: &Metrics| match step.annotations.first() {
        Some((name, Value::Double(percent))) if name == PERCENT_OF_TIME => *percent,
        other => panic!("{other:?}"),
    };
    assert!((metrics.steps.iter().map(percent).sum::<f64>() - 100.0).abs() < 1e-6, "{metrics}");
}

#[test]
fn an_explanation_lists_the_steps() {
    let plan =
        compiled("g.V(1, 2).out('knows').where(inE().count().is(gt(1))).values('name').limit(3)").unwrap();
    let text = plan::explain(&plan);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = text.lines().skip(2).map(words).collect();
    assert_eq!(
        lines,
        [
            "V(1, 2)",
            "out(knows) outgoing edges labelled knows, batch by batch",
            "where(inE().count().is(gt(1)))",
            "inE() the number of incoming edges of all labels, batch by batch",
            "count()",
            "is(gt(1))",
            "values(name) the properties name, batch by batch",
            "limit(3)",
        ]
    );
}
