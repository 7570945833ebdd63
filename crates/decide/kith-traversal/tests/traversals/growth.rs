//! The memory of results that can be larger than their input is measured before they are made, and counted while they exist.

use super::{compiled, toy};
use futures::FutureExt;
use kith_gremlin::{GremlinError, value::Value};
use kith_traversal::{
    evaluate::{Evaluation, Limits, Meter, SharedMemory},
    testing::finished,
};
use kith_types::ErrorCode;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The limit of the traversals below.
const BYTES: u64 = 32 << 20;
/// The most memory that the process of these tests may take: each of the traversals below would take more by itself.
const PEAK_KIB_MAX: u64 = 1 << 20;

fn evaluated(gremlin: &str) -> Result<Vec<(Value, i64)>, GremlinError> {
    let limits = Limits { bytes: BYTES, traversers: 100_000_000, ..Limits::default() };
    let (plan, graph) = (compiled(gremlin).expect("it is well-formed"), toy());
    finished(Evaluation::new(&plan, &graph, limits).all())
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says so");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn no_word_of_the_language_takes_more_than_the_bound_of_bytes() {
    let a = "a".repeat(40_000);
    let numbers = (0..5_000).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let many = format!("g.inject([{numbers}])");
    let often = format!("{many}.as('x').unfold()");
    let doubled = "repeat(union(identity(), identity()))";
    let attacks = [
        format!("g.inject('{a}').replace('a','{a}')"),
        format!("g.inject('{a}').replace('a','{}').replace('a','{a}')", &a[..500]),
        format!("g.inject(['{a}','{a}']).replace(local,'a','{a}')"),
        format!("g.inject('{a}').repeat(toUpper()).times(1000)"),
        format!("g.inject('{a}').as('t').repeat(concat(select('t'), select('t'))).times(2000)"),
        format!("g.inject('{a}').repeat(concat(identity())).times(60)"),
        format!("g.inject('{a}').repeat(format('%{{_}}%{{_}}').by().by()).times(40)"),
        format!("g.inject('{a}').format('{}').by()", "%{_}".repeat(10_000)),
        format!("{many}.conjoin('{a}')"),
        format!("{often}.constant('{a}').fold().conjoin('')"),
        format!("g.inject('{a}').split('').repeat(asString().split('')).times(5)"),
        format!("g.inject('{a}').repeat(substring(0)).times(2000)"),
        format!("g.inject('{a}').repeat(reverse()).times(2000)"),
        format!("{many}.repeat(local(union(identity(), identity()).fold())).times(30).asString()"),
        format!("{many}.repeat(combine(identity())).times(30)"),
        format!("{many}.repeat(combine([{numbers}])).times(10000)"),
        format!("{many}.product([{numbers}])"),
        format!("{many}.repeat(merge([{numbers}])).times(2000)"),
        format!("{many}.repeat(difference([])).times(2000)"),
        format!("{many}.repeat(intersect([{numbers}])).times(2000)"),
        format!("{many}.repeat(disjunct(['{a}'])).times(2000)"),
        format!("{many}.repeat(order(local)).times(2000)"),
        format!("{many}.repeat(index()).times(30)"),
        format!("{often}.select('x').unfold().fold()"),
        format!("{often}.map(select('x')).unfold().barrier().count()"),
        format!("{often}.flatMap(select('x').unfold()).fold()"),
        format!("{often}.select('x').unfold().aggregate('y').count()"),
        format!("{often}.select('x').unfold().group()"),
        format!("g.withSideEffect('s', [], addAll).inject(1).{doubled}.times(26).aggregate('s').cap('s')"),
        format!("g.withPath().inject(1).{doubled}.times(26).count()"),
        format!("g.withPath().inject('{a}').{doubled}.emit().times(26).path()"),
        format!("g.inject(1).{doubled}.times(26).fold().as('n').unfold().barrier().select('n')"),
        format!("g.withSack([{numbers}], addAll).inject([{numbers}]).repeat(sack(addAll)).times(10000)"),
        format!(
            "{often}.project({}).by()",
            (0..200).map(|key| format!("'{key}'")).collect::<Vec<_>>().join(",")
        ),
        "g.withSack(1.5m).inject(7777777.7777777m).repeat(sack(mult)).times(10000)".to_owned(),
    ];
    for gremlin in &attacks {
        let shown: String = gremlin.chars().rev().take(90).collect::<Vec<_>>().into_iter().rev().collect();
        match evaluated(gremlin) {
            Err(error) => {
                let is_refused = matches!(error.code, ErrorCode::TooLarge | ErrorCode::BadRequest);
                assert!(is_refused, "{shown}: {error}");
            }
            Ok(results) => assert!(results.len() <= 100_000, "{shown}"),
        }
        assert!(peak_kib() < PEAK_KIB_MAX, "{shown}: {} KiB", peak_kib());
    }
}

