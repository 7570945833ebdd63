//! Answers as text for people.

use super::{Side, count, filled, live, plan, plural, screen_width, table, time, wrapped};
use crate::reply::{Answer, Edge, NetworkReply, NetworkSets, Reply};
use kith_query::{
    Operand,
    line::{GraphLine, Operation},
};
use kith_schema::ColumnNumber;

/// The number of ids of one set that are printed on a terminal; the remaining ones are only counted there. A pipe gets all.
const IDS_SHOWN: usize = 200;

/// Returns the answer, followed by the missing partitions and the profile.
pub fn render(question: &GraphLine, answer: &Answer) -> String {
    render_for(question, answer, screen_width())
}

/// As [`render`], for a terminal of this width; for a pipe without a width.
pub fn render_for(question: &GraphLine, answer: &Answer, screen: Option<usize>) -> String {
    let mut text = reply(&question.operation, &answer.reply, screen);
    if !answer.is_complete() {
        let missing: Vec<String> = answer.missing_partitions.iter().map(ToString::to_string).collect();
        text += &format!(
            "incomplete: {} did not answer: {}\n",
            plural(missing.len() as u64, "partition"),
            missing.join(", ")
        );
    }
    if let Some(profile) = &answer.profile {
        text += "\n";
        text += &plan::render_for(profile, screen);
    }
    text
}

fn reply(operation: &Operation, reply: &Reply, screen: Option<usize>) -> String {
    match reply {
        Reply::Ids { ids } => id_set("ids", ids, screen),
        Reply::Entities { entities } => id_set("entities", entities, screen),
        Reply::Network(network) => self::network(network, screen),
        Reply::Degrees { degrees } => self::degrees(operation, degrees),
        Reply::Edges { edges, after } => self::edges(edges, after.as_deref()),
        Reply::Object { object } => live::objects(operation, std::slice::from_ref(object)),
        Reply::Objects { objects } => live::objects(operation, objects),
        Reply::AssociationCount { count: None } => "nobody answered\n".to_owned(),
        Reply::AssociationCount { count: Some(count) } => format!("{}\n", self::count(*count)),
        Reply::Associations(associations) => live::associations(operation, associations),
        Reply::Distances { distances } => self::distances(operation, distances),
        Reply::Path { length: None, .. } => "no path within the limit\n".to_owned(),
        Reply::Path { length: Some(length), path } => {
            let steps: Vec<String> = path.iter().map(ToString::to_string).collect();
            format!("{}\nlength {length}\n", steps.join(" -> "))
        }
        Reply::Size { size } => format!("{}\n", count(*size)),
        Reply::Exists { exists } => format!("{}\n", if *exists { "yes" } else { "no" }),
        Reply::Suggestions { suggestions } => {
            let rows = suggestions.iter().map(|(id, common)| vec![id.to_string(), count((*common).into())]);
            table(&[("member", Side::Right), ("in common", Side::Right)], rows)
        }
    }
}

fn id_set(what: &str, ids: &[u64], screen: Option<usize>) -> String {
    let shown = if screen.is_some() { IDS_SHOWN.min(ids.len()) } else { ids.len() };
    let mut text = format!("{what}: {}\n", count(ids.len() as u64));
    text += &filled(ids[..shown].iter().map(ToString::to_string), screen);
    if shown < ids.len() {
        let rest = count((ids.len() - shown) as u64);
        let note =
            format!("... and {rest} more: a pipe or -o json gets all, --limit and --after print pages");
        text += &wrapped(&note, screen);
    }
    text
}

