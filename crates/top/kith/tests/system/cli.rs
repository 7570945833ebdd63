//! The binary as scripts see it, without a cluster: exit codes, what goes to which stream, what is
//! checked before anything is asked for.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

/// `kith` with these arguments, in a folder where no cluster left a ready file.
fn kith(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kith"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env_remove("KITH_ROUTER")
        .env_remove("XDG_RUNTIME_DIR")
        .output()
        .expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is text")
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stdout)))
}

#[test]
fn without_a_cluster_every_client_command_says_how_to_start_one() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("edges.csv"), "1,2\n").unwrap();
    for arguments in [
        "graph connections 1 --graph v",
        "graph list",
        "explain network 1 --graph v",
        "cluster status",
        "store rollback v",
        "run --input edges.csv",
        "load graph edges.csv --graph v",
    ] {
        let output = kith(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments}");
        let stderr = text(&output.stderr);
        assert!(
            stderr.starts_with("error[no_cluster]: ") && stderr.contains("\nhelp: start one with `kith dev`"),
            "{stderr}"
        );
        assert!(output.stdout.is_empty(), "{arguments}");
    }
}

#[test]
fn with_json_output_an_error_is_an_object_too() {
    let folder = tempfile::tempdir().unwrap();
    let output = kith(folder.path(), "graph describe v -o json --router 127.0.0.1:1");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json(&output)["error"]["code"], "unreachable");
    assert!(text(&output.stderr).starts_with("error[unreachable]: "));
}

#[test]
fn usage_errors_exit_with_2() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        "",
        "grph list",
        "graph connections 1",
        "graph connections one --graph v",
        "graph list -o yaml",
        "graph list --router a:1 --ready-file b",
        "run",
        "run --input x --concurrency 0",
        "load graph --graph v",
        "load graph x.csv --graph Village",
        "load graph x.csv --graph v --header --no-header",
        "load graph --members x.csv --graph v --directed",
        "load graph x.csv --graph v --columns created_ms:date",
        "load graph x.csv --graph v --edge-type a/b --dry-run",
        "graph list --direct",
        "cluster status --direct",
        "load graph x.csv --graph v --direct",
        "dev --direct",
        "graph list --transport grpc",
        "load graph x.csv --graph v --transport framed",
        "sim fan-out --list --direct",
        "graph path 1 2 --graph v --max -1",
    ] {
        let output = kith(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments}");
    }
}

