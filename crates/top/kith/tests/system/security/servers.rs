//! Database servers: callers name only those that the configuration lists, and get no credentials but theirs.

use super::secured::{SecuredCluster, must, refused, with};
use super::{bearing, rights, token_file};
use kith_net::security::secret;
use std::{
    fs,
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    time::Duration,
};

const TYPES: &str = "[object.person]\nfields = { name = \"text\" }\n";
const PASSWORD: &str = "the-password-of-kith";

/// A listener in place of a server. Nobody who is refused connects to it.
fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("it can");
    let port = listener.local_addr().expect("an address").port();
    (listener, port)
}

/// A configuration that lists the server at `port` for graphs whose names begin with `ads-`.
fn config(folder: &Path, port: u16) -> Vec<String> {
    let (password, config) = (folder.join("password"), folder.join("kith.toml"));
    secret::testing::write(&password, format!("{PASSWORD}\n"));
    let text = format!(
        "[[database-server]]\naddress = \"127.0.0.1:{port}\"\nuser = \"kith\"\ngraphs = [\"ads-*\"]\n\
         password-file = {password:?}\n"
    );
    fs::write(&config, text).expect("written");
    vec!["--config".to_owned(), config.to_str().expect("UTF-8").to_owned()]
}

fn assert_untouched(listener: &TcpListener, after: &str) {
    let accepted = listener.accept().map(|(_, peer)| peer);
    assert!(
        accepted.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
        "{after}: {accepted:?}"
    );
}

/// Greets like a server whose only way to log in is to send the password, and returns what the client answers.
fn greet(stream: &mut TcpStream) -> Vec<u8> {
    stream.set_nonblocking(false).expect("it can");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("it can");
    let mut greeting = b"\x0a5.7.0\0\x01\0\0\0abcdefgh\0\x0d\xa2\x2d\x02\0\x08\0\x15".to_vec();
    greeting.extend([0; 10]);
    greeting.extend(b"abcdefghijkl\0mysql_clear_password\0");
    let length = u8::try_from(greeting.len()).expect("it is short");
    stream.write_all(&[&[length, 0, 0, 0][..], &greeting].concat()).expect("the client reads");
    let mut answer = vec![0; 4096];
    let length = stream.read(&mut answer).expect("the client answers or hangs up");
    answer.truncate(length);
    answer
}

#[test]
fn only_listed_database_servers_are_contacted_and_with_their_own_credentials() {
    let ((unlisted, there), (listed, here)) = (listener(), listener());
    let cluster = SecuredCluster::start(|folder| {
        let subjects = [("mallory", "mallory", "admin = [\"ads-*\", \"web\"]")];
        [rights(folder, &subjects), config(folder, here)].concat()
    });
    let token = token_file(&cluster, "mallory", "mallory");
    let types = cluster.folder.path().join("types.toml");
    fs::write(&types, TYPES).expect("written");
    let types = types.to_str().expect("UTF-8");
    let apply = |graph: &str, url: &str, more: &[&str]| {
        let arguments = ["schema", "apply", types, "--graph", graph, "--storage", url];
        bearing(cluster.kith(&[&arguments[..], more].concat()), &token)
    };
    let secret = cluster.folder.path().join("password").display().to_string();
    for (graph, url) in [
        ("ads-1", format!("mysql://kith@127.0.0.1:{there}/db")),
        ("ads-1", format!("mysql://127.0.0.1:{there}/db")),
        ("ads-1", format!("mysql://kith@localhost:{here}/db")),
        ("ads-1", format!("mysql://root@127.0.0.1:{here}/db")),
        ("ads-1", format!("mysql://127.0.0.1:{here}/db?tls=off")),
        ("ads-1", format!("mysql://127.0.0.1:{here}/db?ca={secret}")),
        ("ads-1", format!("mysql://127.0.0.1:{there}/db?ca=/etc/shadow&tls=required")),
        ("web", format!("mysql://kith@127.0.0.1:{here}/db")),
    ] {
        for more in [&[][..], &["--dry-run"]] {
            let (code, message, help) = refused(apply(graph, &url, more));
            assert_eq!(code, "url_not_allowed", "{graph} {url}: {message}");
            assert!(help.contains("[[database-server]]"), "{help}");
            assert!(!message.contains("shadow") && !message.contains("root"), "{message}");
        }
        assert_untouched(&unlisted, &url);
        assert_untouched(&listed, &url);
        let log = cluster.router_log();
        let refusals = log.lines().filter(|line| {
            let parts = ["audit=true", "mallory", "Cluster/Schema", graph, "url_not_allowed"];
            parts.iter().all(|part| line.contains(part))
        });
        assert!(refusals.count() >= 2, "{graph} {url}: {log}");
    }

    // The listed server is contacted, and does not get the password in plain text.
    let mut child = apply("ads-1", &format!("mysql://127.0.0.1:{here}/db"), &[]).spawn().expect("it runs");
    let mut stream = None;
    cluster.wait_until("the server is contacted", || {
        stream = listed.accept().ok().map(|(stream, _)| stream);
        stream.is_some()
    });
    let answer = greet(stream.as_mut().expect("it was waited for"));
    let holds = |text: &str| answer.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(!holds(PASSWORD), "{answer:?}");
    drop((stream, listed));
    assert!(!child.wait().expect("it ends").success(), "that was no server");
    assert_untouched(&unlisted, "the listed server");
    // An administrator of everything may not do more than the configuration says.
    let ops = cluster.authority.papers("ops");
    let url = format!("mysql://kith@127.0.0.1:{there}/db");
    let arguments = ["schema", "apply", types, "--graph", "other", "--storage", &url];
    assert_eq!(refused(with(cluster.kith(&arguments), &ops)).0, "url_not_allowed");
    assert_untouched(&unlisted, &url);
    assert!(!must(with(cluster.kith(&["graph", "list"]), &ops)).contains("ads-1"), "nothing was made");
}
