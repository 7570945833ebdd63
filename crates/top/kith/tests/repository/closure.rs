//! What a crate links, through others too, with the features that each of them is asked for.

use super::{code_lines::code_lines, workspace::crate_folders, workspace::root};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

/// Crates, and what they must not link, not even through others.
const OUT_OF_REACH: [(&[&str], &[&str]); 11] = [
    // Files know the words of graphs, and neither questions nor writes.
    (
        &["kith-engine", "kith-files", "kith-build"],
        &["kith-operators", "kith-query", "kith-live", "kith-gremlin", "kith-routing"],
    ),
    (&["kith-operators"], &["kith-query", "kith-live", "kith-routing", "kith-topology"]),
    (&["kith-cache", "kith-database"], &["kith-operators", "kith-query", "kith-engine", "kith-traversal"]),
    (&["kith-topology"], &["kith-operators", "kith-query", "kith-cache", "kith-engine", "kith-net"]),
    // The metadata stores definitions without looking into them.
    (
        &["kith-cluster"],
        &[
            "kith-schema",
            "kith-live",
            "kith-gremlin",
            "kith-engine",
            "kith-files",
            "kith-operators",
            "kith-query",
            "kith-client",
            "kith-session",
            "kith-traversal",
        ],
    ),
    (&["kith-doors"], &["kith-client", "kith-traversal", "kith-node", "kith-router"]),
    (&["kith-wire", "kith-net", "kith-routing"], &["kith-schema", "kith-operators", "kith-live"]),
    // A program that only asks a router links neither what decides about nodes nor what evaluates traversals.
    (
        &["kith-client"],
        &[
            "kith-session",
            "kith-traversal",
            "kith-gremlin",
            "kith-live",
            "kith-routing",
            "kith-topology",
            "kith-engine",
        ],
    ),
    (&["kith-session"], &["kith-engine", "kith-cluster", "kith-node", "kith-router"]),
    (&["kith-node"], &["kith-router", "kith-client", "kith-session", "kith-traversal"]),
    (&["kith-sim"], &["kith-operators", "kith-query", "kith-engine", "kith-net"]),
];

/// A program that only asks a router compiles no more lines of code of Kith, blank lines, comments and tests aside. Lower it
/// when the client shrinks, but leave room for several operations: each adds 100 to 150 lines.
const CLIENT_LINES_MAX: usize = 19_000;
/// The most room that may be left.
const CLIENT_LINES_SLACK: usize = 1_000;

/// A crate's manifest, and the features that it has if nobody turns them off.
struct Manifest {
    text: String,
    default: Option<String>,
}

fn manifests() -> BTreeMap<String, Manifest> {
    let read = |path| fs::read_to_string(path).expect("a manifest can be read");
    let workspace = read(root().join("Cargo.toml"));
    let has_default = |name: &str| {
        let line =
            table(&workspace, "workspace.dependencies").find(|line| line.split(' ').next() == Some(name));
        !line.is_some_and(|line| line.contains("default-features = false"))
    };
    let manifest = |(name, folder): (String, std::path::PathBuf)| {
        let default = has_default(&name).then(|| "default".to_owned());
        (name, Manifest { text: read(folder.join("Cargo.toml")), default })
    };
    crate_folders().into_iter().map(manifest).collect()
}

/// The lines of one table of a manifest.
fn table<'a>(manifest: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let table = manifest.split(&format!("[{name}]\n")).nth(1).unwrap_or_default();
    table.split("\n[").next().unwrap_or_default().lines().filter(|line| !line.starts_with('#'))
}

/// The texts in quotes after `key = [` in a line of a manifest.
fn listed<'a>(line: &'a str, key: &str) -> Vec<&'a str> {
    let list = line.split(&format!("{key} = [")).nth(1).and_then(|rest| rest.split(']').next());
    list.unwrap_or_default().split(',').map(|item| item.trim().trim_matches('"')).collect()
}

