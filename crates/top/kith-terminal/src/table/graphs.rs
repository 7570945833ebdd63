//! Graphs and their components, as text for people.

use super::{Side, bytes, count, table};
use crate::reply::graphs::{ComponentReply, GraphReply, LiveReply, LoadedReply, TypeReply};

/// Returns one line per graph.
pub fn list(graphs: &[GraphReply]) -> String {
    if graphs.is_empty() {
        return "there is no graph: kith load graph EDGES --graph NAME, or kith schema apply TYPES --graph NAME\n"
            .to_owned();
    }
    let columns = [
        ("graph", Side::Left),
        ("kind", Side::Left),
        ("version", Side::Right),
        ("edges", Side::Right),
        ("bytes", Side::Right),
        ("properties", Side::Left),
        ("components", Side::Left),
    ];
    let rows = graphs.iter().map(|graph| match graph {
        GraphReply::Loaded(graph) => loaded_row(graph),
        GraphReply::Live(graph) => live_row(graph),
    });
    table(&columns, rows)
}

fn loaded_row(graph: &LoadedReply) -> Vec<String> {
    let sum = |of: fn(&ComponentReply) -> u64| graph.components.iter().map(of).sum::<u64>();
    let names: Vec<&str> = graph.components.iter().map(|component| component.name.as_str()).collect();
    vec![
        graph.graph.clone(),
        graph.kind.to_owned(),
        graph.version.to_string(),
        count(sum(|component| component.edges)),
        bytes(sum(|component| component.bytes)),
        graph.properties.clone().unwrap_or_default(),
        names.join(", "),
    ]
}

/// These columns are empty, because the contents of a live graph are not counted.
fn live_row(graph: &LiveReply) -> Vec<String> {
    let names: Vec<&str> = graph.types.iter().map(|kind| kind.name.as_str()).collect();
    let nothing = String::new;
    let row = [graph.graph.clone(), graph.kind.to_owned(), nothing(), nothing(), nothing(), nothing()];
    let types = match &graph.types_error {
        None => names.join(", "),
        Some(reason) => format!("(the types cannot be read: {reason})"),
    };
    row.into_iter().chain([types]).collect()
}

/// Returns a graph with its components, or with its types.
pub fn describe(graph: &GraphReply) -> String {
    match graph {
        GraphReply::Loaded(graph) => describe_loaded(graph),
        GraphReply::Live(graph) => describe_live(graph),
    }
}

fn describe_loaded(graph: &LoadedReply) -> String {
    let columns = [
        ("component", Side::Left),
        ("role", Side::Left),
        ("members", Side::Right),
        ("edges", Side::Right),
        ("bytes", Side::Right),
        ("version", Side::Right),
        ("columns", Side::Left),
    ];
    let rows = graph.components.iter().map(|component| {
        vec![
            component.name.clone(),
            component.role.clone(),
            count(component.members),
            count(component.edges),
            bytes(component.bytes),
            component.version.to_string(),
            component.columns.join(", "),
        ]
    });
    let properties = graph.properties.iter();
    let properties: String =
        properties.map(|store| format!(", properties of members from store {store}")).collect();
    format!("graph {}, version {}{properties}\n{}", graph.graph, graph.version, table(&columns, rows))
}

fn describe_live(graph: &LiveReply) -> String {
    let columns = [
        ("type", Side::Left),
        ("kind", Side::Left),
        ("inverse", Side::Left),
        ("cap", Side::Right),
        ("adjacency", Side::Left),
        ("fields", Side::Left),
    ];
    let adjacency = |kind: &TypeReply| match kind.adjacency {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    };
    let rows = graph.types.iter().map(|kind| {
        vec![
            kind.name.clone(),
            kind.kind.to_owned(),
            kind.inverse.clone().unwrap_or_default(),
            kind.cap.map(|cap| count(cap.into())).unwrap_or_default(),
            adjacency(kind).to_owned(),
            if kind.open { "any".to_owned() } else { kind.fields.join(", ") },
        ]
    });
    let LiveReply { graph, revision, storage, partitions, .. } = graph;
    format!(
        "live graph {graph}, {partitions} partitions, rows in {storage}, revision {revision} of its types\n{}",
        table(&columns, rows)
    )
}
