//! The reference answers as requests and what their answers must be
//! (the README beside the data says what each field means).

use super::data;
use flate2::read::MultiGzDecoder;
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

/// A graph with reference answers.
pub struct Reference {
    pub name: &'static str,
    pub directed: bool,
    folder: PathBuf,
    answers: PathBuf,
}

/// A request and the check of its answer.
pub struct Case {
    pub request: Value,
    pub check: Check,
}

/// The expected answer.
pub enum Check {
    /// These fields, to the letter; others may be there too.
    Fields(Value),
    /// A path of this length (`None`: none), every hop an edge.
    Path(Option<u64>),
}

/// The graphs, small ones first.
pub const SMALL: [&str; 3] = ["kith-village", "lastfm-asia", "ldbc-sf0.1"];
/// The rest.
pub const LARGE: [&str; 5] = ["facebook-pages", "deezer-hu", "github-devs", "cnr-2000", "kith-metro"];

impl Reference {
    /// `None` where the data is absent; `kith-village` comes with the project.
    pub fn open(name: &'static str) -> Option<Self> {
        let (folder, answers) = if name == "kith-village" {
            let folder = super::root().join("testdata/kith-village");
            (folder.clone(), folder.join("answers.jsonl.gz"))
        } else {
            let data = data()?;
            (data.join(name), data.join("answers").join(format!("{name}.jsonl.gz")))
        };
        Some(Self { name, directed: name == "cnr-2000", folder, answers })
    }

