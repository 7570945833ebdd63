//! The state of a cluster, as text for people.

use super::{Side, bytes, count, fitted_with_note, plural, screen_width, table, wrapped};
use crate::{
    cluster::{DatabaseReply, FetchRatesReply, LiveGraphReply, RouterReply, StatusReply, StoreStatusReply},
    serve::{CreateReply, PlacementFlag},
};

/// The columns that are left out of tables that are wider than the terminal, the least important first. Those that show what is
/// wrong are not among them.
const LESS_IMPORTANT: [&str; 16] = [
    "clients",
    "repaired",
    "requests/s",
    "p50",
    "pid",
    "http",
    "in flight",
    "serves",
    "answers",
    "partitions",
    "at most",
    "position",
    "last push",
    "age",
    "storage",
    "p99",
];

/// Returns the nodes, then routers, stores, live graphs and databases.
pub fn status(status: &StatusReply) -> String {
    status_for(status, screen_width())
}

/// As [`status`], for a terminal of this width.
pub fn status_for(status: &StatusReply, screen: Option<usize>) -> String {
    format!(
        "{}, {}, epoch {}\n{}{}\n{}{}{}{}",
        plural(status.nodes.len() as u64, "node"),
        plural(status.partitions.into(), "partition"),
        status.epoch,
        nodes(status, screen),
        wrapped(&notes(status), screen),
        routers(&status.routers, screen),
        stores(&status.stores, screen),
        live_graphs(&status.live_graphs, screen),
        databases(&status.databases, screen),
    )
}

fn fit(columns: &[(&str, Side)], rows: impl Iterator<Item = Vec<String>>, screen: Option<usize>) -> String {
    fitted_with_note(columns, rows.collect(), &LESS_IMPORTANT, screen)
}

fn nodes(status: &StatusReply, screen: Option<usize>) -> String {
    let columns = [
        ("group", Side::Right),
        ("node", Side::Right),
        ("state", Side::Left),
        ("address", Side::Left),
        ("partitions", Side::Right),
        ("requests/s", Side::Right),
        ("clients", Side::Right),
        ("in flight", Side::Right),
        ("damaged", Side::Right),
        ("repaired", Side::Right),
        ("disk free", Side::Right),
        ("serves", Side::Left),
    ];
    let rows = status.nodes.iter().map(|node| {
        let graphs: Vec<String> =
            node.graphs.iter().map(|graph| format!("{} v{}", graph.graph, graph.version)).collect();
        vec![
            node.group.map_or_else(|| "spare".to_owned(), |group| group_cell(group, status)),
            node.node.to_string(),
            node.state.clone(),
            node.addr.clone(),
            node.partitions.to_string(),
            format!("{:.0}", node.requests_per_second),
            count(node.clients.into()),
            count(node.in_flight.into()),
            count(node.files_damaged),
            count(node.files_repaired),
            node.disk_free.map_or("?".to_owned(), bytes),
            graphs.join(", "),
        ]
    });
    fit(&columns, rows, screen)
}

/// Returns notes about nodes whose fetches are slowed down, groups that get no reads, and live graphs without leaders.
fn notes(status: &StatusReply) -> String {
    let held_back = status.nodes.iter().filter_map(|node| {
        let (node, rate) = (node.node, bytes(node.fetch_held_back?));
        Some(format!("node {node} holds its fetches back to {rate}/s because they slow its reads down\n"))
    });
    let out = status.groups.iter().filter_map(|group| {
        let note = match group.state.as_str() {
            "out" => "is taken out: it gets no reads until `kith cluster restore-group`",
            "joining" => "is being filled: it gets no reads yet",
            _ => return None,
        };
        Some(format!("group {} {note}\n", group.group))
    });
    let leaderless = status.live_graphs.iter().filter(|graph| 0 < graph.leaderless).map(|graph| {
        let partitions = plural(graph.leaderless.into(), "partition");
        format!("live graph {:?}: {partitions} without a leader accept no writes\n", graph.graph)
    });
    let failing = status.live_graphs.iter().flat_map(|graph| {
        graph.nodes.iter().filter_map(|node| {
            let error = node.error.as_ref()?;
            Some(format!("live graph {:?}, node {}: {error}\n", graph.graph, node.node))
        })
    });
    held_back.chain(out).chain(leaderless).chain(failing).collect()
}

fn routers(routers: &[RouterReply], screen: Option<usize>) -> String {
    let columns = [
        ("router", Side::Right),
        ("state", Side::Left),
        ("address", Side::Left),
        ("http", Side::Left),
        ("metadata seen", Side::Right),
    ];
    let rows = routers.iter().map(|router| {
        let age = router.metadata_age_ms.map_or("?".to_owned(), |age| format!("{:.1} s", age as f64 / 1e3));
        vec![router.router.to_string(), router.state.clone(), router.addr.clone(), router.http.clone(), age]
    });
    fit(&columns, rows, screen)
}

