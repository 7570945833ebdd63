//! Reads all texts of TinkerPop's own test suite. The suite is not in this repository; without it, the test says so and passes.

use kith_gremlin::{
    text::{Inputs, parse},
    value::{Map, Value},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The folder of the suite's feature files, if somebody has put them onto this machine.
fn features() -> Option<PathBuf> {
    let home = std::env::var_os("KITH_GREMLIN_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cache/kith-gremlin")))?;
    let suites = fs::read_dir(home).ok()?.flatten();
    suites.map(|suite| suite.path().join("features")).find(|features| features.is_dir())
}

fn feature_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            feature_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "feature") {
            found.push(path);
        }
    }
}

/// The texts between triple quotes, and those in steps that count elements. Each has the names of its scenario's parameters.
fn texts(feature: &str) -> Vec<(String, Vec<String>)> {
    let (mut texts, mut parameters) = (Vec::new(), Vec::new());
    let mut lines = feature.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line.starts_with("Scenario:") {
            parameters = Vec::new();
        } else if let Some((_, named)) = line.split_once("using the parameter ") {
            parameters.extend(named.split(' ').next().map(str::to_owned));
        } else if let Some((_, counted)) = line.split_once(" for count of \"") {
            let text = counted.trim_end_matches('"').replace("\\\"", "\"");
            texts.push((text, parameters.clone()));
        } else if line == "\"\"\"" {
            let quoted: Vec<&str> = lines.by_ref().take_while(|line| *line != "\"\"\"").collect();
            texts.push((quoted.join("\n"), parameters.clone()));
        }
    }
    // Some scenarios explain in prose what cannot be tested.
    texts.retain(|(text, _)| text.starts_with("g."));
    texts
}

#[test]
fn every_text_of_the_suite_is_read() {
    let Some(features) = features() else {
        println!("skipped: TinkerPop's suite is neither in $KITH_GREMLIN_HOME nor in ~/.cache/kith-gremlin");
        return;
    };
    let mut files = Vec::new();
    feature_files(&features, &mut files);
    let texts: Vec<_> =
        files.iter().flat_map(|file| texts(&fs::read_to_string(file).expect("text"))).collect();
    let failures: Vec<String> =
        texts.iter().filter_map(|(text, parameters)| failure(text, parameters)).collect();
    println!("{} of {} texts were read", texts.len() - failures.len(), texts.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(texts.len() > 2_000, "only {} texts were found in {}", texts.len(), features.display());
}

fn failure(text: &str, parameters: &[String]) -> Option<String> {
    let bindings: Map = parameters.iter().map(|name| (Value::text(name.as_str()), Value::Int(1))).collect();
    let now = chrono::DateTime::UNIX_EPOCH.fixed_offset();
    let error = parse(text, &Inputs { bindings: &bindings, now, entropy: 0 }).err()?;
    Some(format!("{text}\n  {error}"))
}
