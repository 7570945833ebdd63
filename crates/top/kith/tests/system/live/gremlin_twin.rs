//! Random traversals that read and change a graph: over a live graph they give the same as over the graph in memory with which
//! the steps are tested.

use super::{
    semantics::seed,
    site::{Site, Talk, code},
};
use kith_gremlin::{
    GremlinError, plain, text,
    value::{Map, Value as Gremlin},
};
use kith_traversal::{
    evaluate::{Evaluation, Limits},
    plan,
    testing::{MemoryGraph, finished},
};
use rand::{Rng, RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

const TRAVERSALS: usize = 500;
/// All fields are nullable: the graph in memory has no defaults.
const TYPES: &str = r#"
[object.person]
fields = { name = { type = "text", nullable = true }, age = { type = "i32", nullable = true } }

[object.place]
fields = { name = { type = "text", nullable = true } }

[association.follows]
inverse = "followed_by"
fields = { since = { type = "i32", nullable = true } }

[association.visits]
inverse = "visited_by"
cap = 2
"#;

/// A traversal. Its results do not depend on the order of vertices and edges.
fn draw(random: &mut impl Rng) -> String {
    let mut id = || random.random_range(1..13);
    let (a, b, c) = (id(), id(), id());
    let label = *["follows", "visits"].choose(random).expect("not empty");
    let hop = *["out", "in", "both"].choose(random).expect("not empty");
    match random.random_range(0..37) {
        0..3 => format!("g.addV('person').property(id, {a}).property('name', 'p{b}').property('age', {c})"),
        3 => format!("g.addV('place').property(id, {a}).property('name', 'q{b}')"),
        4..7 => format!("g.V({a}).as('a').V({b}).addE('follows').from('a').property('since', {c})"),
        7 => format!("g.addE('visits').from(__.V({a})).to(__.V({b}))"),
        8 => format!("g.V({a}).property('name', 'n{b}').values('name')"),
        9 => format!("g.V({a}).properties('name').drop()"),
        10 => format!("g.V().has('age', gt({b})).property('age', {c}).values('age').fold()"),
        11 => format!("g.V({a}).{hop}E('follows').property('since', {c}).values('since').order().fold()"),
        12 => format!("g.E('{a}>{label}>{b}').drop()"),
        13 => format!("g.V({a}).drop()"),
        14 => format!(
            "g.mergeV([(T.id): {a}, (T.label): 'person']).option(Merge.onMatch, [name: 'm{b}']).label()"
        ),
        15 => format!("g.mergeE([(T.label): '{label}', (Direction.OUT): {a}, (Direction.IN): {b}]).id()"),
        16 => format!("g.V({a}).{hop}('{label}').id().order().fold()"),
        17 => format!("g.V().{hop}().dedup().count()"),
        18 => format!("g.V({a}).repeat(__.{hop}('{label}')).times(2).groupCount().by(label)"),
        19 => format!("g.V().hasLabel('person').{hop}E('follows').has('since', lt({b})).count()"),
        20 => format!("g.V({a}).{hop}().path().by(id).order().by(count(local)).count()"),
        21 => "g.V().where(__.out()).values('name').order().fold()".to_owned(),
        22 => format!("g.V({a}, {b}, {c}).{hop}E().elementMap().order().by(id).fold()"),
        // What nodes test and sort, in lists that end in the middle of what is read.
        23 => format!("g.V({a}).{hop}E('follows').has('since', gt({b})).id().order().fold()"),
        24 => format!(
            "g.V({a}).{hop}('{label}').has('person', 'age', gt({b})).has('name', startingWith('p')).id().order().fold()"
        ),
        25 => {
            format!(
                "g.V().{hop}E('follows').order().by('since', desc).limit({c}).values('since').order().fold()"
            )
        }
        26 => format!("g.V().{hop}('{label}').limit({c}).count()"),
        27 => format!(
            "g.V().repeat(__.{hop}('visits').has('age', neq({b}))).emit().times(2).id().order().fold()"
        ),
        28 => format!("g.V({a}, {b}).{hop}('{label}').{hop}('visits').has('age').limit({c}).count()"),
        29 => "g.V().hasLabel('person').count()".to_owned(),
        30 => format!("g.E().hasLabel('{label}').count()"),
        31 => "g.union(__.V(), __.E()).count()".to_owned(),
        32 => "g.V().count()".to_owned(),
        33 => "g.E().count()".to_owned(),
        34 => format!("g.V().{hop}E().hasLabel('{label}').id().order().fold()"),
        35 => format!("g.V({a}, {b}).{hop}E().hasLabel('{label}').has('since', gte({c})).limit({a}).count()"),
        _ => "g.V().elementMap().order().by(id).fold()".to_owned(),
    }
}

/// The answer of the graph in memory, as one of `kith run`.
fn expected(graph: &MemoryGraph, gremlin: &str) -> Value {
    match evaluated(graph, gremlin) {
        Ok(results) => json!({"result": results}),
        Err(error) => json!({"error": {"code": error.code.name()}}),
    }
}

fn evaluated(graph: &MemoryGraph, gremlin: &str) -> Result<Vec<Value>, GremlinError> {
    let now = "2026-01-31T12:00:00Z".parse().expect("a time");
    let inputs = text::Inputs { bindings: &Map::new(), now, entropy: 0 };
    let plan = plan::compile(&text::parse(gremlin, &inputs)?.bytecode)?;
    let results: Vec<(Gremlin, i64)> = finished(Evaluation::new(&plan, graph, Limits::default()).all())?;
    let each = results.iter().flat_map(|(value, bulk)| std::iter::repeat_n(value, *bulk as usize));
    Ok(each.map(plain::to_json).collect())
}

/// The part of an answer that is compared: its results in any order, or the code of its error.
fn compared(answer: &Value) -> Value {
    if let Some(code) = code(answer) {
        return json!(code);
    }
    let mut results = answer["result"].as_array().cloned().unwrap_or_default();
    results.sort_by_key(ToString::to_string);
    json!(results)
}

#[test]
fn random_traversals_give_the_same_as_over_a_graph_in_memory() {
    let seed = seed(7);
    eprintln!("repeat these traversals with KITH_SEED={seed}");
    let site = Site::start_empty(&["--groups", "2", "--nodes", "1", "--partitions", "4"]);
    let mut random: StdRng = StdRng::seed_from_u64(seed);
    let traversals: Vec<String> = (0..TRAVERSALS).map(|_| draw(&mut random)).collect();
    for (name, types) in [("declared", TYPES), ("open", "open = true\n")] {
        let applied = site.apply(name, types, &[]);
        assert!(applied.status.success(), "{applied:?}");
        let line = |gremlin: &String| json!({"op": "gremlin", "graph": name, "gremlin": gremlin});
        let mut talk: Talk = site.talk(1);
        let answers = talk.ask_all(&traversals.iter().map(line).collect::<Vec<_>>());
        let graph = MemoryGraph::default();
        for (gremlin, answer) in traversals.iter().zip(&answers) {
            let expected = expected(&graph, gremlin);
            assert_eq!(compared(answer), compared(&expected), "{name}: {gremlin}: {answer}");
        }
    }
}
