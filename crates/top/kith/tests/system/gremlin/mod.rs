//! Traversals over a loaded graph of two edge types and an entity kind equal plain code over the same edges, on every way in
//! and with every fan-out.

mod graphs;

use crate::support;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};
use support::{
    cluster::{Cluster, text},
    driver::Driver,
};

const GRAPH: &str = "people";
const MEMBERS: u64 = 300;

/// Filters of edges by the year since when somebody follows somebody, and what plain code says of the year.
type Since = (&'static str, fn(u64) -> bool);
const SINCE: [Since; 14] = [
    (".has('since', 2001)", |year| year == 2001),
    (".has('since', gte(2017))", |year| 2017 <= year),
    (".has('since', gt(2017L))", |year| 2017 < year),
    (".has('since', lt(2002))", |year| year < 2002),
    (".has('since', lte(2001.5))", |year| year <= 2001),
    (".has('since', between(2003, 2005))", |year| (2003..2005).contains(&year)),
    (".has('since', inside(2003, 2005))", |year| year == 2004),
    (".has('since', outside(2001, 2018))", |year| !(2001..=2018).contains(&year)),
    (".has('since', gt(2003).and(lt(2006).or(eq(2011))))", |year| [2004, 2005, 2011].contains(&year)),
    (".has('since', gte(2003)).has('since', lte(2004))", |year| (2003..=2004).contains(&year)),
    (".has('since', neq(2001)).has('since', lt(2003))", |year| [2000, 2002].contains(&year)),
    (".has('since', gt(-1))", |_| true),
    (".has('since', lt(-1))", |_| false),
    (".has('since', '2001')", |_| false),
];

/// A graph as plain code sees it.
struct Plain {
    friends: BTreeMap<u64, BTreeSet<u64>>,
    /// Who follows whom, since which year.
    follows: BTreeMap<(u64, u64), u64>,
    schools: BTreeMap<u64, u64>,
}

impl Plain {
    fn new() -> Self {
        let mut state = 7_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut plain = Self { friends: BTreeMap::new(), follows: BTreeMap::new(), schools: BTreeMap::new() };
        for _ in 0..1_500 {
            let (a, b) = (1 + draw(MEMBERS), 1 + draw(MEMBERS));
            if a != b {
                plain.friends.entry(a).or_default().insert(b);
                plain.friends.entry(b).or_default().insert(a);
            }
            let (a, b) = (1 + draw(MEMBERS), 1 + draw(MEMBERS));
            if a != b {
                plain.follows.insert((a, b), 2000 + draw(20));
            }
        }
        for member in plain.friends.keys() {
            plain.schools.insert(*member, draw(9));
        }
        plain
    }

    fn friends(&self, id: u64) -> &BTreeSet<u64> {
        static NONE: BTreeSet<u64> = BTreeSet::new();
        self.friends.get(&id).unwrap_or(&NONE)
    }

    fn load(&self, cluster: &Cluster) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = |name: &str, header: &str, lines: Vec<String>| {
            let path = folder.path().join(name);
            fs::write(&path, format!("{header}\n{}\n", lines.join("\n"))).expect("written");
            path.to_str().expect("UTF-8").to_owned()
        };
        let pairs = self.friends.iter().flat_map(|(a, all)| all.iter().map(move |b| (a, b)));
        let friends = pairs.filter(|(a, b)| a < b).map(|(a, b)| format!("{a},{b}")).collect();
        let friends = file("friends.csv", "src,dst", friends);
        let schools = self.schools.iter().map(|(member, school)| format!("{member},school,{school}"));
        let schools = file("schools.csv", "member,kind,entity", schools.collect());
        let follows = self.follows.iter().map(|((a, b), since)| format!("{a},{b},{since}")).collect();
        let follows = file("follows.csv", "src,dst,since", follows);
        let load = ["load", "graph", &friends, "--graph", GRAPH, "--edge-type", "friends", "--entities"];
        cluster.must(&[&load[..], &[&schools]].concat());
        let load = ["load", "graph", &follows, "--graph", GRAPH, "--edge-type", "follows", "--directed"];
        cluster.must(&[&load[..], &["--columns", "since:u64"]].concat());
    }

    /// Traversals and what they return, lists in ascending order.
    fn questions(&self) -> Vec<(String, Value)> {
        let mut questions = Vec::new();
        for id in [1, 17, 150, MEMBERS] {
            let friends = self.friends(id);
            let second: BTreeSet<u64> =
                friends.iter().flat_map(|friend| self.friends(*friend)).copied().collect();
            let walks: usize = friends.iter().map(|friend| self.friends(*friend).len()).sum();
            let followed: Vec<u64> =
                self.follows.range((id, 0)..(id + 1, 0)).map(|((_, other), _)| *other).collect();
            let followers: Vec<u64> =
                self.follows.keys().filter(|(_, other)| *other == id).map(|(one, _)| *one).collect();
            let mutual = followed.iter().filter(|other| self.follows.contains_key(&(**other, id))).count();
            let mates = self
                .schools
                .get(&id)
                .map_or(0, |school| self.schools.values().filter(|other| *other == school).count());
            let ids = |step: &str| format!("g.V({id}).{step}.id().order().fold()");
            questions.extend([
                (ids("out(\"friends\")"), json!([friends])),
                (ids("both(\"friends\")"), json!([friends])),
                (ids("out(\"friends\").out(\"friends\").dedup()"), json!([second])),
                (format!("g.V({id}).out(\"friends\").in(\"friends\").count()"), json!([walks])),
                (format!("g.V({id}).repeat(both(\"friends\")).times(2).count()"), json!([walks])),
                (ids("out(\"follows\")"), json!([followed])),
                (ids("in(\"follows\")"), json!([followers])),
                (format!("g.V({id}).outE(\"follows\").values(\"since\").min()"), {
                    let years = self.follows.range((id, 0)..(id + 1, 0)).map(|(_, since)| *since);
                    json!(years.min().into_iter().collect::<Vec<_>>())
                }),
                (
                    format!("g.V({id}).as(\"a\").out(\"follows\").where(out(\"follows\").as(\"a\")).count()"),
                    json!([mutual]),
                ),
                (format!("g.V({id}).out(\"school\").in(\"school\").count()"), json!([mates])),
                (format!("g.V({id}).bothE().count()"), {
                    let school = usize::from(self.schools.contains_key(&id));
                    json!([friends.len() + followed.len() + followers.len() + school])
                }),
            ]);
        }
        for (filters, passes) in SINCE {
            let passing = self.follows.iter().filter(|(_, since)| passes(**since));
            let ends: BTreeSet<u64> = passing.map(|((_, other), _)| *other).collect();
            let gremlin = format!("g.V().outE(\"follows\"){filters}.inV().dedup().id().order().fold()");
            questions.push((gremlin, json!([ends])));
        }
        let members: BTreeSet<u64> =
            self.friends.keys().copied().chain(self.follows.keys().flat_map(|(a, b)| [*a, *b])).collect();
        let friendships = self.friends.values().map(BTreeSet::len).sum::<usize>() / 2;
        let loners = members.iter().filter(|id| self.friends(**id).is_empty()).count();
        questions.extend([
            ("g.V().count()".to_owned(), json!([members.len()])),
            ("g.V().hasLabel(\"member\", \"school\").count()".to_owned(), json!([members.len()])),
            ("g.V().hasLabel(\"school\").count()".to_owned(), json!([0])),
            ("g.E().hasLabel(\"follows\").count()".to_owned(), json!([self.follows.len()])),
            ("g.E().hasLabel(\"friends\").count()".to_owned(), json!([friendships])),
            ("g.E().hasLabel(\"friends\").as(\"e\").count()".to_owned(), json!([friendships])),
            ("g.E().hasLabel(\"school\", \"nothing\").count()".to_owned(), json!([self.schools.len()])),
            ("g.E().count()".to_owned(), json!([friendships + self.follows.len() + self.schools.len()])),
            ("g.V().not(out(\"friends\")).count()".to_owned(), json!([loners])),
            ("g.V(100000).out().count()".to_owned(), json!([0])),
        ]);
        questions
    }
}

