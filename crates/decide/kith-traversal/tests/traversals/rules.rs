//! Steps that rules replace: what the graph is asked for instead, and that the results stay.

use super::{ask, compiled, toy};
use kith_gremlin::value::Value;
use kith_traversal::{
    evaluate::{Evaluation, Limits},
    explain::{self, StepQuestion},
    testing::{MemoryGraph, UnlabelledGraph, finished},
};
use kith_types::ErrorCode;

/// The questions of the steps to the graph, without the look-up of the first vertex.
fn asked(gremlin: &str) -> Vec<String> {
    let asked = explain::asked(&compiled(gremlin).expect("the traversal is compiled"));
    let later = asked.iter().filter(|asks| !matches!(asks, StepQuestion::Vertices { .. }));
    later.map(ToString::to_string).collect()
}

#[test]
fn hops_become_what_is_wanted_of_them() {
    let rows: [(&str, &[&str], i64); 9] = [
        ("g.V(1).outE().inV().count()", &["the number of outgoing edges of all labels"], 2),
        ("g.V(1).out('knows').count()", &["the number of outgoing edges labelled knows"], 2),
        (
            "g.V(1).out().dedup().count()",
            &["the number of vertices at the other ends of outgoing edges of all labels"],
            2,
        ),
        (
            "g.V(1).both().both().dedup().count()",
            &[
                "the set of vertices at the other ends of edges of all labels",
                "the number of vertices at the other ends of edges of all labels",
            ],
            2,
        ),
        (
            "g.V(1).out().out().dedup().id()",
            &["the set of vertices at the other ends of outgoing edges of all labels"; 2],
            3,
        ),
        // What tells traversers apart must stay.
        ("g.V(1).as('a').out().dedup().select('a').count()", &["outgoing edges of all labels"], 2),
        ("g.V(1).out().dedup().path().count()", &["outgoing edges of all labels"], 2),
        ("g.withSack(1).V(1).out().dedup().count()", &["outgoing edges of all labels"], 2),
        // A hop of which little is wanted ends early.
        ("g.V(1).out().dedup().limit(1).count()", &["outgoing edges of all labels"], 1),
    ];
    for (gremlin, expected, result) in rows {
        assert_eq!(asked(gremlin), expected, "{gremlin}");
        assert_eq!(ask(&toy(), gremlin), Ok(vec![Value::Long(result)]), "{gremlin}");
    }
}

/// A graph that says how many elements it has, and one that does not.
#[test]
fn all_elements_are_counted_where_they_are() {
    let rows = [
        ("g.V().count()", "the number of all vertices", 4_i64),
        ("g.E().count()", "the number of all edges", 3),
        ("g.V().hasLabel('person').count()", "the number of vertices labelled person", 3),
        (
            "g.V().hasLabel('person', 'software').count()",
            "the number of vertices labelled person or software",
            4,
        ),
        (
            "g.V().has(T.label, 'person').hasLabel('software').count()",
            "the number of vertices with no label, which is 0",
            0,
        ),
        ("g.V().hasLabel('stranger').count()", "the number of vertices labelled stranger", 0),
        ("g.E().hasLabel('knows').count()", "the number of edges labelled knows", 2),
        ("g.E().hasLabel(within('knows', 1)).count()", "the number of edges labelled knows", 2),
        ("g.withPath().V().count()", "the number of all vertices", 4),
        ("g.V().as('a').count()", "the number of all vertices", 4),
        // What is more than labels must be read.
        ("g.V().hasLabel(neq('person')).count()", "all vertices, page by page", 1),
        ("g.V().hasId(1).count()", "all vertices, page by page", 1),
        ("g.V().limit(2).count()", "all vertices, page by page", 2),
    ];
    for (gremlin, expected, result) in rows {
        assert_eq!(asked(gremlin), [expected], "{gremlin}");
        let result = Ok(vec![Value::Long(result)]);
        assert_eq!(ask(&toy(), gremlin), result, "{gremlin}");
        let plan = compiled(gremlin).expect("the traversal is compiled");
        let graph = UnlabelledGraph::new(toy());
        let scanned = finished(Evaluation::new(&plan, &graph, Limits::default()).all());
        assert_eq!(
            scanned.map(|results| results.into_iter().map(|(value, _)| value).collect()),
            result,
            "{gremlin}"
        );
    }
    let then = [
        ("g.V().count().as('n').select('n')", 4),
        ("g.V().count().path().unfold()", 4),
        ("g.V().count().is(4)", 4),
    ];
    for (gremlin, result) in then {
        assert_eq!(ask(&toy(), gremlin), Ok(vec![Value::Long(result)]), "{gremlin}");
    }
    let one = Limits { elements: 1, ..Limits::default() };
    let plan = compiled("g.V().count()").expect("the traversal is compiled");
    assert!(finished(Evaluation::new(&plan, &toy(), one).all()).is_ok(), "a number is one element");
    let scanned = finished(Evaluation::new(&plan, &UnlabelledGraph::new(toy()), one).all());
    assert_eq!(scanned.map_err(|error| error.code), Err(ErrorCode::TooLarge));
}

