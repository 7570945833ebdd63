//! The view as tables for people.

use crate::table::{Side, count, micros, plural};
use crate::top::{DatabaseView, LiveGraphView, LiveNodeView, NodeView, Rates, RouterView, View};

/// Makes a table of columns and rows.
type TableMaker<'a> = &'a dyn Fn(&[(&str, Side)], Vec<Vec<String>>) -> String;

const RATES: [(&str, Side); 11] = [
    ("requests/s", Side::Right),
    ("keys/s", Side::Right),
    ("p50", Side::Right),
    ("p99", Side::Right),
    ("in flight", Side::Right),
    ("pending keys", Side::Right),
    ("hedges/s", Side::Right),
    ("hedged", Side::Right),
    ("overtaken/s", Side::Right),
    ("errors/s", Side::Right),
    ("failed/s", Side::Right),
];

/// The columns that are left out of tables that are wider than the terminal, the least important first. The columns that
/// show what is wrong with a cluster are not among them.
const LESS_IMPORTANT: [&str; 10] = [
    "p50",
    "in flight",
    "hedged",
    "position",
    "keys/s",
    "follows",
    "pending keys",
    "requests/s",
    "leads",
    "changes/s",
];

/// Returns the tables of the cluster and its groups, followed by nodes, routers, live graphs and databases. If `width` is
/// given, less important columns are left out of tables that would be wider.
pub fn render(view: &View, width: Option<usize>) -> String {
    let table: TableMaker<'_> = &|columns, rows| fitted(columns, rows, width);
    let all = view.nodes.iter().filter(|node| node.group.is_some());
    let up = all.clone().filter(|node| node.state == "up").count();
    let head = format!(
        "{}, {} of {} up, {}; over {:.1} s",
        plural(view.groups.len() as u64, "group"),
        up,
        plural(all.count() as u64, "node"),
        plural(view.routers.len() as u64, "router"),
        view.interval_s
    );
    let (live_graphs, databases) = (live_graphs(&view.live_graphs, table), databases(&view.databases, table));
    let (groups, nodes, routers) =
        (groups(view, table), nodes(&view.nodes, table), routers(&view.routers, table));
    format!("{head}\n\n{groups}\n{nodes}\n{routers}{live_graphs}{databases}")
}

/// Returns a table that is at most `width` wide.
fn fitted(columns: &[(&str, Side)], rows: Vec<Vec<String>>, width: Option<usize>) -> String {
    crate::table::fitted(columns, rows, &LESS_IMPORTANT, width).0
}

/// Returns one row for the whole cluster, and one for each group.
fn groups(view: &View, table: TableMaker<'_>) -> String {
    let all = [vec!["all".to_owned(), String::new()], rates(&view.cluster)].concat();
    let groups = view.groups.iter().map(|group| {
        let up = format!("{}/{}", group.nodes_up, group.nodes);
        [vec![group.group.to_string(), up], rates(&group.rates)].concat()
    });
    let columns = [&[("group", Side::Right), ("up", Side::Right)][..], &RATES].concat();
    table(&columns, std::iter::once(all).chain(groups).collect())
}

fn nodes(nodes: &[NodeView], table: TableMaker<'_>) -> String {
    let rows = nodes.iter().map(|node| {
        let group = node.group.map_or_else(|| "spare".to_owned(), |group| group.to_string());
        [vec![group, node.node.to_string(), node.state.clone()], rates(&node.rates)].concat()
    });
    let columns = [&[("group", Side::Right), ("node", Side::Right), ("state", Side::Left)][..], &RATES];
    table(&columns.concat(), rows.collect())
}

fn routers(routers: &[RouterView], table: TableMaker<'_>) -> String {
    let columns = [
        ("router", Side::Left),
        ("state", Side::Left),
        ("queries/s", Side::Right),
        ("p50", Side::Right),
        ("p99", Side::Right),
        ("pending keys", Side::Right),
        ("hedges/s", Side::Right),
        ("hedged", Side::Right),
        ("partial/s", Side::Right),
        ("failed/s", Side::Right),
    ];
    let rows = routers.iter().map(|router| {
        vec![
            router.addr.clone(),
            router.state.to_owned(),
            rate(router.queries_per_second),
            time(router.p50_us),
            time(router.p99_us),
            count(router.keys_pending),
            rate(Some(router.hedges_per_second)),
            percent(router.keys_hedged_ratio),
            rate(router.partial_per_second),
            rate(router.failed_per_second),
        ]
    });
    table(&columns, rows.collect())
}