#[test]
fn a_dry_run_tells_what_a_load_would_drop() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("edges.csv"), "src,dst\n1,2\n3,3\nx,4\n5,-6\n7\n").unwrap();
    fs::write(folder.path().join("entities.csv"), "member,kind,entity\n1,school,9\n").unwrap();
    let arguments = "load graph edges.csv --entities entities.csv --graph v --dry-run --max-errors 3 -o json";
    let output = kith(folder.path(), arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let summary = json(&output);
    assert_eq!(summary["version"], serde_json::Value::Null);
    let dropped = summary["dropped"].as_array().unwrap();
    let reasons: Vec<&str> = dropped.iter().map(|dropped| dropped["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["id not a number", "negative id", "wrong column count"]);
    assert_eq!(dropped[0]["first_lines"][0], "edges.csv: line 4: src is not a whole number: \"x,4\"");
    let files = summary["files"].as_array().unwrap();
    assert_eq!(
        (&files[0]["rows"], &files[0]["dropped"], &files[0]["self_loops"]),
        (&5.into(), &3.into(), &1.into())
    );
    assert_eq!((&files[1]["role"], &files[1]["rows"]), (&"entities".into(), &1.into()));
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "a dry run writes nothing");
}

#[test]
fn edges_are_read_from_json_lines_and_times_as_rfc_3339() {
    let folder = tempfile::tempdir().unwrap();
    let lines = [
        r#"{"since":"2025-12-17T19:33:20Z","dst":2,"src":1}"#,
        r#"{"src":"3","dst":"4","since":1766000000000,"more":[1]}"#,
        "",
        r#"{"src":-5,"dst":6,"since":1}"#,
        r#"{"src":7,"dst":8,"since":"yesterday"}"#,
        r#"{"src":9}"#,
        "not JSON",
    ];
    fs::write(folder.path().join("edges.jsonl"), lines.join("\n")).unwrap();
    fs::write(folder.path().join("schools.jsonl"), r#"{"member":1,"kind":"school","entity":9}"#).unwrap();
    let load = "load graph edges.jsonl --entities schools.jsonl --graph v --dry-run --columns since:time";
    let output = kith(folder.path(), &format!("{load} --max-errors 4 -o json"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let summary = json(&output);
    assert_eq!((&summary["files"][0]["rows"], &summary["files"][0]["dropped"]), (&6.into(), &4.into()));
    assert_eq!(summary["files"][1]["rows"], 1);
    let dropped = summary["dropped"].as_array().unwrap();
    let first = |reason: &str| {
        let dropped =
            dropped.iter().find(|dropped| dropped["reason"] == reason).unwrap_or_else(|| panic!("{summary}"));
        dropped["first_lines"][0].as_str().unwrap().to_owned()
    };
    assert_eq!(first("negative id"), "edges.jsonl: line 4: src is negative: \"-5,6,1\"");
    assert!(first("bad column value").starts_with("edges.jsonl: line 5: since is not a time from 1970 on"));
    assert_eq!(first("empty id"), "edges.jsonl: line 6: dst is empty: \"9,,\"");
    assert!(first("not a JSON object").starts_with("edges.jsonl: line 7: "));
    let output = kith(folder.path(), load);
    assert!(
        text(&output.stderr).contains("error[bad_lines]: edges.jsonl has 4 bad lines"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn wrong_lines_are_shown_with_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..20).map(|line| format!("{line},x{line}\n")).collect();
    fs::write(folder.path().join("edges.csv"), lines).unwrap();
    let output = kith(folder.path(), "load graph edges.csv --graph v --dry-run --max-errors 15 --no-header");
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert_eq!(stderr.lines().filter(|line| line.starts_with("edges.csv: line ")).count(), 10, "{stderr}");
    assert!(stderr.contains("error[bad_lines]: ") && stderr.contains("help: "), "{stderr}");
}

#[test]
fn a_flag_that_is_no_number_is_reported_with_what_was_expected() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (
            "store swap s one",
            "invalid value 'one' for '<VERSION>': expected a whole number in decimal digits",
        ),
        (
            "load graph e.csv --graph v --max-errors few",
            "invalid value 'few' for '--max-errors <N>': expected a whole",
        ),
        (
            "get s 1 --deadline-ms 0",
            "invalid value '0' for '--deadline-ms <MS>': expected a number of 1 or more",
        ),
    ] {
        let output = kith(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(text(&output.stderr).contains(expected), "{arguments}: {}", text(&output.stderr));
    }
}

/// The output of `kith` where its standard streams are a terminal.
fn on_a_terminal(folder: &Path, arguments: &str, environment: &[(&str, &str)]) -> String {
    let spawn = "import pty, sys; pty.spawn(sys.argv[1:])";
    let output = Command::new("python3")
        .args(["-c", spawn, env!("CARGO_BIN_EXE_kith")])
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env_remove("KITH_ROUTER")
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .envs(environment.iter().copied())
        .output()
        .expect("python3 runs");
    text(&output.stdout)
}

#[test]
fn errors_are_coloured_on_a_terminal_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let colored = "\u{1b}[31m\u{1b}[1merror[no_cluster]\u{1b}[0m: ";
    let output = on_a_terminal(folder.path(), "graph list", &[]);
    assert!(output.contains(colored) && output.contains("\u{1b}[1mhelp\u{1b}[0m: "), "{output:?}");
    let output = on_a_terminal(folder.path(), "graph list", &[("NO_COLOR", "1")]);
    assert!(output.contains("error[no_cluster]: ") && !output.contains('\u{1b}'), "{output:?}");
    let piped = text(&kith(folder.path(), "graph list").stderr);
    assert!(piped.starts_with("error[no_cluster]: ") && !piped.contains('\u{1b}'), "{piped:?}");
}

#[test]
fn completions_are_printed_for_every_shell() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = kith(folder.path(), &format!("completions {shell}"));
        assert_eq!(output.status.code(), Some(0));
        let script = text(&output.stdout);
        assert!(script.contains("connections") && script.contains("fan-out"), "{shell}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("man1")).unwrap();
    let output = kith(folder.path(), "man man1");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for page in ["kith.1", "kith-node.1", "kith-store-push.1", "kith-graph-path.1"] {
        let page = fs::read_to_string(folder.path().join("man1").join(page)).expect(page);
        assert!(page.contains(".TH kith") && page.contains("router"), "{page}");
    }
    let output = kith(folder.path(), "man absent");
    assert!(text(&output.stderr).starts_with("error[cannot_write]: "), "{}", text(&output.stderr));
}
