//! Random traversals over random small graphs, against a twin that takes one traverser after the other. The evaluation takes
//! them in batches, merges equal ones, and evaluates nested traversals for many of them at once; none of this may show.

mod draw;
mod naive;
mod shape;

use kith_gremlin::{
    Result, text,
    value::{Map, Value},
};
use kith_traversal::{
    evaluate::{Evaluation, Limits},
    graph::{Graph, Mutation},
    plan,
    testing::{MemoryGraph, UnlabelledGraph, finished},
};
use naive::Town;
use proptest::prelude::*;
use rand::{SeedableRng, rngs::StdRng};

fn graph(town: &Town) -> Result<MemoryGraph> {
    let graph = MemoryGraph::default();
    for (id, (label, age)) in (0_i64..).zip(&town.vertices) {
        let properties = age.iter().map(|age| ("age".into(), Value::Int(*age))).collect();
        finished(graph.write(Mutation::AddVertex {
            id: Some(id.into()),
            label: (*label).into(),
            properties,
        }))?;
    }
    for (from, label, to) in &town.edges {
        let (label, properties) = ((*label).into(), Vec::new());
        let (out_vertex, in_vertex) = (Value::Long(*from), Value::Long(*to));
        let replaces = true;
        finished(graph.write(Mutation::AddEdge {
            id: None,
            label,
            out_vertex,
            in_vertex,
            properties,
            replaces,
        }))?;
    }
    Ok(graph)
}

/// The results of a traversal, taken in batches or all at once, over a graph that returns at most so many edges of a vertex at a
/// time.
fn evaluated(gremlin: &str, town: &Town, (in_batches, part_max): (bool, usize)) -> Result<Vec<String>> {
    let time = "2026-01-31T12:00:00Z".parse().expect("a time");
    let inputs = text::Inputs { bindings: &Map::new(), now: time, entropy: 0 };
    let plan = plan::compile(&text::parse(gremlin, &inputs)?.bytecode)?;
    // Labels that the graph leaves unknown must not show either.
    let graph = graph(town)?;
    graph.in_parts(part_max);
    let graph = UnlabelledGraph::new(graph);
    let mut evaluation = Evaluation::new(&plan, &graph, Limits::default());
    let results = match in_batches {
        false => finished(evaluation.all())?,
        true => {
            evaluation = evaluation.in_batches();
            let mut all = Vec::new();
            while let Some(batch) = finished(evaluation.next())? {
                all.extend(batch);
            }
            all
        }
    };
    let each = results.into_iter().flat_map(|(value, bulk)| std::iter::repeat_n(value, bulk as usize));
    let mut lines: Vec<String> = each.map(|value| value.to_string()).collect();
    lines.sort();
    Ok(lines)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn batches_do_not_show(seed in any::<u64>(), in_batches: bool, part_max in 1_usize..5) {
        let mut random = StdRng::seed_from_u64(seed);
        let (town, traversal) = (draw::town(&mut random), draw::traversal(&mut random));
        let gremlin = shape::gremlin(&traversal);
        let expected = naive::evaluate(&traversal, &town);
        prop_assume!(expected.is_some(), "too many traversers to take one by one");
        let found = evaluated(&gremlin, &town, (in_batches, part_max)).map_err(|error| error.message);
        prop_assert_eq!(found, Ok(expected.unwrap_or_default()), "{} over {:?}", gremlin, town);
    }

    /// A limit leaves some of the results, however little the steps before it are asked for.
    #[test]
    fn limits_leave_results_of_the_whole(seed in any::<u64>(), limit in 1_usize..20, part_max in 1_usize..5) {
        let mut random = StdRng::seed_from_u64(seed);
        let (town, traversal) = (draw::town(&mut random), draw::traversal(&mut random));
        let gremlin = format!("{}.limit({limit})", shape::gremlin(&traversal));
        let whole = naive::evaluate(&traversal, &town);
        prop_assume!(whole.is_some(), "too many traversers to take one by one");
        let mut whole = whole.unwrap_or_default();
        let count = whole.len().min(limit);
        let found = evaluated(&gremlin, &town, (false, part_max)).map_err(|error| error.message);
        let found = found.map_err(TestCaseError::fail)?;
        prop_assert_eq!(found.len(), count, "{} over {:?}", gremlin, town);
        for line in found {
            let at = whole.iter().position(|known| *known == line);
            prop_assert!(at.is_some(), "{} is no result of {} over {:?}", line, gremlin, town);
            whole.swap_remove(at.unwrap_or_default());
        }
    }
}
