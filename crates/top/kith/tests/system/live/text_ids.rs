//! Ids of vertices that are texts, UUIDs and negative numbers, through lines of `kith run`, WebSockets and restarts.

use super::{
    driver::Driver,
    site::{Site, Talk},
};
use crate::support::cluster::text;
use serde_json::{Value, json};

const GRAPH: &str = "names";
/// Two texts with one hash, whose second numbers differ.
const COLLIDING: [&str; 2] = ["genaebkdpddhcgpc", "nkgaobikigjmmghf"];
const UUID: &str = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";

const OPEN: &str = "open = true\n";
const DECLARED: &str = r#"
[object.page]
ids = "text"
fields = { title = { type = "text", nullable = true }, n = { type = "i32", nullable = true } }

[object.user]
fields = { title = { type = "text", nullable = true } }

[association.links]
inverse = "linked_by"
"#;

fn start(types: &str) -> Site {
    let site = Site::start_empty(&["--groups", "2", "--nodes", "2", "--partitions", "8"]);
    let created = site.apply(GRAPH, types, &[]);
    assert!(created.status.success(), "{}", text(&created));
    site
}

fn line(gremlin: &str) -> Value {
    json!({"op": "gremlin", "graph": GRAPH, "gremlin": gremlin})
}

fn results(talk: &mut Talk, gremlin: &str) -> Value {
    talk.must(&line(gremlin))["result"].clone()
}

/// Compares the results of traversals with those expected, in any order.
fn compare(talk: &mut Talk, cases: &[(&str, Value)]) {
    for (gremlin, expected) in cases {
        let sorted = |value: &Value| {
            let mut all: Vec<String> =
                value.as_array().expect("a list").iter().map(Value::to_string).collect();
            all.sort();
            all
        };
        let found = results(talk, gremlin);
        assert_eq!(sorted(&found), sorted(expected), "{gremlin}: {found}");
    }
}

/// Adds vertices with ids of all forms, and edges between them.
fn fill(talk: &mut Talk) {
    for (id, n) in
        [("'a'", 1), ("'b>c%'", 2), (&format!("UUID('{UUID}')"), 3), ("-5", 4), ("'7'", 5), ("8", 6)]
    {
        let added = talk.must(&line(&format!("g.addV('page').property(id, {id}).property('n', {n})")));
        assert_eq!(added["result"][0]["label"], "page", "{added}");
    }
    for (from, to) in [("'a'", "'b>c%'"), ("'b>c%'", "-5"), ("-5", "7"), ("7", "8"), ("'a'", "8")] {
        talk.must(&line(&format!("g.V({from}).addE('links').to(__.V({to}))")));
    }
    talk.must(&line("g.addE('links').from(__.V('a')).to(__.V(-5))"));
}

fn shown_everywhere(talk: &mut Talk) {
    compare(
        talk,
        &[
            ("g.V().id()", json!(["a", "b>c%", UUID, -5, "7", 8])),
            ("g.V('a', 'b>c%', -5, '7', 8, 'none').id()", json!(["a", "b>c%", -5, "7", 8])),
            ("g.V('a').out().id()", json!(["b>c%", -5, 8])),
            ("g.V('a').out('links').values('n')", json!([2, 4, 6])),
            ("g.V(7).both().id()", json!([-5, 8])),
            ("g.V('a').out().hasId('b>c%', -5, 99).id()", json!(["b>c%", -5])),
            ("g.V().hasId(7).values('n')", json!([5])),
            ("g.V().hasId('7').values('n')", json!([5])),
            ("g.V().hasId('a', 7, 8).values('n')", json!([1, 5, 6])),
            ("g.V().has(id, neq('a')).count()", json!([5])),
            (&format!("g.V().hasId(UUID('{UUID}')).values('n')"), json!([3])),
            (&format!("g.V('{UUID}').values('n')"), json!([3])),
            ("g.V().where(__.out().hasId(-5)).id()", json!(["a", "b>c%"])),
            (
                "g.V('a').repeat(__.out().simplePath()).until(__.hasId('7')).path().by(id).limit(1)",
                json!([
                    {"labels": [[], [], []], "objects": ["a", -5, "7"]}
                ]),
            ),
            ("g.V('a').outE().id()", json!(["a>links>b%3Ec%25", "a>links>-5", "a>links>8"])),
            ("g.E('a>links>b%3Ec%25').inV().id()", json!(["b>c%"])),
            ("g.E('7>links>8', 'x>links>8').count()", json!([1])),
            ("g.V('b>c%').valueMap(true)", json!([{"id": "b>c%", "label": "page", "n": [2]}])),
            ("g.V('b>c%').properties('n').id()", json!(["b>c%>n"])),
            ("g.V('a').out().group().by(id).by('n')", json!([{"-5": [4], "8": [6], "b>c%": [2]}])),
            ("g.V('none').out().count()", json!([0])),
            ("g.V('a').out().count()", json!([3])),
        ],
    );
    let sorted = results(talk, "g.V('a', 'b>c%').order().by(id, desc).id()");
    assert_eq!(sorted, json!(["b>c%", "a"]));
    let edge = results(talk, "g.V('b>c%').outE()");
    assert_eq!(edge, json!([{"id": "b%3Ec%25>links>-5", "label": "links", "out": "b>c%", "in": -5}]));
}