#[test]
fn labels_and_paths_that_nobody_reads_any_more_keep_no_rule_from_being_used() {
    let (hop, number) = ("outgoing edges of all labels", "the number of outgoing edges of all labels");
    let set = "the number of vertices at the other ends of outgoing edges of all labels";
    let rows: [(&str, &[&str], i64); 12] = [
        ("g.V(1).as('a').out().as('b').dedup().count()", &[set], 2),
        ("g.V(1).as('a').both().where(neq('a')).out().dedup().count()", &["edges of all labels", set], 1),
        ("g.V(1).out().as('b').count()", &[number], 2),
        ("g.V(1).repeat(out()).times(2).as('b').count()", &[hop, number], 1),
        ("g.V(1).repeat(out().as('b')).times(2).select(all, 'b').unfold().count()", &[hop, hop], 2),
        ("g.V(1).bothE().otherV().count()", &["the number of edges of all labels"], 2),
        ("g.V(1).outE().as('e').inV().count()", &[number], 2),
        ("g.V(1).both().simplePath().outE().inV().dedup().count()", &["edges of all labels", set], 1),
        // What is read later must stay.
        ("g.V(1).outE().inV().path().unfold().count()", &[hop], 6),
        ("g.V(1).outE().inV().simplePath().count()", &[hop], 2),
        ("g.V(1).outE().as('e').inV().select('e').count()", &[hop], 2),
        ("g.V(1).as('a').out().dedup().where(neq('a')).count()", &[hop], 2),
    ];
    for (gremlin, expected, result) in rows {
        assert_eq!(asked(gremlin), expected, "{gremlin}");
        assert_eq!(ask(&toy(), gremlin), Ok(vec![Value::Long(result)]), "{gremlin}");
    }
}

#[test]
fn named_vertices_with_labels_are_not_read_unless_they_are_shown() {
    for (gremlin, is_read, result) in [
        ("g.V(1).as('a').out().in().where(neq('a')).count()", false, 0_i64),
        ("g.V(1).as('a').out().in().where(eq('a')).count()", false, 2),
        ("g.V(1).as('a').out().where(__.in().as('a')).count()", false, 2),
        ("g.V(1).as('a').out().in().where(neq('a')).by('name').count()", true, 0),
        ("g.V(1).as('a').out().select('a').count()", true, 2),
        ("g.V(1).out().path().count()", true, 2),
    ] {
        let asked = explain::asked(&compiled(gremlin).expect("the traversal is compiled"));
        assert_eq!(matches!(asked[0], StepQuestion::Vertices { .. }), is_read, "{gremlin}: {asked:?}");
        let result = Ok(vec![Value::Long(result)]);
        assert_eq!(ask(&toy(), gremlin), result, "{gremlin}");
    }
}

/// Where each of 20 vertices has edges to all others, traversers with different labels would be 20 times as many.
#[test]
fn traversers_become_one_once_their_labels_have_been_read() {
    let graph = MemoryGraph::default();
    for id in 0..20 {
        ask(&graph, &format!("g.addV('all').property(id, {id})")).unwrap();
    }
    ask(&graph, "g.V().as('a').V().where(neq('a')).addE('knows').from('a')").unwrap();
    let limits = Limits { traversers: 1_000, ..Limits::default() };
    for (gremlin, fits) in [
        ("g.V().as('a').out().where(neq('a')).out().out().out().count()", true),
        ("g.V().as('a').out().out().out().where(neq('a')).out().count()", false),
    ] {
        let plan = compiled(gremlin).unwrap();
        let results = finished(Evaluation::new(&plan, &graph, limits).all());
        assert_eq!(results.is_ok(), fits, "{gremlin}: {results:?}");
    }
}

#[test]
fn edges_to_named_vertices_are_followed_from_these() {
    let back = "the set of vertices from which outgoing edges labelled created lead to the 1 named vertex";
    for (gremlin, asks, result) in [
        ("g.V().where(out('created').hasId(3)).id().order().fold()", back, vec![4_i64]),
        ("g.V().where(out('created').hasId('3')).id().order().fold()", back, vec![4]),
        ("g.V().not(out('created').hasId(3)).id().order().fold()", back, vec![1, 2, 3]),
        ("g.V().where(out('created').hasId('03')).id().order().fold()", back, vec![]),
        ("g.V().where(out('created').hasId(33)).id().order().fold()", back, vec![]),
        // Fewer vertices than are named: their own edges are followed.
        ("g.V(4).where(out('created').hasId(3)).id().order().fold()", back, vec![4]),
    ] {
        assert_eq!(asked(gremlin).last().map(String::as_str), Some(asks), "{gremlin}");
        let ids: Vec<Value> = result.into_iter().map(Value::Long).collect();
        assert_eq!(ask(&toy(), gremlin), Ok(vec![Value::list(ids)]), "{gremlin}");
    }
    // A limit of elements shows that the edges of the others are not read.
    let (graph, limits) = (toy(), Limits { elements: 6, ..Limits::default() });
    for (gremlin, fits) in [
        ("g.V().where(both('knows').hasId(2)).count()", true),
        ("g.V().where(both('knows').has('name', 'vadas')).count()", false),
    ] {
        let plan = compiled(gremlin).unwrap();
        let results = finished(Evaluation::new(&plan, &graph, limits).all());
        assert_eq!(results.is_ok(), fits, "{gremlin}: {results:?}");
    }
}

