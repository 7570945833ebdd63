//! Graphs and their components for people.

use super::{Side, bytes, count, table};
use crate::graph::reply::{ComponentReply, GraphReply};

/// One line per graph.
pub fn list(graphs: &[GraphReply]) -> String {
    if graphs.is_empty() {
        return "no graph is loaded: kith load graph EDGES --graph NAME\n".to_owned();
    }
    let columns = [
        ("graph", Side::Left),
        ("version", Side::Right),
        ("edges", Side::Right),
        ("bytes", Side::Right),
        ("components", Side::Left),
    ];
    let rows = graphs.iter().map(|graph| {
        let sum = |of: fn(&ComponentReply) -> u64| graph.components.iter().map(of).sum::<u64>();
        let names: Vec<&str> = graph.components.iter().map(|component| component.name.as_str()).collect();
        vec![
            graph.graph.clone(),
            graph.version.to_string(),
            count(sum(|component| component.edges)),
            bytes(sum(|component| component.bytes)),
            names.join(", "),
        ]
    });
    table(&columns, rows)
}

/// A graph with its components.
pub fn describe(graph: &GraphReply) -> String {
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
    format!("graph {}, version {}\n{}", graph.graph, graph.version, table(&columns, rows))
}
