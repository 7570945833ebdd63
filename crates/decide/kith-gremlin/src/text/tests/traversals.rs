//! Tests of traversals, predicates, sources, and errors.

use super::{error, read, script, shown, value};
use crate::{
    text::{TEXT_BYTES_MAX, Terminal},
    value::{Map, Value},
};
use kith_types::ErrorCode;
use proptest::prelude::*;

#[test]
fn steps_are_in_their_order() {
    let text = "g.V(1).as('a').\n  out(\"knows\") // friends\n .in() /* back */ .from('a').profile();";
    assert_eq!(shown(text), "V(1).as(a).out(knows).in().from(a).profile()");
    assert_eq!(&*script("social.E()").source, "social");
    assert_eq!(script("g.V()").terminal, None);
}

#[test]
fn methods_at_the_end_say_what_becomes_of_the_results() {
    let cases = [
        ("next()", Terminal::Next(None)),
        ("next(3)", Terminal::Next(Some(3))),
        ("toList()", Terminal::ToList),
        ("toSet()", Terminal::ToSet),
        ("toBulkSet()", Terminal::ToBulkSet),
        ("iterate()", Terminal::Iterate),
        ("hasNext()", Terminal::HasNext),
        ("tryNext()", Terminal::TryNext),
        ("explain()", Terminal::Explain),
    ];
    for (ending, terminal) in cases {
        let script = script(&format!("g.V().{ending}"));
        assert_eq!((script.terminal, script.bytecode.steps.len()), (Some(terminal), 1), "{ending}");
    }
    assert!(error("g.V().next(-1)").contains("how many results"));
    assert!(error("g.V().toList(1)").contains("takes no argument"));
    assert!(error("g.V().toList().out()").contains("toList() ends the traversal"));
    assert!(error("g.inject(__.out().next())").contains("next() within a nested traversal is not supported"));
}

#[test]
fn predicates_join() {
    assert_eq!(
        shown("g.V().has('age', gt(1).and(P.lt(5)).negate())"),
        "V().has(age, not(and(gt(1), lt(5))))"
    );
    assert_eq!(shown("g.V().is(P.within([1, 2]).or(within()))"), "V().is(or(within([1, 2]), within([])))");
    assert_eq!(shown("g.V().is(without({1}))"), "V().is(without([1]))");
    assert_eq!(shown("g.V().is(TextP.containing('a'))"), "V().is(containing(a))");
    assert_eq!(shown("g.V().is(not(eq([1])))"), "V().is(not(eq([1])))");
    assert_eq!(shown("g.V().not(not(out()))"), "V().not(not(out()))");
    assert!(matches!(value("not(out())"), Value::Traversal(_)));
    assert!(error("g.V().is(P.gtt(1))").contains("did you mean \"gt\""));
    assert!(error("g.V().is(between(1))").contains("between() takes 2 values, not 1"));
    assert!(error("g.V().is(gt(1).out())").contains("and, or or negate"));
    assert!(error("g.V().is(gt(1).and(2))").contains("one predicate"));
    assert!(error("g.V().is(P.not(2))").contains("takes a predicate"));
    assert!(error(&format!("g.V().is(gt(1){})", ".negate()".repeat(1_000))).contains("100 times"));
}

#[test]
fn traversals_nest() {
    let text = "g.V().where(__.out('a').in()).repeat(both().limit(1)).by(values('name'), desc).times(2)";
    let expected = "V().where(out(a).in()).repeat(both().limit(1)).by(values(name), desc).times(2)";
    assert_eq!(shown(text), expected);
    assert_eq!(value("__.values('a')"), value("values('a')"));
}

#[test]
fn sources_are_configured() {
    let script = script(
        "g.with('a', 1).withStrategies(ReadOnlyStrategy, new SubgraphStrategy(vertices: hasLabel('x'))).with('b').
         withoutStrategies(org.example.CountStrategy).withSack(1, sum).withSideEffect('s', [1]).V().with('c', 2)",
    );
    let sources = &script.bytecode.sources;
    let names: Vec<&str> = sources.iter().map(|source| &*source.name).collect();
    let expected = ["withStrategies", "withStrategies", "withoutStrategies", "withSack", "withSideEffect"];
    assert_eq!(names, expected);
    let options: Map = [("a".into(), 1.into()), ("b".into(), true.into())].into_iter().collect();
    let strategy = |name: &str, configuration: Map| Value::Strategy {
        name: name.into(),
        configuration: configuration.into(),
    };
    assert_eq!(sources[0].arguments, [strategy("OptionsStrategy", options)]);
    let vertices: Map = [("vertices".into(), value("hasLabel('x')"))].into_iter().collect();
    let expected = [strategy("ReadOnlyStrategy", Map::default()), strategy("SubgraphStrategy", vertices)];
    assert_eq!(sources[1].arguments, expected);
    assert_eq!(sources[2].arguments, [Value::Class("CountStrategy".into())]);
    assert_eq!(script.bytecode.steps.len(), 2);
    let computer = self::script("g.withComputer().V()").bytecode.sources;
    assert_eq!(computer[0].arguments, [strategy("VertexProgramStrategy", Map::default())]);
    assert!(error("g.with(1).V()").contains("name of an option"));
}

