//! Tests of a connection from its beginning to its end, and of what the server says about itself.

use super::*;

#[tokio::test]
async fn a_conversation_begins_as_clients_begin_it() {
    let two = said("HELLO\r\nPING\r\n").await;
    assert!(two.starts_with("*14\r\n$6\r\nserver\r\n$4\r\nkith\r\n") && two.ends_with("+PONG\r\n"), "{two}");
    let three = said(
        "GET ids:10\r\nHELLO 3 SETNAME feeds\r\nGET ids:10\r\nCLIENT GETNAME\r\nRESET\r\nGET ids:10\r\n",
    );
    let three = three.await;
    assert!(three.starts_with("$-1\r\n%7\r\n") && three.contains("$5\r\nproto\r\n:3\r\n"), "{three}");
    assert!(three.ends_with("_\r\n$5\r\nfeeds\r\n+RESET\r\n$-1\r\n"), "{three}");
    let refused =
        said("HELLO 4\r\nHELLO x\r\nHELLO 3 AUTH ada secret\r\nHELLO 3 LOUD\r\nAUTH secret\r\nAUTH default secret\r\nAUTH ada x\r\nAUTH a b c\r\nHELLO 3 AUTH default secret\r\n").await;
    let lines: Vec<&str> = refused.lines().collect();
    assert_eq!(lines[0], "-NOPROTO unsupported protocol version");
    assert_eq!(lines[1], "-ERR Protocol version is not an integer or out of range");
    assert_eq!(lines[2], "-WRONGPASS invalid username-password pair or user is disabled.");
    assert_eq!(lines[3], "-ERR Syntax error in HELLO option 'LOUD'");
    assert!(lines[4].starts_with("-ERR AUTH <password> called without any password configured"));
    assert_eq!(lines[5..9], ["+OK", lines[2], "-ERR syntax error", "%7"]);
    let client = said(
        "CLIENT ID\r\nCLIENT GETNAME\r\nCLIENT SETNAME a\r\nCLIENT SETINFO lib-name redis-py\r\nCLIENT LIST\r\nCLIENT KILL x\r\n",
    );
    let client = client.await;
    assert!(client.starts_with(":1\r\n$-1\r\n+OK\r\n+OK\r\n$"), "{client}");
    assert!(client.contains(
        "id=1 addr=127.0.0.1:7 laddr=127.0.0.1:7 name=a age=0 idle=0 db=0 resp=2 lib-name=redis-py lib-ver=\n"
    ));
    assert!(client.ends_with("-ERR unknown subcommand 'KILL'.\r\n"), "{client}");
}

/// An access file with the subject `ads`, whose token is "ads-token" and who may read the store `ids`.
#[tokio::test]
async fn what_is_not_there_is_refused_in_the_words_of_redis() {
    let replies = said("FOO a b\r\nGET\r\nGET a:1 b:2\r\nPING a b\r\nSELECT 0\r\nSELECT 1\r\nSELECT x\r\nCLUSTER INFO\r\nSET ids:1 x\r\n").await;
    let lines: Vec<&str> = replies.lines().collect();
    assert_eq!(
        lines[..8],
        [
            "-ERR unknown command 'FOO', with args beginning with: 'a' 'b' ",
            "-ERR wrong number of arguments for 'get' command",
            "-ERR wrong number of arguments for 'get' command",
            "-ERR wrong number of arguments for 'ping' command",
            "+OK",
            "-ERR DB index is out of range",
            "-ERR value is not an integer or out of range",
            "-ERR This instance has cluster support disabled",
        ]
    );
    assert!(lines[8].starts_with("-ERR stores are read-only: 'SET'") && lines[8].contains("kith store push"));
    assert_eq!(said("ECHO a\r\nPING b\r\nQUIT\r\nPING\r\n").await, "$1\r\na\r\n$1\r\nb\r\n+OK\r\n");
    assert_eq!(said("PING\r\nPOST / HTTP/1.1\r\nPING\r\n").await, "+PONG\r\n");
}

