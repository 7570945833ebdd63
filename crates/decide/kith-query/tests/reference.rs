//! The reference answers of the shared data set: all records of the graphs that are small enough for every test run. The
//! README beside the answers explains each field.

#![expect(clippy::unwrap_used, reason = "test helpers fail by panicking")]

use flate2::read::GzDecoder;
use kith_query::{
    CommonAnswer, CommonPlan, CommonQuery, ConnectionsQuery, DistanceQuery, GraphAnswer, GraphQuery,
    NetworkQuery, NetworkReturn, Operation, PathQuery, Want,
    testing::{LocalCluster, MemoryGraph},
};
use kith_schema::KindRole;
use kith_types::{Direction, PartitionCount, Workflow};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

fn data() -> Option<PathBuf> {
    let given = std::env::var_os("KITH_DATA").map(PathBuf::from);
    let folder =
        given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"));
    let folder = folder.join("social");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no reference data at {}", folder.display());
    None
}

fn lines(path: &Path) -> impl Iterator<Item = String> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    BufReader::new(GzDecoder::new(file)).lines().map(|line| line.unwrap())
}

/// The lines after the header, split into fields.
fn rows(path: &Path) -> impl Iterator<Item = Vec<String>> {
    lines(path).skip(1).map(|line| line.split(',').map(str::to_owned).collect())
}

fn number(cell: &str) -> u64 {
    cell.parse().unwrap()
}

fn load(folder: &Path, directed: bool) -> LocalCluster {
    let mut graph = MemoryGraph::new(PartitionCount::new(24).expect("24 is a valid count"));
    let edges: Vec<(u64, u64)> =
        rows(&folder.join("edges.csv.gz")).map(|row| (number(&row[0]), number(&row[1]))).collect();
    // The directed graph is queried both along its edges and with the edges taken as undirected.
    let role = if directed { KindRole::Directed } else { KindRole::Undirected };
    graph.add_kind("connection", role, &edges);
    for (name, column) in [("nodes.csv.gz", 0), ("entities.csv.gz", 0)] {
        let path = folder.join(name);
        if path.exists() {
            graph.add_members(rows(&path).map(|row| number(&row[column])));
        }
    }
    let path = folder.join("entities.csv.gz");
    let mut kinds = BTreeMap::<String, Vec<(u64, u64)>>::new();
    if path.exists() {
        for row in rows(&path) {
            kinds.entry(row[1].clone()).or_default().push((number(&row[0]), number(&row[2])));
        }
    }
    for (kind, edges) in &kinds {
        graph.add_kind(kind, KindRole::Entity, edges);
    }
    LocalCluster::new(graph, (0..24).map(|partition| partition % 5).collect())
}

