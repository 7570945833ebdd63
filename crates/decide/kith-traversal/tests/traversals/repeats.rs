//! Repeats that rules replace: passes that become hops, and searches for one path.

use super::{ask, compiled, shown, toy};
use kith_gremlin::value::Value;
use kith_traversal::{
    evaluate::{Evaluation, Limits},
    explain,
    testing::{MemoryGraph, finished},
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

fn asked(gremlin: &str) -> Vec<String> {
    explain::asked(&compiled(gremlin).expect("it is compiled")).iter().map(ToString::to_string).collect()
}

#[test]
fn a_few_passes_of_hops_become_hops() {
    for (repeat, hops) in [
        ("g.V(1).repeat(both()).times(2).dedup().count()", "g.V(1).both().both().dedup().count()"),
        ("g.V(1).times(2).repeat(both()).count()", "g.V(1).both().both().count()"),
        ("g.V(1).repeat(outE().inV()).times(2).path()", "g.V(1).outE().inV().outE().inV().path()"),
        ("g.V().where(repeat(out()).times(2)).id()", "g.V().where(out().out()).id()"),
    ] {
        assert_eq!(asked(repeat), asked(hops), "{repeat}");
        assert_eq!(ask(&toy(), repeat), ask(&toy(), hops), "{repeat}");
    }
    // They still count as passes.
    let limits = Limits { passes: 1, ..Limits::default() };
    for gremlin in ["g.V(1).repeat(out()).times(2)", "g.V(1).repeat(out()).until(hasId(3)).limit(1)"] {
        let plan = compiled(gremlin).expect("it is compiled");
        let error = finished(Evaluation::new(&plan, &toy(), limits).all()).expect_err("it is bounded");
        assert!(error.message.contains("more than 1 passes"), "{error}");
    }
    // Many passes, and passes that do more than to follow edges, stay.
    for repeat in [
        "g.V(1).repeat(both()).times(9).count()",
        "g.V(1).repeat(out()).emit().times(2).count()",
        "g.V(1).repeat(out().dedup()).times(2).count()",
    ] {
        let plan = explain::explain(&compiled(repeat).expect("it is compiled"), &|_| String::new());
        assert!(plan.contains("repeat("), "{plan}");
    }
}

#[test]
fn a_second_until_or_emit_belongs_to_the_next_repeat() {
    for (gremlin, same) in [
        (
            "g.V(1).emit().repeat(out('knows')).times(1).emit().repeat(out('created')).times(1).count()",
            "g.V(1).union(identity(), out('knows')).union(identity(), out('created')).count()",
        ),
        ("g.V(3).repeat(in()).times(1).times(2).repeat(both()).count()", "g.V(3).in().both().both().count()"),
    ] {
        let expected = shown(&toy(), same);
        assert!(!expected.starts_with('!'), "{expected}");
        assert_eq!(shown(&toy(), gremlin), expected, "{gremlin}");
    }
    for gremlin in ["g.V(1).times(2).repeat(out()).times(1)", "g.V(1).times(1).until(hasId(3)).repeat(out())"]
    {
        let error = shown(&toy(), gremlin);
        assert!(error.contains("the repeat()-traversal was not defined"), "{gremlin}: {error}");
    }
}

/// Vertices 0 to 29, some of which have no edges to the others, and their edges. Some have no `n`, which is the id.
fn town(seed: u64) -> (MemoryGraph, BTreeSet<(i64, i64)>) {
    let mut state = seed;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below) as i64
    };
    let graph = MemoryGraph::default();
    for id in 0..30 {
        let n = if has_n(id) { format!(".property('n', {id})") } else { String::new() };
        ask(&graph, &format!("g.addV('p').property(T.id, {id}){n}")).expect("it is added");
    }
    let edges: BTreeSet<(i64, i64)> = (0..35).map(|_| (draw(25), draw(25))).collect();
    for (from, to) in &edges {
        ask(&graph, &format!("g.addE('e').from(__.V({from})).to(__.V({to}))")).expect("it is added");
    }
    (graph, edges)
}

fn has_n(id: i64) -> bool {
    id % 7 != 3
}

/// The edges in the direction of a step.
fn followed(edges: &BTreeSet<(i64, i64)>, step: &str) -> BTreeMap<i64, BTreeSet<i64>> {
    let mut followed: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    for &(from, to) in edges {
        if step != "in" {
            followed.entry(from).or_default().insert(to);
        }
        if step != "out" {
            followed.entry(to).or_default().insert(from);
        }
    }
    followed
}

/// The hops of a shortest path of at least one hop.
fn hops(followed: &BTreeMap<i64, BTreeSet<i64>>, from: i64, to: i64) -> Option<usize> {
    let (mut seen, mut queue) = (BTreeSet::new(), VecDeque::from([(from, 0)]));
    while let Some((vertex, hops)) = queue.pop_front() {
        for other in followed.get(&vertex).into_iter().flatten() {
            if *other == to {
                return Some(hops + 1);
            }
            if seen.insert(*other) {
                queue.push_back((*other, hops + 1));
            }
        }
    }
    None
}

