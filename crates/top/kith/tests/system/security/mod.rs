//! Clusters of processes over TLS: a caller with a certificate or a token is served as far as its rights go. A refused caller
//! receives the reason.

mod live;
mod owners;
mod servers;
mod writers;

use crate::support::{self, offers, secured};
use kith_net::security::secret;
use secured::{Authority, Papers, SecuredCluster, access, fill, must, refused, with};
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
fn token_file(cluster: &SecuredCluster, name: &str, token: &str) -> PathBuf {
    let path = cluster.folder.path().join(format!("{name}.token"));
    secret::testing::write(&path, format!("{token}\n"));
    path
}

fn bearing(mut command: Command, token: &Path) -> Command {
    command.arg("--token-file").arg(token);
    command
}

fn assert_reads(command: impl Fn(&[&str]) -> Command, store: &str, seven: &str) {
    for way in WAYS {
        let printed = must(command(&[&["get", store, "7"], way].concat()));
        assert!(printed.contains(&format!("value 7 of {store}")), "{way:?}: {printed}");
        let printed = must(command(&[&streamed(store, seven)[..], &["-o", "json"], way].concat()));
        assert!(
            printed.contains(&format!("value 7 of {store}")) && printed.contains("footer"),
            "{way:?}: {printed}"
        );
    }
}

/// Reads the keys of a file as a stream.
fn streamed<'a>(store: &'a str, keys: &'a str) -> [&'a str; 5] {
    ["mget", store, "--keys-from", keys, "--stream"]
}

/// A file with the key 7.
fn seven(cluster: &SecuredCluster) -> String {
    let path = cluster.folder.path().join("seven");
    fs::write(&path, "7\n").expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

/// Gives a file this mode.
fn chmod(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is there");
}

#[test]
fn a_process_does_not_start_with_open_secrets_or_without_the_right_of_the_cluster() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let authority = Authority::new(folder.path(), "own");
    let (own, other) = (authority.papers("kith"), authority.papers("ads"));
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    fs::write(path("access.toml"), access(&[])).expect("written");
    let ca = authority.pem.to_str().expect("UTF-8");
    let started = |role: &[&str], papers: &Papers, flags: &[&str]| {
        let mut command = support::cluster::kith(role);
        command.args(["--metadata", "127.0.0.1:1", "--data", &path("data"), "--tls-client-ca", ca]);
        command.args(["--access", &path("access.toml")]).args(papers.flags()).args(flags);
        refused(command)
    };
    for role in [&["node", "--node", "0"][..], &["router", "--id", "0"]] {
        let (code, message, _) = started(role, &other, &[]);
        assert_eq!(code, "bad_security_file", "{message}");
        assert!(message.contains("ads.pem") && message.contains("cluster = true"), "{message}");
    }
    // What the environment of a shell names is for clients, and changes nothing.
    let [cert, key, config] = [&other.cert, &other.key, Path::new(&path("kith.toml"))]
        .map(|path| path.to_str().expect("UTF-8").to_owned());
    fs::write(&config, format!("tls-cert = {cert:?}\ntls-key = {key:?}\n")).expect("written");
    for role in [&["node", "--node", "0"][..], &["router", "--id", "0"]] {
        let mut command = support::cluster::kith(role);
        command.args(["--metadata", "127.0.0.1:1", "--data", &path("data"), "--tls-client-ca", ca]);
        command.args(["--access", &path("access.toml"), "--config", &config]);
        command.env("KITH_TLS_CERT", &own.cert).env("KITH_TLS_KEY", &own.key);
        let (code, message, _) = refused(command);
        assert!(code == "bad_security_file" && message.contains("ads.pem"), "{code}: {message}");
    }
    let is_open = |outcome: (String, String, String), name: &str| {
        let (code, message, _) = outcome;
        let says = message.contains(name) && message.contains("chmod 600");
        assert!(says && code == "bad_security_file", "{name}: {code} {message}");
    };
    let roles = [&["node", "--node", "0"][..], &["router", "--id", "0"], &["database", "--id", "0"]];
    for (mode, role) in [0o644, 0o640, 0o604].into_iter().flat_map(|mode| roles.map(|role| (mode, role))) {
        chmod(&own.key, mode);
        is_open(started(role, &own, &[]), "kith.key");
    }
    chmod(&own.key, 0o400);
    let password = path("password");
    secret::testing::write(Path::new(&password), "secret\n");
    chmod(Path::new(&password), 0o640);
    for role in &roles[..2] {
        is_open(started(role, &own, &["--database-password-file", &password]), "password");
    }
    let etcd = ["--metadata", "etcd://127.0.0.1:1", "--cluster", "c", "--etcd-user", "kith"];
    let data = path("data");
    let etcd = [&etcd[..], &["--etcd-password-file", &password, "--data", &data]].concat();
    for role in roles {
        let mut command = support::cluster::kith(role);
        command.args(&etcd);
        let (_, message, _) = refused(command);
        assert!(message.contains("etcd-password-file") && message.contains("chmod 600"), "{message}");
    }
    // Clients too.
    let token = path("token");
    fs::write(&token, "s3cret\n").expect("written");
    chmod(Path::new(&token), 0o644);
    let mut command = support::cluster::kith(&["get", "pages", "7", "--router", "127.0.0.1:1"]);
    command.args(["--tls-ca", ca, "--token-file", &token]);
    is_open(refused(command), "token");
}