#[tokio::test]
async fn the_server_describes_itself() {
    assert_eq!(said("COMMAND COUNT\r\n").await, ":16\r\n");
    let some = said("COMMAND INFO get nothing\r\nCOMMAND DOCS mget nothing\r\n").await;
    assert!(
        some.starts_with(
            "*2\r\n*6\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n$-1\r\n"
        )
    );
    assert!(some.contains("*2\r\n$4\r\nmget\r\n*6\r\n$7\r\nsummary\r\n"), "{some}");
    assert!(said("COMMAND\r\n").await.starts_with("*16\r\n*6\r\n$4\r\nauth\r\n:-2\r\n"));
    assert_eq!(
        said("CONFIG GET save data*\r\n").await,
        "*4\r\n$9\r\ndatabases\r\n$1\r\n1\r\n$4\r\nsave\r\n$0\r\n\r\n"
    );
    assert_eq!(said("CONFIG GET nothing\r\n").await, "*0\r\n");
    assert!(said("CONFIG SET save x\r\n").await.starts_with("-ERR CONFIG SET is not possible here"));
    let info = said("INFO\r\n").await;
    assert!(
        info.contains("# Server\r\nredis_version:7.") && info.contains("# Stores\r\nids:version=3\r\n"),
        "{info}"
    );
    let names = info.lines().filter_map(|line| line.strip_prefix("# ")).collect::<Vec<_>>().join(" ");
    assert_eq!(
        names, "Server Clients Memory Persistence Stats Replication CPU Cluster Keyspace Stores",
        "{info}"
    );
    let replication = said("INFO REPLICATION\r\n").await;
    assert!(
        replication.contains("\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"),
        "{replication}"
    );
    assert!(!replication.contains("# Server"), "{replication}");
    let some = said("INFO memory CPU\r\n").await;
    let number = |name: &str| {
        let line =
            some.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name} {some}"));
        line.parse::<f64>().unwrap()
    };
    assert!(1e5 < number("used_memory:") && number("used_memory:") <= number("used_memory_peak:"), "{some}");
    assert!(0.0 <= number("used_cpu_sys:") && 0.0 <= number("used_cpu_user:"), "{some}");
    let stats = said("PING\r\nINFO stats\r\n").await;
    assert!(stats.contains("total_commands_processed:2\r\n") && !stats.contains("# Server"), "{stats}");
    assert_eq!(said("INFO nothing\r\n").await, "$0\r\n\r\n");
}

#[tokio::test]
async fn what_clients_say_about_themselves_is_answered_as_by_redis() {
    let replies = said(
        "CLIENT NO-EVICT ON\r\nCLIENT NO-TOUCH off\r\nCLIENT NO-TOUCH maybe\r\nCLIENT REPLY ON\r\nCLIENT LIST TYPE pubsub\r\n\
         CLIENT LIST ID 7 8\r\nCLIENT LIST ID x\r\nCLIENT LIST TYPE odd\r\nCLIENT ID x\r\nCLIENT TRACKING\r\nCLIENT LIST LOUD\r\n",
    );
    let replies = replies.await;
    let lines: Vec<&str> = replies.split("\r\n").collect();
    assert_eq!(lines[..4], ["+OK", "+OK", "-ERR syntax error", "+OK"]);
    assert_eq!(lines[4..8], ["$0", "", "$0", ""]);
    assert_eq!(lines[8..10], ["-ERR Invalid client ID", "-ERR Unknown client type 'odd'"]);
    let wrong = |name| format!("-ERR wrong number of arguments for 'client|{name}' command");
    assert_eq!(lines[10..13], [wrong("id"), wrong("tracking"), "-ERR syntax error".to_owned()]);
    let all = said("CLIENT LIST\r\nCLIENT LIST TYPE normal\r\nCLIENT LIST ID 1\r\n").await;
    assert_eq!(all.matches("id=1 addr=").count(), 3, "{all}");
}