#[test]
fn a_path_to_a_named_vertex_is_a_shortest_one() {
    for seed in 1..=4 {
        let (graph, edges) = town(seed);
        for step in ["out", "in", "both"] {
            let followed = followed(&edges, step);
            for (from, to) in (0..30).flat_map(|from| (0..30).step_by(3).map(move |to| (from, to))) {
                for (filter, after) in [(".simplePath()", ".path().limit(1)"), ("", ".limit(1).path()")] {
                    let gremlin = format!("g.V({from}).repeat({step}(){filter}).until(hasId({to})){after}");
                    let expected = match filter {
                        // A path that returns to its beginning is not simple.
                        ".simplePath()" if from == to => None,
                        _ => hops(&followed, from, to),
                    };
                    let found = ask(&graph, &gremlin).expect("it is evaluated");
                    let [Value::Path(path)] = &found[..] else {
                        assert_eq!((found.len(), expected), (0, None), "{gremlin}");
                        continue;
                    };
                    let id = |value: &Value| match value {
                        Value::Vertex(vertex) => vertex.id.to_string().parse::<i64>().expect("a number"),
                        other => panic!("{gremlin}: {other}"),
                    };
                    let ids: Vec<i64> = path.objects.iter().map(id).collect();
                    assert_eq!((ids[0], ids[ids.len() - 1]), (from, to), "{gremlin}: {ids:?}");
                    assert_eq!(Some(ids.len() - 1), expected, "{gremlin}: {ids:?}");
                    assert!(
                        ids.windows(2).all(|hop| followed[&hop[0]].contains(&hop[1])),
                        "{gremlin}: {ids:?}"
                    );
                }
            }
        }
    }
}

/// The hops of the shortest path from any of the vertices. It goes through vertices with `n` only, if these are needed. A simple
/// path does not return to its beginning.
fn hops_of(
    followed: &BTreeMap<i64, BTreeSet<i64>>,
    starts: &[i64],
    to: i64,
    (is_simple, needs_n): (bool, bool),
) -> Option<usize> {
    let passes = |id: &i64| !needs_n || has_n(*id);
    let mut followed = followed.clone();
    followed.retain(|from, to| {
        to.retain(passes);
        passes(from)
    });
    let starts = starts.iter().filter(|from| !(is_simple && **from == to));
    starts.filter_map(|from| hops(&followed, *from, to)).min()
}

/// The ids of the vertices of a path, whose edges must lie between them.
fn vertices_of(path: &[Value], gremlin: &str) -> Vec<i64> {
    let number = |id: &Value| id.to_string().parse::<i64>().expect("a number");
    let mut ids: Vec<i64> = Vec::new();
    for (at, value) in path.iter().enumerate() {
        match value {
            Value::Vertex(vertex) => ids.push(number(&vertex.id)),
            Value::Int(n) => ids.push(i64::from(*n)),
            Value::Edge(edge) => {
                let ends = [&edge.out_vertex.id, &edge.in_vertex.id].map(number);
                let (Value::Vertex(before), Value::Vertex(after)) = (&path[at - 1], &path[at + 1]) else {
                    panic!("{gremlin}: {path:?}");
                };
                let between = [number(&before.id), number(&after.id)];
                assert!(between == ends || between == [ends[1], ends[0]], "{gremlin}: {path:?}");
            }
            other => panic!("{gremlin}: {other}"),
        }
    }
    ids
}

#[test]
fn a_search_in_other_words_finds_a_shortest_path_too() {
    let ends = ["until(hasId(TO))", "until(has('n', TO))", "until(has('p', 'n', TO))", "emit(hasId(TO))"];
    let mut found_some = 0;
    for seed in 1..=2 {
        let (graph, edges) = town(seed);
        let indexed = town(seed).0;
        indexed.index("n");
        for (step, over) in [("out", "outE().inV"), ("in", "inE().outV"), ("both", "bothE().otherV")] {
            let followed = followed(&edges, step);
            for (case, (first, to)) in
                (0..30_i64).flat_map(|from| (0..30).step_by(4).map(move |to| (from, to))).enumerate()
            {
                let starts = [vec![first], vec![first, (first + 11) % 30, to]][case % 2].clone();
                let is_simple = case % 3 != 0;
                let simple = if is_simple { ".simplePath()" } else { "" };
                let hop = [step, over][case / 2 % 2];
                let end = [ends[case % 4], "emit().has('n', TO)"][usize::from(case % 5 == 0)];
                let needs_n = case % 7 < 3 && hop == step;
                let after = if needs_n { ".path().by('n').limit(1)" } else { ".limit(1).path()" };
                let ids = starts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let gremlin = format!("g.V({ids}).repeat({hop}(){simple}).{end}{after}");
                let gremlin = gremlin.replace("TO", &to.to_string());
                assert!(asked(&gremlin).iter().any(|asks| asks.contains("hop by hop")), "{gremlin}");
                let is_named = end.contains("hasId") || has_n(to);
                let expected = hops_of(&followed, &starts, to, (is_simple, needs_n)).filter(|_| is_named);
                for graph in [&graph, &indexed] {
                    let found = ask(graph, &gremlin).expect("it is evaluated");
                    let [Value::Path(path)] = &found[..] else {
                        assert_eq!((found.len(), expected), (0, None), "{gremlin}");
                        continue;
                    };
                    found_some += 1;
                    let ids = vertices_of(&path.objects, &gremlin);
                    assert!(starts.contains(&ids[0]) && ids[ids.len() - 1] == to, "{gremlin}: {ids:?}");
                    assert_eq!(Some(ids.len() - 1), expected, "{gremlin}: {ids:?}");
                    let is_edge = |hop: &[i64]| followed[&hop[0]].contains(&hop[1]);
                    assert!(ids.windows(2).all(is_edge), "{gremlin}: {ids:?}");
                    let has_edges = path.objects.iter().any(|value| matches!(value, Value::Edge(_)));
                    assert_eq!(has_edges, hop == over, "{gremlin}: {path}");
                }
            }
        }
    }
    assert!(100 < found_some, "{found_some} paths were found");
}

