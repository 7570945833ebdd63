//! Clusters of processes over TLS: who shows a certificate or a token is served as far as their rights go, and whoever is not is told why.

mod support;

#[path = "support/offers.rs"]
mod offers;
#[path = "support/secured.rs"]
mod secured;

use kith_types::ErrorCode;
use offers::Attacker;
use secured::{Authority, Papers, Secured, access, fill, must, refused, with};
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The ways a read travels.
const WAYS: [&[&str]; 4] =
    [&[], &["--transport", "grpc"], &["--direct"], &["--direct", "--transport", "grpc"]];

/// Writes a file of rights for these subjects (name, token, rights); the flags that name it.
fn rights(folder: &Path, subjects: &[(&str, &str, &str)]) -> Vec<String> {
    let file = folder.join("access.toml");
    fs::write(&file, access(subjects)).expect("written");
    vec!["--access".to_owned(), file.to_str().expect("UTF-8").to_owned()]
}

/// A file with a token.
fn token_file(cluster: &Secured, name: &str, token: &str) -> PathBuf {
    let path = cluster.folder.path().join(format!("{name}.token"));
    fs::write(&path, format!("{token}\n")).expect("written");
    path
}

fn bearing(mut command: Command, token: &Path) -> Command {
    command.arg("--token-file").arg(token);
    command
}

fn assert_reads(command: impl Fn(&[&str]) -> Command, store: &str, seven: &str) {
    for way in WAYS {
        let told = must(command(&[&["get", store, "7"], way].concat()));
        assert!(told.contains(&format!("value 7 of {store}")), "{way:?}: {told}");
        let told = must(command(&[&streamed(store, seven)[..], &["-o", "json"], way].concat()));
        assert!(told.contains(&format!("value 7 of {store}")) && told.contains("footer"), "{way:?}: {told}");
    }
}

/// Reads the keys of a file as a stream.
fn streamed<'a>(store: &'a str, keys: &'a str) -> [&'a str; 5] {
    ["mget", store, "--keys-from", keys, "--stream"]
}

