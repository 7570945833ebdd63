//! Functions of values, sacks, paths, and steps that choose at random. The results are those of TinkerPop's reference server.

use super::{ask, check, toy};
use kith_gremlin::value::Value;

#[test]
fn functions_of_text() {
    check(&[
        (&["g.inject('a', 'b').concat('c', 'd')"], "acd bcd"),
        (&["g.inject('a').concat(constant('x'), constant('y'))"], "axy"),
        (&["g.inject(['a', null]).unfold().concat('z')"], "az z"),
        (&["g.inject('Hello').toUpper()"], "HELLO"),
        (&["g.inject(['ab', 'cde']).length(local)"], "[2, 3]"),
        (&["g.inject('a,b,c').split(',')"], "[a, b, c]"),
        (&["g.inject('hello').substring(1, 3)"], "el"),
        (&["g.inject('hello').substring(-3)"], "llo"),
        (&["g.inject('banana').replace('an', 'o')"], "booa"),
        (&["g.inject([1, 2, 3]).conjoin('-')"], "1-2-3"),
        (&["g.inject(1).format('no %{x}').count()"], "0"),
        (&["g.inject(1).as('x').format('x is %{x}, and %{_}').by(constant(7))"], "x is 1, and 7"),
        (&["g.V(1).format('%{name} is %{age}')"], "marko is 29"),
    ]);
}

#[test]
fn functions_of_numbers_and_dates() {
    check(&[
        (&["g.inject('5').asNumber().math('_ * 2 + 1')"], "11.0"),
        (&["g.inject('5.5').asNumber(GType.INT)", "g.inject('5.5').asNumber(INT)"], "5"),
        (&["g.inject(1, 'a', 2l).is(typeOf(STRING))"], "a"),
        (&["g.inject('x').asNumber()"], "! Can't parse string 'x' as number."),
        (&["g.inject('no').asBool()"], "! Can't parse no as Boolean."),
        (&["g.inject('a').math('_ + 1')"], "! must resolve to a Number"),
        (&[format!("g.inject({}n).math('_ + 1')", "9".repeat(400)).as_str()], "Infinity"),
        (&["g.V(1).as('a').out('knows').math('a - _').by('age')"], "2.0 -3.0"),
        (
            &[
                "g.inject('2023-08-02T00:00:00Z').asDate().dateDiff(constant(datetime('2023-08-01T00:00:00Z')))",
            ],
            "86400000",
        ),
    ]);
}

#[test]
fn a_nested_inject_follows_what_enters() {
    check(&[
        (&["g.inject('a', 'b').concat(inject('c'))"], "aa bb"),
        (&["g.inject('a', 'b').flatMap(inject('c'))"], "a c b"),
        (&["g.inject('a', 'b').map(inject('c'))"], "a b"),
        (&["g.inject('a', 'b').map(inject('c').fold())"], "[a, c] [b]"),
    ]);
}

#[test]
fn sacks_are_merged_and_normalised_at_barriers() {
    check(&[
        (&["g.withSack(1).inject(1, 1, 2).sack(sum).by(identity()).sack()"], "2 2 3"),
        (&["g.withSack(1).inject(5, 5, 6).barrier().sack()"], "1 1 1"),
        (&["g.withSack(1, sum).inject(5, 5, 6).barrier().sack()"], "2 2 1"),
        (&["g.withBulk(false).withSack(1, sum).inject(5, 5, 6).barrier().sack()"], "2 1"),
        (&["g.withSack(1).inject(1, 2).barrier(normSack).sack()"], "0.5 0.5"),
        (&["g.withSack(1).inject(1, 2, 3, 4).local(barrier(normSack)).sack()"], "1.0 1.0 1.0 1.0"),
        (&["g.inject(1).barrier(normSack)"], "! needs numbers as sacks"),
    ]);
}

#[test]
fn steps_that_choose_at_random_keep_their_bounds() {
    check(&[
        (&["g.V().coin(0).count()"], "0"),
        (&["g.V().coin(1.0).count()"], "4"),
        (&["g.V().coin(1.5)"], "! from 0 to 1"),
        (&["g.V().repeat(both()).times(40).coin(0.5).count().is(between(1, 1000000000000L)).count()"], "1"),
        (&["g.V().sample(3).count()"], "3"),
        (&["g.V().sample(9).count()"], "4"),
        (&["g.V().hasLabel('person').sample(1).by('age').count()"], "1"),
        (&["g.inject([1, 2, 3, 4]).sample(local, 2).count(local)"], "2"),
        (&["g.inject(['a': 1, 'b': 2]).sample(local, 1).count(local)"], "1"),
    ]);
}

#[test]
fn rare_steps() {
    check(&[
        (&["g.inject([7, 8]).index()"], "[[7, 0], [8, 1]]"),
        (&["g.inject(5).index()"], "[[5, 0]]"),
        (&["g.inject([1, 2], [1, 3]).none(gt(2))"], "[1, 2]"),
        (&["g.V().properties('age').element().id()"], "1 2 4"),
        (&["g.E().properties('weight').element().label()"], "knows knows created"),
        (&["g.V(1).element()"], "! a property with its element is needed"),
        (&["g.inject(1).fail()"], "! fail() step triggered"),
        (&["g.V().discard().count()"], "0"),
        (&["g.union(constant(1), inject(2), V(1).id())"], "1 2 1"),
    ]);
}

#[test]
fn paths_have_the_result_of_coalesce_and_not_its_steps() {
    check(&[
        (&["g.V(4).coalesce(out('created').in('created')).path().by(id())"], "path[4, 4]"),
        (&["g.V(2).coalesce(out(), identity()).path().by(id())"], "path[2, 2]"),
        (&["g.V(1).coalesce(out('knows').as('m').in('knows')).select('m').count()"], "0"),
    ]);
}