#[tokio::test]
async fn tracking_is_switched_as_in_redis() {
    let replies = said(
        "CLIENT GETREDIR\r\nCLIENT CACHING YES\r\nCLIENT TRACKING ON OPTIN NOLOOP\r\nCLIENT GETREDIR\r\nCLIENT CACHING YES\r\n\
         CLIENT CACHING NO\r\nCLIENT TRACKINGINFO\r\nCLIENT TRACKING OFF\r\nCLIENT GETREDIR\r\nCLIENT TRACKING ON REDIRECT 7\r\n\
         CLIENT TRACKING ON OPTIN OPTOUT\r\nCLIENT TRACKING ON PREFIX a\r\nCLIENT TRACKING ON BCAST PREFIX a\r\nRESET\r\nCLIENT GETREDIR\r\n",
    );
    let replies = replies.await;
    let lines: Vec<&str> = replies.lines().collect();
    assert_eq!(lines[0], ":-1");
    assert!(lines[1].starts_with("-ERR CLIENT CACHING can be called only"));
    assert_eq!(lines[2..5], ["+OK", ":0", "+OK"]);
    assert!(lines[5].starts_with("-ERR CLIENT CACHING NO is only valid"));
    assert_eq!(lines[6..16].join(" "), "*6 $5 flags *3 $2 on $5 optin $6 noloop");
    assert_eq!(lines[16..22], ["$8", "redirect", ":0", "$8", "prefixes", "*0"]);
    assert_eq!(lines[22..24], ["+OK", ":-1"]);
    assert!(lines[24].starts_with("-ERR CLIENT TRACKING cannot redirect"));
    assert!(
        lines[25].starts_with("-ERR You can't specify both") && lines[26].starts_with("-ERR PREFIX option")
    );
    assert_eq!(lines[27..], ["+OK", "+RESET", ":-1"]);
}

#[tokio::test]
async fn a_client_that_keeps_values_hears_when_a_version_changes() {
    let stores = Stores::open();
    let mut keeps = Conversation::with(&stores, 1 << 20);
    let mut bytes = vec![0; 4_096];
    keeps.peer.write_all(b"HELLO 3\r\nCLIENT TRACKING ON\r\nGET ids:7\r\n").await.expect("it reads");
    let mut first = Vec::new();
    while !first.ends_with(b"+OK\r\n$2\r\nv7\r\n") {
        let length = keeps.peer.read(&mut bytes).await.expect("it answers");
        first.extend_from_slice(&bytes[..length]);
    }
    let quiet = tokio::time::timeout(Duration::from_millis(1_300), keeps.peer.read(&mut bytes)).await;
    assert!(quiet.is_err(), "nothing has changed");
    stores.version.store(4, Ordering::Relaxed);
    let length = keeps.peer.read(&mut bytes).await.expect("it tells");
    assert_eq!(bytes[..length].escape_ascii().to_string(), ">2\\r\\n$10\\r\\ninvalidate\\r\\n_\\r\\n");
    // After RESET no more messages are sent.
    keeps.peer.write_all(b"RESET\r\n").await.expect("it reads");
    stores.version.store(5, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(1_300)).await;
    let length = keeps.peer.read(&mut bytes).await.expect("it answers");
    assert!(bytes[..length].ends_with(b"+RESET\r\n"), "{}", bytes[..length].escape_ascii());
    keeps.stop.cancel();
}

#[tokio::test]
async fn what_breaks_the_protocol_is_answered_after_what_came_before() {
    let bytes = b"*2\r\n$3\r\nGET\r\n$5\r\nids:7\r\n*1\r\n:1\r\nPING\r\n";
    let replies = Conversation::start().exchange(&[bytes]).await;
    let expected = b"$2\r\nv7\r\n-ERR Protocol error: expected '$', got ':'\r\n";
    assert_eq!(replies, expected, "{}", replies.escape_ascii());
    let huge = b"*1\r\n$999999999\r\n";
    assert_eq!(
        Conversation::start().exchange(&[huge]).await,
        b"-ERR Protocol error: invalid bulk length\r\n"
    );
}

