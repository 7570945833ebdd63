//! Redis clients over TLS, as they are: who they are by certificate or AUTH, what they may read, and what is said to the others.

use crate::support::{self, secured};
use secured::{Authority, SecuredCluster, access, fill, with};
use serde_json::json;
use std::{fs, path::Path};
use support::redis::Redis;

/// The answer to a caller whom nobody knows.
const NOAUTH: &str = "NOAUTH Authentication required.";

fn resp() -> Vec<String> {
    ["--resp", "127.0.0.1:0"].map(str::to_owned).to_vec()
}

/// A cluster with the stores `pages` and `secrets`, and a file of rights.
fn with_rights(subjects: &[(&str, &str, &str)]) -> SecuredCluster {
    let text = access(subjects);
    let cluster = SecuredCluster::start(move |folder: &Path| {
        let file = folder.join("access.toml");
        fs::write(&file, text).expect("written");
        [resp(), vec!["--access".to_owned(), file.to_str().expect("UTF-8").to_owned()]].concat()
    });
    let ops = cluster.authority.papers("ops");
    fill(&cluster, "pages", 100, &ops);
    fill(&cluster, "secrets", 100, &ops);
    cluster
}

/// Whoever shows no certificate, an expired one or that of another authority reads nothing, nor does a client that believes
/// another authority.
fn assert_strangers_are_hung_up_on(cluster: &SecuredCluster, redis: &Redis) {
    let failures = || cluster.metric("kith_server_tls_failures_total").unwrap_or(0.0);
    let before = failures();
    let stranger = Authority::new(cluster.folder.path(), "other");
    let expired = cluster.authority.expired("eve");
    for papers in [None, Some(stranger.papers("mallory")), Some(expired)] {
        let reply = cluster.redis(papers.as_ref()).cli_all(&["get", "pages:7"]);
        assert!(!reply.contains("value") && !reply.is_empty(), "{papers:?}: {reply}");
    }
    // redis-cli tries again.
    assert!(before + 3.0 <= failures());
    let log = cluster.router_log();
    assert!(log.contains("the TLS handshake with a caller failed") && log.contains("expired"), "{log}");
    let mut wary = redis.clone();
    wary.tls.as_mut().expect("it speaks TLS").ca = stranger.pem.clone();
    assert!(wary.cli_all(&["get", "pages:7"]).contains("certificate verify failed"));
}

/// In the clear: the error says so, and the connection is closed.
fn assert_plain_clients_learn_why(cluster: &SecuredCluster, redis: &Redis) {
    let mut plain = redis.clone();
    plain.tls = None;
    assert!(plain.cli(&["get", "pages:7"]).starts_with("ERR tls_required: this port takes TLS only"));
    let mut raw = plain.connect();
    raw.send(b"PING\r\nGET pages:7\r\n");
    let reply = String::from_utf8(raw.rest()).expect("text");
    assert!(reply.starts_with("-ERR tls_required: ") && reply.lines().count() == 1, "{reply}");
    let log = cluster.router_log();
    assert!(log.contains("a Redis client does not use TLS, which this port requires"), "{log}");
}

#[test]
fn redis_clients_with_a_certificate_read_over_tls_and_the_others_do_not() {
    let mut cluster = SecuredCluster::start(|_| resp());
    let own = cluster.authority.papers("ada");
    fill(&cluster, "pages", 3_000, &own);
    let redis = cluster.redis(Some(&own));
    assert_eq!(redis.cli(&["get", "pages:7"]), "value 7 of pages\n");
    assert_eq!(redis.cli_lines(&["-3"], "mget pages:1 pages:9999\nping\n"), "value 1 of pages\n\nPONG\n");
    // Nobody's rights are written down: there is nothing that a password could be compared with.
    assert!(redis.cli(&["auth", "secret"]).contains("without any password configured"));
    let script = "
values = client.mget(['pages:%d' % key for key in range(3000)])
pipeline = client.pipeline(transaction=False)
for key in range(3000):
    pipeline.get('pages:%d' % key)
assert pipeline.execute() == values
result = [value.decode() for value in values]
";
    let read = redis.python(script, &json!([]));
    let expected: Vec<String> = (0..3_000).map(|row| format!("value {row} of pages")).collect();
    assert_eq!(read, json!(expected));
    redis.benchmark(&["-n", "2000", "-c", "20", "-P", "10", "-q", "get", "pages:7"]);
    let both = [0, 1].map(|node| cluster.redis_of_node(node, Some(&own)).cli(&["get", "pages:7"]));
    assert_eq!(both, ["value 7 of pages\n"; 2], "each node is a whole group");

    assert_strangers_are_hung_up_on(&cluster, &redis);
    assert_plain_clients_learn_why(&cluster, &redis);

    // A router whose certificate has expired, and then has another.
    let late = cluster.authority.expired("late");
    cluster.spawn(&["router", "--id", "1"], &late);
    let redis = cluster.redis_of_router(1, Some(&own));
    assert!(redis.cli_all(&["get", "pages:7"]).contains("certificate verify failed"));
    cluster.authority.papers("late");
    cluster.wait_until("the new certificate is taken up", || {
        redis.cli(&["get", "pages:7"]) == "value 7 of pages\n"
    });
}