#[test]
fn traversals_equal_plain_code_with_every_fan_out() {
    let (cluster, plain) = (Cluster::start(&["--groups", "3", "--nodes", "2"]), Plain::new());
    plain.load(&cluster);
    let questions = plain.questions();
    for limits in ["groups=1", "max", "auto"] {
        let line = |(gremlin, _): &(String, Value)| json!({"op": "gremlin", "graph": GRAPH, "gremlin": gremlin, "fan_out": limits});
        let lines: Vec<Value> = questions.iter().map(line).collect();
        let (answers, code) = cluster.run(&lines, 4);
        for ((gremlin, expected), answer) in questions.iter().zip(&answers) {
            assert_eq!(&answer["result"], expected, "{limits}: {gremlin}: {answer}");
        }
        assert_eq!((answers.len(), code), (questions.len(), 0));
    }
}

#[test]
fn traversals_are_asked_on_every_way_in() {
    let (cluster, plain) = (Cluster::start(&["--groups", "2", "--nodes", "1"]), Plain::new());
    plain.load(&cluster);
    let count = plain.friends(1).len();
    let asked = "g.V(1).out('friends').count()";
    let printed = cluster.must(&["gremlin", asked, "--graph", GRAPH]);
    assert_eq!(printed, format!("{count}\n"));
    let direct = cluster.must(&["gremlin", asked, "--graph", GRAPH, "--direct", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&direct).expect("JSON"), json!({"result": [count]}));
    let bound = json!({
        "op": "gremlin", "graph": GRAPH, "gremlin": "g.V(x).out(y).count()", "bindings": {"x": 1, "y": "friends"}
    });
    assert_eq!(cluster.run(&[bound], 1).0, [json!({"result": [count]})]);
    // Unlike a router, a client that asks nodes itself keeps no lists.
    let profiled = cluster.must(&["gremlin", asked, "--graph", GRAPH, "--direct", "--profile"]);
    assert!(profiled.contains("degrees (single-key)"), "{profiled}");
}