/// A file with the key 7.
fn seven(cluster: &Secured) -> String {
    let path = cluster.folder.path().join("seven");
    fs::write(&path, "7\n").expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn a_cluster_over_tls_answers_who_shows_a_certificate_and_tells_the_others_why_not() {
    let mut cluster = Secured::start(|_| Vec::new());
    let own = cluster.authority.papers("ada");
    fill(&cluster, "pages", 3_000, &own);
    assert_reads(|arguments| with(cluster.kith(arguments), &own), "pages", &seven(&cluster));
    // What goes from the command to nodes, from node to node and in long messages.
    let exported = must(with(cluster.kith(&["store", "export", "pages"]), &own));
    assert_eq!(exported.lines().count(), 3_000);
    let verified = must(with(cluster.kith(&["store", "verify", "pages", "--deep", "-o", "json"]), &own));
    assert!(verified.contains("\"ok\":true"), "{verified}");
    must(with(cluster.kith(&["store", "where", "pages", "7"]), &own));
    must(with(cluster.kith(&["cluster", "status"]), &own));

    let read = ["get", "pages", "7"];
    assert_tells_strangers_why(&cluster, &own, &read);

    // A router whose certificate has expired, and then has another.
    let late = cluster.authority.expired("late");
    cluster.spawn(&["router", "--id", "1"], &late);
    let addr = cluster.router(1);
    let (code, message, _) = refused(with(cluster.kith_at(&addr, &read), &own));
    assert!(code == "tls_failed" && message.contains("its certificate has expired"), "{code}: {message}");
    cluster.authority.papers("late");
    cluster.wait_until("the new certificate is taken up", || {
        with(cluster.kith_at(&addr, &read), &own).output().expect("kith runs").status.success()
    });
}

/// Whoever shows no certificate, an expired one or that of another authority is told so, and so is whoever does not believe the
/// cluster, or speaks no TLS.
fn assert_tells_strangers_why(cluster: &Secured, own: &Papers, read: &[&str]) {
    let (code, message, help) = refused(cluster.kith(read));
    assert_eq!(code, "tls_failed");
    assert!(message.contains("asks for a certificate") && help.contains("--tls-cert"), "{message}; {help}");

    let expired = cluster.authority.expired("eve");
    let (code, message, _) = refused(with(cluster.kith(read), &expired));
    assert!(code == "tls_failed" && message.contains("has expired"), "{code}: {message}");

    let stranger = Authority::new(cluster.folder.path(), "other");
    let (code, message, _) = refused(with(cluster.kith(read), &stranger.papers("mallory")));
    assert!(code == "tls_failed" && message.contains("does not believe"), "{code}: {message}");

    let mut wary = support::cluster::kith(read);
    wary.args(["--router", &cluster.router(0), "--tls-ca"]).arg(&stranger.pem);
    let (code, message, help) = refused(with(wary, own));
    assert!(code == "tls_failed" && message.contains("not from an authority"), "{code}: {message}");
    assert!(help.contains("--tls-ca"), "{help}");

    for transport in ["framed", "grpc"] {
        let mut plain = support::cluster::kith(read);
        plain.args(["--router", &cluster.router(0), "--transport", transport]);
        let (code, message, help) = refused(plain);
        assert!(
            code == "tls_required" && message.contains("TLS only") && help.contains("--tls-ca"),
            "{code}"
        );
    }
}

/// A store of records that `reader` may not read: whoever asks nodes about it asks them for its schema first.
fn assert_hides_records(cluster: &Secured, ops: &Papers, reader: &Path, seven: &str) {
    let records = cluster.folder.path().join("records.jsonl");
    fs::write(&records, "{\"key\":7,\"name\":\"seven\"}\n").expect("written");
    let records = records.to_str().expect("UTF-8");
    must(with(cluster.kith(&["store", "create", "hidden", "--key", "id", "--value", "record"]), ops));
    must(with(cluster.kith(&["store", "push", "hidden", records, "--key-field", "key"]), ops));
    let compute = ["compute", "hidden", "--keys-from", seven, "--project", "name"];
    for way in WAYS {
        for arguments in [[&compute[..], way].concat(), [&compute[..], &["--stream"], way].concat()] {
            let (code, message, _) = refused(bearing(cluster.kith(&arguments), reader));
            assert_eq!(code, "permission_denied", "{arguments:?}: {message}");
        }
    }
}

/// Every way in refuses `reader` of `pages` another store, and strangers everything.
fn assert_refuses_secrets_and_strangers(cluster: &Secured, reader: &Path, seven: &str) {
    for way in WAYS {
        let read = |store| [&["get", store, "7"], way].concat();
        let (code, message, help) = refused(bearing(cluster.kith(&read("secrets")), reader));
        assert_eq!(code, "permission_denied", "{way:?}: {message}");
        assert!(
            message.contains("reader may not read store \"secrets\"") && help.contains("--access"),
            "{message}"
        );
        let (code, ..) =
            refused(bearing(cluster.kith(&[&streamed("secrets", seven)[..], way].concat()), reader));
        assert_eq!(code, "permission_denied", "{way:?}: as a stream");
        let (code, ..) =
            refused(bearing(cluster.kith(&read("pages")), &token_file(cluster, "wrong", "guess")));
        assert_eq!(code, "unauthenticated", "{way:?}");
        let (code, _, help) = refused(cluster.kith(&read("pages")));
        assert!(code == "unauthenticated" && help.contains("--token-file"), "{way:?}: {code}");
        let stranger = cluster.authority.papers("stranger");
        let (code, message, _) = refused(with(cluster.kith(&read("pages")), &stranger));
        assert!(code == "permission_denied" && message.contains("CN=stranger"), "{way:?}: {message}");
    }
}

/// What needs a right that `reader` of `pages` does not have is refused by the right's name.
fn assert_only_reads_pages(cluster: &Secured, reader: &Path, push: &[&str]) {
    for (arguments, told) in [
        (&["store", "verify", "secrets"][..], "read store \"secrets\""),
        (&["store", "where", "secrets", "7"], "read store \"secrets\""),
        (push, "write store \"pages\""),
        (&["store", "drop", "pages", "--yes"], "admin store \"pages\""),
        (&["store", "alter", "pages", "--read-quota-keys", "1"], "admin store \"pages\""),
        (&["cluster", "fetch-rate", "1MiB/s"], "administer the cluster"),
        (&["cluster", "drain-group", "1"], "administer the cluster"),
    ] {
        let (code, message, _) = refused(bearing(cluster.kith(arguments), reader));
        assert!(code == "permission_denied" && message.contains(told), "{arguments:?}: {code}: {message}");
    }
}

#[test]
fn tokens_and_certificates_have_the_rights_that_the_file_gives_them() {
    let cluster = Secured::start(|folder| rights(folder, &[("reader", "reader", "read = [\"pages*\"]")]));
    let ops = cluster.authority.papers("ops");
    fill(&cluster, "pages", 100, &ops);
    fill(&cluster, "secrets", 100, &ops);
    let reader = token_file(&cluster, "reader", "reader");
    let seven = seven(&cluster);
    assert_reads(|arguments| bearing(cluster.kith(arguments), &reader), "pages", &seven);
    assert_refuses_secrets_and_strangers(&cluster, &reader, &seven);
    assert_hides_records(&cluster, &ops, &reader, &seven);
    let rows = cluster.folder.path().join("pages.csv");
    let push = ["store", "push", "pages", rows.to_str().expect("UTF-8")];
    assert_only_reads_pages(&cluster, &reader, &push);
    let writer = cluster.authority.papers("writer");
    must(with(cluster.kith(&push), &writer));
    let (code, ..) = refused(with(cluster.kith(&["store", "drop", "pages", "--yes"]), &writer));
    assert_eq!(code, "permission_denied");
    // The history has who it was, not who they said they were.
    let mut history = with(cluster.kith(&["store", "history", "pages", "-o", "json"]), &writer);
    history.env("KITH_WHO", "somebody else");
    let history = must(history);
    assert!(history.contains("\"who\":\"writer\""), "{history}");

    // A token that is taken back works no longer, and another one does; over connections that are open, too.
    let other = token_file(&cluster, "other", "other");
    let taken_up = access(&[("other", "other", "read = [\"pages\"]")]);
    fs::write(cluster.folder.path().join("access.toml"), taken_up).expect("written");
    let read = ["get", "pages", "7"];
    cluster.wait_until("the new rights are taken up", || {
        bearing(cluster.kith(&read), &other).output().expect("kith runs").status.success()
    });
    let (code, ..) = refused(bearing(cluster.kith(&read), &reader));
    assert_eq!(code, "unauthenticated");
}

/// Every file below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files_below(&entry.path()))
        } else {
            found.push(entry.path())
        }
    }
    found.sort();
    found
}

