//! Tests of reads: values, absent keys, failures, and how much is read together.

use super::*;

#[tokio::test]
async fn values_absence_and_failure_are_distinguished() {
    assert_eq!(said("GET ids:7\r\nget ids:20\r\n").await, "$2\r\nv7\r\n$-1\r\n");
    assert_eq!(said("GET texts:a:b\r\n").await, "$2\r\nv3\r\n");
    assert_eq!(said("GET people:7\r\nSTRLEN people:7\r\n").await, "$7\r\n{\"n\":7}\r\n:7\r\n");
    assert_eq!(said("STRLEN ids:7\r\nSTRLEN ids:20\r\n").await, ":2\r\n:0\r\n");
    assert_eq!(said("EXISTS ids:7 ids:20 ids:7 texts:a\r\n").await, ":3\r\n");
    assert!(said("GET ids:13\r\n").await.starts_with("-ERR damaged: "));
    assert_eq!(said("GET ids:14\r\n").await, UNANSWERED_REPLY);
    assert!(said("EXISTS ids:14 ids:7\r\n").await.starts_with("-ERR partitions_unavailable"));
}

#[tokio::test]
async fn one_command_reads_any_stores_and_fails_as_a_whole() {
    let all = said("MGET ids:1 texts:ab people:3 ids:10 ids:1\r\n").await;
    assert_eq!(all, "*5\r\n$2\r\nv1\r\n$2\r\nv2\r\n$7\r\n{\"n\":3}\r\n$-1\r\n$2\r\nv1\r\n");
    let failed = said("MGET ids:1 ids:14 ids:2\r\nMGET ids:1\r\nMGET nowhere:1 ids:1\r\n").await;
    assert_eq!(
        failed,
        format!(
            "{UNANSWERED_REPLY}*1\r\n$2\r\nv1\r\n\
             -ERR unknown_store: there is no store \"nowhere\" (stores of values: ids)\r\n"
        )
    );
}

#[tokio::test]
async fn commands_that_are_too_large_together_are_answered_one_by_one() {
    let stores = Stores::open();
    let lines = "PING\r\nGET huge:1\r\nMGET huge:2 ids:3 huge:20 texts:ab\r\nMGET huge:1 huge:2 huge:3\r\nFOO\r\nSTRLEN huge:12\r\nEXISTS huge:1 huge:2\r\nGET ids:7\r\n";
    let replies = Conversation::with(&stores, 1 << 20).say(lines).await;
    let replies: Vec<&str> = replies.split("\r\n").collect();
    assert_eq!(replies[..11], ["+PONG", "$2", "v1", "*4", "$2", "v2", "$2", "v3", "$-1", "$2", "v2"]);
    assert!(replies[11].starts_with("-ERR too_large: "), "{}", replies[11]);
    assert!(replies[12].starts_with("-ERR unknown command 'FOO'"), "{}", replies[12]);
    assert_eq!(replies[13..], [":3", ":2", "$2", "v7", ""]);
    // First three groups together, then each command alone.
    assert_eq!(stores.reads.load(Ordering::Relaxed), 3 + 1 + 3 + 1 + 1 + 1 + 1);
}

#[tokio::test]
async fn a_round_for_which_there_is_no_memory_is_refused_and_the_connection_goes_on() {
    let addr = SocketAddr::from(([127, 0, 0, 1], 7));
    let endpoint = Endpoint::new(Stores::open(), addr);
    let listed = endpoint.connect(addr);
    let connected = known_within(30_000);
    let (mut peer, stream) = duplex(1 << 20);
    let stop = CancellationToken::new();
    let served =
        connection::serve(stream, listed, Arc::clone(&connected), endpoint, RespRights::anybody(), stop);
    let served = tokio::spawn(served);
    let mut replies = [0; 1_000];
    for (sent, begins) in [
        ("MGET large:1 large:2\r\n", "-ERR overloaded: replies that wait"),
        ("GET ids:1\r\n", "$2\r\nv1\r\n"),
    ] {
        peer.write_all(sent.as_bytes()).await.expect("it reads");
        let length = peer.read(&mut replies).await.expect("it answers");
        let replies = String::from_utf8_lossy(&replies[..length]);
        assert!(replies.starts_with(begins), "{replies}");
    }
    assert_eq!(connected.reply_bytes(), 0, "what was charged is given back");
    served.abort();
}

#[tokio::test]
async fn keys_that_cannot_be_are_refused_before_anything_is_read() {
    let stores = Stores::open();
    let replies = Conversation::with(&stores, 1 << 20)
        .say("GET ids\r\nGET ids:x\r\nGET ids:-1\r\nGET ids:18446744073709551616\r\nGET :1\r\n")
        .await;
    let starts: Vec<&str> = replies.lines().map(|line| line.split(": ").next().unwrap()).collect();
    let wrong = "-ERR wrong_key_type";
    assert_eq!(starts, ["-ERR bad_request", wrong, wrong, wrong, "-ERR unknown_store"]);
    let long = format!("texts:{}", "k".repeat(64 * 1024 + 1));
    let replies = Conversation::with(&stores, 1 << 20).exchange(&[&get(&long)]).await;
    assert!(replies.starts_with(b"-ERR out_of_range: "), "{}", replies.escape_ascii());
    assert_eq!(said("GET ids:007\r\n").await, "$2\r\nv7\r\n");
}
