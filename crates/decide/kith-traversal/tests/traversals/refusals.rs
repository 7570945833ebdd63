//! Traversals that are refused before anything runs, and the effects of strategies.

use super::{check, compiled};
use kith_gremlin::{
    bytecode::{Bytecode, Instruction},
    predicate::Predicate,
    value::Value,
};
use kith_traversal::plan;
use kith_types::ErrorCode;
use std::sync::Arc;

#[test]
fn what_is_not_supported_is_refused_by_name() {
    for (gremlin, name) in [
        ("g.V().match(as('a').out().as('b'))", "match()"),
        ("g.V().outE().subgraph('x')", "subgraph()"),
        ("g.V().out().tree()", "tree()"),
        ("g.io('x.json').read()", "io()"),
        ("g.call()", "call()"),
        ("g.withComputer().V()", "withComputer()"),
        ("g.V().pageRank()", "pageRank()"),
        ("g.withStrategies(new SubgraphStrategy(vertices: hasLabel('person'))).V()", "SubgraphStrategy"),
        ("g.withStrategies(new PartitionStrategy(partitionKey: 'p')).V()", "PartitionStrategy"),
        ("g.withStrategies(ProductiveByStrategy).V()", "ProductiveByStrategy"),
        ("g.addV('a').property('name', 'x').property('name', 'y')", "more than one value of a key (name)"),
        ("g.V(1).property(list, 'name', 'y')", "more than one value of a key"),
        ("g.V(1).property('name', Cardinality.set('y'))", "more than one value of a key"),
        (
            "g.mergeV([:]).option(Merge.onMatch, ['name': Cardinality.list('y')])",
            "more than one value of a key",
        ),
        ("g.V(1).property('name', 'y', 'since', 2010)", "a property of a property"),
        ("g.mergeE([T.label: 'x']).option(Merge.onCreate, [T.id: 7])", "an id that is given to an edge"),
    ] {
        let error = compiled(gremlin).err().unwrap_or_else(|| panic!("{gremlin} is accepted"));
        assert_eq!(error.code, ErrorCode::UnsupportedOperation, "{gremlin}: {error}");
        let message = error.to_string();
        assert!(message.contains(name) && message.contains("not supported"), "{gremlin}: {message}");
    }
}

#[test]
fn lambdas_are_refused_wherever_they_stand() {
    let lambda = || Value::Lambda { language: "gremlin-groovy".into(), script: "it".into() };
    let predicate = Value::Predicate(Arc::new(Predicate { operator: "eq".into(), operands: vec![lambda()] }));
    let step = |name: &str, arguments| Instruction::new(name, arguments);
    for last in [
        vec![step("map", vec![lambda()])],
        vec![step("filter", vec![lambda()])],
        vec![step("order", vec![]), step("by", vec![lambda()])],
        vec![step("is", vec![predicate])],
    ] {
        let named =
            last.last().map(|instruction| format!("a lambda as an argument of {}()", instruction.name));
        let steps = [vec![step("V", vec![])], last].concat();
        let inner = Bytecode { sources: vec![], steps: steps.clone() };
        let outer = Bytecode {
            sources: vec![],
            steps: vec![step("V", vec![]), step("where", vec![Value::Traversal(Arc::new(inner.clone()))])],
        };
        for bytecode in [inner, outer] {
            let error = plan::compile(&bytecode).expect_err("a lambda is accepted");
            assert_eq!(error.code, ErrorCode::UnsupportedOperation);
            assert!(error.to_string().contains(named.as_deref().unwrap_or_default()), "{error}");
        }
    }
}

#[test]
fn an_edge_beside_one_with_the_same_label_is_refused() {
    let wanted = "g.mergeE([T.label: 'knows', Direction.OUT: 1, Direction.IN: 2, 'weight': 0.9])";
    check(&[(&[wanted], "! is not supported"), (&[wanted, "g.V(1).outE().values('weight')"], "0.5 1.0")]);
}

#[test]
fn strategies_that_verify_refuse_traversals() {
    check(&[
        (&["g.withStrategies(ReadOnlyStrategy).V().count()"], "4"),
        (
            &["g.withStrategies(ReadOnlyStrategy).addV()"],
            "! has a mutating step and thus is not read only: addV()",
        ),
        (&["g.withStrategies(ReadOnlyStrategy).V().sideEffect(drop())"], "! is not read only: drop()"),
        (&["g.withStrategies(ReadOnlyStrategy).V().coalesce(mergeV([:]))", "g.V().count()"], "4"),
        (
            &["g.withStrategies(new EdgeLabelVerificationStrategy(throwException: true)).V().where(out())"],
            "! without any specified edge label: out()",
        ),
        (
            &[
                "g.withStrategies(new EdgeLabelVerificationStrategy(throwException: true)).V(1).out('knows').id()",
            ],
            "2 4",
        ),
        (&["g.withStrategies(new EdgeLabelVerificationStrategy(logWarning: true)).V(1).out().id()"], "2 4"),
        (
            &[
                "g.withStrategies(new ReservedKeysVerificationStrategy(throwException: true)).addV().property('id', 1)",
            ],
            "! to a reserved word: id",
        ),
        (
            &[
                "g.withStrategies(new ReservedKeysVerificationStrategy(throwException: true, keys: {'age'})).addV().property('age', 1)",
            ],
            "! to a reserved word: age",
        ),
        (
            &[
                "g.withStrategies(new ReservedKeysVerificationStrategy(throwException: true, keys: {'age'})).addV().property('id', 1).values('id')",
            ],
            "1",
        ),
    ]);
}

#[test]
fn strategies_without_effect_on_results_are_accepted() {
    check(&[
        (&["g.withStrategies(LazyBarrierStrategy, CountStrategy).V().count()"], "4"),
        (&["g.withoutStrategies(InlineFilterStrategy, ReadOnlyStrategy).V().count()"], "4"),
    ]);
}

#[test]
fn the_same_seed_gives_the_same_choices() {
    let drawn = |seed: i64| {
        let gremlin = format!(
            "g.withStrategies(new SeedStrategy(seed: {seed})).V().both().both().both().sample(4).id()"
        );
        super::shown(&super::toy(), &gremlin)
    };
    assert_eq!(drawn(7), drawn(7));
    assert!((0..20).any(|seed| drawn(seed) != drawn(7)), "{}", drawn(7));
}
