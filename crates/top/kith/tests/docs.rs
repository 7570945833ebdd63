//! The documents describe what there is: every error code, and nothing else, is in `docs/errors.md`, every check that 0008 lists
//! has the tests that it names, and the README's store of values is made as it says. Their code blocks are run by `scripts/docs.py`, whose tests are here.

mod repository {
    pub mod alerts;
    pub mod workspace;
}
mod system {
    pub mod support;
}

use kith_routing::execution::{FailureClass, Retry};
use kith_types::{Epoch, ErrorCode, StoreVersion};
use kith_wire::resp::error_prefix;
use repository::{
    alerts,
    workspace::{in_crate, root},
};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use system::support::cluster::{Cluster, text};

#[test]
fn every_unit_bounds_the_memory_and_the_threads_of_its_process() {
    let mut units = Vec::new();
    for unit in fs::read_dir(root().join("packaging/systemd")).expect("the units") {
        let unit = unit.expect("an entry").path();
        let text = fs::read_to_string(&unit).expect("text");
        let (_, service) = text.split_once("\n[Service]\n").expect("a service");
        for bound in ["MemoryMax=", "TasksMax=", "LimitNOFILE="] {
            let value = service.lines().find_map(|line| line.strip_prefix(bound));
            let is_bound = value.is_some_and(|value| value.starts_with(|c: char| c.is_ascii_digit()));
            assert!(is_bound, "{}: {bound}{value:?}", unit.display());
        }
        units.push(unit);
    }
    assert!(4 <= units.len(), "{units:?}");
}

/// The crates that nodes, routers and database processes are made of, as far as they count anything.
const SERVING: [&str; 10] = [
    "kith",
    "kith-node",
    "kith-database",
    "kith-router",
    "kith-doors",
    "kith-cluster",
    "kith-client",
    "kith-session",
    "kith-net",
    "kith-query",
];

/// The names of metrics in a text.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
    let prefixes = ["kith_router_", "kith_node_", "kith_server_", "kith_client_", "kith_resp_"];
    words
        .filter(|word| prefixes.iter().any(|prefix| word.starts_with(prefix) && prefix.len() < word.len()))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_alert_is_about_a_metric_that_there_is() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("a document");
    let alerts = metrics(&read("docs/operating/alerts.md"));
    // A histogram has series with suffixes.
    let alerts: BTreeSet<_> =
        alerts.iter().map(|name| name.strip_suffix("_bucket").unwrap_or(name)).collect();
    assert!(10 < alerts.len());
    let explained = metrics(&read("docs/operating/metrics.md"));
    let mut paths = Vec::new();
    for name in SERVING {
        sources(&in_crate(name).join("src"), &mut paths);
    }
    let code: Vec<String> = paths.iter().map(|path| fs::read_to_string(path).expect("a source")).collect();
    for metric in alerts {
        assert!(explained.contains(metric), "{metric} is not in metrics.md");
        let quoted = format!("\"{metric}\"");
        assert!(code.iter().any(|text| text.contains(&quoted)), "no source has {metric}");
    }
}

#[test]
fn every_alert_fires_on_its_series_and_none_on_a_healthy_cluster() {
    alerts::check(&fs::read_to_string(root().join("docs/operating/alerts.md")).expect("a document"));
}

#[test]
fn every_metric_has_a_help_line() {
    let mut paths = Vec::new();
    for name in SERVING {
        sources(&in_crate(name).join("src"), &mut paths);
    }
    let help = in_crate("kith-net/src/server/metric_help.rs");
    let described = fs::read_to_string(&help).expect("a source");
    paths.retain(|path| *path != help);
    let quoted = |text: String| {
        let parts: Vec<String> = text.split('"').map(str::to_owned).collect();
        parts.into_iter().filter(|part| metrics(part).contains(part) || part.starts_with("kith_live_"))
    };
    let used: BTreeSet<String> =
        paths.iter().flat_map(|path| quoted(fs::read_to_string(path).expect("a source"))).collect();
    assert!(60 < used.len());
    let missing: Vec<_> = used.iter().filter(|name| !described.contains(&format!("\"{name}\","))).collect();
    assert!(missing.is_empty(), "metric_help.rs lacks {missing:?}");
}