/// Copies the files of a version to another folder.
fn copy_files(version: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for file in files_below(version) {
        fs::copy(&file, to.join(file.file_name().expect("a name"))).expect("copied");
    }
}

/// The folder of the version in a store's part of an object store.
fn version_of(objects: &Path, store: &str) -> PathBuf {
    let files = files_below(&objects.join(store));
    let manifest = files.iter().find(|path| path.ends_with("manifest.json")).expect("a version");
    manifest.parent().expect("a folder").to_owned()
}

/// Pushes that would have nodes fetch a version of another store, or write outside their folder: by which field, and the code
/// that refuses it. The places are another store's version, that of the store itself, and a copy elsewhere.
fn ways_to_another_store(
    folder: &Path,
    [secret, own, elsewhere]: [&Path; 3],
) -> Vec<(&'static str, &'static str, serde_json::Value, ErrorCode)> {
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let detour = format!("{}/../../../secrets", text(own));
    vec![
        ("a1", "url", json!(text(secret)), ErrorCode::UrlNotAllowed),
        ("a2", "url", json!(format!("file://{}", text(secret))), ErrorCode::UrlNotAllowed),
        ("a3", "url", json!(detour), ErrorCode::UrlNotAllowed),
        ("a4", "url", json!(text(elsewhere)), ErrorCode::UrlNotAllowed),
        ("a5", "url", json!("s3://bucket/secrets/values/7"), ErrorCode::UrlNotAllowed),
        ("a6", "url", json!("/proc/self/fd"), ErrorCode::UrlNotAllowed),
        ("a7", "name", json!(text(&folder.join("deep"))), ErrorCode::BadRequest),
        ("a8", "name", json!("../secrets/values"), ErrorCode::BadRequest),
        ("a9", "name", json!(".."), ErrorCode::BadRequest),
        ("a10", "name", json!(""), ErrorCode::BadRequest),
    ]
}