fn network(network: &NetworkReply, screen: Option<usize>) -> String {
    let sizes = [
        ("first degree", network.degree),
        ("second degree", network.n2),
        ("network", network.net),
        ("raw union", network.fof),
    ];
    let sums = match &network.sets {
        NetworkSets::Sha { first_sha, n2_sha, net_sha, fof_sha } => {
            [first_sha, n2_sha, net_sha, fof_sha].map(Some)
        }
        _ => [None; 4],
    };
    let rows = sizes.iter().zip(sums).map(|((name, size), sum)| {
        let cells = [(*name).to_owned(), count(*size)].into_iter().chain(sum.cloned());
        cells.collect()
    });
    let title = format!("member {}", network.id);
    let mut columns = vec![(title.as_str(), Side::Left), ("ids", Side::Right)];
    if sums[0].is_some() {
        columns.push(("sha-256", Side::Left));
    }
    let mut text = table(&columns, rows);
    if let NetworkSets::Ids { first, second } = &network.sets {
        text += &id_set("first degree", first, screen);
        text += &id_set("second degree", second, screen);
    }
    text
}

fn degrees(operation: &Operation, degrees: &[Option<u64>]) -> String {
    let ids = match operation.operand() {
        Operand::Degree { ids, .. } => ids,
        _ => Vec::new(),
    };
    let rows = ids.iter().zip(degrees).map(|(id, degree)| {
        vec![id.to_string(), degree.map_or_else(|| "not in the graph".to_owned(), count)]
    });
    table(&[("member", Side::Right), ("degree", Side::Right)], rows)
}

fn edges(edges: &[Edge], after: Option<&str>) -> String {
    let Some(first) = edges.first() else { return "no edges\n".to_owned() };
    let names = first.names.iter().map(|name| (name.as_str(), Side::Right));
    let columns: Vec<(&str, Side)> = [("member", Side::Right)].into_iter().chain(names).collect();
    let cell = |(number, is_time): (&ColumnNumber, &bool)| match *number {
        ColumnNumber::U64(ms) if *is_time => time(ms),
        number => number.to_string(),
    };
    let rows = edges.iter().map(|edge| {
        let cells = edge.numbers.iter().zip(edge.are_times.iter()).map(cell);
        [edge.id.to_string()].into_iter().chain(cells).collect()
    });
    let more = after.map_or_else(String::new, |after| format!("there are more: --after {after}\n"));
    table(&columns, rows) + &more
}

fn distances(operation: &Operation, distances: &[Option<u8>]) -> String {
    let to = match operation.operand() {
        Operand::Distance { to, .. } => to,
        _ => Vec::new(),
    };
    let rows = to.iter().zip(distances).map(|(id, distance)| {
        vec![id.to_string(), distance.map_or_else(|| "farther".to_owned(), |distance| distance.to_string())]
    });
    table(&[("member", Side::Right), ("distance", Side::Right)], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_times_are_dates_and_other_numbers_are_not() {
        let edge = Edge {
            id: 7,
            names: ["since".to_owned(), "weight".to_owned()].into(),
            are_times: [true, false].into(),
            numbers: [1_700_000_000_250, 1_700_000_000_000].map(ColumnNumber::U64).to_vec(),
        };
        let lines = "member                        since         weight\n     7  2023-11-14 22:13:20.250 UTC  1700000000000\n";
        assert_eq!(edges(std::slice::from_ref(&edge), None), lines);
        let json = serde_json::to_string(&edge).unwrap();
        assert_eq!(json, r#"{"id":7,"since":1700000000250,"weight":1700000000000}"#);
    }

    #[test]
    fn a_terminal_gets_some_ids_and_a_pipe_gets_all() {
        let ids: Vec<u64> = (1_000..1_500).collect();
        let numbers = |text: &str| -> Vec<u64> {
            text.lines().skip(1).flat_map(|line| line.split(' ')).filter_map(|it| it.parse().ok()).collect()
        };
        let piped = id_set("ids", &ids, None);
        assert_eq!(numbers(&piped), ids);
        let shown = id_set("ids", &ids, Some(60));
        assert_eq!(numbers(&shown)[..IDS_SHOWN], ids[..IDS_SHOWN]);
        assert!(shown.contains("and 300 more") && shown.lines().all(|line| line.len() <= 60), "{shown}");
    }
}