#[test]
fn ids_of_all_forms_are_kept_on_open_graphs_and_on_types_that_declare_them() {
    for types in [OPEN, DECLARED] {
        let mut site = start(types);
        let mut talk = site.talk(1);
        fill(&mut talk);
        shown_everywhere(&mut talk);
        drop(talk);
        site.restart();
        let mut talk = site.talk(1);
        shown_everywhere(&mut talk);
        let merge = "g.mergeV([(T.id): 'm', (T.label): 'page']).option(onMatch, [n: 10])";
        assert_eq!(results(&mut talk, &format!("{merge}.id()")), json!(["m"]));
        assert_eq!(results(&mut talk, &format!("{merge}.values('n')")), json!([10]));
        let merge = "g.mergeE([(Direction.OUT): 'm', (Direction.IN): 'a', (T.label): 'links']).id()";
        for _ in 0..2 {
            assert_eq!(results(&mut talk, merge), json!(["m>links>a"]));
        }
        let again = talk.refused(&line("g.addV('page').property(id, 'm')"));
        assert_eq!(again.0, "object_exists", "{}", again.1);
        let long = "x".repeat(257);
        for (id, said) in
            [("''", "1 to 256 bytes"), (&format!("'{long}'"), "1 to 256 bytes"), ("1.5", "texts")]
        {
            let (code, message) = talk.refused(&line(&format!("g.addV('page').property(id, {id})")));
            assert!(code == "bad_request" && message.contains(said), "{code}: {message}");
        }
        compare(&mut talk, &[("g.V('m').drop()", json!([])), ("g.V('m').count()", json!([0]))]);
        assert_eq!(results(&mut talk, "g.V('a').in().count()"), json!([0]));
        let explained = results(&mut talk, "g.V('a').out().id().explain()").to_string();
        assert!(explained.contains("the ids that vertices were given"), "{explained}");
        if types == DECLARED {
            let (code, message) = talk.refused(&line("g.addV('user').property(id, 'x')"));
            assert!(code == "bad_request" && message.contains("whole numbers"), "{code}: {message}");
        }
    }
}

#[test]
fn two_texts_with_one_hash_are_both_served() {
    let site = start(OPEN);
    let mut talk = site.talk(1);
    let [first, second] = COLLIDING;
    let add = |id: &str| line(&format!("g.addV('page').property(id, '{id}').property('n', '{id}')"));
    let number = |talk: &mut Talk, id: &str| {
        let object = talk
            .must(&json!({"op": "gremlin", "graph": GRAPH, "gremlin": format!("g.V('{id}').values('n')")}));
        object["result"].clone()
    };
    for [one, other] in [[first, second], [second, first]] {
        talk.must(&add(one));
        assert_eq!(number(&mut talk, other), json!([]));
        talk.must(&add(other));
        talk.must(&line(&format!("g.V('{one}').addE('links').to(__.V('{other}'))")));
        assert_eq!(results(&mut talk, &format!("g.V('{one}').out().id()")), json!([other]));
        assert_eq!(results(&mut talk, &format!("g.V('{other}').in().id()")), json!([one]));
        for id in [one, other] {
            assert_eq!(number(&mut talk, id), json!([id]));
            assert_eq!(results(&mut talk, &format!("g.V().hasId('{id}').id()")), json!([id]));
            assert_eq!(talk.refused(&add(id)).0, "object_exists");
        }
        // Without the one at the first number, the other one stays at the second, and the first number is free.
        talk.must(&line(&format!("g.V('{one}').drop()")));
        assert_eq!((number(&mut talk, one), number(&mut talk, other)), (json!([]), json!([other])));
        assert_eq!(talk.refused(&add(other)).0, "object_exists");
        talk.must(&add(one));
        assert_eq!((number(&mut talk, one), number(&mut talk, other)), (json!([one]), json!([other])));
        talk.must(&line(&format!("g.V('{other}').drop()")));
        talk.must(&line(&format!("g.V('{one}').drop()")));
        assert_eq!(results(&mut talk, "g.V().count()"), json!([0]));
    }
}

#[test]
fn drivers_get_ids_in_their_types_and_name_vertices_by_them() {
    let site = start(OPEN);
    let mut talk = site.talk(1);
    fill(&mut talk);
    drop(talk);
    let ready = site.cluster.ready();
    let mut driver = Driver::connect(ready["gremlin"].as_str().expect("an address"));
    let uuid = json!({"@type": "g:UUID", "@value": UUID});
    let long = |number: i64| json!({"@type": "g:Int64", "@value": number});
    for (bound, expected) in [(json!("a"), json!("a")), (uuid.clone(), uuid), (long(-5), long(-5))] {
        for vertex in [bound.clone(), json!({"@type": "g:Vertex", "@value": {"id": bound, "label": "page"}})]
        {
            let reply = driver.ask_bound(GRAPH, "g.V(x).id()", json!({"x": vertex}));
            assert_eq!((reply.code, &reply.values[..]), (200, &[expected.clone()][..]), "{reply:?}");
            let reply = driver.ask_bound(GRAPH, "g.V(x)", json!({"x": vertex}));
            assert_eq!(reply.values[0]["@value"]["id"], expected, "{reply:?}");
            let reply = driver.ask_bound(GRAPH, "g.V().hasId(x).count()", json!({"x": vertex}));
            assert_eq!(reply.values, [long(1)], "{reply:?}");
        }
    }
    let reply = driver.must(GRAPH, "g.addE('links').property(id, 'mine').from(__.V(8)).to(__.V('a')).id()");
    assert_eq!(reply.values, [json!("8>links>a")]);
    let warning = reply.attribute("kith.warning").and_then(Value::as_str).expect("a warning");
    assert!(warning.contains("are ignored"), "{warning}");
    assert!(driver.must(GRAPH, "g.V('a').id()").attribute("kith.warning").is_none());
    let merged = "g.mergeE([(Direction.OUT): 8, (Direction.IN): -5, (T.label): 'links', (T.id): 'mine'])";
    let refused = driver.ask(GRAPH, merged);
    assert!(refused.code == 499 && refused.message.contains("id that is given"), "{refused:?}");
}
