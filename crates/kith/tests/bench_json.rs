//! The JSON of `kith bench graph`: its field names are a contract, its numbers are not.

mod support;

use serde_json::{Value, json};
use std::{fs, path::Path};
use support::{cluster::Cluster, reference::Reference};

/// What a JSON value looks like: numbers masked, the elements of a list laid over each other.
fn shape(value: &Value) -> Value {
    match value {
        Value::Number(_) => json!("number"),
        Value::Array(list) => {
            let whole = list.iter().map(shape).reduce(laid_over);
            Value::Array(whole.into_iter().collect())
        }
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), shape(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

fn laid_over(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::Object(mut first), Value::Object(second)) => {
            for (name, value) in second {
                let both = first.remove(&name).map_or(value.clone(), |before| laid_over(before, value));
                first.insert(name, both);
            }
            first.into()
        }
        (Value::Array(first), Value::Array(second)) => {
            Value::Array(first.into_iter().chain(second).reduce(laid_over).into_iter().collect())
        }
        (Value::String(first), Value::String(second)) if first != second => json!("text"),
        (Value::Null, other) | (other, _) => other,
    }
}

#[test]
fn the_json_of_a_benchmark_keeps_its_fields() {
    let cluster = Cluster::start(&["--groups", "2", "--nodes", "1"]);
    let load = Reference::open("kith-village").expect("it comes with the project").load_arguments();
    cluster.must(&load.iter().map(String::as_str).collect::<Vec<_>>());
    let flags =
        "bench graph --graph kith-village --rates 60 --seconds 3 --rounds 6 --policies one-group,round-robin";
    let output = cluster.must(&flags.split(' ').chain(["-o", "json"]).collect::<Vec<_>>());
    let report: Value = serde_json::from_str(&output).expect("JSON");
    assert!(report["answers"]["checked"].as_u64().is_some_and(|checked| 100 < checked), "{report}");
    let now = format!("{:#}\n", shape(&report));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/bench-graph.json");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &now).expect("written");
    }
    let expected = fs::read_to_string(&path).expect("the golden file");
    assert!(now == expected, "BLESS=1 rewrites {}\n--- now:\n{now}", path.display());
}