#[test]
fn the_size_of_a_text_is_known_before_it_is_made() {
    let a = "a".repeat(40_000);
    let zeros = "0,".repeat(5_000);
    for gremlin in [
        format!("g.inject('{a}').replace('a','{a}')"),
        format!("g.inject('{a}').format('{}').by()", "%{_}".repeat(10_000)),
        format!("g.inject([{zeros}0]).conjoin('{a}')"),
        format!("g.inject([{zeros}0]).product([{zeros}0])"),
    ] {
        let error = evaluated(&gremlin).expect_err("it is too large");
        assert_eq!(error.code, ErrorCode::TooLarge, "{error}");
        assert!(error.message.contains("bytes"), "{error}");
    }
}

/// Traversers count while they exist: many may pass one after the other.
#[test]
fn traversers_count_while_they_exist() {
    let doubled =
        |end: &str| format!("g.withPath().inject(1).repeat(union(identity(), identity())).times(17){end}");
    let error = evaluated(&doubled(".barrier().count()")).expect_err("131,072 of them are held");
    assert_eq!(error.code, ErrorCode::TooLarge, "{error}");
    let numbers = (0..1_000).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let passing = format!("g.inject([{numbers}]).unfold().repeat(math('_ + 1')).times(300).count()");
    assert_eq!(evaluated(&passing).map(|all| all.len()), Ok(1));
    let shared = format!("g.inject([{numbers}]).as('x').unfold().select('x').count()");
    assert_eq!(evaluated(&shared).map(|all| all.len()), Ok(1), "one list is not counted for each traverser");
}

struct Pool(Arc<AtomicU64>, AtomicU64);

impl SharedMemory for Pool {
    fn most(&self) -> u64 {
        16 << 20
    }

