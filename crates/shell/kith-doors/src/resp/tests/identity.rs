//! Tests of unauthenticated clients, tokens and rights.

use super::*;

fn access() -> String {
    let hash: String = Sha256::digest("ads-token").iter().map(|byte| format!("{byte:02x}")).collect();
    format!("[[subject]]\nname = \"ads\"\ntoken-sha256 = [\"{hash}\"]\nread = [\"ids\"]\n")
}

/// A client of a gate with this access file that has sent no certificate.
fn nobody(folder: &Path) -> RespRights {
    let own = Caller::new(CallerIdentity::Nobody);
    crate::CallerRights::new(gate(folder, Some(&access())), own, "resp").into()
}

/// The replies to a client of a gate with this access file that has sent no certificate.
async fn said_to_nobody(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let rights = nobody(folder.path());
    let replies = Conversation::of(rights, &Stores::open(), 1 << 20).exchange(&[bytes]).await;
    String::from_utf8(replies).expect("text")
}

#[tokio::test]
async fn who_is_known_to_nobody_is_answered_as_by_redis() {
    let replies = said_to_nobody(
        b"PING\r\nGET ids:7\r\nGET nowhere\r\nINFO\r\nHELLO 3\r\nFOO\r\nGET\r\nAUTH guess\r\nAUTH eve ads-token\r\n\
          AUTH a b c\r\nHELLO 3 AUTH default guess\r\nRESET\r\nQUIT\r\nPING\r\n",
    );
    let replies = replies.await;
    let lines: Vec<&str> = replies.lines().collect();
    let noauth = "-NOAUTH Authentication required.";
    let wrongpass = "-WRONGPASS invalid username-password pair or user is disabled.";
    assert_eq!(lines[..4], [noauth; 4]);
    assert!(lines[4].starts_with("-NOAUTH HELLO must be called with the client already authenticated"));
    assert!(lines[5].starts_with("-ERR unknown command 'FOO'") && lines[6].starts_with("-ERR wrong number"));
    assert_eq!(lines[7..], [wrongpass, wrongpass, "-ERR syntax error", wrongpass, "+RESET", "+OK"]);
}

#[tokio::test]
async fn who_is_known_to_nobody_is_hung_up_on_after_a_few_commands() {
    let replies = said_to_nobody(&b"GET ids:7\r\n".repeat(1_000)).await;
    let lines: Vec<&str> = replies.lines().collect();
    assert_eq!(lines[..16], ["-NOAUTH Authentication required."; 16]);
    assert_eq!(lines[16..], ["-NOAUTH too many commands before AUTH: closing the connection"]);
    // The count starts again after each authentication.
    let replies = said_to_nobody(&b"AUTH ads-token\r\nRESET\r\nPING\r\n".repeat(40)).await;
    assert_eq!(replies, "+OK\r\n+RESET\r\n-NOAUTH Authentication required.\r\n".repeat(40));
}

#[tokio::test]
async fn a_token_opens_what_its_subject_may_read_until_it_is_put_away() {
    for auth in ["AUTH ads-token", "AUTH ads ads-token", "auth default ads-token"] {
        let lines = format!("{auth}\r\nGET ids:7\r\nPING\r\nRESET\r\nGET ids:7\r\n");
        let replies = said_to_nobody(lines.as_bytes()).await;
        let expected = "+OK\r\n$2\r\nv7\r\n+PONG\r\n+RESET\r\n-NOAUTH Authentication required.\r\n";
        assert_eq!(replies, expected, "{auth}");
    }
    let hello =
        said_to_nobody(b"HELLO 3 AUTH ads ads-token SETNAME feeds\r\nCLIENT GETNAME\r\nGET ids:10\r\n");
    let hello = hello.await;
    assert!(hello.starts_with("%7\r\n") && hello.ends_with("$5\r\nfeeds\r\n_\r\n"), "{hello}");

    // A store that the client may not read, whether it exists or not, fails the whole command and no other one.
    let replies = said_to_nobody(
        b"AUTH ads-token\r\nMGET ids:1 texts:a ids:2\r\nEXISTS nowhere:1\r\nSTRLEN texts:a\r\nMGET ids:1\r\nGET texts:a\r\n",
    );
    let replies = replies.await;
    let lines: Vec<&str> = replies.lines().collect();
    let refused =
        |line: &str, store: &str| line.starts_with(&format!("-NOPERM ads may not read store \"{store}\" ("));
    assert!(refused(lines[1], "texts") && refused(lines[2], "nowhere"), "{replies}");
    assert!(refused(lines[3], "texts") && refused(lines[7], "texts"), "{replies}");
    assert_eq!(lines[4..7], ["*1", "$2", "v1"]);
}

#[tokio::test]
async fn who_is_known_is_named_in_the_list_of_clients() {
    let replies =
        said_to_nobody(b"AUTH ads-token\r\nCLIENT LIST\r\nCLIENT INFO\r\nRESET\r\nCLIENT LIST\r\n").await;
    let named = "id=1 addr=127.0.0.1:7 laddr=127.0.0.1:7 name= age=0 idle=0 db=0 user=ads resp=2 lib-name= lib-ver=\n";
    assert_eq!(replies.matches(named).count(), 2, "{replies}");
    assert!(replies.ends_with("+RESET\r\n-NOAUTH Authentication required.\r\n"), "{replies}");
}

#[tokio::test]
async fn who_is_known_to_nobody_may_send_little() {
    let replies = said_to_nobody(b"*11\r\n").await;
    assert_eq!(replies, "-ERR Protocol error: too many arguments before AUTH; authenticate first\r\n");
    let long = [b"AUTH ads-token\r\n*31\r\n$4\r\nMGET\r\n", &b"$5\r\nids:1\r\n".repeat(30)[..]].concat();
    let replies = said_to_nobody(&long).await;
    assert_eq!(replies, format!("+OK\r\n*30\r\n{}", "$2\r\nv1\r\n".repeat(30)));
}