#[test]
fn a_path_without_the_label_is_an_error() {
    check(&[
        (&["g.V(1).as('a').out().as('b').out().path().from('a').to('b').by(id())"], "path[1, 4]"),
        (&["g.V(1).out().path().from('a')"], "! could not locate path from-label: a"),
        (&["g.V(1).as('a').out().simplePath().from('a').to('b')"], "! could not locate path to-label: b"),
    ]);
}

#[test]
fn no_edge_has_null_as_its_label() {
    check(&[
        (&["g.V(1).out(null).count()"], "0"),
        (&["g.V(1).outE(null, 'knows').count()"], "2"),
        (&["g.V(1).out().count()"], "2"),
    ]);
}

/// `branch` takes every option for what no other option takes, and `choose` has one such option at most, as in TinkerPop.
#[test]
fn options_for_what_no_other_option_takes() {
    let options = ".option(1, constant('a')).option(none, constant('b')).option(none, constant('c'))";
    let texts = |texts: &[&str]| texts.iter().map(|text| Value::from(*text)).collect::<Vec<_>>();
    let mut found = ask(&toy(), &format!("g.inject(1, 2).branch(identity()){options}")).expect("it is right");
    found.sort_by_key(Value::to_string);
    assert_eq!(found, texts(&["a", "b", "c"]));
    for pick in ["none", "unproductive"] {
        let twice = format!(".option({pick}, constant('b')).option({pick}, constant('c'))");
        let error =
            ask(&toy(), &format!("g.inject(1, 2).choose(identity()){twice}")).expect_err("two of them");
        assert!(error.message.contains("one traversal per pick token"), "{error}");
    }
}

/// A traversal that nothing depends on any more is not evaluated, for each traverser by itself.
#[test]
fn and_and_or_end_where_they_are_decided() {
    for (gremlin, expected) in [
        ("g.inject(1, 7).and(is(P.gt(5)), is(P.lt(9)))", vec![Value::Int(7)]),
        ("g.inject(1, 7).or(is(P.lt(5)), is(P.gt(5)))", vec![Value::Int(1), Value::Int(7)]),
        ("g.inject(1).and(is(P.gt(5)), fail('it is evaluated'))", vec![]),
        ("g.inject(7, 8).or(is(P.gt(5)), fail('it is evaluated'))", vec![Value::Int(7), Value::Int(8)]),
        ("g.inject(1).where(__.or(is(1), fail('it is evaluated')))", vec![Value::Int(1)]),
        ("g.inject(1).filter(__.and(is(2), fail('it is evaluated')))", vec![]),
    ] {
        assert_eq!(ask(&toy(), gremlin), Ok(expected), "{gremlin}");
    }
    assert!(ask(&toy(), "g.inject(1, 7).and(is(P.gt(5)), fail())").is_err(), "7 is not decided");
}

#[test]
fn a_time_limit_lets_pass_what_comes_in_time() {
    check(&[
        (&["g.V().hasLabel('person').timeLimit(60000).count()"], "3"),
        (&["g.V().timeLimit(0).count()", "g.V().local(timeLimit(0)).count()"], "0"),
        (&["g.inject(1).timeLimit(-1)"], "! not negative, not -1"),
        (&["g.inject(1).timeLimit('a')"], "! a number of milliseconds"),
        // The time of all passes counts.
        (&["g.V(1).repeat(timeLimit(1).both().dedup().both()).times(9000).count()"], "0"),
        (&["g.V(1).repeat(timeLimit(1).both().dedup().both()).emit().times(9000).limit(1).count()"], "1"),
    ]);
}

#[test]
fn maps_of_vertex_properties_have_the_tokens_that_are_asked_for() {
    let asked = |bits: &str| format!("g.V(1).properties('name').valueMap().with(WithOptions.tokens{bits})");
    let map = |bits: &str| {
        let results = ask(&toy(), &asked(bits)).expect("a map");
        let Value::Map(map) = &results[0] else { panic!("{results:?}") };
        map.keys().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(map(""), "id key value");
    assert_eq!(map(", WithOptions.keys"), "key");
    assert_eq!(map(", WithOptions.values"), "value");
    assert_eq!(map(", WithOptions.ids"), "id");
    assert_eq!(map(", WithOptions.labels"), "");
    check(&[(&["g.V(1).valueMap('none').with(WithOptions.tokens, WithOptions.keys)"], "{}")]);
}

#[test]
fn a_map_without_a_key_has_null_for_it() {
    check(&[
        (&["g.V().groupCount().by('name').order().by('first_name').unfold().count()"], "4"),
        (&["g.inject([a: 2], [b: 1], [a: 1]).order().by('a')"], "{b=1} {a=1} {a=2}"),
        (&["g.inject([a: 2]).project('x', 'y').by('a').by('b')"], "{x=2, y=null}"),
        // An element without a property has no value.
        (&["g.V().order().by('age')"], "v[2] v[1] v[4]"),
    ]);
}

/// A `count` that is tested is the whole count.
#[test]
fn tested_counts_are_not_cut_short() {
    check(&[
        (&["g.V().groupCount().by(out().count().is(gt(0)))"], "{2=1, 1=1}"),
        (&["g.V().group().by('name').by(out().count().is(gt(0)))"], "{marko=2, josh=1}"),
    ]);
}

#[test]
fn neighbouring_tests_keep_their_labels() {
    check(&[
        (
            &["g.V().hasLabel('person').as('a').has('age', gt(30)).as('b').out().select('a', 'b')"],
            "{a=v[4], b=v[4]}",
        ),
        (&["g.V().as('a').out().as('b').out().as('c').in().in().where(eq('a')).count()"], "1"),
    ]);
}