/// The features that are on if these are, and the dependencies that they bring.
fn features_on(manifest: &str, features: &BTreeSet<String>) -> BTreeSet<String> {
    let mut on = BTreeSet::new();
    let mut next: Vec<&str> = features.iter().map(String::as_str).collect();
    while let Some(item) = next.pop() {
        let bring = |line: &&str| line.split(' ').next() == Some(item);
        if on.insert(item.to_owned()) {
            next.extend(table(manifest, "features").filter(bring).flat_map(|line| listed(line, item)));
        }
    }
    on
}

/// The crates that a crate links directly if these of its features are on, with the features that it asks of them.
fn linked(manifest: &str, on: &BTreeSet<String>) -> Vec<(String, BTreeSet<String>)> {
    let crates = table(manifest, "dependencies").filter(|line| line.starts_with("kith-"));
    let crates = crates.map(|line| (line.split(['.', ' ']).next().unwrap_or_default(), line));
    let is_linked = |(name, line): &(&str, &str)| {
        !line.contains("optional = true") || on.contains(&format!("dep:{name}"))
    };
    let asked = |(name, line): (&str, &str)| {
        let through = on.iter().filter_map(|item| item.strip_prefix(&format!("{name}/")));
        let asked = listed(line, "features").into_iter().chain(through).map(str::to_owned);
        (name.to_owned(), asked.collect())
    };
    crates.filter(is_linked).map(asked).collect()
}

/// A crate and all that it links, with the features that are on. Its own features are as given.
fn closure(
    manifests: &BTreeMap<String, Manifest>,
    name: &str,
    features: BTreeSet<String>,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut reached: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut next = vec![(name.to_owned(), features)];
    while let Some((name, asked)) = next.pop() {
        let manifest = &manifests[&name];
        let asked: BTreeSet<String> = asked.into_iter().chain(manifest.default.clone()).collect();
        let on = features_on(&manifest.text, &asked);
        let is_new = !reached.contains_key(&name);
        let known = reached.entry(name).or_default();
        let before = known.len();
        known.extend(on);
        if is_new || before < known.len() {
            next.extend(linked(&manifest.text, known));
        }
    }
    reached
}

#[test]
fn no_crate_reaches_what_its_layer_must_not_know() {
    let manifests = manifests();
    for (crates, forbidden) in OUT_OF_REACH {
        for name in crates {
            let own = table(&manifests[*name].text, "features").filter_map(|line| line.split_once(" = "));
            let reached = closure(&manifests, name, own.map(|(feature, _)| feature.to_owned()).collect());
            let wrong: Vec<_> = forbidden.iter().filter(|wrong| reached.contains_key(**wrong)).collect();
            assert!(wrong.is_empty(), "{name} reaches {wrong:?}");
        }
    }
}

#[test]
fn a_program_that_only_asks_a_router_links_a_thin_client() {
    let reached = closure(&manifests(), "kith-client", BTreeSet::new());
    let folders = crate_folders();
    let lines = |(name, on): (String, BTreeSet<String>)| {
        let source = folders[&name].join("src");
        let lines = code_lines(&source.join("lib.rs"), &source, &on);
        assert!(0 < lines, "{name} has code");
        (lines, name)
    };
    let mut crates: Vec<(usize, String)> = reached.into_iter().map(lines).collect();
    crates.sort();
    let sum: usize = crates.iter().map(|(lines, _)| lines).sum();
    let list: Vec<String> = crates.iter().rev().map(|(lines, name)| format!("{lines:>6} {name}")).collect();
    let list = list.join("\n");
    assert!(sum <= CLIENT_LINES_MAX, "{sum} lines of code, at most {CLIENT_LINES_MAX}:\n{list}");
    assert!(
        CLIENT_LINES_MAX <= sum + CLIENT_LINES_SLACK,
        "lower CLIENT_LINES_MAX: there are {sum} lines of code:\n{list}"
    );
}