/// The metrics that a source names first in calls of `counter!`.
fn counters(source: &str) -> BTreeSet<String> {
    let calls = source.split("counter!(").skip(1);
    calls
        .filter_map(|call| call.trim_start().strip_prefix('"')?.split_once('"'))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// A counter that appears as 1 has not risen, as Prometheus sees it.
#[test]
fn every_counter_is_there_before_its_first_event() {
    let mut paths = Vec::new();
    for name in SERVING {
        sources(&in_crate(name).join("src"), &mut paths);
    }
    let (lists, paths): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.into_iter().partition(|path| path.ends_with("counts.rs"));
    assert_eq!(lists.len(), 4, "of every process, of nodes, of routers, of databases");
    let counts: String = lists.iter().map(|path| fs::read_to_string(path).expect("a source")).collect();
    let found: BTreeSet<String> =
        paths.iter().flat_map(|path| counters(&fs::read_to_string(path).expect("a source"))).collect();
    assert!(30 < found.len());
    // Those of Redis clients are made with their listener.
    let missing: Vec<&String> = found
        .iter()
        .filter(|name| !name.starts_with("kith_resp_") && !counts.contains(&format!("\"{name}\"")))
        .collect();
    assert!(missing.is_empty(), "counts.rs lacks {missing:?}");
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources can be read").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The codes in the first columns of the tables of `docs/errors.md`.
fn explained(document: &str) -> BTreeSet<&str> {
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" | "));
    rows.flat_map(|(codes, _)| codes.split(", ")).map(|code| code.trim_matches('`')).collect()
}

#[test]
fn every_error_code_is_explained() {
    let document = fs::read_to_string(root().join("docs/errors.md")).expect("the document");
    let codes: BTreeSet<&str> = ErrorCode::ALL.iter().map(|code| code.name()).collect();
    assert_eq!(explained(&document), codes);
}

/// The last part of `docs/errors.md`: what follows from codes by the code itself.
fn derived() -> String {
    let of = |take: &dyn Fn(ErrorCode) -> bool| {
        let codes = ErrorCode::ALL.iter().filter(|code| take(**code));
        codes.map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", ")
    };
    let retry = |code| FailureClass::of(code, StoreVersion(0), Epoch(0)).retry();
    let mut text = "| gRPC status | HTTP status | codes |\n|---|---|---|\n".to_owned();
    let classes: BTreeSet<(i32, u16, &str)> = ErrorCode::ALL
        .iter()
        .map(|code| code.class())
        .map(|class| (class.grpc(), class.http(), class.into()))
        .collect();
    for (grpc, http, name) in classes {
        text += &format!("| {name} ({grpc}) | {http} | {} |\n", of(&|code| code.class().grpc() == grpc));
    }
    text += "\n| a node answers with | the fan-out |\n|---|---|\n";
    text += &format!(
        "| {} | fails as a whole, because every node would give the same error |\n",
        of(&|code| retry(code) == Retry::FailQuery)
    );
    text += &format!("| {} | leaves these keys unanswered |\n", of(&|code| retry(code) == Retry::Never));
    text += "| any other code, and one that this release does not know | asks another replica |\n";
    text += "\n| | codes |\n|---|---|\n";
    text += &format!("| exit code 2 | {} |\n", of(&|code| code.exit_code() == 2));
    for prefix in ["NOAUTH", "NOPERM"] {
        text += &format!(
            "| Redis: `{prefix}` instead of `ERR` | {} |\n",
            of(&|code| error_prefix(code) == prefix)
        );
    }
    text
}

#[test]
fn what_follows_from_a_code_is_documented_as_it_is() {
    let path = root().join("docs/errors.md");
    let document = fs::read_to_string(&path).expect("the document");
    let (before, after) = document.split_once("<!-- derived -->\n").expect("a mark before the tables");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, format!("{before}<!-- derived -->\n{}", derived())).expect("written");
    } else {
        assert_eq!(after, derived(), "docs/errors.md differs; BLESS=1 rewrites it");
    }
}

/// The checks of Venice's tests, as 0008 lists them.
const CHECKS: [&str; 33] = [
    "RF-1", "RF-2", "RF-3", "RF-4", "RF-5", "RT-1", "RT-2", "RT-3", "RT-4", "RT-5", "PT-1", "RO-1", "RO-2",
    "RO-3", "RO-4", "RO-5", "RO-6", "HH-1", "HH-2", "ST-1", "ST-2", "ST-3", "ST-4", "ST-5", "ST-6", "CW-1",
    "QU-1", "QU-2", "OV-1", "MD-1", "RC-1", "ET-1", "CO-1",
];

