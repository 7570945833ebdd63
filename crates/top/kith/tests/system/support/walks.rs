//! Traversals over the graphs that have reference answers, and their results as the reference answers and plain code over
//! the same edges have them.

use super::reference::Reference;
use serde_json::{Value, json};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// Longer walks from members of a higher degree would exceed the bounds of a traversal.
const DEGREE_MAX: usize = 200;

/// The edges of a graph, in the directions that a record of reference answers is about.
struct Neighbours {
    lists: BTreeMap<u64, BTreeSet<u64>>,
    /// `both`, `out` or `in`.
    step: String,
}

impl Neighbours {
    fn new(reference: &Reference, direction: &str) -> Self {
        let step = if direction == "und" { "both" } else { direction };
        let mut lists: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for (from, to) in reference.edges() {
            if step != "in" {
                lists.entry(from).or_default().insert(to);
            }
            if step != "out" {
                lists.entry(to).or_default().insert(from);
            }
        }
        Self { lists, step: step.to_owned() }
    }

    fn of(&self, id: u64) -> &BTreeSet<u64> {
        static NONE: BTreeSet<u64> = BTreeSet::new();
        self.lists.get(&id).unwrap_or(&NONE)
    }

    fn of_all(&self, ids: &BTreeSet<u64>) -> BTreeSet<u64> {
        ids.iter().flat_map(|id| self.of(*id)).copied().collect()
    }

    /// The number of walks of a length from a member.
    fn walks(&self, from: u64, length: u32) -> u64 {
        if length == 0 { 1 } else { self.of(from).iter().map(|next| self.walks(*next, length - 1)).sum() }
    }
}

/// Traversals over the edges with a label, from the members of the first `records` records, and what they return.
pub fn questions(reference: &Reference, label: &str, records: usize) -> Vec<(String, Value)> {
    let mut neighbours: BTreeMap<String, Neighbours> = BTreeMap::new();
    let mut questions = Vec::new();
    // Two vertices of a directed graph may have two edges, which `both()` follows both; the answers count members.
    let is_asked = |record: &&Value| !reference.directed || record["dir"] != "und";
    for record in reference.records().iter().filter(is_asked).take(records) {
        let direction = record["dir"].as_str().expect("a direction").to_owned();
        let neighbours =
            neighbours.entry(direction).or_insert_with_key(|direction| Neighbours::new(reference, direction));
        questions.extend(recorded(record, label, &neighbours.step));
        questions.extend(walked(record, label, neighbours));
        questions.extend(shortest(record, label, neighbours));
    }
    questions
}

/// The reference answers about a member.
fn recorded(record: &Value, label: &str, step: &str) -> Vec<(String, Value)> {
    let (id, hop) = (&record["s"], format!("{step}('{label}')"));
    let second = format!("g.V({id}).as('me').{hop}.aggregate('friends').{hop}.where(P.without('friends'))");
    let mut questions = vec![
        (format!("g.V({id}).{hop}.count()"), json!([record["deg"]])),
        (format!("g.V({id}).{hop}.{hop}.dedup().count()"), json!([record["fof"]])),
        (format!("{second}.where(P.neq('me')).dedup().count()"), json!([record["n2"]])),
    ];
    if let Some(first) = record.get("first") {
        questions.push((format!("g.V({id}).{hop}.id().order().fold()"), json!([first])));
    }
    for common in record["common"].as_array().into_iter().flatten() {
        if let (Some(ids), "both") = (common.get("ids"), step) {
            let other = &common["t"];
            let common = format!("where({hop}.hasId({other}))");
            questions.push((format!("g.V({id}).{hop}.{common}.id().order().fold()"), json!([ids])));
        }
    }
    questions
}

/// How many vertices shortest paths from a member have.
fn shortest(record: &Value, label: &str, neighbours: &Neighbours) -> Vec<(String, Value)> {
    let (id, hop) = (record["s"].as_u64().expect("an id"), format!("{}('{label}')", neighbours.step));
    let (mut seen, mut frontier) = (BTreeSet::from([id]), BTreeSet::from([id]));
    let mut questions = Vec::new();
    for vertices in 2.. {
        frontier = neighbours.of_all(&frontier).difference(&seen).copied().collect();
        let Some(other) = frontier.last() else { break };
        let path = format!("g.V({id}).repeat({hop}.simplePath()).until(hasId({other})).path().limit(1)");
        questions.push((format!("{path}.count(local)"), json!([vertices])));
        seen.extend(&frontier);
    }
    let alone = neighbours.lists.keys().find(|other| !seen.contains(other));
    questions.extend(alone.map(|other| {
        (format!("g.V({id}).repeat({hop}.simplePath()).until(hasId({other})).limit(1)"), json!([]))
    }));
    questions
}

/// The answers of plain code about a member.
fn walked(record: &Value, label: &str, neighbours: &Neighbours) -> Vec<(String, Value)> {
    let (id, hop) = (record["s"].as_u64().expect("an id"), format!("{}('{label}')", neighbours.step));
    let first = neighbours.of(id);
    let mut by_degree: Vec<u64> = first.iter().copied().collect();
    by_degree.sort_by_key(|friend| (Reverse(neighbours.of(*friend).len()), *friend));
    by_degree.truncate(5);
    let of_first: usize = first.iter().map(|friend| neighbours.of(*friend).len()).sum();
    let mut questions = vec![
        (
            format!("g.V({id}).{hop}.order().by({hop}.count(), Order.desc).by(T.id).limit(5).id().fold()"),
            json!([by_degree]),
        ),
        (format!("g.V({id}).repeat({hop}).times(2).count()"), json!([of_first])),
    ];
    if DEGREE_MAX < first.len() {
        return questions;
    }
    let second = neighbours.of_all(first);
    let third = neighbours.of_all(&second);
    let closed = second.iter().filter(|other| neighbours.of(**other).contains(&id));
    let closed: usize = closed
        .map(|other| first.iter().filter(|friend| neighbours.of(**friend).contains(other)).count())
        .sum();
    questions.extend([
        (format!("g.V({id}).{hop}.{hop}.{hop}.dedup().count()"), json!([third.len()])),
        (format!("g.V({id}).as('me').{hop}.{hop}.where({hop}.as('me')).count()"), json!([closed])),
        (format!("g.V({id}).repeat({hop}).times(3).count()"), json!([neighbours.walks(id, 3)])),
    ]);
    if let Some(last) = second.last() {
        let paths: Vec<Value> = first
            .iter()
            .filter(|friend| neighbours.of(**friend).contains(last))
            .map(|friend| json!({"labels": [[], [], []], "objects": [id, *friend, *last]}))
            .collect();
        questions.push((
            format!("g.V({id}).repeat({hop}).times(2).hasId({last}).path().by(T.id).order().fold()"),
            json!([paths]),
        ));
    }
    questions
}