/// The token of `ads` opens `pages` and nothing else, however it is shown; another opens nothing.
fn assert_passwords_open_pages(redis: &Redis) {
    for asked in [&["get", "pages:7"][..], &["ping"], &["info"], &["get", "nowhere:7"]] {
        assert_eq!(redis.cli(asked).trim_end(), NOAUTH, "{asked:?}");
    }
    let reply = redis.cli_all(&["--no-auth-warning", "-a", "guess", "get", "pages:7"]);
    assert!(reply.contains("WRONGPASS") && reply.contains(NOAUTH), "{reply}");
    let ads: [&[&str]; 3] =
        [&["-a", "ads-token"], &["--user", "ads", "--pass", "ads-token"], &["-3", "-a", "ads-token"]];
    for flags in ads {
        let asked = |asked: &[&str]| redis.cli(&[&["--no-auth-warning"], flags, asked].concat());
        assert_eq!(asked(&["get", "pages:7"]), "value 7 of pages\n", "{flags:?}");
        let refused = "NOPERM ads may not read store \"secrets\"";
        for forbidden in [
            &["get", "secrets:7"][..],
            &["mget", "pages:1", "secrets:2", "pages:3"],
            &["exists", "pages:1", "secrets:1"],
            &["strlen", "secrets:1"],
        ] {
            assert!(asked(forbidden).starts_with(refused), "{forbidden:?}: {}", asked(forbidden));
        }
        // Not everybody may know whether a store exists.
        assert!(asked(&["get", "nowhere:7"]).starts_with("NOPERM"));
        assert_eq!(asked(&["ping"]), "PONG\n");
    }
    let other = redis.cli_all(&["--no-auth-warning", "--user", "eve", "--pass", "ads-token", "ping"]);
    assert!(other.contains("WRONGPASS") && other.contains(NOAUTH), "{other}");
    let lines =
        "get pages:7\nhello 3 auth ads guess\nhello 3 auth ads ads-token\nget pages:7\nreset\nget pages:7\n";
    let reply = redis.cli_lines(&[], lines);
    assert!(
        reply.starts_with(NOAUTH) && reply.contains("WRONGPASS") && reply.contains("server kith"),
        "{reply}"
    );
    assert!(reply.contains("value 7 of pages\n") && reply.trim_end().ends_with(NOAUTH), "{reply}");
}

#[test]
fn a_token_is_shown_as_a_password_and_opens_what_its_subject_may_read() {
    let cluster = with_rights(&[("ads", "ads-token", "read = [\"pages*\"]")]);
    for redis in [cluster.redis(None), cluster.redis_of_node(0, None)] {
        assert_passwords_open_pages(&redis);
    }
    let failed = cluster.metric("kith_resp_auth_failures_total{role=\"router\"}");
    assert!(failed.is_some_and(|failed| 3.0 <= failed), "{failed:?}");
    let log = cluster.router_log();
    assert!(log.contains("a Redis client presented an unknown token, or the token of another user"), "{log}");

    // A certificate says who asks; one that nobody listed may still show a token.
    let ops = cluster.redis(Some(&cluster.authority.papers("ops")));
    assert_eq!(ops.cli(&["mget", "pages:1", "secrets:2"]), "value 1 of pages\nvalue 2 of secrets\n");
    let stranger = cluster.redis(Some(&cluster.authority.papers("stranger")));
    let reply = stranger.cli(&["get", "pages:7"]);
    assert!(reply.starts_with("NOPERM the certificate of CN=stranger has no rights"), "{reply}");
    let reply = stranger.cli(&["--no-auth-warning", "-a", "ads-token", "get", "pages:7"]);
    assert_eq!(reply, "value 7 of pages\n");
    // What others read with `kith get` is the same rights.
    let (code, ..) =
        secured::refused(with(cluster.kith(&["get", "pages", "7"]), &cluster.authority.papers("stranger")));
    assert_eq!(code, "permission_denied");
}

#[test]
fn a_token_that_is_taken_back_works_no_longer_on_a_connection_that_is_open() {
    let cluster = with_rights(&[("ads", "ads-token", "read = [\"pages*\"]")]);
    let redis = cluster.redis(None);
    let mut open = redis.dialogue(&["--no-auth-warning", "-a", "ads-token"]);
    let connection = open.ask("client id");
    assert_eq!(open.ask("get pages:7"), "value 7 of pages");
    let rights = access(&[("ads", "new-token", "read = [\"secrets\"]")]);
    fs::write(cluster.folder.path().join("access.toml"), rights).expect("written");
    cluster.wait_until("the new rights are taken up", || {
        let reply = open.ask("get pages:7");
        assert!(["value 7 of pages", NOAUTH].contains(&reply.as_str()), "{reply}");
        reply == NOAUTH
    });
    assert!(open.ask("auth ads-token").starts_with("WRONGPASS"));
    assert_eq!(open.ask("auth ads new-token"), "OK");
    assert_eq!(open.ask("get secrets:7"), "value 7 of secrets");
    let reply = open.ask("mget secrets:1 pages:1");
    assert!(reply.starts_with("NOPERM ads may not read store \"pages\""), "{reply}");
    assert_eq!(open.ask("client id"), connection, "it is the same connection");
    // As redis-py tells it: with the errors that its users catch.
    let script = "
result = []
for password, key in [('ads-token', 'secrets:7'), (None, 'secrets:7'), ('new-token', 'secrets:7'), ('new-token', 'pages:7')]:
    try:
        result.append(connect(username='ads' if password else None, password=password).get(key).decode())
    except redis.RedisError as error:
        result.append(type(error).__name__)
";
    let reply = redis.python(script, &json!([]));
    // As an error of AUTH itself, or in releases since 4.4 by its name.
    assert!([json!("ResponseError"), json!("AuthenticationError")].contains(&reply[0]), "{reply}");
    assert_eq!(reply[1], "AuthenticationError");
    assert_eq!((&reply[2], &reply[3]), (&json!("value 7 of secrets"), &json!("NoPermissionError")));
}
