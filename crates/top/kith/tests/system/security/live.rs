//! A live graph whose rows are in a database process, with TLS between all processes.

use super::{bearing, rights, token_file};
use super::{
    secured::{Papers, SecuredCluster, must, refused, with},
    support::cluster::{http_get, metric_at, run_lines},
};
use kith_client::security::{Dialer, SecurityOptions};
use kith_database::{
    DatabaseError, DatabaseProcesses, GraphIdentity, RemoteDatabase, RemoteOptions, RemoteTarget,
};
use kith_net::frames::Frames;
use kith_types::PartitionCount;
use serde_json::json;
use std::{fs, sync::Arc};
use tokio::runtime::Runtime;

const TYPES: &str = "open = true\n\n[object.person]\nfields = { name = \"text\" }\n\n[association.friend]\nsymmetric = true\n";

/// Opens the graph in the database process at `addr` with these papers, or without any. Returns the error of the process.
fn open(cluster: &SecuredCluster, addr: &str, papers: Option<&Papers>) -> DatabaseError {
    let options = SecurityOptions {
        ca: Some(cluster.authority.pem.clone()),
        cert: papers.map(|papers| papers.cert.clone()),
        key: papers.map(|papers| papers.key.clone()),
        token: None,
    };
    let addr = addr.to_owned();
    let locate = Arc::new(move |_| Some(addr.clone()));
    let frames = Arc::new(Frames::new(Dialer::open(options).expect("the files are whole"), true));
    let target = RemoteTarget {
        database: 0,
        graph: "social".to_owned(),
        processes: Arc::new(DatabaseProcesses::new(locate, frames)),
        options: RemoteOptions::default(),
    };
    let identity =
        GraphIdentity { graph: 1, partitions: PartitionCount::new(24).expect("24 is a valid count") };
    let opened = Runtime::new().expect("a runtime").block_on(RemoteDatabase::open(target, identity));
    opened.err().expect("the request is refused")
}

