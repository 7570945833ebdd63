//! `addV`, `addE`, `property` and `drop`.

use super::{check, compiled, toy};
use kith_gremlin::value::Value;
use kith_traversal::{
    evaluate::{Evaluation, Limits},
    testing::finished,
};

#[test]
fn vertices_are_added() {
    check(&[
        (&["g.addV()", "g.V(0).label()"], "vertex"),
        (&["g.addV('dog').property('name', 'rex')", "g.V().hasLabel('dog').values('name')"], "rex"),
        (&["g.addV('dog').property(T.id, '7')", "g.V(7).label()"], "dog"),
        (&["g.addV('dog').property(T.id, '7')", "g.V().hasId('7').id()"], "7"),
        (&["g.addV('dog').property(T.id, 1)"], "! already exists"),
        (&["g.V(2).addE('x').to(V(1)).property(T.id, 7).id()"], "2>x>1"),
        (
            &["g.V().hasLabel('person').addV('twin').property('of', values('name')).values('of')"],
            "marko vadas josh",
        ),
        (&["g.addV('dog').property(['name': 'rex', 'age': 3])", "g.V().has('age', 3).values('name')"], "rex"),
        (&["g.addV('dog').property(null).properties().count()"], "0"),
        (&["g.addV('dog').property(set, null).properties().count()"], "0"),
        (&["g.addV('dog').property('name', null).properties().count()"], "0"),
        (&["g.addV('dog').property('name', 'rex').with('key', 'value').valueMap()"], "{name=[rex]}"),
        (&["g.addV('dog').property(single, 'a', 1).property(single, 'a', 2).values('a')"], "2"),
        (&["g.addV(V(1).label()).label()"], "person"),
        (&["g.addV().property(T.label, 'dog').label()"], "dog"),
        (
            &["g.addV('cat').property(T.label, 'dog')"],
            "! already been set to [cat] and cannot be overridden with [dog]",
        ),
        (&["g.addV().property(T.id, null)"], "! Value of T cannot be null"),
        (&["g.addV('')"], "! Label can not be empty"),
        (&["g.addV('~dog')"], "! Label can not be a hidden key: ~dog"),
        (&["g.addV('dog').property('', 1)"], "! Property key can not be the empty string"),
        (&["g.addV('dog').property('~name', 1)"], "! Property key can not be a hidden key: ~name"),
        (&["g.addV('dog').property(constant('~name'), 1)"], "! Property key can not be a hidden key: ~name"),
        (&["g.addV('dog').property('name', V().values('none'))"], "! has no result"),
    ]);
}

#[test]
fn edges_are_added() {
    check(&[
        (&["g.addE('likes').from(V(1)).to(V(3))", "g.V(1).out('likes').values('name')"], "lop"),
        (
            &[
                "g.V(1).as('a').V(3).addE('likes').from('a').property('weight', 0.7)",
                "g.V(3).inE('likes').values('weight')",
            ],
            "0.7",
        ),
        (&["g.V(1).addE('likes').to(V(2)).property(single, 'weight', 1).valueMap()"], "{weight=1}"),
        (
            &["g.V(1).addE('likes').to(V(2)).property(list, 'weight', 1)"],
            "! Multi-property cardinality can only be set for a Vertex",
        ),
        (&["g.V(1).addE('likes').to(V(99))"], "! addE().to() must resolve to a Vertex"),
        (&["g.addE('likes').from(V(1))"], "! addE().to() must resolve to a Vertex"),
        (&["g.V(1).addE('~likes').to(V(2))"], "! Label can not be a hidden key: ~likes"),
    ]);
}

#[test]
fn an_edge_that_exists_is_replaced_only_if_that_is_wanted() {
    let again = "g.V(1).addE('knows').to(V(2)).property('since', 1)";
    check(&[
        (&[again], "! edge 1>knows>2 exists already"),
        (&[again, "g.V(1).outE('knows').values()"], "0.5 1.0"),
        (&["g.inject(1, 2).addE('likes').from(V(1)).to(V(2))"], "! edge 1>likes>2 exists already"),
        (&["g.V(1).addE('likes').to(V(2)).outV().addE('likes').to(V(2))"], "! exists already"),
        (&["g.V(2).addE('knows').to(V(1)).id()"], "2>knows>1"),
    ]);
    let (plan, graph) = (compiled(&format!("{again}.valueMap()")).expect("it is compiled"), toy());
    let evaluation = Evaluation::new(&plan, &graph, Limits::default()).replacing_edges(true);
    let results = finished(evaluation.all()).expect("it is evaluated");
    let results: Vec<String> = results.iter().map(|(value, _): &(Value, i64)| value.to_string()).collect();
    assert_eq!(results, ["{since=1}"]);
}

#[test]
fn properties_are_set_and_removed() {
    check(&[
        (&["g.V(1).property('age', 30)", "g.V(1).valueMap()"], "{name=[marko], age=[30]}"),
        (&["g.V().hasLabel('person').property('name', null)", "g.V().properties('name').count()"], "1"),
        (&["g.V(1).property(list, 'age', null)", "g.V(1).values('age')"], "29"),
        (&["g.V(1).property(['a': 1, 'b': 2])", "g.V(1).values('a', 'b')"], "1 2"),
        (&["g.V(1).property(V(1).label(), 5)", "g.V(1).values('person')"], "5"),
        (&["g.V(1).property('n', out().count())", "g.V(1).values('n')"], "2"),
        (&["g.E().property('weight', null)", "g.E().properties().count()"], "0"),
        (&["g.E().hasLabel('created').property('weight', 9).values('weight')"], "9"),
        (&["g.E().property(single, 'weight', 9)"], "! Property cardinality can only be set for a Vertex"),
        (&["g.V(1).property(T.id, 7)"], "! T.id is immutable on existing elements"),
        (&["g.V(1).property(T.label, 'dog')"], "! T.label is immutable on existing elements"),
        (&["g.inject(1).property('a', 1)"], "! property() needs an element"),
        (&["g.V(1).property('a', V().values('none'))"], "! has no result"),
    ]);
}

#[test]
fn a_label_names_the_element_as_it_is_by_now() {
    check(&[
        (&["g.E().hasLabel('created').as('e').property('weight', 9).select('e').values('weight')"], "9"),
        (&["g.E().hasLabel('created').as('e').property('weight', null).select('e').valueMap()"], "{}"),
        (&["g.V(2).as('v').property('age', 9).select('v').values('age')"], "9"),
    ]);
}

#[test]
fn elements_and_properties_are_dropped() {
    check(&[
        (&["g.V(4).drop()", "g.V().count()"], "3"),
        (&["g.V(4).drop()", "g.E().id()"], "1>knows>2"),
        (&["g.V(1).outE('knows').drop()", "g.E().label()"], "created"),
        (&["g.V().properties('age').drop()", "g.V().has('age').count()"], "0"),
        (&["g.E().properties('weight').drop()", "g.E().valueMap()"], "{} {} {}"),
        (&["g.V().drop().count()"], "0"),
        (&["g.inject(1).drop()"], "! The incoming object is not removable: 1"),
    ]);
}