#[test]
fn the_right_to_write_one_store_reaches_no_other() {
    let mut builds = PathBuf::new();
    let cluster = Secured::start(|folder| {
        builds = folder.join("builds");
        rights(folder, &[("ads", "ads", "read = [\"pages\", \"scores\"]\nwrite = [\"scores\"]")])
    });
    let ops = cluster.authority.papers("ops");
    for store in ["pages", "scores", "secrets"] {
        fill(&cluster, store, 10, &ops);
    }
    let token = token_file(&cluster, "ads", "ads");
    let ads = Attacker::new(&cluster, None, Some(&token));
    let objects = cluster.folder.path().join("objects");
    let (secret, own) = (version_of(&objects, "secrets"), version_of(&objects, "scores"));
    let elsewhere = builds.join("secrets");
    copy_files(&secret, &elsewhere);
    let before = files_below(cluster.folder.path());
    let secrets = ads.component("secrets");
    for (push, field, value, code) in
        ways_to_another_store(cluster.folder.path(), [&secret, &own, &elsewhere])
    {
        let refused = ads.push("scores", push, &secrets, &[(field, value.clone())]).expect_err("refused");
        assert_eq!(refused.code(), code, "{field} {value}: {refused}");
    }
    let refused = ads.push("secrets", "a11", &secrets, &[]).expect_err("it may not write it");
    assert_eq!(refused.code(), ErrorCode::PermissionDenied);

    assert_eq!(files_below(cluster.folder.path()), before, "nothing came and nothing went");
    assert!(must(bearing(cluster.kith(&["get", "scores", "3"]), &token)).contains("value 3 of scores"));
    assert!(must(with(cluster.kith(&["get", "secrets", "3"]), &ops)).contains("value 3 of secrets"));
    assert_audited(
        &cluster,
        &["object store of this cluster", "are not read from s3://bucket", "../secrets/values"],
    );
}

/// The audit log says why pushes of `scores` by `ads` were refused.
fn assert_audited(cluster: &Secured, reasons: &[&str]) {
    let log = cluster.router_log();
    for reason in reasons {
        let told = log.lines().any(|line| {
            line.contains("audit") && line.contains("ads") && line.contains("scores") && line.contains(reason)
        });
        assert!(told, "{reason}: {log}");
    }
}

#[test]
fn a_version_of_another_store_is_refused_also_in_a_place_that_is_listed() {
    let cluster = Secured::start(|folder| {
        let builds = folder.join("builds");
        fs::write(folder.join("listed"), format!("scores,pages={}", builds.display())).expect("written");
        rights(folder, &[])
    });
    let ops = cluster.authority.papers("ops");
    for store in ["scores", "secrets"] {
        fill(&cluster, store, 10, &ops);
    }
    let objects = cluster.folder.path().join("objects");
    let place = cluster.folder.path().join("builds/7");
    copy_files(&version_of(&objects, "secrets"), &place);
    let mut cluster = cluster;
    let listed = fs::read_to_string(cluster.folder.path().join("listed")).expect("read");
    let papers = cluster.papers.clone();
    cluster.spawn(&["router", "--id", "1", "--read-from", &listed], &papers);
    let writer = Attacker::at(&cluster, 1, Some(&ops), None);
    let secrets = writer.component("secrets");
    let url = json!(place.to_str().expect("UTF-8"));
    let refused = writer.push("scores", "b1", &secrets, &[("url", url.clone())]).expect_err("another store");
    assert_eq!(refused.code(), ErrorCode::OtherStore, "{refused}");
    assert!(refused.to_string().contains("secrets"), "{refused}");
    let refused = writer.push("secrets", "b2", &secrets, &[("url", url)]).expect_err("not for this store");
    assert_eq!(refused.code(), ErrorCode::UrlNotAllowed, "{refused}");
    assert!(must(with(cluster.kith(&["get", "scores", "3"]), &ops)).contains("value 3 of scores"));
}

/// What a router with these flags says before it ends without having started.
fn refusal_of_a_router(folder: &Path, flags: &[&str]) -> String {
    let mut command = support::cluster::kith(&["router", "--metadata", "127.0.0.1:1", "--data"]);
    command.arg(folder.join("data")).args(flags);
    let output = command.output().expect("kith runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{flags:?}: {told}");
    told
}