#[test]
fn a_search_for_a_path_has_the_values_of_its_vertices() {
    let path = "g.V(1).as('a').repeat(out().simplePath()).until(hasId(3))";
    for (after, expected) in [
        (".path().by('name').limit(1)", "path[marko, josh, lop]"),
        (".limit(1).path().by('name')", "path[marko, josh, lop]"),
        (".limit(1).label()", "software"),
        (".path().count(local).limit(1)", "3"),
        (".limit(1).select('a').values('name')", "marko"),
        (".limit(1).count()", "1"),
        (".as('b').limit(1).select('b').label()", "software"),
    ] {
        let found = ask(&toy(), &format!("{path}{after}")).expect("it is evaluated");
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected], "{after}");
    }
    for (gremlin, is_searched) in [
        (format!("{path}.limit(1)"), true),
        (format!("{path}.path().by(T.id).limit(1)"), true),
        (format!("{path}.path()"), false),
        (format!("{path}.limit(2)"), false),
        (format!("{path}.path().by('lang').limit(1)"), true),
        ("g.V(1, 2).repeat(out()).until(hasId(3)).limit(1)".to_owned(), true),
        ("g.V().has('name', 'marko').repeat(out()).until(has('name', 'lop')).limit(1)".to_owned(), true),
        ("g.V(1).repeat(outE().inV().simplePath()).until(hasId(3)).path().by('name').by('weight').limit(1)".to_owned(), true),
        ("g.V(1).repeat(out()).emit().has('name', 'lop').limit(1)".to_owned(), true),
        ("g.V(1).repeat(out()).emit(hasId(3)).hasLabel('person').limit(1)".to_owned(), false),
        ("g.V(1).repeat(outE().outV()).until(hasId(3)).limit(1)".to_owned(), false),
        ("g.V(1).repeat(out()).until(loops().is(2)).limit(1)".to_owned(), false),
        ("g.V().repeat(out()).until(hasId(3)).limit(1)".to_owned(), false),
        // Only the second path may have the values.
        (format!("{path}.path().by(values('lang')).limit(1)"), false),
        (format!("{path}.path().by('name').by('age').limit(1)"), false),
        ("g.V(1).repeat(out()).emit().until(hasId(3)).limit(1)".to_owned(), false),
        ("g.V(1).until(hasId(3)).repeat(out()).limit(1)".to_owned(), false),
    ] {
        let asks = asked(&gremlin);
        assert_eq!(
            asks.iter().any(|asks| asks.contains("hop by hop, from both ends if")),
            is_searched,
            "{gremlin}"
        );
    }
}

/// A tree in both directions, in which each vertex has many others: all paths from one end are far more than the bound allows.
#[test]
fn a_search_for_a_path_follows_few_edges() {
    let graph = MemoryGraph::default();
    let ids = (0..1 + 10 + 100 + 1000).map(|id| format!("addV('p').property(T.id, {id})"));
    for id in ids {
        ask(&graph, &format!("g.{id}")).expect("it is added");
    }
    for child in 1..1111_i64 {
        let parent = (child - 1) / 10;
        ask(&graph, &format!("g.addE('e').from(__.V({parent})).to(__.V({child}))")).expect("it is added");
    }
    let search =
        compiled("g.V(0).repeat(out().simplePath()).until(hasId(1110)).limit(1).path().count(local)");
    let limits = Limits { elements: 40, ..Limits::default() };
    let found = finished(Evaluation::new(&search.expect("it is compiled"), &graph, limits).all());
    assert_eq!(found, Ok(vec![(Value::Long(4), 1)]));
}