#[test]
fn every_check_has_the_tests_that_are_named() {
    let document = fs::read_to_string(root().join("docs/design/0008-hedged-reads.md")).unwrap();
    let rows: Vec<Vec<&str>> = document
        .lines()
        .filter(|line| line.starts_with("| "))
        .map(|line| line.split(" | ").collect())
        .collect();
    for check in CHECKS {
        let row = rows.iter().find(|row| row[0].trim_start_matches("| ") == check);
        let tests = row.unwrap_or_else(|| panic!("{check} is not listed")).last().expect("a cell");
        let mut count = 0;
        for named in tests.split('`').filter(|cell| cell.contains("::")) {
            let (file, test) = named.split_once("::").expect("as filtered");
            let source = fs::read_to_string(in_crate(file));
            let source = source.unwrap_or_else(|error| panic!("{check}: {file}: {error}"));
            assert!(source.contains(&format!("fn {test}(")), "{check}: {file} has no {test}");
            count += 1;
        }
        assert!(0 < count, "{check} has no test");
    }
}

/// The tests that a document names as `crate/path/file.rs::function`.
fn tests_named_in(path: &str) -> Vec<(String, String)> {
    let document = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let named = document.split('`').filter(|text| text.contains(".rs::"));
    named
        .filter_map(|text| text.split_once("::"))
        .map(|(file, test)| (file.to_owned(), test.to_owned()))
        .collect()
}

#[test]
fn every_threat_has_the_tests_that_are_named() {
    let named = tests_named_in("docs/operating/threats.md");
    assert!(10 < named.len(), "{named:?}");
    for (file, test) in named {
        let source = fs::read_to_string(in_crate(&file));
        let source = source.unwrap_or_else(|error| panic!("{file}: {error}"));
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        let begins = format!("fn {test}(");
        let has_it = lines.windows(2).any(|pair| {
            let is_test = pair[0].starts_with("#[test]") || pair[0].starts_with("#[tokio::test");
            is_test && pair[1].trim_start_matches("async ").starts_with(&begins)
        });
        assert!(has_it, "{file} has no test {test}");
    }
}

/// The lines of the README's first block of commands under a heading, each without what it says of itself.
fn commands_under(heading: &str) -> Vec<String> {
    let readme = fs::read_to_string(root().join("README.md")).expect("there is a README");
    let (_, section) = readme.split_once(heading).expect("the heading");
    let (_, block) = section.split_once("```sh\n").expect("commands");
    let (block, _) = block.split_once("```").expect("their end");
    block.lines().map(|line| line.split(" #").next().unwrap_or(line).trim().to_owned()).collect()
}

