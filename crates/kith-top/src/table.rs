//! What a cluster does, for people.

use crate::{NodeView, Rates, RouterView, View};
use kith_terminal::table::{Side, count, micros, plural, table};

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

/// The cluster and its groups, then nodes, then routers.
pub fn render(view: &View) -> String {
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
    format!("{head}\n\n{}\n{}\n{}", groups(view), nodes(&view.nodes), routers(&view.routers))
}

/// The whole cluster, then each group.
fn groups(view: &View) -> String {
    let all = [vec!["all".to_owned(), String::new()], rates(&view.cluster)].concat();
    let groups = view.groups.iter().map(|group| {
        let up = format!("{}/{}", group.nodes_up, group.nodes);
        [vec![group.group.to_string(), up], rates(&group.rates)].concat()
    });
    let columns = [&[("group", Side::Right), ("up", Side::Right)][..], &RATES].concat();
    table(&columns, std::iter::once(all).chain(groups))
}

fn nodes(nodes: &[NodeView]) -> String {
    let rows = nodes.iter().map(|node| {
        let group = node.group.map_or_else(|| "spare".to_owned(), |group| group.to_string());
        [vec![group, node.node.to_string(), node.state.clone()], rates(&node.rates)].concat()
    });
    let columns = [&[("group", Side::Right), ("node", Side::Right), ("state", Side::Left)][..], &RATES];
    table(&columns.concat(), rows)
}

fn routers(routers: &[RouterView]) -> String {
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
    table(&columns, rows)
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

/// Small ones to a tenth: one failure in ten seconds is not none.
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
}