/// Writes `v1.pem` and `v1.key`: certificates of X.509 version 1 say nothing of what they are for.
fn make_certificate_of_version_1(folder: &Path) {
    for arguments in [
        "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=v1 -keyout v1.key -out v1.csr",
        "x509 -req -in v1.csr -signkey v1.key -out v1.pem",
    ] {
        let openssl = Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output();
        assert!(openssl.expect("openssl runs: see scripts/packages.sh").status.success(), "{arguments}");
    }
}

#[test]
fn files_and_flags_that_make_no_sense_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let authority = Authority::new(folder.path(), "own");
    let papers = authority.papers("ada");
    let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let (ca, cert, key) = (path(&authority.pem), path(&papers.cert), path(&papers.key));
    let other = path(&authority.papers("bob").key);
    for (flags, code) in [
        (&["--listen", "10.255.0.1:7100"][..], "insecure_listener"),
        (&["--resp", "10.255.0.1:6379"], "insecure_listener"),
        (&["--http", "10.255.0.1:7180"], "insecure_listener"),
        (
            &["--listen", "10.255.0.1:7100", "--tls-cert", &cert, "--tls-key", &key, "--tls-ca", &ca],
            "open_listener",
        ),
        (&["--tls-cert", &cert], "usage"),
        (&["--tls-cert", &cert, "--tls-key", &key], "usage"),
        (&["--tls-cert", &cert, "--tls-key", &other, "--tls-ca", &ca], "bad_security_file"),
        (&["--tls-cert", &key, "--tls-key", &key, "--tls-ca", &ca], "bad_security_file"),
        (&["--tls-cert", "/nowhere", "--tls-key", &key, "--tls-ca", &ca], "bad_security_file"),
        (&["--tls-cert", &cert, "--tls-key", &key, "--tls-ca", &ca, "--access", &cert], "bad_security_file"),
        (&["--access", &cert], "usage"),
    ] {
        let told = refusal_of_a_router(folder.path(), flags);
        assert!(told.contains(&format!("error[{code}]")), "{flags:?}: {told}");
    }
    make_certificate_of_version_1(folder.path());
    let old = |name: &str| path(&folder.path().join(name));
    let flags = ["--tls-cert", &old("v1.pem"), "--tls-key", &old("v1.key"), "--tls-ca", &ca];
    let told = refusal_of_a_router(folder.path(), &flags);
    assert!(
        told.contains("error[bad_security_file]") && told.contains("X.509 certificate of version 1"),
        "{told}"
    );
    assert_eq!(code_of_a_read(&["--token-file", &key]), "usage");
    assert_eq!(code_of_a_read(&["--tls-ca", &key]), "bad_security_file");
    assert_eq!(code_of_a_read(&["--tls-ca", "/nowhere"]), "bad_security_file");
}

/// The code that a read with these flags is refused with before any router is asked.
fn code_of_a_read(flags: &[&str]) -> String {
    let mut command = support::cluster::kith(&["get", "pages", "7", "--router", "127.0.0.1:1"]);
    command.args(flags);
    refused(command).0
}