/// Returns, for each live graph, one row for the graph and one for each of its nodes.
fn live_graphs(graphs: &[LiveGraphView], table: TableMaker<'_>) -> String {
    if graphs.is_empty() {
        return String::new();
    }
    let columns = [
        ("live graph", Side::Left),
        ("node", Side::Right),
        ("changes/s", Side::Right),
        ("position", Side::Right),
        ("no leader", Side::Right),
        ("leads", Side::Right),
        ("follows", Side::Right),
        ("behind", Side::Right),
        ("at most", Side::Right),
    ];
    let rows = graphs.iter().flat_map(|graph| {
        let sum = |number: fn(&LiveNodeView) -> u64| graph.nodes.iter().map(number).sum::<u64>();
        let behind_max = graph.nodes.iter().map(|node| node.behind_max).max().unwrap_or_default();
        let all = vec![
            graph.graph.clone(),
            "all".to_owned(),
            rate(graph.changes_per_second),
            count(graph.position),
            count(graph.leaderless.into()),
            count(sum(|node| node.leads.into())),
            count(sum(|node| node.follows.into())),
            count(sum(|node| node.behind)),
            count(behind_max),
        ];
        let nodes = graph.nodes.iter().map(|node| {
            let number = node.node.to_string();
            let numbers = [node.leads.into(), node.follows.into(), node.behind, node.behind_max].map(count);
            let none = String::new;
            [vec![none(), number, none(), none(), none()], numbers.to_vec()].concat()
        });
        std::iter::once(all).chain(nodes).collect::<Vec<_>>()
    });
    "\n".to_owned() + &table(&columns, rows.collect())
}

fn databases(databases: &[DatabaseView], table: TableMaker<'_>) -> String {
    if databases.is_empty() {
        return String::new();
    }
    let columns = [("database", Side::Right), ("state", Side::Left), ("address", Side::Left)];
    let rows = databases.iter().map(|it| vec![it.database.to_string(), it.state.clone(), it.addr.clone()]);
    "\n".to_owned() + &table(&columns, rows.collect())
}

fn rates(rates: &Rates) -> Vec<String> {
    vec![
        rate(rates.requests_per_second),
        rate(rates.keys_per_second),
        time(rates.p50_us),
        time(rates.p99_us),
        count(rates.in_flight.into()),
        count(rates.keys_pending),
        rate(Some(rates.hedges_per_second)),
        percent(rates.keys_hedged_ratio),
        rate(Some(rates.overtaken_per_second)),
        rate(rates.errors_per_second),
        rate(Some(rates.failed_per_second)),
    ]
}

/// Formats a rate. Small rates have one decimal, so that one failure in ten seconds is not shown as none.
fn rate(rate: Option<f64>) -> String {
    match rate {
        None => "?".to_owned(),
        Some(rate) if 0.0 < rate && rate < 10.0 => format!("{rate:.1}"),
        Some(rate) => count(rate.round() as u64),
    }
}

fn time(us: Option<u64>) -> String {
    us.map_or_else(|| "-".to_owned(), micros)
}

fn percent(ratio: f64) -> String {
    format!("{:.1} %", ratio * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_say_what_is_not_known_and_what_is_little() {
        assert_eq!(
            [None, Some(0.0), Some(0.1), Some(9.94), Some(1_234.5)].map(rate),
            ["?", "0", "0.1", "9.9", "1,235"]
        );
        assert_eq!([time(None), time(Some(1_500))], ["-", "1.50 ms"]);
        assert_eq!(percent(0.0625), "6.2 %");
    }

    /// These are the columns that `docs/operating/top.md` tells people to watch.
    #[test]
    fn what_people_watch_fits_80_columns() {
        let columns = [&[("group", Side::Right), ("node", Side::Right), ("state", Side::Left)][..], &RATES];
        let row = [
            "0",
            "100",
            "up",
            "123,456",
            "1,234,567",
            "12.34 ms",
            "123.45 ms",
            "4,096",
            "123,456",
            "1,234",
            "12.5 %",
            "1,234",
            "1,234",
            "1,234",
        ];
        let rows = vec![row.map(str::to_owned).to_vec()];
        let whole = fitted(&columns.concat(), rows.clone(), None);
        let narrow = fitted(&columns.concat(), rows, Some(80));
        assert!(whole.lines().all(|line| 80 < line.len()) && whole.contains("p50"), "{whole}");
        assert!(narrow.lines().all(|line| line.len() <= 80), "{narrow}");
        for watched in ["node", "state", "p99", "hedges/s", "overtaken/s", "errors/s", "failed/s"] {
            assert!(narrow.contains(watched), "{watched} is not in {narrow}");
        }
        assert!(narrow.contains("123.45 ms"), "{narrow}");
    }
}
