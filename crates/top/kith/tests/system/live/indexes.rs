//! Look-ups of values in indexes are answered from memory, and show the writes that they must show.

use super::{
    gremlin::{GRAPH, line},
    site::{Site, Talk},
    support::{cluster::metric_at, in_time},
};
use serde_json::{Value, json};

const PARTITIONS: f64 = 4.0;
const TYPES: &str = "[object.account]\nfields = { email = { type = \"text\", unique = true }, city = { type = \"text\", index = true } }\n";

fn site() -> Site {
    let site = Site::start_empty(&["--groups", "2", "--nodes", "1", "--partitions", "4", "--routers", "2"]);
    let applied = site.apply(GRAPH, TYPES, &[]);
    assert!(applied.status.success(), "{applied:?}");
    site
}

/// A look-up, with further options.
fn find(field: &str, value: &str, options: Value) -> Value {
    let mut asked =
        json!({"op": "object_find", "graph": GRAPH, "type": "account", "field": field, "value": value});
    asked.as_object_mut().expect("an object").extend(options.as_object().expect("an object").clone());
    asked
}

fn ids(talk: &mut Talk, asked: &Value) -> Value {
    talk.must(asked)["ids"].clone()
}

fn add(talk: &mut Talk, id: u64, city: &str) -> Value {
    let data = json!({"email": format!("{id}@example.org"), "city": city});
    talk.must(&json!({"op": "object_add", "graph": GRAPH, "type": "account", "id": id, "data": data}))["ticket"]
        .clone()
}

fn move_to(talk: &mut Talk, id: u64, city: &str) -> Value {
    let update = json!({"op": "object_update", "graph": GRAPH, "id": id, "data": {"city": city}});
    talk.must(&update)["ticket"].clone()
}

/// The values that were answered from memory, and those that were read from the database, each for one partition.
fn counts(site: &Site) -> (f64, f64) {
    let http = &site.cluster.nodes_http()[0];
    let count = |name: &str| metric_at(http, name).unwrap_or_default();
    (count("kith_live_index_hits_total"), count("kith_live_index_misses_total"))
}

/// Asks until a question is answered from the memory of all partitions alone.
fn answered_from_memory(site: &Site, what: &str, mut ask: impl FnMut()) {
    let mut seen = Vec::new();
    let mut is_answered = || {
        let before = counts(site);
        ask();
        let after = counts(site);
        seen.push((after.0 - before.0, after.1 - before.1));
        seen.last() == Some(&(PARTITIONS, 0.0))
    };
    let answered = in_time().any(|()| is_answered());
    assert!(answered, "{what}: {seen:?}");
}

#[test]
fn a_repeated_look_up_reads_nothing_from_the_database() {
    let site = site();
    let mut talk = site.talk(1);
    for id in 1..=6 {
        add(&mut talk, id, if id % 2 == 0 { "Paris" } else { "Rome" });
    }
    for (asked, expected) in [
        (find("city", "Paris", json!({"critical": false})), json!([2, 4, 6])),
        (find("city", "Paris", json!({"limit": 1, "after": 2})), json!([4])),
        (find("email", "3@example.org", json!({})), json!([3])),
        (find("email", "none@example.org", json!({})), json!([])),
    ] {
        answered_from_memory(&site, &asked.to_string(), || assert_eq!(ids(&mut talk, &asked), expected));
    }
    let asked = line("g.V().has('account', 'email', '5@example.org').id()");
    answered_from_memory(&site, "a traversal", || assert_eq!(talk.must(&asked)["result"], json!([5])));
    // A critical look-up goes to the database.
    let before = counts(&site);
    assert_eq!(ids(&mut talk, &find("city", "Paris", json!({"critical": true}))), json!([2, 4, 6]));
    let after = counts(&site);
    assert_eq!((after.0 - before.0, after.1 - before.1), (0.0, PARTITIONS));
}

#[test]
fn a_look_up_from_memory_shows_the_writes_that_it_must_show() {
    let site = site();
    let (mut here, mut elsewhere) = (site.talk_to(0, 1), site.talk_to(1, 1));
    for id in 1..=4 {
        add(&mut here, id, "Rome");
    }
    for turn in 0..30_u64 {
        let (id, city) = (1 + turn % 4, if turn % 2 == 0 { "Paris" } else { "Rome" });
        let was = if city == "Paris" { "Rome" } else { "Paris" };
        let ticket = move_to(&mut here, id, city);
        let shown = |asked: &Value| asked.as_array().is_some_and(|ids| ids.contains(&json!(id)));
        for options in [json!({"ticket": ticket}), json!({"critical": true})] {
            for (field, expected) in [(city, true), (was, false)] {
                let found = ids(&mut elsewhere, &find("city", field, options.clone()));
                assert_eq!(shown(&found), expected, "{field} {options}: {found}");
            }
        }
        // The traversals of a router show what was written through it.
        let seen = here.must(&line(&format!("g.V().has('city', '{city}').id().fold()")))["result"][0].clone();
        assert!(shown(&seen), "{city}: {seen}");
        // Without a ticket, a look-up elsewhere shows it soon.
        let mut found = Value::Null;
        let mut is_shown = || {
            found = ids(&mut elsewhere, &find("city", city, json!({})));
            shown(&found)
        };
        assert!(in_time().any(|()| is_shown()), "{city}: {found}");
    }
}

#[test]
fn vertices_that_are_merged_are_not_added_twice() {
    let site = site();
    let (mut here, mut elsewhere) = (site.talk_to(0, 1), site.talk_to(1, 1));
    for turn in 0..10 {
        let city = format!("city {turn}");
        // The answer that there is none stays in memory.
        for _ in 0..4 {
            assert_eq!(ids(&mut elsewhere, &find("city", &city, json!({}))), json!([]));
        }
        let merge = |email: &str| {
            line(&format!(
                "g.mergeV([(T.label): 'account', city: '{city}'])\
                 .option(Merge.onCreate, [(T.label): 'account', city: '{city}', email: '{email} {turn}']).id()"
            ))
        };
        let first = here.must(&merge("first"))["result"].clone();
        assert_eq!(elsewhere.must(&merge("second"))["result"], first);
    }
}