    /// The arguments of `kith load graph` for it.
    pub fn load_arguments(&self) -> Vec<String> {
        let edges = self.file("edges.csv.gz");
        let mut arguments = vec!["load".into(), "graph".into(), edges, "--graph".into(), self.name.into()];
        for (flag, name) in [("--entities", "entities.csv.gz"), ("--members", "nodes.csv.gz")] {
            if self.folder.join(name).exists() {
                arguments.extend([flag.to_owned(), self.file(name)]);
            }
        }
        if self.directed {
            arguments.push("--directed".into());
        }
        arguments
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Every edge, both ways if undirected: for checking paths.
    pub fn edges(&self) -> BTreeSet<(u64, u64)> {
        let mut edges = BTreeSet::new();
        for line in lines(&self.folder.join("edges.csv.gz")).skip(1) {
            let mut ids = line.split(',').map(|id| id.parse().expect("an id"));
            let (src, dst) = (ids.next().expect("src"), ids.next().expect("dst"));
            edges.insert((src, dst));
            if !self.directed {
                edges.insert((dst, src));
            }
        }
        edges
    }

    /// A case for each thing that each of the first `records` reference records says.
    pub fn cases(&self, records: usize, extra: &Value) -> Vec<Case> {
        self.records().iter().take(records).flat_map(|record| self.cases_of(record, extra)).collect()
    }

    /// The cases of every combination, each on `records` records of its own as long as there are enough:
    /// what one combination leaves in a cache is not what the next one finds.
    pub fn cases_of_each(&self, combinations: &[Value], records: usize) -> Vec<Case> {
        let all = self.records();
        let mut turn = all.iter().cycle();
        let mut cases = Vec::new();
        for extra in combinations {
            let own = turn.by_ref().take(records.min(all.len()));
            cases.extend(own.flat_map(|record| self.cases_of(record, extra)));
        }
        cases
    }

    /// The records of the reference answers.
    pub fn records(&self) -> Vec<Value> {
        lines(&self.answers).map(|line| serde_json::from_str(&line).expect("a record is JSON")).collect()
    }

    fn cases_of(&self, record: &Value, extra: &Value) -> Vec<Case> {
        let id = &record["s"];
        let ask = |op: &str, fields: Value| {
            let mut request = Map::new();
            request.extend([
                ("op".to_owned(), json!(op)),
                ("graph".to_owned(), json!(self.name)),
                ("id".to_owned(), id.clone()),
                // A busy machine must not fail a test of answers.
                ("deadline_ms".to_owned(), json!(60_000)),
            ]);
            for object in [fields, self.direction(record), extra.clone()] {
                request.extend(object.as_object().cloned().unwrap_or_default());
            }
            Value::Object(request)
        };
        let mut cases = network_cases(record, &ask);
        if let Some(first) = record.get("first") {
            cases.push(Case {
                request: ask("connections", json!({})),
                check: Check::Fields(json!({"ids": first})),
            });
        }
        let pairs = |field: &str| record[field].as_array().cloned().unwrap_or_default();
        cases.push(distance_case(&pairs("dist"), &ask));
        for pair in pairs("bfs").into_iter().chain([record["path"].clone()]).filter(|pair| pair.is_array()) {
            cases.push(Case {
                request: ask("path", json!({"to": pair[0], "max": 6})),
                check: Check::Path(pair[1].as_u64()),
            });
        }
        for common in pairs("common") {
            cases.extend(common_cases(&common, &ask));
        }
        cases
    }

    fn direction(&self, record: &Value) -> Value {
        match (self.directed, record["dir"].as_str()) {
            (true, Some("und")) => json!({"direction": "both"}),
            (true, Some(direction)) => json!({"direction": direction}),
            _ => json!({}),
        }
    }
}

/// A member's network with checksums, and its sizes alone.
fn network_cases(record: &Value, ask: &dyn Fn(&str, Value) -> Value) -> Vec<Case> {
    let sizes = [("degree", "deg"), ("n2", "n2"), ("net", "net"), ("fof", "fof")];
    let sums = ["first_sha", "n2_sha", "net_sha", "fof_sha"].map(|sum| (sum, sum));
    let case = |what: &str, fields: &[(&str, &str)]| Case {
        request: ask("network", json!({"return": what})),
        check: Check::Fields(pick(record, fields)),
    };
    vec![case("sha", &[sizes, sums].concat()), case("size", &sizes)]
}

/// The distances of all pairs of target and distance.
fn distance_case(pairs: &[Value], ask: &dyn Fn(&str, Value) -> Value) -> Case {
    let of = |index: usize| pairs.iter().map(|pair| pair[index].clone()).collect::<Vec<Value>>();
    Case { request: ask("distance", json!({"to": of(0)})), check: Check::Fields(json!({"distances": of(1)})) }
}

fn common_cases(common: &Value, ask: &dyn Fn(&str, Value) -> Value) -> Vec<Case> {
    let with =
        |kind: &str, want: &str| ask("common", json!({"to": common["t"], "kind": kind, "return": want}));
    let count = common["count"].as_u64().expect("a count");
    let mut cases = vec![
        Case { request: with("connection", "size"), check: Check::Fields(json!({"size": count})) },
        Case { request: with("connection", "exists"), check: Check::Fields(json!({"exists": 0 < count})) },
    ];
    if let Some(ids) = common.get("ids") {
        cases.push(Case { request: with("connection", "ids"), check: Check::Fields(json!({"ids": ids})) });
    }
    for (kind, ids) in common["entities"].as_object().into_iter().flatten() {
        cases.push(Case { request: with(kind, "ids"), check: Check::Fields(json!({"ids": ids})) });
        cases.push(Case { request: with(kind, "exists"), check: Check::Fields(json!({"exists": true})) });
    }
    cases
}

fn pick(record: &Value, fields: &[(&str, &str)]) -> Value {
    fields
        .iter()
        .map(|(ours, theirs)| ((*ours).to_owned(), record[*theirs].clone()))
        .collect::<Map<_, _>>()
        .into()
}

/// The faults in the answers, by case; empty if all are right.
pub fn differences(cases: &[Case], answers: &[Value], edges: &BTreeSet<(u64, u64)>) -> Vec<String> {
    let wrong = |(case, answer): (&Case, &Value)| {
        let problem = match &case.check {
            Check::Fields(expected) => field_problem(expected, answer),
            Check::Path(length) => path_problem(*length, &case.request, answer, edges),
        };
        problem.map(|problem| format!("{}: {problem}", case.request))
    };
    cases.iter().zip(answers).filter_map(wrong).collect()
}

fn field_problem(expected: &Value, answer: &Value) -> Option<String> {
    let fields = expected.as_object().expect("expected fields");
    let wrong = fields.iter().find(|(name, value)| answer.get(*name) != Some(value))?;
    Some(format!("{} must be {}, the answer is {}", wrong.0, short(wrong.1), short(answer)))
}

fn path_problem(
    length: Option<u64>,
    request: &Value,
    answer: &Value,
    edges: &BTreeSet<(u64, u64)>,
) -> Option<String> {
    let Ok(path) = serde_json::from_value::<Vec<u64>>(answer["path"].clone()) else {
        return Some(format!("a path was asked for, the answer is {}", short(answer)));
    };
    let expected = length.map_or(Value::Null, |length| json!(length));
    if answer["length"] != expected || path.len() as u64 != length.map_or(0, |length| length + 1) {
        return Some(format!("length must be {expected}, the answer is {}", short(answer)));
    }
    let both = request["direction"] == "both";
    let is_edge = |a: u64, b: u64| edges.contains(&(a, b)) || (both && edges.contains(&(b, a)));
    let broken = path.windows(2).find(|hop| !is_edge(hop[0], hop[1]))?;
    Some(format!("{} to {} is no edge", broken[0], broken[1]))
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(300).collect()
}

/// The lines of a gzip file.
pub fn lines(file: &Path) -> impl Iterator<Item = String> + use<> {
    let open = File::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    BufReader::new(MultiGzDecoder::new(open)).lines().map(|line| line.expect("the file is whole"))
}

/// Counts by key, for messages.
pub fn tally<'a>(keys: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    keys.for_each(|key| *counts.entry(key).or_default() += 1);
    counts
}