/// Creates the graph, writes objects and associations, and reads some of them.
fn use_graph(cluster: &SecuredCluster, ops: &Papers) {
    let types = cluster.folder.path().join("types.toml");
    fs::write(&types, TYPES).expect("written");
    let types = types.to_str().expect("UTF-8");
    must(with(cluster.kith(&["schema", "apply", types, "--graph", "social"]), ops));
    let object = |id: u64| json!({"op": "object_add", "graph": "social", "type": "person", "id": id, "data": {"name": "Ada"}});
    let friends =
        |id2: u64| json!({"op": "assoc_add", "graph": "social", "type": "friend", "id1": 1, "id2": id2});
    // With this number of associations, some have their ends in different partitions with different leaders.
    let mut lines: Vec<_> = (1..20).map(object).chain((2..20).map(friends)).collect();
    lines.push(json!({"op": "object_get", "graph": "social", "id": 1, "critical": true}));
    lines.push(json!({"op": "assoc_count", "graph": "social", "type": "friend", "id1": 1, "critical": true}));
    let mut run = with(cluster.kith(&["run", "--input", "-", "--concurrency", "1"]), ops);
    run.env_remove("KITH_WHO");
    let (answers, _) = run_lines(run, &lines, lines.len(), || {});
    let failed: Vec<_> = answers.iter().filter(|answer| answer.get("error").is_some()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(answers[answers.len() - 2]["object"]["data"]["name"], "Ada");
    assert_eq!(answers[answers.len() - 1]["count"], 18);
}

/// Writes objects of types that do not exist, through a router and directly. The right to write suffices, and is needed.
fn add_types(cluster: &SecuredCluster) {
    let (writer, reader) =
        (token_file(cluster, "typist", "may-write"), token_file(cluster, "viewer", "may-read"));
    for (label, way) in [("cat", &[][..]), ("dog", &["--direct"])] {
        let add = |label| [&["object", "add", "--graph", "social", "--type", label], way].concat();
        must(bearing(cluster.kith(&add(label)), &writer));
        let (code, message, _) = refused(bearing(cluster.kith(&add("bird")), &reader));
        assert_eq!(code, "permission_denied", "{way:?}: {message}");
    }
    let types = must(bearing(cluster.kith(&["schema", "show", "--graph", "social"]), &reader));
    assert!(types.contains("[object.dog]") && !types.contains("bird"), "{types}");
}

/// A traversal that changes the graph needs the right to write, also if its caller does not say that it writes.
fn traverse(cluster: &SecuredCluster, ops: &Papers) {
    let token = token_file(cluster, "viewer", "may-read");
    let reading = |arguments: &[&str]| bearing(cluster.kith(arguments), &token);
    let gremlin = |text: &'static str| ["gremlin", text, "--graph", "social"];
    let count = gremlin("g.V(1).out('friend').count()");
    assert_eq!(must(reading(&count)).trim(), "18");
    let change = gremlin("g.V(1).property('name', 'Eve').values('name')");
    for more in [&[][..], &["--direct"]] {
        let (code, ..) = refused(reading(&[&change[..], more].concat()));
        assert_eq!(code, "permission_denied", "{more:?}");
    }
    assert_eq!(must(with(cluster.kith(&change), ops)).trim(), "Eve");
    let explained = must(reading(&["explain", "--gremlin", change[1], "--graph", "social"]));
    assert!(explained.contains("one write for each change"), "{explained}");
}

#[test]
fn a_database_process_serves_its_cluster_over_tls_and_counts_what_it_does() {
    let subjects =
        [("typist", "may-write", "write = [\"social\"]"), ("viewer", "may-read", "read = [\"social\"]")];
    let mut cluster = SecuredCluster::start(|folder| rights(folder, &subjects));
    let papers = cluster.papers.clone();
    cluster.spawn(&["database", "--id", "0"], &papers);
    let [addr, http] = cluster.database(0);
    let count = |metric: &str| metric_at(&http, metric).unwrap_or_else(|| panic!("there is no {metric}"));
    // All metrics exist from the start.
    for metric in ["calls_total{call=\"commit\"}", "faults_total{code=\"database_full\"}"] {
        assert!(0.0 <= count(&format!("kith_database_{metric}")));
    }
    let ops = cluster.authority.papers("ops");
    use_graph(&cluster, &ops);
    traverse(&cluster, &ops);
    add_types(&cluster);
    // Replicas follow logs and build lists on their own.
    for call in ["create", "open", "begin_term", "commit", "read", "points", "changes", "scan_objects"] {
        let metric = format!("kith_database_calls_total{{call=\"{call}\"}}");
        cluster.wait_until(&metric, || 1.0 <= count(&metric));
    }
    assert!(1.0 <= count("kith_server_connections_total{protocol=\"framed\"}"));
    let printed = must(with(cluster.kith(&["cluster", "status", "-o", "json"]), &ops));
    let status: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(status["databases"][0]["state"], "up", "{printed}");
    assert_eq!(status["live_graphs"][0]["leaderless"], 0, "{printed}");

    // The process answers only processes of the cluster, and neither administrators nor clients without a certificate.
    let before = count("kith_server_refused_total{code=\"permission_denied\"}");
    let denied = open(&cluster, &addr, Some(&ops));
    assert!(matches!(&denied, DatabaseError::Refused { reason } if reason.contains("ops")), "{denied}");
    assert_eq!(count("kith_server_refused_total{code=\"permission_denied\"}"), before + 1.0);
    // Where subjects have tokens, a client without a certificate is heard, and then refused as unknown.
    let unknown = || metric_at(&http, "kith_server_refused_total{code=\"unauthenticated\"}").unwrap_or(0.0);
    let before = unknown();
    let stranger = open(&cluster, &addr, None);
    assert!(stranger.to_string().to_lowercase().contains("certificate"), "{stranger}");
    assert_eq!(unknown(), before + 1.0);
    let own = open(&cluster, &addr, Some(&papers));
    assert!(matches!(own, DatabaseError::OtherGraph { .. }), "{own}");
    assert_eq!(count("kith_database_faults_total{code=\"database_other_graph\"}"), 1.0);

    must(with(cluster.kith(&["graph", "drop", "social", "--yes"]), &ops));
    assert_eq!(count("kith_database_calls_total{call=\"drop\"}"), 1.0);
    let (code, ..) = refused(with(cluster.kith(&["graph", "describe", "social"]), &ops));
    assert_eq!(code, "unknown_graph");
    assert!(http_get(&http, "/readyz").contains("200 OK"));
}

/// Types that take about 900 KB.
fn large_types(cluster: &SecuredCluster) -> String {
    let fields: String =
        (0..200).map(|field| format!("a_field_with_a_long_name_{field} = \"text\"\n")).collect();
    let types: String = (0..60).map(|number| format!("[object.type_{number}.fields]\n{fields}")).collect();
    let path = cluster.folder.path().join("large.toml");
    fs::write(&path, types).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn types_of_one_subject_are_bounded_and_disturb_nobody_else() {
    let subjects = [
        ("tenant", "may-create", "admin = [\"tenant*\"]"),
        ("ada", "may-write", "read = [\"social\"]\nwrite = [\"social\"]"),
        ("bob", "may-write-too", "read = [\"social\"]\nwrite = [\"social\"]"),
    ];
    let mut cluster = SecuredCluster::start(|folder| rights(folder, &subjects));
    let papers = cluster.papers.clone();
    cluster.spawn(&["database", "--id", "0"], &papers);
    cluster.database(0);
    let ops = cluster.authority.papers("ops");
    use_graph(&cluster, &ops);
    let [tenant, ada, bob] = [("tenant", "may-create"), ("ada", "may-write"), ("bob", "may-write-too")]
        .map(|(name, token)| token_file(&cluster, name, token));

    let large = large_types(&cluster);
    let mut created = 0;
    let error = loop {
        let name = format!("tenant-{created}");
        let apply = bearing(cluster.kith(&["schema", "apply", &large, "--graph", &name]), &tenant);
        let output = { apply }.output().expect("kith runs");
        if !output.status.success() {
            break String::from_utf8_lossy(&output.stderr).into_owned();
        }
        created += 1;
        assert!(created < 41, "there is no bound");
        let read = ["object", "get", "1", "--graph", "social", "-o", "json"];
        for way in [&[][..], &["--direct"]] {
            let printed = must(bearing(cluster.kith(&[&read[..], way].concat()), &ada));
            assert!(printed.contains("Ada"), "{printed}");
        }
    };
    assert!(error.contains("out_of_range") && error.contains("one subject may have 4194304"), "{error}");
    assert!((3..8).contains(&created), "{created}");
    let runtime = Runtime::new().expect("a runtime");
    let all = runtime.block_on(cluster.metadata().read("")).expect("the metadata is here").entries;
    let bytes: usize = all.iter().map(|entry| entry.value.len()).sum();
    assert!(bytes < 64 << 10, "every process reads {bytes} bytes");
    let status = must(with(cluster.kith(&["cluster", "status", "-o", "json"]), &ops));
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    let is_up = |node: &serde_json::Value| node["state"] == "up";
    assert!(status["nodes"].as_array().expect("nodes").iter().all(is_up), "{status}");
    let shown = must(bearing(cluster.kith(&["schema", "show", "--graph", "tenant-0"]), &tenant));
    assert!(shown.contains("type_59"), "{} bytes", shown.len());
    must(bearing(cluster.kith(&["graph", "drop", "tenant-0", "--yes"]), &tenant));
    must(bearing(cluster.kith(&["schema", "apply", &large, "--graph", "tenant-late"]), &tenant));
    each_writes_under_its_own_names(&cluster, [&ada, &bob]);
}

/// Two subjects use the same `write_id`, through a router and directly: each gets its own write done, and a repeat its own
/// outcome.
fn each_writes_under_its_own_names(cluster: &SecuredCluster, subjects: [&std::path::Path; 2]) {
    for (way, name) in [(&[][..], "w-1"), (&["--direct"][..], "w-2")] {
        let write = |subject: &std::path::Path, line: serde_json::Value| {
            let run = [&["run", "--input", "-"], way].concat();
            let mut run = bearing(cluster.kith(&run), subject);
            run.env_remove("KITH_WHO");
            let (answers, _) = run_lines(run, &[line], 1, || {});
            answers[0].clone()
        };
        let add = |data: &str| json!({"op": "object_add", "graph": "social", "type": "person", "write_id": name, "data": {"name": data}});
        let [first, second] = subjects.map(|subject| write(subject, add("Eve")));
        assert!(first["id"].is_u64() && second["id"].is_u64(), "{first} {second}");
        assert_ne!(first["id"], second["id"], "two objects: {first} {second}");
        assert_eq!(write(subjects[0], add("Eve"))["id"], first["id"], "a repeat has the first outcome");
        let other = write(subjects[1], add("Adam"));
        assert_eq!(other["error"]["code"], "write_id_taken", "{other}");

        // The same name for different writes of two subjects.
        let name = format!("{name}-update");
        let update = |data: &str| json!({"op": "object_update", "graph": "social", "id": 2, "write_id": name, "data": {"name": data}});
        for (subject, data) in subjects.into_iter().zip(["of ada", "of bob"]) {
            let written = write(subject, update(data));
            assert!(written.get("error").is_none(), "{written}");
        }
        let read = json!({"op": "object_get", "graph": "social", "id": 2, "critical": true});
        assert_eq!(write(subjects[0], read)["object"]["data"]["name"], "of bob");
    }
}
