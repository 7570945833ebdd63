//! The result of a load, as text for people.

use super::{Side, bytes, count, plural, table};
use crate::{
    load::{LoadReply, ReadFile},
    publish::DroppedLines,
};
use kith_build::rows::graph::columns_taken;

/// Returns the components, the files with dropped lines and their reasons, then a one-line summary.
pub fn summary(reply: &LoadReply) -> String {
    let mut text = String::new();
    if !reply.components.is_empty() {
        text += &components(reply);
        text += "\n";
    }
    if !reply.dropped.is_empty() {
        text += &dropped("dropped lines", &reply.dropped);
        text += "\n";
    }
    text += &taken(&reply.files);
    let rows = reply.files.iter().map(|file| file.rows).sum();
    let read = match reply.files.len() as u64 {
        0 => format!("{} built before", plural(reply.components.len() as u64, "component")),
        files => format!("{} in {}", plural(rows, "line"), plural(files, "file")),
    };
    text += &match reply.version {
        Some(version) => {
            format!("graph {} now serves version {version}: {read}, {:.1} s\n", reply.graph, reply.seconds)
        }
        None => format!("dry run: {read} checked, nothing built, {:.1} s\n", reply.seconds),
    };
    text
}

/// Returns a line for every role and set of columns, and the warnings about times.
fn taken(files: &[ReadFile]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for file in files {
        lines.extend(columns_taken(file.role, &file.columns).map(|taken| taken + "\n"));
        lines.extend(file.warning.iter().map(|warning| format!("warning: {}: {warning}\n", file.path)));
    }
    let mut seen = std::collections::BTreeSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    lines.concat()
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

/// Returns the counts by reason under `heading`, then the first dropped lines.
pub fn dropped(heading: &str, dropped: &[DroppedLines]) -> String {
    let columns = [(heading, Side::Right), ("why", Side::Left)];
    let rows = dropped.iter().map(|dropped| vec![count(dropped.count), dropped.reason.clone()]);
    let mut text = table(&columns, rows);
    for line in dropped.iter().flat_map(|dropped| &dropped.first_lines) {
        text += &format!("  {line}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::LoadedComponent;

    /// A load of one file, of which one line was dropped.
    fn loaded() -> LoadReply {
        let component = LoadedComponent {
            name: "connection".to_owned(),
            role: "undirected".to_owned(),
            members: 4_998,
            edges: 77_094,
            self_loops: 3,
            duplicates: 2,
            both_orders: 1,
            bytes: 743_936,
        };
        let dropped = DroppedLines {
            reason: "negative id".to_owned(),
            count: 1,
            first_lines: vec!["edges.csv: line 7: src is negative: \"-1,2\"".to_owned()],
        };
        let file = ReadFile {
            path: "edges.csv".to_owned(),
            role: "edges",
            rows: 77_101,
            dropped: 1,
            self_loops: 3,
            bytes: 900_000,
            columns: vec![
                ("src".to_owned(), "follower".to_owned()),
                ("dst".to_owned(), "followee".to_owned()),
                ("since".to_owned(), "column 3".to_owned()),
            ],
            warning: None,
        };
        LoadReply {
            graph: "v".to_owned(),
            version: Some(1_700_000_000_000),
            components: vec![component],
            dropped: vec![dropped],
            files: vec![file],
            seconds: 0.25,
        }
    }

    #[test]
    fn a_summary_says_what_was_built_and_what_was_dropped() {
        let reply = loaded();
        let expected = "\
component   role        members   edges  self loops  duplicates  both orders      bytes
connection  undirected    4,998  77,094           3           2            1  726.5 KiB

dropped lines  why
            1  negative id
  edges.csv: line 7: src is negative: \"-1,2\"

edges: follower → followee; since = column 3
graph v now serves version 1700000000000: 77,101 lines in 1 file, 0.2 s
";
        assert_eq!(summary(&reply), expected);
        let dry = LoadReply { version: None, components: Vec::new(), dropped: Vec::new(), ..reply };
        let expected = "\
edges: follower → followee; since = column 3
dry run: 77,101 lines in 1 file checked, nothing built, 0.2 s
";
        assert_eq!(summary(&dry), expected);
    }
}