#[test]
fn a_parquet_file_is_served_replaced_and_rolled_back_by_the_five_commands_of_the_readme() {
    let cluster = Cluster::start(&["--groups", "2", "--nodes", "1"]);
    let ready = cluster.ready();
    let commands = commands_under("## Derived data: a store of values");
    assert_eq!(commands.len(), 5, "{commands:?}");
    let run = |command: &str| {
        let mut shell = Command::new("bash");
        let command = format!("kith() {{ \"$binary\" \"$@\"; }}; {command}");
        shell.args(["-euo", "pipefail", "-c", &command]).current_dir(root());
        shell
            .env("binary", env!("CARGO_BIN_EXE_kith"))
            .env("KITH_ROUTER", ready["router"].as_str().expect("one"));
        let output = shell.output().expect("bash runs");
        assert!(output.status.success(), "{command}: {}", text(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let read = |command: &str| -> (Value, Value) {
        let printed = run(command);
        let lines: Vec<Value> =
            printed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        (lines[0]["value"].clone(), lines.last().expect("a footer")["footer"].clone())
    };
    run(&commands[0]);
    run(&commands[1]);
    let (first, counts) = read(&commands[2]);
    assert!(first["name"].is_string() && first["score"].is_number(), "{first}");
    assert_eq!((&counts["found"], &counts["absent"]), (&1_000.into(), &1.into()));
    run(&commands[3]);
    let (tomorrow, counts) = read(&commands[2]);
    assert_eq!(counts["found"], 1_001);
    assert_eq!(tomorrow["name"], first["name"]);
    assert_ne!(tomorrow["score"], first["score"]);
    run(&commands[4]);
    assert_eq!(read(&commands[2]).0, first);
}

/// The output of the runner of blocks for a document, and whether all is well.
fn blocks_of(document: &str) -> (String, bool) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("page.md");
    fs::write(&path, document).expect("written");
    let mut runner = Command::new("python3");
    runner.arg(root().join("scripts/docs.py")).arg(&path).env("KITH_BIN", env!("CARGO_BIN_EXE_kith"));
    let output = runner.output().expect("python3 runs");
    (text(&output), output.status.success())
}

#[test]
fn blocks_of_documents_run_in_order_and_keep_what_they_set() {
    let (output, succeeded) = blocks_of(
        "<!-- sh\nhidden=1\n-->\n\n```sh\nshown=2; echo a,b >f\n```\n\n```console\n$ echo $((hidden + shown)) \\\n> and\n12 …\n\
         $ cat f\na,b\n```\n\n```python\nx = open('f').read()\n```\n\n```python\nassert x == 'a,b\\n'\n```\n\n\
         ```toml file=\"t\"\na = 1\n```\n\n```sh\ngrep a t\n```\n\n```json\n{\"a\": 1}\n```\n\n```text\nno code\n```\n",
    );
    assert!(
        succeeded
            && output.contains(
                "7 blocks run (1 more that readers do not see), 0 skipped, 1 without code, 0 failed"
            ),
        "{output}"
    );
}

#[test]
fn the_first_block_that_fails_is_named_with_its_line_command_and_output() {
    let (printed, succeeded) = blocks_of("\n```sh\ntrue\n");
    assert!(!succeeded && printed.contains(":2: failed: ```sh") && printed.contains("no end"), "{printed}");
    for (document, line, command, output) in [
        ("```sh\ntrue\necho why; false\n```\n", ":3:", "false", "why"),
        ("\n```console\n$ true\n$ echo one\ntwo\n```\n", ":4:", "echo one", "one"),
        ("```python\nx = 1\nassert x == 2, 'why'\n```\n", ":3:", "assert x == 2", "why"),
        ("```json\n{\"a\": }\n```\n", ":2:", "{\"a\": }", "Expecting value"),
        ("```toml\na = \n```\n", ":2:", "a = ", "nvalid value"),
        ("```perl\n1\n```\n", ":1:", "```perl", "skip="),
        ("```\n1\n```\n", ":1:", "```", "skip="),
    ] {
        let (printed, succeeded) = blocks_of(&format!("{document}\n```sh\ntouch never\n```\n"));
        assert!(!succeeded && printed.contains("1 failed"), "{document}: {printed}");
        for part in [line, command, output] {
            assert!(printed.contains(part), "{document}: {part} is not in {printed}");
        }
    }
}

#[test]
fn a_block_is_skipped_only_for_a_reason_which_is_reported() {
    let (output, succeeded) = blocks_of("\n```sh skip=\"needs Spark\"\nfalse\n```\n");
    assert!(succeeded && output.contains(":2: needs Spark") && output.contains("0 blocks run"), "{output}");
    for without in [
        "```sh skip\nfalse\n```\n",
        "```sh skip=\"\"\nfalse\n```\n",
        "```sh skip=\" \"\nfalse\n```\n",
        "```sh later=\"x\"\nfalse\n```\n",
    ] {
        let (output, succeeded) = blocks_of(without);
        assert!(!succeeded && output.contains("why it cannot run"), "{without}: {output}");
    }
}

/// How Git hosts name a heading: its letters, digits and hyphens in lower case, spaces as hyphens.
fn anchor(heading: &str) -> String {
    let lower = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The lines of a document outside of its blocks.
fn prose(document: &str) -> impl Iterator<Item = &str> {
    let mut in_block = false;
    document.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        !in_block && !is_fence
    })
}

fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of documents can be read").flatten() {
        let path = entry.path();
        if path.is_dir() {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

#[test]
fn every_link_between_documents_leads_to_a_place_that_there_is() {
    let mut paths =
        ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md", "clients/python/README.md"]
            .map(|name| root().join(name))
            .to_vec();
    documents(&root().join("docs"), &mut paths);
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in paths {
        let document = fs::read_to_string(&path).expect("a document");
        let links = prose(&document).flat_map(|line| line.split("](").skip(1));
        for link in links.filter_map(|rest| rest.split(')').next()) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            if link.contains("://") {
                continue;
            }
            let target = if file.is_empty() { path.clone() } else { path.with_file_name(file) };
            let is_there = match heading {
                "" => target.exists(),
                heading => fs::read_to_string(&target).is_ok_and(|text| {
                    prose(&text).any(|line| line.starts_with('#') && anchor(line) == heading)
                }),
            };
            if !is_there {
                wrong.push(format!("{}: {link}", path.display()));
            }
            count += 1;
        }
    }
    assert!(100 < count);
    assert!(wrong.is_empty(), "{wrong:#?}");
}