#[test]
fn edges_that_are_only_counted_do_not_count_as_elements() {
    let (graph, limits) = (toy(), Limits { elements: 4, ..Limits::default() });
    for (gremlin, fits) in [("g.V(1, 4).both().count()", true), ("g.V(1, 4).both().id()", false)] {
        let plan = compiled(gremlin).unwrap();
        let results = finished(Evaluation::new(&plan, &graph, limits).all());
        assert_eq!(results.is_ok(), fits, "{gremlin}: {results:?}");
    }
}

#[test]
fn vertices_with_a_property_come_from_an_index_if_there_is_one() {
    let limits = Limits { elements: 3, ..Limits::default() };
    for (gremlin, result) in [
        ("g.V().has('person', 'name', 'marko').id()", vec![Value::Long(1)]),
        ("g.V().hasLabel('person').has('name', 'josh').out('created').id()", vec![Value::Long(3)]),
        ("g.V().as('a').has('age', gt(1)).has('name', 'josh').select('a').id()", vec![Value::Long(4)]),
        // The index does not know labels, so the filter after it must stay.
        ("g.V().has('software', 'name', 'marko').id()", vec![]),
        ("g.V().has('name', 'nobody').id()", vec![]),
    ] {
        let plan = compiled(gremlin).unwrap();
        for is_indexed in [false, true] {
            let graph = toy();
            if is_indexed {
                graph.index("name");
            }
            let all = finished(Evaluation::new(&plan, &graph, limits).all());
            // A scan of all four vertices is more than the limit allows.
            assert_eq!(all.is_ok(), is_indexed, "{gremlin}: {all:?}");
            assert_eq!(ask(&graph, gremlin).as_ref(), Ok(&result), "{gremlin}");
        }
    }
    // Other tests than for equality, and filters after other steps, need all vertices.
    let graph = toy();
    graph.index("name");
    for gremlin in ["g.V().has('name', neq('marko')).count()", "g.V().out().has('name', 'lop').count()"] {
        let plan = compiled(gremlin).unwrap();
        let all = finished(Evaluation::new(&plan, &graph, limits).all());
        assert!(all.is_err(), "{gremlin}: {all:?}");
    }
}

#[test]
fn hops_say_which_edges_the_filters_after_them_want() {
    let (plain, wanted) =
        ("outgoing edges of all labels", "outgoing edges of all labels with the wanted weight");
    for (gremlin, asks, result) in [
        ("g.V(1).outE().has('weight', gt(0.5)).count()", wanted, 1),
        ("g.V(1).outE().has('weight', 0.5).count()", wanted, 1),
        ("g.V(1).outE().has('weight', neq(0.5)).has('weight', lte(1)).count()", wanted, 1),
        ("g.V(1).outE().has('weight', neq(0.5)).count()", wanted, 1),
        ("g.V(1).outE().has('weight', outside(0.4, 0.5)).count()", wanted, 1),
        // This does not follow the hop at once.
        ("g.V(1).outE().limit(1).has('weight', gt(0.5)).count()", plain, 0),
    ] {
        assert_eq!(asked(gremlin).first().map(String::as_str), Some(asks), "{gremlin}");
        assert_eq!(ask(&toy(), gremlin), Ok(vec![Value::Long(result)]), "{gremlin}");
    }
}

/// Of a vertex to which more edges lead than the bound allows, the edges of those that ask are followed.
#[test]
fn edges_to_a_hub_are_followed_from_the_other_side() {
    let graph = MemoryGraph::default();
    ask(&graph, "g.addV('star').property(id, 1)").unwrap();
    for fan in 2..5_000 {
        ask(&graph, &format!("g.addV('fan').property(id, {fan}).addE('likes').to(__.V(1))")).unwrap();
    }
    ask(&graph, "g.V(2).as('a').V(3, 4).addE('knows').from('a')").unwrap();
    let limits = Limits { elements: 100, ..Limits::default() };
    for (gremlin, expected) in [
        ("g.V(2).out('knows').where(out('likes').hasId(1)).count()", 2),
        ("g.V(2).out('knows').not(out('likes').hasId(1)).count()", 0),
    ] {
        let plan = compiled(gremlin).unwrap();
        let results = finished(Evaluation::new(&plan, &graph, limits).all());
        assert_eq!(results.map(|all| all[0].0.clone()), Ok(Value::Long(expected)), "{gremlin}");
    }
}
