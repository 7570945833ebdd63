//! The bounds of the work of an evaluation.

use super::{ask, compiled, toy};
use futures::FutureExt;
use kith_gremlin::value::Value;
use kith_traversal::{
    evaluate::{Evaluation, Limits},
    testing::finished,
};
use kith_types::ErrorCode;

/// Values that hold each other many times are not written out before the bound is noticed.
#[test]
fn values_that_double_with_each_step_end_at_the_bound_of_bytes() {
    for gremlin in [
        "g.inject(1).repeat(path()).times(60)",
        "g.inject(1).repeat(local(union(identity(), identity()).fold())).times(60)",
        "g.inject(1).repeat(project('a', 'b')).times(60)",
    ] {
        let error = ask(&toy(), gremlin).expect_err(gremlin);
        assert_eq!(error.code, ErrorCode::TooLarge, "{gremlin}: {error}");
        assert!(error.message.contains("bytes"), "{gremlin}: {error}");
    }
}

#[test]
fn paths_count_as_bytes() {
    let limits = Limits { bytes: 10_000, ..Limits::default() };
    let graph = toy();
    for (gremlin, fits) in [
        ("g.inject(1).repeat(constant(1)).times(200).count()", true),
        ("g.withPath().inject(1).repeat(constant(1)).times(200).count()", false),
    ] {
        let plan = compiled(gremlin).unwrap();
        let results = finished(Evaluation::new(&plan, &graph, limits).all());
        assert_eq!(results.is_ok(), fits, "{gremlin}: {results:?}");
    }
}

#[test]
fn what_does_not_fit_in_a_long_is_not_counted() {
    for count in ["count()", "groupCount()", "groupCount('x').cap('x')", "fold().count(local)"] {
        let doubled = |times: u32| {
            ask(&toy(), &format!("g.inject(1).repeat(union(identity(), identity())).times({times}).{count}"))
        };
        let error = doubled(63).expect_err(count);
        assert!(
            ["long overflow", "traversers"].iter().any(|part| error.message.contains(part)),
            "{count}: {error}"
        );
    }
    let most = ask(&toy(), "g.inject(1).repeat(union(identity(), identity())).times(62).count()");
    assert_eq!(most, Ok(vec![Value::Long(1 << 62)]));
}

#[test]
fn steps_are_limited_in_number() {
    let chain = |steps: usize| format!("g.inject(1){}", ".identity()".repeat(steps - 1));
    assert_eq!(ask(&toy(), &chain(1_000)), Ok(vec![Value::Int(1)]));
    let nested = |steps: usize| format!("g.inject(1).map({})", &chain(steps - 1)[12..]);
    assert_eq!(ask(&toy(), &nested(998)), Ok(vec![Value::Int(1)]));
    for gremlin in [chain(1_001), nested(1_001), chain(9_000)] {
        let error = ask(&toy(), &gremlin).expect_err("too many steps");
        assert!(error.message.contains("at most 1000"), "{error}");
    }
    // A longer text is refused while it is read.
    let error = ask(&toy(), &chain(50_000)).expect_err("too many steps");
    assert!(error.message.contains("more than 10000 steps"), "{error}");
}

/// An evaluation can be ended from outside: it gives way again and again, although the graph answers at once.
#[test]
fn long_evaluations_give_way() {
    let graph = toy();
    let plan =
        compiled("g.withPath().inject(1).repeat(union(identity(), identity())).times(12).count()").unwrap();
    let mut evaluation = Box::pin(Evaluation::new(&plan, &graph, Limits::default()).all());
    let mut polls = 0;
    while evaluation.as_mut().now_or_never().is_none() {
        polls += 1;
        assert!(polls < 1_000_000, "it ends");
    }
    assert!(5 < polls, "{polls}");
}