    fn hold(&self, bytes: u64) -> bool {
        let others = self.0.load(Ordering::Relaxed) - self.1.load(Ordering::Relaxed);
        let is_free = others + bytes <= 16 << 20;
        if is_free {
            self.0.store(others + bytes, Ordering::Relaxed);
            self.1.store(bytes, Ordering::Relaxed);
        }
        is_free
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[test]
fn traversals_share_one_memory_whatever_their_own_bounds_are() {
    let all = Arc::new(AtomicU64::new(0));
    let limits = Limits { bytes: u64::MAX, ..Limits::default() };
    let text = "a".repeat(400_000);
    let plan = compiled(&format!("g.inject('{text}').repeat(reverse()).times(5)")).expect("well-formed");
    let graph = toy();
    let mut codes = Vec::new();
    let mut running: Vec<_> = (0..20)
        .map(|_| {
            let meter = Meter::within(u64::MAX, Box::new(Pool(Arc::clone(&all), AtomicU64::new(0))));
            Evaluation::new(&plan, &graph, limits).with_meter(meter)
        })
        .collect();
    for evaluation in &mut running {
        loop {
            match finished(evaluation.next()) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => {
                    codes.push(error.code);
                    break;
                }
            }
        }
        assert!(all.load(Ordering::Relaxed) <= 16 << 20);
    }
    assert!(!codes.is_empty() && codes.iter().all(|code| *code == ErrorCode::Overloaded), "{codes:?}");
    assert!(codes.len() < 20);
    drop(running);
    assert_eq!(all.load(Ordering::Relaxed), 0);
}

/// Lists, maps and paths of many traversers are charged before any of their values is made.
#[test]
fn what_many_traversers_become_is_charged_before_it_is_made() {
    let numbers = (0..200).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let many = format!("g.inject([{numbers}]).unfold()");
    let keys = (0..40).map(|key| format!("'{key}'")).collect::<Vec<_>>().join(",");
    let labels = (0..40).map(|key| format!(".as('{key}')")).collect::<String>();
    // A `fail()` in `by` would end the traversal with another error if it were evaluated first.
    for gremlin in [
        format!("{many}.barrier().project({keys}).by(fail('made'))"),
        format!("{many}{labels}.barrier().select({keys}).by(fail('made'))"),
        format!(
            "g.withPath().inject([{numbers}]).unfold(){}.barrier().path().by(fail('made'))",
            ".map(identity())".repeat(20)
        ),
        "g.inject(1).repeat(union(identity(), identity()).barrier()).times(20).fold()".to_owned(),
    ] {
        let limits = Limits { bytes: 1 << 20, traversers: 1 << 40, ..Limits::default() };
        let (plan, graph) = (compiled(&gremlin).expect("it is well-formed"), toy());
        let error = finished(Evaluation::new(&plan, &graph, limits).all()).expect_err("it is too large");
        let shown = &gremlin[gremlin.len() - 60..];
        assert_eq!(error.code, ErrorCode::TooLarge, "{shown}: {error}");
    }
}

/// The values that a step has made of a part of a batch are charged before it goes on to the next part.
#[test]
fn what_a_part_of_a_batch_has_become_is_charged_before_the_next_part() {
    let numbers = (0..20_000).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let many = format!("inject([{numbers}]).unfold()");
    let keys = (0..40).map(|key| format!("'{key}'")).collect::<Vec<_>>().join(",");
    let labels = (0..4).map(|key| format!(".as('{key}')")).collect::<String>();
    // The last part fails in another way if the parts before it were not charged.
    let last = "by(choose(is(19999), fail('made'), identity()))";
    for gremlin in [
        format!("g.{many}.barrier().project({keys}).{last}"),
        format!("g.{many}{labels}.barrier().select('0','1','2','3').{last}"),
        format!("g.withPath().{many}.map(identity()).map(identity()).barrier().path().{last}"),
    ] {
        let bytes = if gremlin.contains("project") { BYTES } else { BYTES / 2 };
        let limits = Limits { bytes, traversers: 1 << 40, ..Limits::default() };
        let (plan, graph) = (compiled(&gremlin).expect("it is well-formed"), toy());
        let error = finished(Evaluation::new(&plan, &graph, limits).all()).expect_err("it is too large");
        let shown = &gremlin[gremlin.len() - 100..];
        assert_eq!(error.code, ErrorCode::TooLarge, "{shown}: {error}");
    }
}

/// A single step with much work gives way, so that a deadline can end it.
#[test]
fn single_steps_with_much_work_give_way() {
    let numbers = (0..2_000).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let lists = format!("g.inject([{numbers}]).as('x').unfold().map(select('x'))");
    let members = (0..2_000).map(|number| format!("[{number}]")).collect::<Vec<_>>().join(",");
    let text = "a".repeat(100_000);
    for gremlin in [
        format!(
            "g.inject([{}]).unfold().map(constant([{numbers}])).order().limit(1)",
            "0,".repeat(300) + "0"
        ),
        format!("{lists}.limit(300).dedup()"),
        format!("g.inject([{numbers}]).any(P.within([{members}]))"),
        format!("g.inject([{}]).unfold().constant('{text}').is(TextP.regex('b+$'))", "0,".repeat(300) + "0"),
        // One traverser at a time, with much work for each.
        format!("g.inject('{text}').repeat(reverse()).times(100)"),
        format!("g.inject('{text}').repeat(filter(is(TextP.notContaining('ab')))).times(100)"),
        format!("g.inject('{text}').repeat(concat('a').aggregate('x')).times(100).cap('x').count(local)"),
        // What is looked at comes from elsewhere.
        format!("g.withSideEffect('x', [{numbers}]).inject(1).repeat(where(within('x'))).times(100)"),
        "g.inject(1).repeat(identity().as('x')).times(400).repeat(select('x').as('x')).times(60)".to_owned(),
        format!("g.inject(1).repeat(is(P.without([{members}]))).times(100)"),
    ] {
        let (plan, graph) = (compiled(&gremlin).expect("it is well-formed"), toy());
        let limits = Limits { bytes: 1 << 40, traversers: 1 << 40, ..Limits::default() };
        let mut evaluation = Box::pin(Evaluation::new(&plan, &graph, limits).all());
        let mut polls = 0;
        while evaluation.as_mut().now_or_never().is_none() {
            polls += 1;
            assert!(polls < 1_000_000, "it ends");
        }
        assert!(3 < polls, "{polls}: {}", &gremlin[gremlin.len() - 50..]);
    }
}

/// Work that is done at one go, without giving way, has a bound of its own, however much memory the traversal may take.
#[test]
fn one_value_has_a_bound() {
    let limits = Limits { bytes: 1 << 40, traversers: 1 << 40, ..Limits::default() };
    let refused = |gremlin: &str| {
        let (plan, graph) = (compiled(gremlin).expect("it is well-formed"), toy());
        let error = finished(Evaluation::new(&plan, &graph, limits).all()).expect_err(gremlin);
        assert_eq!(error.code, ErrorCode::TooLarge, "{error}");
        assert!(error.message.contains("which is the most"), "{error}");
    };
    let a = "a".repeat(9_000);
    let text = format!("g.inject('{a}').replace('a','{}')", &a[..1_500]);
    let list = format!("{text}.as('t').inject(1,2,3).as('n').fold()");
    let many = "g.inject(1).repeat(union(identity(), identity())).times(20)";
    for function in [
        "replace('a', 'bb')",
        "concat(identity())",
        "as('t').format('%{t}%{t}')",
        "as('t').union(identity(), identity()).fold().conjoin(',')",
        "as('t').union(identity(), identity()).fold().asString()",
        "concat(constant('aaaaaaaaaa')).repeat(union(identity(), identity())).times(3).fold().toUpper(local)",
        "split('')",
    ] {
        refused(&format!("{text}.{function}.count()"));
    }
    // A longer text can come with the traversal, or from toUpper().
    let longer = format!("g.inject('{}').replace('a', '{}').toUpper()", &a[..4_500], "ŉ".repeat(1_800));
    for function in
        ["length()", "trim()", "substring(1)", "toLower()", "reverse()", "asString()", "split(',')"]
    {
        refused(&format!("{longer}.{function}"));
    }
    refused(&format!("{many}.fold().as('m').combine(select('m')).count()"));
    refused(&format!("{many}.limit(1000).fold().as('m').product(select('m')).count()"));
    refused(&format!("{many}.fold().asString(local).count()"));
    refused(&format!("{list}.repeat(local(union(identity(), identity()).fold())).times(4)"));
    refused(&format!("{many}.fold()"));
}

/// The memory that a step keeps of traversers, or makes of them before it returns, is charged.
#[test]
fn what_steps_remember_is_charged() {
    let names: Vec<String> = (0..400).map(|at| format!("n{at}")).collect();
    let labels = names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(",");
    let marks = names.iter().map(|name| format!(".as('{name}')")).collect::<String>();
    let doubled = "repeat(union(math('_ * 2'), math('_ * 2 + 1'))).times(9)";
    let many = format!("g.inject(1).{doubled}");
    for (gremlin, bytes) in [
        // One pass follows the other, and only `dedup` knows what they had.
        ("g.inject(1).repeat(math('_ + 1').dedup()).times(9000).count()".to_owned(), 1 << 20),
        (format!("g.inject(1){marks}.{doubled}.dedup({labels})"), 1 << 20),
        (format!("{many}.order(){}", ".by()".repeat(400)), 8 << 20),
        (format!("g.inject(1){marks}.{doubled}.math('{}')", names.join(" + ")), 1 << 20),
        (format!("{many}.concat({})", vec!["constant('')"; 400].join(",")), 1 << 20),
        (format!("{many}.format('{}')", "%{_}".repeat(400)), 1 << 20),
    ] {
        let limits = Limits { bytes, traversers: 1 << 40, ..Limits::default() };
        let (plan, graph) = (compiled(&gremlin).expect("it is well-formed"), toy());
        let shown = &gremlin[..gremlin.len().min(90)];
        let error =
            finished(Evaluation::new(&plan, &graph, limits).all()).map(|all| all.len()).expect_err(shown);
        assert_eq!(error.code, ErrorCode::TooLarge, "{shown}: {error}");
    }
}

/// Steps that need all their input pause between values that are large.
#[test]
fn steps_that_collect_pause_between_large_values() {
    // One list of lists with 16,384 numbers, which is compared and hashed as a whole, 100 times.
    let large = "g.inject(1).repeat(local(union(identity(), identity()).fold())).times(14).as('n')";
    let numbers = (0..100).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let many = format!("{large}.flatMap(constant([{numbers}]).unfold()).select('n')");
    for step in [
        "dedup()",
        "groupCount()",
        "group()",
        "groupCount('x')",
        "aggregate('x')",
        "order()",
        "max()",
        "flatMap(identity().as('k')).barrier()",
        "repeat(identity()).times(1)",
        "fold([], addAll).count(local)",
    ] {
        let gremlin = format!("{many}.{step}.count()");
        let (plan, graph) = (compiled(&gremlin).expect(step), toy());
        let limits = Limits { bytes: 1 << 50, traversers: 1 << 40, ..Limits::default() };
        let mut evaluation = Box::pin(Evaluation::new(&plan, &graph, limits).all());
        let mut polls = 0;
        while evaluation.as_mut().now_or_never().is_none() {
            polls += 1;
        }
        assert!(20 < polls, "{step}: {polls}");
    }
}

/// Between two pauses, at which a deadline can end a traversal, little is made, however large the values and the bounds are.
#[test]
fn between_two_pauses_little_is_made() {
    const MOST: u64 = 200 << 20;
    let a = "a".repeat(9_000);
    let text = format!("g.inject('{a}').replace('a','{}').as('t')", &a[..500]);
    let many = "g.inject(1).repeat(union(identity(), identity())).times(16).fold().as('m')";
    let numbers = (0..2_000).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let some = format!("g.inject([{numbers}])");
    for gremlin in [
        format!("{text}.repeat(reverse()).times(200)"),
        format!("{text}.repeat(concat('a')).times(200)"),
        format!("{text}.repeat(replace('a', 'b')).times(200)"),
        format!("{text}.repeat(substring(1)).times(200)"),
        format!("{text}.repeat(concat('a').aggregate('x')).times(200).cap('x').count(local)"),
        format!("{some}.unfold().map(constant('{a}')).map(concat(constant('{a}'), constant('{a}'))).count()"),
        format!("{some}.unfold().map(constant('{a}').split('')).count()"),
        format!("{many}.repeat(reverse()).times(200)"),
        format!("{many}.repeat(combine([1]).order(local)).times(50)"),
        format!("{many}.repeat(union(identity(), identity()).asString(local)).times(6).count()"),
        format!("{some}.unfold().project('a', 'b').by(constant([{numbers}])).by().select(values).count()"),
        format!("{some}.as('l').unfold().map(select('l')).map(index()).count()"),
        format!("{some}.as('l').unfold().map(select('l')).map(dedup(local)).count()"),
        format!("{some}.as('l').unfold().map(select('l').unfold().fold()).count()"),
        format!("{some}.as('l').unfold().map(select('l').product([1,2,3])).count()"),
    ] {
        let shown = &gremlin[gremlin.len() - 70..];
        let (plan, graph) = (compiled(&gremlin).expect(shown), toy());
        let limits = Limits { bytes: 1 << 50, traversers: 1 << 40, ..Limits::default() };
        let meter = Meter::new(1 << 50);
        let mut evaluation = Box::pin(Evaluation::new(&plan, &graph, limits).with_meter(meter.clone()).all());
        let (mut before, mut pauses) = (0, 0);
        while meter.taken() < (300 << 20) {
            let done = evaluation.as_mut().now_or_never();
            let made = meter.taken().saturating_sub(before);
            assert!(made < MOST, "{made} bytes without a pause: {shown}");
            (before, pauses) = (meter.taken(), pauses + 1);
            if let Some(done) = done {
                assert!(done.is_ok(), "{shown}: {done:?}");
                break;
            }
        }
        assert!(3 < pauses, "{pauses}: {shown}");
    }
}
