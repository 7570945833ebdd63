//! What a load did, for people.

use super::{Side, bytes, count, plural, table};
use crate::load::LoadReply;

/// Components, files with dropped lines and why, then one line that sums it up.
pub fn summary(reply: &LoadReply) -> String {
    let mut text = String::new();
    if !reply.components.is_empty() {
        text += &components(reply);
        text += "\n";
    }
    if !reply.dropped.is_empty() {
        text += &dropped(reply);
        text += "\n";
    }
    let rows = reply.files.iter().map(|file| file.rows).sum();
    let read = format!("{} in {}", plural(rows, "line"), plural(reply.files.len() as u64, "file"));
    text += &match reply.version {
        Some(version) => {
            format!("graph {} now serves version {version}: {read}, {:.1} s\n", reply.graph, reply.seconds)
        }
        None => format!("dry run: {read} checked, nothing built, {:.1} s\n", reply.seconds),
    };
    text
}

fn components(reply: &LoadReply) -> String {
    let columns = [
        ("component", Side::Left),
        ("role", Side::Left),
        ("members", Side::Right),
        ("edges", Side::Right),
        ("self loops", Side::Right),
        ("duplicates", Side::Right),
        ("both orders", Side::Right),
        ("bytes", Side::Right),
    ];
    let rows = reply.components.iter().map(|component| {
        vec![
            component.name.clone(),
            component.role.clone(),
            count(component.members),
            count(component.edges),
            count(component.self_loops),
            count(component.duplicates),
            count(component.both_orders),
            bytes(component.bytes),
        ]
    });
    table(&columns, rows)
}

fn dropped(reply: &LoadReply) -> String {
    let columns = [("dropped lines", Side::Right), ("why", Side::Left)];
    let rows = reply.dropped.iter().map(|dropped| vec![count(dropped.count), dropped.reason.clone()]);
    let mut text = table(&columns, rows);
    for line in reply.dropped.iter().flat_map(|dropped| &dropped.first_lines) {
        text += &format!("  {line}\n");
    }
    text
}