#[test]
fn mistakes_have_a_place_and_a_hint() {
    let cases = [
        (
            "",
            "line 1, column 1: expected the name of a traversal source, such as g, found the end of the text",
        ),
        ("g", "line 1, column 2: expected a step, such as g.V(), found the end of the text"),
        ("g.V().\n  otu()", "line 2, column 3: unknown step \"otu\"; did you mean \"out\"?"),
        ("g.W()", "line 1, column 3: unknown step \"W\""),
        (
            "g.out()",
            "line 1, column 3: out() cannot begin a traversal; V, E, addV, addE, mergeV, mergeE, inject, io, call, union can",
        ),
        ("g.V", "line 1, column 4: expected \"(\", found the end of the text"),
        ("g.V(1 2)", "line 1, column 7: expected \",\" or \")\", found a number"),
        ("g.V(out)", "line 1, column 5: the step out needs parentheses: out()"),
        (
            "g.V()\ng.E()",
            "line 2, column 1: a second traversal begins here; send each in a request of its own",
        ),
        (
            "g.V();g.E()",
            "line 1, column 7: a second traversal begins here; send each in a request of its own",
        ),
        (
            "g.V() 'x'",
            "line 1, column 7: expected \".\" and a step, or the end of the text, found the string \"x\"",
        ),
        ("g.V().where(g.V())", "line 1, column 13: a nested traversal begins with __, not with g"),
        ("g.V(gtee(1))", "line 1, column 5: unknown step or predicate \"gtee\"; did you mean \"gte\"?"),
        ("g.V(#)", "line 1, column 5: unexpected character '#'"),
        ("g.V() /* é", "line 1, column 7: this comment has no end (*/)"),
        ("g.tx().commit()", "line 1, column 3: a transaction of several requests, tx(), is not supported"),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn lambdas_are_refused_by_name() {
    for text in [
        "g.V().map{it.get()}",
        "g.V().map({it.get()})",
        "g.V().map(x -> x)",
        "g.V().map(Lambda.function('x'))",
    ] {
        let error = read(text).expect_err("an error");
        assert!(
            error.code == ErrorCode::UnsupportedOperation && error.message.contains("lambda"),
            "{text}: {error}"
        );
    }
    let refused = crate::GremlinError::from(read("g.V().map(Lambda.function('x'))").expect_err("an error"));
    assert_eq!(refused.code, kith_types::ErrorCode::UnsupportedOperation);
    assert_eq!(refused.message, "line 1, column 11: a lambda is not supported");
}

#[test]
fn depth_and_length_are_bounded() {
    for opening in ["[", "{", "(", "out(", "[[]:", "not(gt("] {
        let text = format!("g.inject({}", opening.repeat(100_000));
        assert!(error(&text).contains("more than 100 deep"), "{opening}");
    }
    let text = format!("g.inject({}1{})", "[".repeat(99), "]".repeat(99));
    assert!(read(&text).is_ok());
    assert!(error(&format!("g.V('{}')", "x".repeat(TEXT_BYTES_MAX))).contains("at most 1048576"));
    assert_eq!(script(&format!("g.V(){}", ".out()".repeat(9_999))).bytecode.steps.len(), 10_000);
}

proptest! {
    #[test]
    fn every_text_gets_an_answer(text in "\\PC*", gremlin in "g\\.V\\(([\\[\\](){}:,.'1ex\"\\\\]|out|__|gt|T\\.id){0,20}") {
        for text in [&text, &gremlin] {
            if let Err(error) = read(text) {
                prop_assert!(error.line >= 1 && error.column >= 1 && !error.message.is_empty());
            }
        }
    }

    #[test]
    fn strings_and_numbers_are_read_back(text in "\\PC*", long: i64, double: f64) {
        let quoted = text.replace('\\', r"\\").replace('\'', r"\'");
        prop_assert_eq!(value(&format!("'{quoted}'")), Value::text(text));
        prop_assert_eq!(value(&format!("{long}L")), Value::Long(long));
        if double.is_finite() {
            prop_assert_eq!(value(&format!("{double:?}")), Value::Double(double));
        }
    }
}