/// Returns a node's group, with the group's state if it does not serve.
fn group_cell(group: u32, status: &StatusReply) -> String {
    let known = status.groups.iter().find(|known| known.group == group);
    match known.map(|known| known.state.as_str()) {
        None | Some("serving") => group.to_string(),
        Some(state) => format!("{group} {state}"),
    }
}

fn stores(stores: &[StoreStatusReply], screen: Option<usize>) -> String {
    if stores.is_empty() {
        return String::new();
    }
    let columns = [
        ("store", Side::Left),
        ("version", Side::Right),
        ("age", Side::Right),
        ("last push", Side::Left),
        ("now", Side::Left),
        ("answers", Side::Right),
        ("p50", Side::Right),
        ("p99", Side::Right),
    ];
    let rows = stores.iter().map(|store| {
        let now = match (&store.running, store.frozen) {
            (Some(push), _) => push.clone(),
            (None, true) => "frozen".to_owned(),
            (None, false) => String::new(),
        };
        vec![
            store.store.clone(),
            store.version.map_or("none".to_owned(), |version| version.to_string()),
            store.version_age_ms.map_or(String::new(), |age| format!("{} s", count(age / 1_000))),
            store.last_push.clone().unwrap_or_default(),
            now,
            count(store.answers),
            format!("{} us", count(store.p50_us)),
            format!("{} us", count(store.p99_us)),
        ]
    });
    "\n".to_owned() + &fit(&columns, rows, screen)
}

/// Returns one line per live graph and node.
fn live_graphs(graphs: &[LiveGraphReply], screen: Option<usize>) -> String {
    if graphs.is_empty() {
        return String::new();
    }
    let columns = [
        ("live graph", Side::Left),
        ("storage", Side::Left),
        ("position", Side::Right),
        ("node", Side::Right),
        ("leads", Side::Right),
        ("follows", Side::Right),
        ("behind", Side::Right),
        ("at most", Side::Right),
    ];
    let rows = graphs.iter().flat_map(|graph| {
        let of_all = [graph.graph.clone(), graph.storage.clone(), count(graph.position)];
        let nodes = graph.nodes.iter().enumerate().map(move |(index, node)| {
            let of_all = if index == 0 { of_all.to_vec() } else { vec![String::new(); of_all.len()] };
            let of_node = vec![
                node.node.to_string(),
                node.leads.to_string(),
                node.follows.to_string(),
                count(node.behind),
                count(node.behind_max),
            ];
            [of_all, of_node].concat()
        });
        nodes.collect::<Vec<_>>()
    });
    "\n".to_owned() + &fit(&columns, rows, screen)
}

fn databases(databases: &[DatabaseReply], screen: Option<usize>) -> String {
    if databases.is_empty() {
        return String::new();
    }
    let columns = [
        ("database", Side::Right),
        ("state", Side::Left),
        ("address", Side::Left),
        ("http", Side::Left),
        ("pid", Side::Right),
    ];
    let rows = databases.iter().map(|it| {
        vec![it.database.to_string(), it.state.clone(), it.addr.clone(), it.http.clone(), it.pid.to_string()]
    });
    "\n".to_owned() + &fit(&columns, rows, screen)
}

/// Returns one line per node.
pub fn fetch_rates(reply: &FetchRatesReply) -> String {
    let columns = [
        ("node", Side::Right),
        ("bytes/s", Side::Right),
        ("held back to", Side::Right),
        ("fetched", Side::Right),
        ("waiting", Side::Right),
        ("", Side::Left),
    ];
    let rows = reply.nodes.iter().map(|node| {
        let rate = match node.bytes_per_second {
            _ if !node.error.is_empty() => "?".to_owned(),
            Some(rate) => count(rate),
            None => "off".to_owned(),
        };
        let (fetched, waiting) = (count(node.bytes_fetched), count(node.waiting.into()));
        let held_back = node.held_back.map_or_else(String::new, count);
        vec![node.node.to_string(), rate, held_back, fetched, waiting, node.error.clone()]
    });
    table(&columns, rows)
}

/// Returns a line about the cluster that was created, or existed.
pub fn created(reply: &CreateReply) -> String {
    let made = if reply.created { "created:" } else { "exists already:" };
    let nodes = plural(reply.nodes.into(), "node");
    let shape = match reply.placement {
        PlacementFlag::Groups => format!("{} of {nodes}", plural(reply.groups.into(), "group")),
        PlacementFlag::Ring => format!("a ring of {nodes}, {}", plural(reply.groups.into(), "replica")),
    };
    format!(
        "cluster {} {made} {shape}, {}, built versions in {}\n",
        reply.cluster_id,
        plural(reply.partitions.into(), "partition"),
        reply.object_store
    )
}
