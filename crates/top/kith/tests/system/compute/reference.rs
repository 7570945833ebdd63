//! Scores, the best and products of the pages of `facebook-pages` against reference answers, on every way in and to the bit.

use super::{WAYS, ask, one, push, results, with};
use crate::support::{self, cluster::Cluster};
use flate2::read::MultiGzDecoder;
use serde_json::{Value, json};
use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

/// One line of the reference answers.
struct Question {
    query: Vec<f32>,
    answer: Value,
}

fn norm(vector: &[f32]) -> f64 {
    vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt()
}

fn questions(answers: &Path, vectors: &[Vec<f32>]) -> Vec<Question> {
    let file = BufReader::new(MultiGzDecoder::new(File::open(answers).expect("the answers are there")));
    let lines = file.lines().map(|line| serde_json::from_str::<Value>(&line.expect("text")).expect("JSON"));
    lines
        .map(|answer| {
            let query = match answer["q"].as_u64() {
                Some(row) => vectors[row as usize].clone(),
                None => {
                    let numbers = answer["qv"].as_array().expect("a vector").iter();
                    numbers.map(|number| number.as_f64().expect("a number") as f32).collect()
                }
            };
            Question { query, answer }
        })
        .collect()
}

/// The best are the reference's, where they are farther apart than the tolerance.
fn assert_best(answer: &Value, expected: &Value, tolerance: impl Fn(u64) -> f64) {
    let scores: Vec<(u64, f64)> = expected.as_array().expect("a list").iter().map(pair).collect();
    let got = results(answer);
    assert_eq!(got.len(), 20);
    for (index, result) in got.iter().enumerate() {
        let (id, score) =
            (result["key"].as_u64().expect("an id"), result["record"]["s"].as_f64().expect("a score"));
        let given = scores.iter().find(|(other, _)| *other == id);
        let (_, exact) = given.unwrap_or_else(|| panic!("{id} is not among the best: {expected}"));
        assert!((score - exact).abs() <= tolerance(id), "{id}: {score}, not {exact}");
        assert!((score - scores[index].1).abs() <= 2.0 * tolerance(id), "place {index}: {score}");
    }
}

fn pair(entry: &Value) -> (u64, f64) {
    (entry[0].as_u64().expect("an id"), entry[1].as_f64().expect("a score"))
}

#[test]
fn scores_of_pages_are_those_of_the_reference_on_every_way_in() {
    let Some(data) = support::data() else { return };
    let rows = data.join("facebook-pages/embeddings-64.f32le.gz");
    let mut bytes = Vec::new();
    MultiGzDecoder::new(File::open(&rows).expect("the rows are there"))
        .read_to_end(&mut bytes)
        .expect("read");
    let numbers: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
    let vectors: Vec<Vec<f32>> = numbers.chunks_exact(64).map(<[f32]>::to_vec).collect();
    let cluster = Cluster::start(&["--nodes", "3", "--groups", "2"]);
    // Two replicas are asked for each key, and a difference of one bit would be an error.
    for (store, reads) in [("pages", "1"), ("agreeing", "2")] {
        let create = ["store", "create", store, "--key", "id", "--value", "record"];
        cluster.must(&[&create[..], &["--required-reads", reads]].concat());
        push(&cluster, store, &rows, &["--format", "f32le", "--dims", "64", "--version", "1"]);
    }
    let all: Vec<u64> = (0..vectors.len() as u64).collect();
    let questions = questions(&data.join("answers/facebook-pages.embed.jsonl.gz"), &vectors);
    assert_eq!((vectors.len(), questions.len()), (22_470, 100));
    let count = if support::is_full() { questions.len() } else { 12 };
    for (index, question) in questions.iter().take(count).enumerate() {
        let requests = requests_of(question, &all);
        let answers = ask(&cluster, &[], &requests);
        assert_near(question, &answers, &vectors);
        // All ways with all questions would take minutes; the bits do not depend on the question.
        if index < 3 {
            assert_equal_on_every_way(&cluster, &requests, &answers);
        }
    }
    assert_traffic(&cluster, &questions[0].query);
}