#[test]
fn a_cluster_over_tls_answers_who_shows_a_certificate_and_tells_the_others_why_not() {
    let mut cluster = SecuredCluster::start(|_| Vec::new());
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

/// A caller without a certificate, or with one that has expired or is of another authority, receives an error that says so. So
/// does a caller that does not trust the cluster's certificate, or speaks no TLS.
fn assert_tells_strangers_why(cluster: &SecuredCluster, own: &Papers, read: &[&str]) {
    let (code, message, help) = refused(cluster.kith(read));
    assert_eq!(code, "tls_failed");
    assert!(message.contains("asks for a certificate") && help.contains("--tls-cert"), "{message}; {help}");

    let expired = cluster.authority.expired("eve");
    let (code, message, _) = refused(with(cluster.kith(read), &expired));
    assert!(code == "tls_failed" && message.contains("has expired"), "{code}: {message}");

    let stranger = Authority::new(cluster.folder.path(), "other");
    let (code, message, _) = refused(with(cluster.kith(read), &stranger.papers("mallory")));
    assert!(code == "tls_failed" && message.contains("does not trust"), "{code}: {message}");

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
fn assert_hides_records(cluster: &SecuredCluster, ops: &Papers, reader: &Path, seven: &str) {
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
fn assert_refuses_secrets_and_strangers(cluster: &SecuredCluster, reader: &Path, seven: &str) {
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

/// A call that needs a right that `reader` of `pages` does not have is refused by the right's name.
fn assert_only_reads_pages(cluster: &SecuredCluster, reader: &Path, push: &[&str]) {
    for (arguments, expected) in [
        (&["store", "verify", "secrets"][..], "read store \"secrets\""),
        (&["store", "where", "secrets", "7"], "read store \"secrets\""),
        (push, "write store \"pages\""),
        (&["store", "drop", "pages", "--yes"], "admin store \"pages\""),
        (&["store", "alter", "pages", "--read-quota-keys", "1"], "admin store \"pages\""),
        (&["cluster", "fetch-rate", "1MiB/s"], "administer the cluster"),
        (&["cluster", "drain-group", "1"], "administer the cluster"),
    ] {
        let (code, message, _) = refused(bearing(cluster.kith(arguments), reader));
        assert!(
            code == "permission_denied" && message.contains(expected),
            "{arguments:?}: {code}: {message}"
        );
    }
}

#[test]
fn tokens_and_certificates_have_the_rights_that_the_file_gives_them() {
    let cluster =
        SecuredCluster::start(|folder| rights(folder, &[("reader", "reader", "read = [\"pages*\"]")]));
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

/// The message of a router with these flags that ends without having started.
fn refusal_of_a_router(folder: &Path, flags: &[&str]) -> String {
    let mut command = support::cluster::kith(&["router", "--metadata", "127.0.0.1:1", "--data"]);
    command.arg(folder.join("data")).args(flags);
    let output = command.output().expect("kith runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{flags:?}: {stderr}");
    stderr
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
        let message = refusal_of_a_router(folder.path(), flags);
        assert!(message.contains(&format!("error[{code}]")), "{flags:?}: {message}");
    }
    make_certificate_of_version_1(folder.path());
    let old = |name: &str| path(&folder.path().join(name));
    let flags = ["--tls-cert", &old("v1.pem"), "--tls-key", &old("v1.key"), "--tls-ca", &ca];
    let message = refusal_of_a_router(folder.path(), &flags);
    assert!(
        message.contains("error[bad_security_file]") && message.contains("X.509 certificate of version 1"),
        "{message}"
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
fn a_client_that_speaks_tls_to_a_plain_port_learns_so() {
    let cluster = support::cluster::Cluster::start(&["--nodes", "1", "--groups", "1"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let authority = Authority::new(folder.path(), "own");
    let mut command = cluster.kith(&["cluster", "status"]);
    command.arg("--tls-ca").arg(&authority.pem);
    let (code, message, help) = refused(command);
    assert_eq!(code, "tls_failed", "{message}");
    assert!(help.contains("does the port speak TLS?"), "{help}");
}