fn sha(ids: &[u64]) -> String {
    let mut hash = Sha256::new();
    for id in ids {
        hash.update(format!("{id}\n"));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The graph, member and direction of one record.
struct Record<'a> {
    cluster: &'a LocalCluster,
    json: Json,
    direction: Direction,
}

impl Record<'_> {
    fn ask(&self, operation: Operation) -> GraphAnswer {
        let direction = Some(self.direction);
        let query = GraphQuery { operation, edge_type: None, direction, workflow: Workflow::Interactive };
        self.cluster.query(&query).unwrap_or_else(|error| panic!("{query:?}: {error}"))
    }

    fn s(&self) -> u64 {
        self.json["s"].as_u64().unwrap()
    }

    fn check(&self) {
        self.check_network();
        self.check_distances();
        let (to, length) = pair(&self.json["path"]);
        self.check_path(to, length);
        for (to, length) in self.json["bfs"].as_array().unwrap().iter().map(pair) {
            self.check_path(to, length);
        }
        for common in self.json["common"].as_array().unwrap() {
            self.check_common(common);
        }
    }

    fn check_network(&self) {
        let GraphAnswer::Network(answer) =
            self.ask(Operation::Network(NetworkQuery { id: self.s(), returns: NetworkReturn::Ids }))
        else {
            panic!("not a network")
        };
        let network = answer.network.unwrap();
        let (second, both): (Vec<u64>, Vec<u64>) = (network.second().collect(), network.both().collect());
        let sizes = [answer.sizes.first, answer.sizes.second, answer.sizes.network(), answer.sizes.union];
        for (field, size) in ["deg", "n2", "net", "fof"].iter().zip(sizes) {
            assert_eq!(self.json[*field].as_u64(), Some(size), "{field} of {}", self.s());
        }
        for (field, ids) in [
            ("first_sha", network.first()),
            ("n2_sha", &second),
            ("net_sha", &both),
            ("fof_sha", &network.union().to_vec()),
        ] {
            assert_eq!(self.json[field].as_str(), Some(sha(ids).as_str()), "{field} of {}", self.s());
        }
        let connections = self.ask(Operation::Connections(ConnectionsQuery { id: self.s() }));
        assert_eq!(connections, GraphAnswer::Ids(network.first().to_vec()));
    }

    fn check_distances(&self) {
        let pairs: Vec<(u64, Option<u64>)> = self.json["dist"].as_array().unwrap().iter().map(pair).collect();
        let (to, distances): (Vec<u64>, Vec<Option<u64>>) = pairs.into_iter().unzip();
        let badges = distances.into_iter().map(|distance| distance.map(|hops| hops as u8)).collect();
        assert_eq!(
            self.ask(Operation::Distance(DistanceQuery { from: self.s(), to })),
            GraphAnswer::Distances(badges)
        );
    }

    fn check_path(&self, to: u64, length: Option<u64>) {
        let GraphAnswer::Path(path) = self.ask(Operation::Path(PathQuery { from: self.s(), to, max: 6 }))
        else {
            panic!("not a path")
        };
        let got = path.members.len().checked_sub(1).map(|hops| hops as u64);
        assert_eq!(got, length, "from {} to {to}", self.s());
        if let Some((&first, rest)) = path.members.split_first() {
            assert_eq!((first, *rest.last().unwrap_or(&first)), (self.s(), to));
        }
        for hop in path.members.windows(2) {
            let GraphAnswer::Ids(ids) = self.ask(Operation::Connections(ConnectionsQuery { id: hop[0] }))
            else {
                panic!("not ids")
            };
            assert!(ids.binary_search(&hop[1]).is_ok(), "{hop:?} is no edge");
        }
    }

    fn check_common(&self, common: &Json) {
        let to = common["t"].as_u64().unwrap();
        for plan in [CommonPlan::Auto, CommonPlan::Fetch, CommonPlan::Push] {
            let ask = |kind: Option<&str>, want| {
                let kind = kind.map(str::to_owned);
                match self.ask(Operation::Common(CommonQuery { id: self.s(), to, kind, returns: want, plan }))
                {
                    GraphAnswer::Common(answer) => answer,
                    other => panic!("{other:?}"),
                }
            };
            let count = common["count"].as_u64().unwrap();
            assert_eq!(ask(None, Want::Size), CommonAnswer::Size(count));
            assert_eq!(ask(Some("connection"), Want::Exists), CommonAnswer::Exists(0 < count));
            let CommonAnswer::Ids(ids) = ask(None, Want::Ids) else { panic!("not ids") };
            assert_eq!(common["sha"].as_str(), Some(sha(&ids).as_str()));
            let Some(entities) = common["entities"].as_object() else { continue };
            for kind in self.entity_kinds() {
                let expected: Vec<u64> = entities.get(&kind).map_or(Vec::new(), |ids| {
                    ids.as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect()
                });
                assert_eq!(ask(Some(&kind), Want::Exists), CommonAnswer::Exists(!expected.is_empty()));
                assert_eq!(
                    ask(Some(&kind), Want::Ids),
                    CommonAnswer::Ids(expected),
                    "{kind} of {} and {to}",
                    self.s()
                );
            }
        }
    }

    fn entity_kinds(&self) -> Vec<String> {
        let kinds = &self.cluster.graph().schema().kinds;
        kinds.iter().filter(|kind| kind.role == KindRole::Entity).map(|kind| kind.name.clone()).collect()
    }
}

fn pair(json: &Json) -> (u64, Option<u64>) {
    (json[0].as_u64().unwrap(), json[1].as_u64())
}

fn check(name: &str) {
    let Some(folder) = data() else { return };
    let records: Vec<Json> = lines(&folder.join("answers").join(format!("{name}.jsonl.gz")))
        .map(|line| serde_json::from_str(&line).unwrap())
        .collect();
    let directed = records.iter().any(|record| record["dir"] != "und");
    let cluster = load(&folder.join(name), directed);
    assert_eq!(records.len(), 100, "{name}");
    for json in records {
        let direction = match json["dir"].as_str() {
            Some("out") => Direction::Out,
            Some("in") => Direction::In,
            _ => Direction::Both,
        };
        Record { cluster: &cluster, json, direction }.check();
    }
}

#[test]
fn lastfm_asia_answers_are_right() {
    check("lastfm-asia");
}

#[test]
fn kith_village_answers_are_right() {
    check("kith-village");
}

#[test]
fn ldbc_answers_with_sparse_ids_are_right() {
    check("ldbc-sf0.1");
}

#[test]
fn cnr_2000_answers_along_arcs_and_both_ways_are_right() {
    check("cnr-2000");
}

#[test]
fn facebook_pages_answers_are_right() {
    check("facebook-pages");
}

#[test]
fn github_devs_answers_around_a_strong_hub_are_right() {
    check("github-devs");
}

#[test]
fn deezer_hu_answers_are_right() {
    check("deezer-hu");
}
