//! Gremlin over live graphs: reads equal plain code, and writes come through every door.

use super::{
    driver::Driver,
    site::{Site, Talk, code},
    support::{
        cluster::{kith, text},
        wait_until,
    },
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub const GRAPH: &str = "town";

/// Types of every kind. Lists of `visits` are read in pages.
const TYPES: &str = r#"
[object.person]
fields = { name = "text", age = { type = "i32", nullable = true }, tags = { type = "list<text>", nullable = true } }

[object.place]
fields = { name = { type = "text", default = "nameless" } }

[association.follows]
inverse = "followed_by"
fields = { since = { type = "u64", nullable = true } }

[association.friend]
symmetric = true

[association.visits]
inverse = "visited_by"
cap = 4

[association.visited_by]
cap = 3

[association.likes]
"#;

const PEOPLE: u64 = 60;
/// An id that associations lead to, and that is no object.
const STRANGER: u64 = 900;

/// The same graph for plain code.
#[derive(Default)]
struct Plain {
    /// Pairs with years.
    follows: BTreeMap<(u64, u64), u64>,
    /// Both directions of each pair.
    friends: BTreeSet<(u64, u64)>,
    visits: BTreeSet<(u64, u64)>,
    likes: BTreeSet<(u64, u64)>,
}

impl Plain {
    fn new() -> Self {
        let mut state = 11_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut plain = Self::default();
        for _ in 0..250 {
            // Among them are edges of vertices to themselves.
            plain.follows.insert((1 + draw(PEOPLE), 1 + draw(PEOPLE)), 2000 + draw(20));
            let (a, b) = (1 + draw(PEOPLE), 1 + draw(PEOPLE));
            plain.friends.extend([(a, b), (b, a)]);
            plain.visits.insert((1 + draw(PEOPLE), 101 + draw(5)));
            plain.likes.insert((1 + draw(PEOPLE), 101 + draw(5)));
        }
        plain.follows.insert((1, STRANGER), 2001);
        plain.follows.insert((5, 5), 2015);
        plain
    }

    fn import(&self, site: &Site) {
        let people = (1..=PEOPLE)
            .map(|id| format!("{id},\"{{\"\"name\"\":\"\"p{id}\"\",\"\"age\"\":{}}}\"", 20 + id % 50));
        let places = (101..=105).map(|id| format!("{id},"));
        let pairs = |pairs: &BTreeSet<(u64, u64)>| {
            let lines = pairs.iter().enumerate().map(|(time, (a, b))| format!("{a},{b},{time},"));
            lines.collect::<Vec<_>>().join("\n")
        };
        let follows = self
            .follows
            .iter()
            .map(|((a, b), since)| format!("{a},{b},{since},\"{{\"\"since\"\":{since}}}\""));
        let friends = self.friends.iter().filter(|(a, b)| a <= b).copied().collect();
        for (flag, kind, lines) in [
            ("--objects", "person", people.collect::<Vec<_>>().join("\n")),
            ("--objects", "place", places.collect::<Vec<_>>().join("\n")),
            ("--assocs", "follows", follows.collect::<Vec<_>>().join("\n")),
            ("--assocs", "friend", pairs(&friends)),
            ("--assocs", "visits", pairs(&self.visits)),
            ("--assocs", "likes", pairs(&self.likes)),
        ] {
            let file = site.file(&format!("{kind}.csv"), &format!("{lines}\n"));
            site.cluster.must(&["import", GRAPH, flag, &file, "--type", kind]);
        }
    }

    fn out(&self, id: u64) -> Vec<u64> {
        self.follows.range((id, 0)..(id + 1, 0)).map(|((_, other), _)| *other).collect()
    }

    fn followers(&self, id: u64) -> Vec<u64> {
        self.follows.keys().filter(|(_, other)| *other == id).map(|(one, _)| *one).collect()
    }

    /// Traversals and what they return.
    fn questions(&self) -> Vec<(String, Value)> {
        let mut questions = Vec::new();
        for id in [1, 5, 23, PEOPLE] {
            let (out, followers) = (self.out(id), self.followers(id));
            let friends: Vec<u64> =
                self.friends.range((id, 0)..(id + 1, 0)).map(|(_, other)| *other).collect();
            let second: BTreeSet<u64> = out.iter().flat_map(|other| self.out(*other)).collect();
            let recent: Vec<u64> =
                out.iter().filter(|other| 2010 <= self.follows[&(id, **other)]).copied().collect();
            let people = out.iter().filter(|other| **other <= PEOPLE).count();
            let ids = |step: &str| format!("g.V({id}).{step}.id().order().fold()");
            questions.extend([
                (ids("out('follows')"), json!([out])),
                (ids("in('follows')"), json!([followers])),
                (ids("out('friend')"), json!([friends])),
                (ids("in('friend')"), json!([friends])),
                (ids("both('friend')"), json!([friends])),
                (format!("g.V('{id}').both('follows').count()"), json!([out.len() + followers.len()])),
                (ids("out('follows').out('follows').dedup()"), json!([second])),
                (ids("outE('follows').has('since', gte(2010)).inV()"), json!([recent])),
                (format!("g.V({id}).out('follows').hasLabel('person').count()"), json!([people])),
                (format!("g.V({id}).outE('follows').values('since').max()"), {
                    let years = out.iter().map(|other| self.follows[&(id, *other)]);
                    json!(years.max().into_iter().collect::<Vec<_>>())
                }),
                (format!("g.V({id}).values('age')"), json!([20 + id % 50])),
                (format!("g.V({id}).out('likes').count()"), {
                    json!([self.likes.range((id, 0)..(id + 1, 0)).count()])
                }),
            ]);
        }
        for index in 101..=105 {
            let visitors: Vec<u64> =
                self.visits.iter().filter(|(_, other)| *other == index).map(|(one, _)| *one).collect();
            questions.push((format!("g.V({index}).in('visits').id().order().fold()"), json!([visitors])));
        }
        let undirected = self.friends.iter().filter(|(a, b)| a <= b).count();
        let edges = self.follows.len() + undirected + self.visits.len() + self.likes.len();
        questions.extend([
            ("g.V().count()".to_owned(), json!([PEOPLE + 5])),
            ("g.V().hasLabel('place').id().order().fold()".to_owned(), json!([[101, 102, 103, 104, 105]])),
            ("g.V().has('name', 'p7').id()".to_owned(), json!([7])),
            ("g.V(101).values('name')".to_owned(), json!(["nameless"])),
            ("g.E().count()".to_owned(), json!([edges])),
            ("g.E().hasLabel('friend').count()".to_owned(), json!([undirected])),
            (format!("g.V({STRANGER}).count()"), json!([0])),
            (format!("g.V(1).out('follows').hasId({STRANGER}).label()"), json!(["vertex"])),
            (format!("g.V(1).out('follows').hasId({STRANGER})"), json!([{"id": STRANGER, "label": "vertex"}])),
            (format!("g.E('1>follows>{STRANGER}').values('since')"), json!([2001])),
            ("g.E('5>follows>5', '5>follows>99', '5>nothing>5').id()".to_owned(), json!(["5>follows>5"])),
            (
                "g.V(5).outE('follows').where(inV().hasId(5))".to_owned(),
                json!([{"id": "5>follows>5", "label": "follows", "out": 5, "in": 5, "properties": {"since": 2015}}]),
            ),
            ("g.V(18446744073709551615, -1, 'x').count()".to_owned(), json!([0])),
        ]);
        questions
    }
}

/// A line of `kith run` with a traversal.
pub fn line(gremlin: &str) -> Value {
    json!({"op": "gremlin", "graph": GRAPH, "gremlin": gremlin})
}

fn site(arguments: &[&str]) -> Site {
    let site = Site::start_empty(arguments);
    let applied = site.apply(GRAPH, TYPES, &[]);
    assert!(applied.status.success(), "{applied:?}");
    site
}

#[test]
fn traversals_equal_plain_code_with_every_fan_out() {
    let (site, plain) = (site(&["--groups", "2", "--nodes", "2", "--partitions", "8"]), Plain::new());
    plain.import(&site);
    let questions = plain.questions();
    for limits in ["groups=1", "max", "auto"] {
        let lines: Vec<Value> = questions
            .iter()
            .map(|(gremlin, _)| {
                let mut line = line(&gremlin.replacen("g.", "g.with('kith.critical', true).", 1));
                line["fan_out"] = json!(limits);
                line
            })
            .collect();
        let (answers, code) = site.cluster.run(&lines, 4);
        for ((gremlin, expected), answer) in questions.iter().zip(&answers) {
            assert_eq!(&answer["result"], expected, "{limits}: {gremlin}: {answer}");
        }
        assert_eq!((answers.len(), code), (questions.len(), 0));
    }
    // Counting ends of edges reads no objects.
    let names = |gremlin: &str| {
        let profiled = site.cluster.must(&["gremlin", gremlin, "--graph", GRAPH, "--profile", "-o", "json"]);
        let reply: Value = serde_json::from_str(&profiled).expect("JSON");
        let rounds = reply["profile"]["rounds"].as_array().expect("rounds").iter();
        rounds.map(|round| round["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    let counted = names("g.V(1).out('follows').out('follows').dedup().count()");
    assert_eq!(counted, ["reached vertices", "reached vertices"]);
    assert_eq!(names("g.V(1).both('follows', 'friend').count()"), ["degrees"]);
    assert_eq!(names("g.V(1).both('follows', 'friend').label()"), ["edges", "vertices"]);
    let paged = names("g.V(101).in('visits').id()");
    assert!(paged.contains(&"more edges".to_owned()), "{paged:?}");
}

#[test]
fn traversals_that_the_types_do_not_allow_change_nothing_and_say_why() {
    let site = site(&["--groups", "1", "--nodes", "1", "--partitions", "4"]);
    let mut talk = site.talk(1);
    talk.must(&line("g.addV('person').property(id, 1).property('name', 'Ada')"));
    talk.must(&line("g.addV('person').property(id, 2).property('name', 'Bob').property('age', 30)"));
    talk.must(&line("g.addE('follows').from(__.V(1)).to(__.V(2)).property('since', 2001)"));
    let valid = "g.addV('person').property(id, 7).property('name', 'Eve')";
    let cases = [
        ("g.V(1).in('likes')", "direction_not_kept", "one-sided"),
        ("g.V(1).both()", "direction_not_kept", "name the labels"),
        ("g.V(1).out('followed_by')", "bad_request", "in(\\\"follows\\\")"),
        ("g.addV('persn').property('name', 'x')", "unknown_type", "did you mean \\\"person\\\"?"),
        ("g.addV('person')", "bad_fields", "\\\"name\\\" is missing"),
        (
            "g.addV('person').property('name', 7)",
            "bad_fields",
            "\\\"name\\\" of \\\"person\\\" is of type text",
        ),
        ("g.addV('person').property('name', 'x').property('age', 3000000000)", "bad_fields", "age"),
        (
            "g.addV('person').property('name', 'x').property('agee', 3)",
            "bad_fields",
            "did you mean \\\"age\\\"?",
        ),
        ("g.addV('person').property(id, 1).property('name', 'x')", "object_exists", "1"),
        ("g.addV('person').property(id, 'x').property('name', 'x')", "bad_request", "whole numbers"),
        ("g.addE('follows').from(__.V(1)).to(9)", "bad_request", "there is no vertex 9"),
        ("g.V(1).addE('follows').to(__.V(2))", "object_exists", "edge 1>follows>2 exists already"),
        ("g.with('kith.replace', false).V(1).addE('follows').to(__.V(2))", "object_exists", "use mergeE"),
        ("g.with('kith.replace', 1).V()", "bad_request", "true or false"),
        ("g.inject(1, 2).addE('follows').from(__.V(2)).to(__.V(1))", "object_exists", "2>follows>1 twice"),
        // A symmetric edge is the same from both ends.
        (
            "g.V(1, 2).addE('friend').to(__.coalesce(__.hasId(1).V(2), __.V(1)))",
            "object_exists",
            "2>friend>1 twice",
        ),
        (
            "g.inject(8, 8).addV('person').property(id, __.identity()).property('name', 'x')",
            "object_exists",
            "adds vertex 8 twice",
        ),
        ("g.addE('followed_by').from(__.V(1)).to(__.V(2))", "bad_request", "in(\\\"follows\\\")"),
        ("g.addE('knows').from(__.V(1)).to(__.V(2))", "unknown_type", "knows"),
        ("g.V(1).property('nme', 'x')", "bad_fields", "nme"),
        ("g.V(1).property('name', null)", "bad_fields", "not nullable"),
        ("g.V(1).properties('name').drop()", "bad_fields", "not nullable"),
        ("g.V(1).property(list, 'name', 'x')", "unsupported_operation", "more than one value"),
        ("g.E('1>follows>2').property('since', 'x')", "bad_fields", "since"),
        // What is wrong with a later step is found before the first one is made.
        (&format!("{valid}.addV('persn')"), "unknown_type", "persn"),
        (&format!("{valid}.out('followed_by')"), "bad_request", "followed_by"),
        ("g.inject('Eve', 7).addV('person').property('name', __.identity())", "bad_fields", "7"),
    ];
    for (gremlin, expected, part) in cases {
        let (code, message) = talk.refused(&line(gremlin));
        assert!(code == expected && message.contains(part), "{gremlin}: {message}");
    }
    assert_eq!(talk.must(&line("g.V().count()"))["result"], json!([2]));
    assert_eq!(talk.must(&line("g.E().valueMap()"))["result"], json!([{"since": 2001}]));
    // What cannot be found beforehand: the message says what has been done by then.
    let partly = format!("{valid}.addV('person').property('name', 'x').property(id, __.constant(1))");
    let (code, message) = talk.refused(&line(&partly));
    assert_eq!(code, "partly_written", "{message}");
    assert!(message.contains("object 1 exists already") && message.contains("added vertex 7"), "{message}");
    let ignored = talk.must(&line("g.addE('follows').property(id, 'x').from(__.V(2)).to(__.V(1)).id()"));
    assert_eq!(ignored["result"], json!(["2>follows>1"]));
    assert!(ignored["warnings"][0].as_str().is_some_and(|it| it.contains("are ignored")), "{ignored}");
    assert_eq!(talk.must(&line("g.V(7).values('name')"))["result"], json!(["Eve"]));
}

#[test]
fn what_is_written_through_a_router_is_shown_by_it_and_elsewhere_with_the_ticket() {
    let site = site(&["--groups", "2", "--nodes", "2", "--partitions", "8", "--routers", "2"]);
    let ready = site.cluster.ready();
    let door = |router: usize| ready["routers"][router]["gremlin"].as_str().expect("an address").to_owned();
    let (mut here, mut same, mut other) =
        (Driver::connect(&door(0)), Driver::connect(&door(0)), Driver::connect(&door(1)));
    for id in 1..=20_u64 {
        let add = format!("g.addV('person').property(id, {id}).property('name', 'p{id}').iterate()");
        let answer = here.must(GRAPH, &add);
        let ticket = answer.attribute("kith.ticket").expect("a ticket").as_str().expect("a text").to_owned();
        // The same router shows the write on every connection, in every group.
        let name = format!("g.V({id}).values('name')");
        assert_eq!(same.must(GRAPH, &name).values, [json!(format!("p{id}"))]);
        let with = format!("g.with('kith.ticket', '{ticket}').V({id}).values('name')");
        assert_eq!(other.must(GRAPH, &with).values, [json!(format!("p{id}"))]);
        if 1 < id {
            let add =
                format!("g.V({id}).as('a').V({}).addE('follows').from('a').property('since', {id})", id - 1);
            let answer = other.must(GRAPH, &add);
            let ticket =
                answer.attribute("kith.ticket").and_then(Value::as_str).expect("a ticket").to_owned();
            let since = "in('follows').count()";
            let asked = format!("g.with('kith.ticket', '{ticket}').V({}).{since}", id - 1);
            assert_eq!(here.must(GRAPH, &asked).values, [json!({"@type": "g:Int64", "@value": 1})]);
        }
    }
    // The command line prints the ticket of what it has written, and only then.
    let gremlin = |router: &str, text: &str| {
        let printed = kith(&["gremlin", text, "--graph", GRAPH, "--router", router, "-o", "json"]).output();
        serde_json::from_slice::<Value>(&printed.expect("kith runs").stdout).expect("JSON")
    };
    let routers = site.routers();
    let wrote = gremlin(&routers[0], "g.V(1).property('age', 41).values('age')");
    assert_eq!(wrote["result"], json!([41]));
    let ticket = wrote["ticket"].as_str().expect("a ticket");
    let read = gremlin(&routers[1], &format!("g.with('kith.ticket', '{ticket}').V(1).values('age')"));
    assert_eq!((&read["result"], read.get("ticket")), (&json!([41]), None));
    // What was written in other ways through the router, its traversals show too.
    let mut talk = site.talk_to(0, 1);
    for age in 50..60 {
        talk.must(&json!({"op": "object_update", "graph": GRAPH, "id": 2, "data": {"age": age}}));
        assert_eq!(talk.must(&line("g.V(2).values('age')"))["result"], json!([age]));
    }
    dropped(&mut talk);
}

/// Drops edges and vertices of the chain 20 → 19 → … → 1.
fn dropped(talk: &mut Talk) {
    let mut result_of = |gremlin: &str| talk.must(&line(gremlin))["result"].clone();
    assert_eq!(result_of("g.E().count()"), json!([19]));
    assert_eq!(result_of("g.E('2>follows>1').drop()"), json!([]));
    assert_eq!(result_of("g.V(10).drop()"), json!([]));
    assert_eq!(result_of("g.E().count()"), json!([16]));
    assert_eq!(result_of("g.V(9).bothE('follows').id().fold()"), json!([["9>follows>8"]]));
    assert_eq!(result_of("g.V(11).properties('age').drop()"), json!([]));
    assert_eq!(result_of("g.V(1).property('age', null).valueMap()"), json!([{"name": ["p1"]}]));
    let again = "V(9).as('a').V(8).addE('follows').from('a').values('since').fold()";
    assert_eq!(result_of(&format!("g.with('kith.replace', true).{again}")), json!([[]]));
    assert_eq!(result_of("g.E('9>follows>8').property('since', 7).values('since')"), json!([7]));
    assert_eq!(result_of("g.V(9).outE().count()"), json!([1]));
    let merged = "g.mergeV([(T.label): 'person', name: 'p3']).option(Merge.onMatch, [age: 33]).values('age')";
    assert_eq!(result_of(merged), json!([33]));
    let merged = "g.mergeE([(T.label): 'friend', (Direction.OUT): 3, (Direction.IN): 4]).id()";
    assert_eq!((result_of(merged), result_of(merged)), (json!(["3>friend>4"]), json!(["3>friend>4"])));
    assert_eq!(result_of("g.V(4).out('friend').id()"), json!([3]));
    let added = result_of("g.addV('person').property('name', 'new').id()");
    assert_eq!(result_of(&format!("g.V({}).values('name')", added[0])), json!(["new"]));
    assert_eq!(result_of("g.V().drop()"), json!([]));
    assert_eq!((result_of("g.V().count()"), result_of("g.E().count()")), (json!([0]), json!([0])));
}

#[test]
fn a_history_that_is_lost_and_a_graph_that_is_created_anew_hold_up_no_traversal() {
    let site = site(&["--groups", "1", "--nodes", "1", "--partitions", "4"]);
    let mut talk = site.talk(1);
    for turn in 0..2 {
        let added = talk.must(&line("g.addV('person').property(id, 1).property('name', 'Ada').id()"));
        assert_eq!(added["result"], json!([1]), "turn {turn}");
        site.cluster.must(&["graph", "drop", GRAPH, "--yes"]);
        let applied = site.apply(GRAPH, TYPES, &[]);
        assert!(applied.status.success(), "{applied:?}");
        // The router may not know the new graph yet.
        let count = || site.talk(1).ask(&line("g.V().count()"));
        wait_until("the new graph is known", || count()["result"] == json!([0]));
        let old = added["ticket"].as_str().expect("a ticket");
        let refused = talk.ask(&line(&format!("g.with('kith.ticket', '{old}').V()")));
        assert_eq!(code(&refused), Some("wrong_ticket"), "{refused}");
    }
}

#[test]
fn an_open_graph_takes_labels_keys_and_values_as_they_come() {
    let site = Site::start_empty(&["--groups", "1", "--nodes", "1", "--partitions", "4"]);
    let applied = site.apply(GRAPH, "open = true\n", &[]);
    assert!(applied.status.success(), "{applied:?}");
    let mut talk = site.talk(1);
    let mut result_of = |gremlin: &str| talk.must(&line(gremlin))["result"].clone();
    result_of(
        "g.addV('dog').property(id, 1).property('name', 'Rex').property('born', 2020L).property('toys', ['ball', 1])",
    );
    result_of("g.addV('cat').property(id, 2).property('name', 'Tom')");
    // A traversal sees the types that its own writes have added.
    let chased =
        "g.V(1).as('a').V(2).addE('chases').from('a').property('since', 7).outV().out('chases').id()";
    assert_eq!(result_of(chased), json!([2]));
    assert_eq!(result_of("g.V(2).in('chases').label()"), json!(["dog"]));
    assert_eq!(result_of("g.V(2).both().values('name')"), json!(["Rex"]));
    assert_eq!(
        result_of("g.V(1).valueMap()"),
        json!([{"born": [2020], "name": ["Rex"], "toys": [["ball", 1]]}])
    );
    assert_eq!(result_of("g.V(1).has('born', P.typeOf(GType.LONG)).count()"), json!([1]));
    assert_eq!(
        result_of("g.V(1).property('born', null).properties().key().order().fold()"),
        json!([["name", "toys"]])
    );
    assert_eq!(result_of("g.E().property('until', 9.5).valueMap()"), json!([{"since": 7, "until": 9.5}]));
    assert_eq!(result_of("g.E().property('since', null).valueMap()"), json!([{"until": 9.5}]));
    assert_eq!(result_of("g.V().hasLabel('cat').drop()"), json!([]));
    assert_eq!((result_of("g.V().count()"), result_of("g.E().count()")), (json!([1]), json!([0])));
    let (code, message) = talk.refused(&line("g.addV('a\\u0000b')"));
    assert_eq!(code, "bad_schema", "{message}");
    let (code, message) = talk.refused(&line("g.addV('dog').property(id, 1)"));
    assert_eq!(code, "object_exists", "{message}");
    assert!(message.contains("leave the id out") && !message.contains("write_id"), "{message}");
}

#[test]
fn vertices_are_found_by_indexes() {
    let site = Site::start_empty(&["--groups", "2", "--nodes", "1", "--partitions", "4"]);
    let types = "[object.person]\nfields = { name = { type = \"text\", index = true }, age = { type = \"i32\", nullable = true, index = true } }\n\
                 [object.place]\nfields = { title = \"text\" }\n";
    let applied = site.apply(GRAPH, types, &[]);
    assert!(applied.status.success(), "{applied:?}");
    let mut talk = site.talk(1);
    for (id, name) in [(1, "Ada"), (2, "Bob"), (3, "Ada")] {
        talk.must(&line(&format!("g.addV('person').property(id, {id}).property('name', '{name}')")));
    }
    talk.must(&line("g.addV('place').property(id, 9).property('title', 'Ada')"));
    for gremlin in ["g.V().has('person', 'name', 'Ada')", "g.V().has('name', 'Ada')"] {
        let mut asked = line(&format!("{gremlin}.id().order().fold()"));
        asked["profile"] = json!(true);
        let answer = talk.must(&asked);
        assert_eq!(answer["result"], json!([[1, 3]]), "{answer}");
        let names =
            answer["profile"]["rounds"].as_array().expect("rounds").iter().map(|round| &round["name"]);
        assert!(names.into_iter().any(|name| name == "sought vertices"), "{answer}");
    }
    // An i32 cannot have the second value, so the index cannot be asked for it.
    for age in ["3", "3000000000L"] {
        assert_eq!(talk.must(&line(&format!("g.V().has('age', {age}).count()")))["result"], json!([0]));
    }
    // The bound is too low to read all vertices.
    for id in 10..30 {
        talk.must(&line(&format!("g.addV('person').property(id, {id}).property('name', 'p{id}')")));
    }
    let merged = "g.with('kith.budget', 10).mergeV([(T.label): 'person', name: 'Bob', age: 3]).id()";
    let added = talk.must(&line(merged))["result"].clone();
    assert_eq!((&talk.must(&line(merged))["result"], added != json!([2])), (&added, true));
}

#[test]
fn a_traversal_that_wrote_says_so_if_there_is_no_memory_for_its_results() {
    let site =
        Site::start_empty(&["--groups", "1", "--nodes", "1", "--partitions", "8", "--reply-memory", "16MiB"]);
    let created = site.apply(GRAPH, "open = true\n", &[]);
    assert!(created.status.success(), "{}", text(&created));
    let mut talk = site.talk(1);
    let parts: Vec<_> = (0..20).map(|part| format!("constant(long).concat(\"{part}\")")).collect();
    let traversal = format!("g.addV(\"page\").union({})", parts.join(", "));
    let bindings = json!({"long": "x".repeat(1 << 20)});
    let line = json!({"op": "gremlin", "graph": GRAPH, "gremlin": traversal, "bindings": bindings});
    let (code, message) = talk.refused(&line);
    assert_eq!(code, "partly_written", "{message}");
    assert!(message.contains("has made all its changes"), "{message}");
    let count = json!({"op": "gremlin", "graph": GRAPH, "gremlin": "g.V().hasLabel(\"page\").count()"});
    assert_eq!(talk.must(&count), json!({"result": [1]}));
}

#[test]
fn writes_wait_until_a_read_must_show_them_or_the_traversal_ends() {
    let site = Site::start_empty(&["--groups", "1", "--nodes", "1", "--partitions", "4"]);
    let created = site.apply(GRAPH, "open = true\n", &[]);
    assert!(created.status.success(), "{}", text(&created));
    let mut talk = site.talk(1);
    // Nothing has been sent when the traversal fails.
    let (code, message) = talk.refused(&line("g.addV('page').property(id, 1).fail('no')"));
    assert_eq!(code, "traversal_failed", "{message}");
    assert_eq!(talk.must(&line("g.V().count()"))["result"], json!([0]));
    for (gremlin, expected) in [
        ("g.addV('page').property(id, 1).V(1).label()", json!(["page"])),
        ("g.addV('page').property(id, 2).V().count()", json!([2])),
        ("g.V(1).as('a').V(2).addE('links').from('a').V(1).out('links').id()", json!([2])),
        ("g.V(2).property('name', 'two').V(2).values('name')", json!(["two"])),
        ("g.V(2).property('name', 'zwei').V().has('name', 'zwei').id()", json!([2])),
        // Vertices, an edge between them, and a property.
        (
            "g.addV('page').as('a').addV('page').as('b').addE('links').from('a').to('b').select('a').property('name', 'a')\
             .select('b').in('links').values('name')",
            json!(["a"]),
        ),
        // More than wait at a time.
        ("g.inject(1).repeat(union(identity(), identity())).times(9).addV('page').count()", json!([512])),
        ("g.V().count()", json!([516])),
    ] {
        assert_eq!(talk.must(&line(gremlin))["result"], expected, "{gremlin}");
    }
    // A write that fails does not keep back those that are sent with it, but those that depend on it.
    let failing = "g.addV('page').property(id, 1).as('a').addV('page').property(id, 9).addE('links').to('a')";
    let (code, message) = talk.refused(&line(failing));
    assert!(code == "partly_written" && message.contains("object 1 exists already"), "{code}: {message}");
    assert!(message.contains("added vertex 9") && !message.contains("added edge"), "{message}");
    assert_eq!(talk.must(&line("g.V(9).out().count()"))["result"], json!([0]));
}
