//! `explain`.

use super::compiled;
use kith_traversal::explain::{StepQuestion, explain};

/// The lines of the explanation, with single spaces. The graph says of each question only that it is asked.
fn explained(gremlin: &str) -> Vec<String> {
    let fan_outs = |asks: &StepQuestion| match asks {
        StepQuestion::Hop { .. } => "fan-out".to_owned(),
        _ => String::new(),
    };
    let text = explain(&compiled(gremlin).expect("it compiles"), &fan_outs);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().skip(2).map(words).filter(|line| !line.is_empty() && line != "Rules").collect()
}

#[test]
fn an_explanation_lists_the_steps_and_the_rules() {
    let gremlin = "g.V(1, 2).out('knows').where(inE().count().is(gt(1))).values('name').limit(3)";
    assert_eq!(
        explained(gremlin),
        [
            "V(1, 2) nothing: vertices that do not exist have no edges",
            "out(knows) outgoing edges labelled knows",
            "fan-out",
            "folded in: equal vertices of a batch, which are asked about once",
            "where(inE().count().is(gt(1)))",
            "inE() the number of incoming edges of all labels",
            "folded in: equal vertices of a batch, which are asked about once",
            "count()",
            "is(gt(1))",
            "values(name) the property name",
            "limit(3)",
            "look-up by id: used; only the edges of V(1, 2) are wanted, so it is not read at all",
            "merging of equal traversers: used; equal traversers become one with a count before and after each hop",
            "edges that are only counted: used; nodes answer inE() with numbers of edges",
            "early end: used; limit(3) ends the steps before it after the batch that satisfies it; hops read few edges of few vertices first",
            "properties by key: used; no other properties are fetched than name",
            "nested traversals by batch: used; all traversers of a batch enter a nested traversal together",
        ]
    );
}

/// The line of the explanation that begins with `start`.
fn line(gremlin: &str, start: &str) -> String {
    let lines = explained(gremlin);
    lines.iter().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {lines:?}")).clone()
}

#[test]
fn rules_that_are_not_used_say_why() {
    for (gremlin, rule, reason) in [
        ("g.V().has('name')", "look-up by id", "has(name) is tested afterwards"),
        ("g.V().has('name', 'marko')", "look-up by an index", "used if the graph has an index on name"),
        ("g.V(1).out().path()", "merging", "not used; path() needs the path"),
        ("g.withSack(1).V(1).out()", "merging", "not used; each traverser has a sack"),
        ("g.V().out().order().by('name').limit(2)", "early end", "not used; order()"),
        (
            "g.V(1).outE().as('e').inV().select('e')",
            "edges that are only passed",
            "not used; a later step reads paths or the label of outE()",
        ),
        ("g.V(1).out().dedup().limit(2)", "vertices that are only distinguished", "a limit ends the hop"),
        ("g.V(1).valueMap()", "properties by key", "not used; valueMap() asks for all"),
        ("g.V(1).local(out().aggregate('x').select('x'))", "nested traversals", "not used; local("),
    ] {
        let line = line(gremlin, rule);
        assert!(line.contains(reason), "{gremlin}: {line}");
    }
}

#[test]
fn what_edges_bring_is_not_asked_for() {
    let edges = "nothing: edges come with their properties";
    assert_eq!(line("g.V(1).outE().has('weight', 1.0).inV()", "has("), format!("has(weight, 1.0) {edges}"));
    assert_eq!(line("g.V(1).outE().order().by('weight')", "order()"), format!("order() {edges}"));
    assert_eq!(line("g.V(1).outE().limit(2).inV()", "inV()"), "inV() nothing: edges come with both ends");
    let of_vertices = line("g.V(1).repeat(out()).times(2).values('name')", "values(");
    assert_eq!(of_vertices, "values(name) the property name");
    assert_eq!(line("g.V(1).both().groupCount().by('age')", "groupCount("), "groupCount() the property age");
}

#[test]
fn what_the_rules_make_of_hops_is_shown() {
    let passed = explained("g.V(1).outE('knows').inV().out().dedup().count()");
    for expected in [
        "outE(knows) the set of vertices at the other ends of outgoing edges labelled knows",
        "out() the number of vertices at the other ends of outgoing edges of all labels",
        "folded in: dedup() and count()",
        "edges that are only passed: used; after outE(knows) the vertices at the other ends are asked for at once",
        "vertices that are only distinguished: used; nodes unite what outE(knows) reaches",
    ] {
        assert!(passed.iter().any(|line| line == expected), "{expected}: {passed:?}");
    }
}
