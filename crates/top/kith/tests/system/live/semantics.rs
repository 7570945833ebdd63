//! Compares a graph with the model under random programs, on each kind of storage.

use super::{model::Model, program::Program, site::Site, support::is_full};
use serde_json::Value;

/// The number of lines that are sent together.
const ROUND: usize = 200;
const SHAPE: [&str; 6] = ["--groups", "2", "--nodes", "2", "--partitions", "8"];

fn operations() -> usize {
    match std::env::var("KITH_PROGRAM_OPERATIONS") {
        Ok(number) => number.parse().expect("KITH_PROGRAM_OPERATIONS is a number"),
        Err(_) if is_full() => 50_000,
        Err(_) => 2_000,
    }
}

pub fn seed(usual: u64) -> u64 {
    match std::env::var("KITH_SEED") {
        Ok(seed) => seed.parse().expect("KITH_SEED is a number"),
        Err(_) if is_full() => rand::random(),
        // A short run uses the same program each time, so that it fails only because of a change.
        Err(_) => usual,
    }
}

fn check(site: &Site, seed: u64) {
    let (mut program, mut model, mut talk) = (Program::new(seed), Model::default(), site.talk(32));
    for round in 0..operations().div_ceil(ROUND) {
        let lines = program.round(ROUND, &model);
        let answers = talk.ask_all(&lines);
        for (index, (line, answer)) in lines.iter().zip(&answers).enumerate() {
            if let Err(why) = model.follow(line, answer) {
                let before: Vec<String> = related(line, &lines[..index], &answers);
                panic!(
                    "KITH_SEED={seed}, line {index} of round {round}:\n{line}\n{answer}\n{why}\nlines before it:\n{}",
                    before.join("\n")
                );
            }
        }
    }
}

/// Returns the lines before a line that have an id in common with it, with their answers.
fn related(line: &Value, before: &[Value], answers: &[Value]) -> Vec<String> {
    let ids = |line: &Value| ["id", "id1", "id2"].map(|name| line[name].as_u64());
    let has_common = |other: &Value| ids(other).iter().any(|id| id.is_some() && ids(line).contains(id));
    let found = before.iter().zip(answers).filter(|(other, _)| has_common(other));
    found.map(|(other, answer)| format!("{other}  {answer}")).collect()
}

#[test]
fn a_graph_in_the_clusters_own_database_does_what_the_model_does() {
    check(&Site::start(&SHAPE), seed(1));
}

#[test]
fn a_graph_in_mariadb_does_what_the_model_does() {
    check(&Site::start_on_mariadb(&SHAPE), seed(2));
}