/// The best twenty by either score, the scores of the entries that the reference gives, and one product.
fn requests_of(Question { query, answer }: &Question, all: &[u64]) -> [Value; 4] {
    let compute = |function: &str, fields: Value| {
        let mut request = json!({"op": "compute", "store": "pages", "keys": all});
        request[function] = json!([{"field": "vector", "query": query, "as": "s"}]);
        with(request, fields)
    };
    let best = json!({"top_k": {"by": "s", "k": 20}});
    let vals = answer["vals"].as_array().expect("a list");
    let ids: Vec<u64> = vals.iter().map(|val| val[0].as_u64().expect("an id")).collect();
    let cosines = json!({"cosine": [{"field": "vector", "query": query, "as": "c"}]});
    let scores = with(compute("dot", json!({"keys": ids})), cosines);
    let hadamard = compute("hadamard", json!({"keys": [answer["hadamard"][0]]}));
    [compute("dot", best.clone()), compute("cosine", best), scores, hadamard]
}

/// Within the tolerance that the reference states.
fn assert_near(Question { query, answer }: &Question, answers: &[Value], vectors: &[Vec<f32>]) {
    let bound = |id: u64| 1e-5 * f64::max(1.0, norm(query) * norm(&vectors[id as usize]));
    assert_best(&answers[0], &answer["top_dot"], bound);
    assert_best(&answers[1], &answer["top_cos"], |_| 1e-5);
    let vals = answer["vals"].as_array().expect("a list");
    let scored = results(&answers[2]);
    assert_eq!(scored.len(), vals.len());
    for (result, val) in scored.iter().zip(vals) {
        let id = val[0].as_u64().expect("an id");
        let near = |field: &str, index: usize, bound: f64| {
            let (got, exact) = (&result["record"][field], val[index].as_f64().expect("a score"));
            let difference = (got.as_f64().expect("a number") - exact).abs();
            assert!(difference <= bound, "{id} {field}: {got}, not {exact}");
        };
        near("s", 1, bound(id));
        near("c", 2, 1e-5);
    }
    let got = results(&answers[3])[0]["record"]["s"].as_array().expect("products");
    let exact = answer["hadamard"][1].as_array().expect("products");
    assert_eq!((got.len(), exact.len()), (64, 64));
    for (got, exact) in got.iter().zip(exact) {
        assert!((got.as_f64().expect("a number") - exact.as_f64().expect("a number")).abs() <= 1e-5);
    }
}

/// To the bit, and over replicas that must agree.
fn assert_equal_on_every_way(cluster: &Cluster, requests: &[Value; 4], answers: &[Value]) {
    for (way, at) in WAYS {
        for fan_out in ["min", "max"] {
            let again = requests.clone().map(|request| with(request, json!({"at": at, "fan_out": fan_out})));
            assert_eq!(ask(cluster, way, &again), answers, "{way:?} {at} {fan_out}");
        }
    }
    let agreeing = requests.clone().map(|request| with(request, json!({"store": "agreeing"})));
    assert_eq!(ask(cluster, &[], &agreeing), answers, "replicas agree to the bit");
}

/// The bytes that travel: profiles tell those of every reply.
fn assert_traffic(cluster: &Cluster, query: &[f32]) {
    let bytes = |request: Value| {
        let answer =
            one(cluster, with(request, json!({"keys": (0..5_000).collect::<Vec<u64>>(), "profile": true})));
        let rounds =
            answer["profile"]["rounds"].as_array().unwrap_or_else(|| panic!("{answer:.200}")).clone();
        let requests =
            rounds.iter().flat_map(|round| round["requests"].as_array().expect("requests").clone());
        requests.map(|request| request["reply_bytes"].as_u64().expect("bytes")).sum::<u64>()
    };
    let dot =
        json!({"op": "compute", "store": "pages", "dot": [{"field": "vector", "query": query, "as": "s"}]});
    let whole = bytes(json!({"op": "mget", "store": "pages"}));
    let scores = bytes(dot.clone());
    let best = bytes(with(dot, json!({"top_k": {"by": "s", "k": 20}})));
    assert!(scores * 20 <= whole && best * 100 <= whole, "{best} and {scores} of {whole} bytes");
}