#[tokio::test]
async fn a_thousand_commands_in_a_row_are_one_read() {
    let stores = Stores::open();
    let keys: Vec<u64> =
        (0..1_000).map(|key| key * 7 % 1_009).filter(|key| ![DAMAGED, UNANSWERED].contains(key)).collect();
    let bytes: Vec<u8> = keys.iter().flat_map(|key| get(&format!("ids:{key}"))).collect();
    let replies = Conversation::with(&stores, 1 << 20).exchange(&[&bytes]).await;
    let expected: String = keys
        .iter()
        .map(|key| match key % 10 {
            0 => "$-1\r\n".to_owned(),
            _ => format!("${}\r\nv{key}\r\n", format!("v{key}").len()),
        })
        .collect();
    assert_eq!(String::from_utf8(replies).unwrap(), expected);
    // One read of the socket takes at least 16 KiB.
    let reads = stores.reads.load(Ordering::Relaxed);
    assert!(reads <= 4, "{reads} reads");
}

#[tokio::test]
async fn one_who_does_not_read_is_not_worked_for() {
    let stores = Stores::open();
    let mut slow = Conversation::with(&stores, 8 << 10);
    let command = get("large:1");
    let mut sent = 0;
    // Each reply is longer than the stream's buffer, so the server stops taking commands.
    while let Ok(written) = tokio::time::timeout(Duration::from_millis(200), slow.peer.write(&command)).await
    {
        sent += written.expect("it is there");
        assert!(sent < 1 << 20, "it goes on taking commands");
    }
    let started = stores.reads.load(Ordering::Relaxed);
    assert!(started < 10, "{started} reads for one who does not read");
    let whole = sent / command.len();
    let mut reply = vec![0; whole * (b"$20000\r\n".len() + 20_000 + 2)];
    slow.peer.read_exact(&mut reply).await.expect("all replies");
    assert!(reply.starts_with(b"$20000\r\nxxx") && reply.ends_with(b"xxx\r\n"));
    slow.stop.cancel();
    slow.served.await.expect("no panic").expect("it ends");
}

#[tokio::test]
async fn stopping_answers_the_round_that_is_under_way() {
    let stores = Stores::new(0);
    let mut conversation = Conversation::with(&stores, 1 << 20);
    conversation.peer.write_all(&get("ids:7")).await.expect("it reads");
    while stores.reads.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    conversation.stop.cancel();
    stores.gate.add_permits(1);
    let mut reply = Vec::new();
    conversation.peer.read_to_end(&mut reply).await.expect("it closes");
    assert_eq!(reply, b"$2\r\nv7\r\n");
    conversation.served.await.expect("no panic").expect("it ends");

    let idle = Conversation::start();
    idle.stop.cancel();
    idle.served.await.expect("no panic").expect("it ends at once");
}

#[tokio::test]
async fn a_command_that_trickles_ends_its_connection() {
    for begun in ["*2\r\n$3\r\nGET\r\n$1000000\r\n", "GET ids:"] {
        let Conversation { mut peer, served, .. } =
            Conversation::at(RespRights::anybody(), known_hasty(), &Stores::open(), 1 << 20);
        // Whole commands may come as slowly as they like.
        for _ in 0..40 {
            peer.write_all(b"PING\r\n").await.expect("it reads");
            let mut pong = [0; 7];
            peer.read_exact(&mut pong).await.expect("it answers");
            assert_eq!(&pong, b"+PONG\r\n");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        peer.write_all(begun.as_bytes()).await.expect("it reads");
        let (mut reader, mut writer) = tokio::io::split(peer);
        let trickles = async {
            while writer.write_all(b"1").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let mut reply = String::new();
        let ended = async {
            tokio::select! {
                read = reader.read_to_string(&mut reply) => drop(read.expect("text")),
                () = async { trickles.await; std::future::pending().await } => {}
            }
        };
        tokio::time::timeout(Duration::from_secs(60), ended).await.expect("it is ended");
        assert_eq!(reply, "-ERR the command did not arrive in time\r\n");
        served.await.expect("no panic").expect("no failure of the stream");
    }
}