#[test]
fn wrong_traversals_say_why() {
    let (cluster, plain) = (Cluster::start(&["--groups", "1", "--nodes", "1"]), Plain::new());
    plain.load(&cluster);
    let cases = [
        ("g.V(1).otu()", "bad_request", "did you mean \"out\"?"),
        ("g.V(1)\n.out(", "bad_request", "line 2"),
        ("g.V(1).out().sum()", "bad_request", "sum"),
        ("g.addV('x')", "loaded_graph", "cannot change it"),
        ("g.V(1).property('a', 1)", "loaded_graph", "cannot change it"),
        ("g.V(1).match(__.as('a').out().as('b'))", "unsupported_operation", "match()"),
        (
            "g.with('kith.budget', 10).V().out().id().max()",
            "too_large",
            "more than 10 elements; ask for less, or allow more with kith.budget: with(\"kith.budget\", \"elements=100\")",
        ),
        ("g.with('kith.budget', 'traversers=10').V().id()", "too_large", "traversers=100"),
        ("g.with('kith.budget', 'bytes=500').V().id().fold()", "too_large", "bytes=5000"),
        (
            "g.with('kith.budget', 'passes=2').V(1).repeat(both('friends')).times(3).count()",
            "too_large",
            "passes=20",
        ),
        ("g.with('kith.budget', 'depth=2').V(1)", "bad_request", "elements, traversers, bytes, passes"),
        ("g.V(1).fail('no such luck')", "traversal_failed", "no such luck"),
        // Beyond 10¹² walks: they are counted, but nobody may take them apart.
        ("g.V(1).repeat(both('friends')).times(14).fold()", "too_large", "traversers"),
        ("g.V(1).repeat(both('friends')).times(14).aggregate('x').cap('x').unfold()", "too_large", "bytes="),
        ("g.V(1).repeat(both('friends')).times(14)", "too_large", "10000000"),
        ("g.V(1).hasNext()", "unsupported_operation", "hasNext()"),
        ("g.V(1).toSet()", "unsupported_operation", "toSet()"),
        ("g.with('kith.bugdet', 10).V()", "bad_request", "kith.bugdet"),
        ("g.with('kith.policy', 'none-such').V(1)", "unknown_policy", "none-such"),
    ];
    for (gremlin, code, part) in cases {
        let line = json!({"op": "gremlin", "graph": GRAPH, "gremlin": gremlin});
        let answer = cluster.run(&[line], 1).0.remove(0);
        assert_eq!(answer["error"]["code"], code, "{gremlin}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(part), "{gremlin}: {message}");
    }
    let first = cluster.must(&["gremlin", "g.V(1).out('friends').id().order().next()", "--graph", GRAPH]);
    assert_eq!(first, format!("{}\n", plain.friends(1).first().expect("it has friends")));
    let unknown = cluster.kith(&["gremlin", "g.V()", "--graph", "nothing"]).output().expect("it runs");
    assert!(text(&unknown).contains("unknown_graph"), "{}", text(&unknown));
    // The first results are sent before the bound is exceeded.
    let ready = cluster.ready();
    let door = ready["routers"][0]["gremlin"].as_str().expect("an address");
    let bounded = "g.with('kith.budget', 'elements=3000').V().out('friends').id()";
    let reply = Driver::connect(door).ask(GRAPH, bounded);
    assert!(reply.code == 597 && 64 <= reply.values.len() && reply.values.len() <= 3000, "{reply:?}");
}

/// Only edges that pass are elements of the traversal where nodes leave out the others.
#[test]
fn nodes_leave_out_edges_whose_columns_are_outside_of_a_filter() {
    let (cluster, plain) = (Cluster::start(&["--groups", "2", "--nodes", "2"]), Plain::new());
    plain.load(&cluster);
    let members: BTreeSet<u64> = plain.follows.keys().flat_map(|(a, b)| [*a, *b]).collect();
    let recent = plain.follows.values().filter(|since| 2017 < **since).count();
    for (filter, is_within) in [
        ("has('since', gt(2017))", true),
        ("has('since', neq(2000)).has('since', gte(2018).and(gt(2001)))", true),
        ("where(values('since').is(gt(2017)))", false),
    ] {
        let budget = MEMBERS as usize + 2 * recent;
        assert!(
            members.len() <= MEMBERS as usize && budget < plain.follows.len(),
            "the bound tells them apart"
        );
        let gremlin = format!("g.with('kith.budget', {budget}).V().outE('follows').{filter}.count()");
        let line = json!({"op": "gremlin", "graph": GRAPH, "gremlin": gremlin});
        let answer = cluster.run(&[line], 1).0.remove(0);
        match is_within {
            true => assert_eq!(answer["result"], json!([recent]), "{gremlin}: {answer}"),
            false => assert_eq!(answer["error"]["code"], "too_large", "{gremlin}: {answer}"),
        }
    }
}

#[test]
fn explanations_say_which_fan_outs_a_traversal_makes() {
    let (cluster, plain) = (Cluster::start(&["--groups", "2", "--nodes", "1"]), Plain::new());
    plain.load(&cluster);
    let gremlin = "g.V(1).out('friends').outE('follows').has('since', 2001).inV().count()";
    let explained = cluster.must(&["explain", "--gremlin", gremlin, "--graph", GRAPH]);
    for part in [
        "outgoing edges labelled friends",
        "single-key for one vertex, non-union for more; once for each of friends",
        "outgoing edges labelled follows with the wanted since",
        "nothing: edges come with their properties",
        "look-up by id: used",
        "edges with a property: used; nodes leave out other edges of outE(follows), of loaded graphs where",
        "non-union of the graph: of 2 groups, as minimum decides, the default of this kind; policy n-groups",
        "controller minimum: ",
        "single-key, 1 key, 1 group by minimum: node ",
    ] {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    // The method at the end of a text shows the same, apart from the node that happens to be chosen.
    let table = |text: &str| text.split("First fan-out").next().map(str::to_owned);
    let by_method = cluster.must(&["gremlin", &format!("{gremlin}.explain()"), "--graph", GRAPH]);
    assert_eq!(table(&explained), table(&by_method));
    let options = ["--fan-out", "max", "--policy", "set-cover", "-o", "json"];
    let json = cluster.must(&[&["explain", "--gremlin", gremlin, "--graph", GRAPH][..], &options].concat());
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let notes = json["notes"].to_string();
    assert!(notes.contains("2 of 2 groups, by the caller's fan_out; policy set-cover"), "{notes}");
    assert_eq!(json["plan"]["rounds"][0]["name"], "neighbours (planned, not run)");
    let nothing = cluster.kith(&["explain", "--graph", GRAPH]).output().expect("it runs");
    assert!(text(&nothing).contains("--gremlin"), "{}", text(&nothing));
}

#[test]
fn profiles_say_what_each_hop_took() {
    let (cluster, plain) = (Cluster::start(&["--groups", "2", "--nodes", "1"]), Plain::new());
    plain.load(&cluster);
    let friends = plain.friends(1).len();
    let gremlin = "g.V(1).out('friends').out('friends').count()";
    let profiled = ["gremlin", gremlin, "--graph", GRAPH, "--direct", "--profile"];
    let json: Value =
        serde_json::from_str(&cluster.must(&[&profiled[..], &["-o", "json"]].concat())).expect("JSON");
    let hops: Vec<&Value> = json["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .filter(|step| step["step"] == "out(friends)")
        .collect();
    let [first, second] = hops[..] else { panic!("{json}") };
    assert_eq!((&first["keys"], &first["requests"], &first["groups"]), (&json!(1), &json!(1), &json!(1)));
    assert_eq!((&second["keys"], &second["fan_outs"]), (&json!(friends), &json!(1)));
    assert_eq!(first["traversers"], json!(friends));
    assert!(cluster.must(&profiled).contains(&format!("keys={friends}")), "annotated");
    // The same from a traversal that asks for its own profile; it carries the fan-outs, and the answer has none.
    let step = cluster.must(&["gremlin", &format!("{gremlin}.profile()"), "--graph", GRAPH, "--direct"]);
    assert!(step.contains(&format!("keys={friends}")) && !step.contains("round 1"), "{step}");
    // The router has the lists at hand the second time.
    let gremlin = "g.V(1).out('friends').out('friends').id().max()";
    let routed = ["gremlin", gremlin, "--graph", GRAPH, "--profile"];
    cluster.must(&routed);
    assert!(cluster.must(&routed).contains(&format!("cachedKeys={friends}")), "answered by the cache");
}