#[test]
fn a_client_that_speaks_tls_to_a_plain_port_is_told_so() {
    let cluster = support::cluster::Cluster::start(&["--nodes", "1", "--groups", "1"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let authority = Authority::new(folder.path(), "own");
    let mut command = cluster.kith(&["cluster", "status"]);
    command.arg("--tls-ca").arg(&authority.pem);
    let (code, message, help) = refused(command);
    assert_eq!(code, "tls_failed", "{message}");
    assert!(help.contains("does the port speak TLS?"), "{help}");
}

/// Refuses each command of `bob` on a store of `ada`, and audits that.
fn assert_for_ada_alone(cluster: &Secured, bob: &Path, commands: &[&[&str]]) {
    for arguments in commands {
        let mut command = bearing(cluster.kith(arguments), bob);
        // A name that somebody gives is not theirs.
        command.env("KITH_WHO", "ada");
        let (code, message, help) = refused(command);
        assert_eq!(code, "permission_denied", "{arguments:?}: {message}");
        assert!(
            message.contains("the store is ada's") && message.contains("bob"),
            "{arguments:?}: {message}"
        );
        assert!(help.contains("ask ada, or an administrator"), "{arguments:?}: {help}");
    }
    let log = cluster.router_log();
    let lines = log.lines().filter(|line| line.contains("refused") && line.contains("the store is ada's"));
    let lines: Vec<&str> = lines.filter(|line| line.contains("\"bob\"")).collect();
    assert_eq!(lines.len(), commands.len(), "{log}");
    let first = lines[0];
    assert!(first.contains("audit=true") && first.contains("\"/kith.v1.Cluster/Store\""), "{first}");
}

/// The number of the oldest version of a store.
fn oldest_version(cluster: &Secured, store: &str, token: &Path) -> String {
    let versions = must(bearing(cluster.kith(&["store", "versions", store, "-o", "json"]), token));
    let versions: serde_json::Value = serde_json::from_str(&versions).expect("JSON");
    let numbers = versions.as_array().expect("a list").iter().map(|entry| entry["version"].as_u64());
    numbers.min().flatten().expect("a version").to_string()
}

#[test]
fn what_a_store_is_is_for_its_owner_and_administrators_to_change() {
    let admin = "admin = [\"pages\"]";
    let cluster =
        Secured::start(|folder| rights(folder, &[("ada", "ada's", admin), ("bob", "bob's", admin)]));
    let ops = cluster.authority.papers("ops");
    fill(&cluster, "pages", 100, &ops);
    let rows = cluster.folder.path().join("pages.csv");
    let rows = rows.to_str().expect("UTF-8");
    let [ada, bob] = ["ada", "bob"].map(|name| token_file(&cluster, name, &format!("{name}'s")));
    must(bearing(cluster.kith(&["store", "push", "pages", rows]), &ada));
    let first = oldest_version(&cluster, "pages", &ada);
    must(bearing(cluster.kith(&["store", "alter", "pages", "--owner", "ada"]), &bob));
    let for_owners = [
        &["store", "drop", "pages", "--yes"][..],
        &["store", "alter", "pages", "--owner", "bob"],
        &["store", "alter", "pages", "--owner", "off"],
        &["store", "alter", "pages", "--read-quota-keys", "1"],
        &["store", "alter", "pages", "--retain", "2"],
        &["store", "freeze", "pages"],
        &["store", "thaw", "pages"],
        &["store", "block", "pages", &first],
        &["store", "push", "pages", rows],
    ];
    assert_for_ada_alone(&cluster, &bob, &for_owners);
    // What is served is for everybody with the right to write.
    must(bearing(cluster.kith(&["store", "hold", "pages", &first]), &bob));
    must(bearing(cluster.kith(&["store", "rollback", "pages"]), &bob));
}

#[test]
fn owners_and_administrators_change_a_store_and_give_it_away() {
    let admin = "admin = [\"pages\"]";
    let cluster =
        Secured::start(|folder| rights(folder, &[("ada", "ada's", admin), ("bob", "bob's", admin)]));
    let ops = cluster.authority.papers("ops");
    fill(&cluster, "pages", 100, &ops);
    let rows = cluster.folder.path().join("pages.csv");
    let rows = rows.to_str().expect("UTF-8");
    let ada = token_file(&cluster, "ada", "ada's");
    must(bearing(cluster.kith(&["store", "alter", "pages", "--owner", "ada"]), &ada));
    for arguments in [
        &["store", "alter", "pages", "--retain", "3"][..],
        &["store", "freeze", "pages"],
        &["store", "thaw", "pages"],
        &["store", "push", "pages", rows],
        &["store", "alter", "pages", "--owner", "bob"],
    ] {
        must(bearing(cluster.kith(arguments), &ada));
    }
    let (code, message, _) = refused(bearing(cluster.kith(&["store", "drop", "pages", "--yes"]), &ada));
    assert!(code == "permission_denied" && message.contains("the store is bob's"), "{code}: {message}");
    must(with(cluster.kith(&["store", "push", "pages", rows]), &ops));
    must(with(cluster.kith(&["store", "alter", "pages", "--owner", "ada"]), &ops));
    must(with(cluster.kith(&["store", "drop", "pages", "--yes"]), &ops));
}
