//! Side effects that grow value by value.

use super::{check, compiled, toy};
use futures::FutureExt;
use kith_gremlin::value::Value;
use kith_traversal::evaluate::{Evaluation, Limits};
use kith_types::ErrorCode;

/// The results, and how often the evaluation gave way, which tells how much it did.
fn evaluated(gremlin: &str, bytes: u64) -> (kith_gremlin::Result<Vec<(Value, i64)>>, usize) {
    let (plan, graph) = (compiled(gremlin).expect("it is well-formed"), toy());
    let limits = Limits { bytes, traversers: 1 << 40, ..Limits::default() };
    let mut evaluation = Box::pin(Evaluation::new(&plan, &graph, limits).all());
    let mut polls = 0;
    loop {
        polls += 1;
        if let Some(results) = evaluation.as_mut().now_or_never() {
            return (results, polls);
        }
    }
}

/// The work and the memory for each value do not grow with what is there already.
#[test]
fn side_effects_grow_in_linear_time() {
    for (source, step) in [
        ("g", "aggregate('x')"),
        ("g.withSideEffect('x', [])", "aggregate('x')"),
        ("g.withSideEffect('x', {0})", "aggregate('x')"),
        ("g.withSideEffect('x', [], addAll)", "aggregate('x')"),
        ("g", "group('x')"),
        ("g", "group('x').by(constant(1))"),
        ("g", "groupCount('x')"),
        ("g.withSack([], addAll)", "sack(addAll).by(fold()).aggregate('x').by(constant(1))"),
    ] {
        let polls = |times: u32| {
            let gremlin = format!(
                "{source}.inject(1).repeat(math('_ + 1').{step}).times({times}).cap('x').count(local)"
            );
            let (results, polls) = evaluated(&gremlin, 20 << 20);
            assert!(results.is_ok(), "{gremlin}: {results:?}");
            polls
        };
        let (few, many) = (polls(2_000), polls(8_000));
        assert!(many < 6 * few, "{source} … {step}: {few} polls become {many}");
    }
}

#[test]
fn what_was_read_stays_as_it_was() {
    for source in ["g", "g.withSideEffect('x', [])", "g.withSideEffect('x', [], addAll)"] {
        let gremlin = format!(
            "{source}.inject(1).repeat(math('_ + 1').aggregate('x').as('n').select('x').aggregate('read').select('n'))\
             .times(3).cap('read').unfold().count(local)"
        );
        let (results, _) = evaluated(&gremlin, 1 << 20);
        let counts: Vec<Value> = results.expect(&gremlin).into_iter().map(|(value, _)| value).collect();
        assert_eq!(counts, [1, 2, 3].map(Value::Long), "{gremlin}");
    }
}

/// Each value of a side effect that was read is charged as long as somebody has it.
#[test]
fn side_effects_that_are_read_again_and_again_are_charged() {
    let read = |source: &str, end: &str| {
        format!(
            "{source}.inject(1).repeat(math('_ + 1').aggregate('x').as('n').select('x'){end}.select('n'))\
             .times(1000).optional(select('read')).count()"
        )
    };
    for source in ["g", "g.withSideEffect('x', [])", "g.withSideEffect('x', {0})"] {
        let (results, _) = evaluated(&read(source, ".as('read')"), 32 << 20);
        let error = results.expect_err("each of 1,000 values is remembered");
        assert_eq!(error.code, ErrorCode::TooLarge, "{error}");
        let (results, _) = evaluated(&read(source, ""), 32 << 20);
        assert!(results.is_ok(), "{source}: one after the other is needed: {results:?}");
    }
}

/// A step that reads what a later one puts aside sees it traverser by traverser.
#[test]
fn readers_see_what_those_before_them_have_put_aside() {
    check(&[
        (&["g.inject(1, 1, 2, 1).where(without('a')).local(aggregate('a'))"], "1 2"),
        (&["g.V().both().where(without('a')).local(aggregate('a')).count()"], "4"),
        (&["g.V(1).repeat(both().where(without('a')).local(aggregate('a'))).times(2)"], "v[1] v[3]"),
        (&["g.V(1).repeat(both().where(without('a')).local(aggregate('a'))).times(2).limit(2)"], "v[1] v[3]"),
        // `aggregate` by itself lets all pass first.
        (&["g.inject(1, 1, 2, 1).where(without('a')).aggregate('a')"], "1 1 2 1"),
    ]);
}
